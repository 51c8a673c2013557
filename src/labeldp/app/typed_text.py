"""Numbers and names as people type them, on the command line and in forms of the page."""

from __future__ import annotations

import csv
import io
import re
from collections.abc import Iterable
from contextlib import suppress
from itertools import chain

from labeldp.errors import ParameterError, Setting
from labeldp.release.number_patterns import CURRENCY, GROUPS, number_pattern


def split_names(value: str | Iterable[str] | None) -> list[str]:
    """Return names from a list with commas between; a name that has a comma stands in quotes.

    Examples
    --------
    >>> split_names('id, name,"a,b"'), split_names(["a,b"])
    (['id', 'name', 'a,b'], ['a,b'])
    """
    if not isinstance(value, str):
        return list(value or ())
    cells = chain.from_iterable(csv.reader(io.StringIO(value, newline=""), skipinitialspace=True))
    return [cell.strip() for cell in cells if cell.strip()]


def join_names(names: Iterable[str]) -> str:
    """Return names as `split_names` reads them.

    Examples
    --------
    >>> join_names(["id", "a,b"])
    'id,"a,b"'
    """
    text = io.StringIO()
    csv.writer(text, lineterminator="").writerow(names)
    return text.getvalue()


def parse_figure(text: str, name: str, decimals: str = ".,") -> float:
    """Return a number from text. Refuse text that can be read in two ways.

    Parameters
    ----------
    text : str
        With a decimal point or comma, and perhaps the other mark, or blanks, between thousands, or a currency.
    name : str
        The option.
    decimals : str
        The decimal marks that are possible. Three digits behind one may be meant as thousands, and are refused.

    Examples
    --------
    >>> parse_figure("0,5", "epsilon"), parse_figure("9.774,66 €", "bounds"), parse_figure("60.000", "bounds", ",")
    (0.5, 9774.66, 60000.0)
    >>> parse_figure("60.000", "bounds")
    Traceback (most recent call last):
    ...
    labeldp.errors.ParameterError: bounds must be clear: write 60 or 60000, since 60.000 could be either
    >>> parse_figure("60,000", "bounds", ",")
    Traceback (most recent call last):
    ...
    labeldp.errors.ParameterError: bounds must be clear: write 60 or 60000, since 60,000 could be either
    """
    numbers = readings(text, decimals)
    with_any_mark = readings(text)
    if numbers == with_any_mark[:1]:  # such as 60,000 where the comma is the decimal mark
        numbers = with_any_mark
    if len(numbers) > 1:
        clear = [number if len(readings(number)) == 1 else f"{number}0" for number in numbers]
        raise ParameterError(
            Setting(name), f" must be clear: write {' or '.join(clear)}, since {text.strip()} could be either"
        )
    if not numbers:
        raise ParameterError(Setting(name), f" must be a number, such as 1.5, got {text.strip()!r}")
    return float(numbers[0])


def readings(text: str, decimals: str = ".,") -> list[str]:
    """Return the numbers that a text can be read as, without marks between thousands.

    Examples
    --------
    >>> readings("50,000"), readings("50,000", "."), readings("fifty"), readings("-1.000")
    (['50', '50000'], ['50000'], [], ['-1', '-1000'])
    """
    typed = re.sub(CURRENCY, r"\1", text.strip().replace("−", "-"))
    if not re.search(r"[.,\s]", typed):
        with suppress(ValueError):
            float(typed)
            return [typed]
    numbers = set[float]()
    for decimal in decimals:
        groups = GROUPS + ".,".replace(decimal, "")
        if re.search(number_pattern(decimal, groups), typed):
            numbers.add(float(re.sub(f"[{groups}]", "", typed).replace(decimal, ".")))
    return [repr(number).removesuffix(".0") for number in sorted(numbers, key=abs)]


def parse_amount(text: str, name: str) -> float:
    """Return an ε from text. A point is its decimal mark.

    Examples
    --------
    >>> parse_amount("1.386", "epsilon"), parse_amount("0,5", "epsilon")
    (1.386, 0.5)
    """
    with suppress(ValueError):
        return float(text)
    return parse_figure(text, name)


def parse_count(text: str, name: str) -> int:
    """Return an integer from text."""
    number = parse_figure(text, name)
    if not number.is_integer():
        raise ParameterError(Setting(name), f" must be an integer, got {text.strip()!r}")
    return int(number)
