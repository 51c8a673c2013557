"""What an option is, and how what was typed for several of them becomes arguments of a Python function."""

from __future__ import annotations

import csv
import io
import re
from collections.abc import Callable, Iterable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from labeldp.accounts.budget import Budget
from labeldp.accounts.ledger import Ledger
from labeldp.errors import ParameterError, Setting
from labeldp.release.number_patterns import CURRENCY, GROUPS, number_pattern
from labeldp.tables.dialect import Dialect

REQUIRED: Any = ...
"""The default of an option that must be given."""


def split_names(value: str | Iterable[str] | None) -> list[str]:
    """Return names that were typed with commas between; a name that has a comma stands in quotes.

    Examples
    --------
    >>> split_names('id, name,"a,b"'), split_names(["a,b"])
    (['id', 'name', 'a,b'], ['a,b'])
    """
    if not isinstance(value, str):
        return list(value or ())
    rows = csv.reader(io.StringIO(value, newline=""), skipinitialspace=True)
    return [name for row in rows for part in row if (name := part.strip())]


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
    """Return the number that was typed; one that can be read in two ways is refused.

    Parameters
    ----------
    text : str
        With a decimal point or comma, and perhaps the other mark, or blanks, between thousands, or a currency.
    name : str
        The option.
    decimals : str
        The decimal marks that are possible.

    Examples
    --------
    >>> parse_figure("0,5", "epsilon"), parse_figure("9.774,66 €", "bounds"), parse_figure("60.000", "bounds", ",")
    (0.5, 9774.66, 60000.0)
    >>> parse_figure("60.000", "bounds")
    Traceback (most recent call last):
    ...
    labeldp.errors.ParameterError: bounds must be clear: write 60 or 60000, since 60.000 could be either
    """
    found = readings(text, decimals)
    if len(found) > 1:
        clear = [one if len(readings(one, decimals)) == 1 else f"{one}0" for one in found]
        raise ParameterError(
            Setting(name), f" must be clear: write {' or '.join(clear)}, since {text.strip()} could be either"
        )
    if not found:
        raise ParameterError(Setting(name), f" must be a number, such as 1.5, got {text.strip()!r}")
    return float(found[0])


def readings(text: str, decimals: str = ".,") -> list[str]:
    """Return the numbers that a text can be read as, without marks between thousands.

    Examples
    --------
    >>> readings("50,000"), readings("50,000", "."), readings("fifty")
    (['50', '50000'], ['50000'], [])
    """
    typed = re.sub(CURRENCY, r"\1", text.strip().replace("−", "-"))
    if not re.search(r"[.,\s]", typed):
        with suppress(ValueError):
            float(typed)
            return [typed]
    found = set[float]()
    for decimal in decimals:
        groups = GROUPS + ".,".replace(decimal, "")
        if re.search(number_pattern(decimal, groups), typed):
            found.add(float(re.sub(f"[{groups}]", "", typed).replace(decimal, ".")))
    return [repr(number).removesuffix(".0") for number in sorted(found)]


def parse_amount(text: str, name: str) -> float:
    """Return an ε that was typed: a point in it is its decimal mark.

    Examples
    --------
    >>> parse_amount("1.386", "epsilon"), parse_amount("0,5", "epsilon")
    (1.386, 0.5)
    """
    with suppress(ValueError):
        return float(text)
    return parse_figure(text, name)


def _parse_integer(text: str, name: str) -> int:
    number = parse_figure(text, name)
    if not number.is_integer():
        raise ParameterError(Setting(name), f" must be an integer, got {text.strip()!r}")
    return int(number)


@dataclass(frozen=True, slots=True)
class Option:
    """An option, as the command line, the page and messages use it.

    Attributes
    ----------
    name : str
        The parameter of the Python function, and the name of the form field.
    help : str
        One sentence.
    type : type
        Of what is typed: lists of names are typed as one text.
    default : object
        `REQUIRED` if the option must be given.
    parse : callable or None
        Turns what was typed, as its type, into a value, or raises `ParameterError` with this option. What the
        Python function checks itself needs none.
    metavar : str
        Stands for the value in help; without one the option is a positional argument or a flag.
    flags : tuple of str
        By default ``--name``; empty for a positional argument.
    panel : str
        The heading that the option is under in help.
    part_of : str
        "dialect" or "ledger", if several options make one argument of the Python function.
    field : str
        The label of the page's form field; empty where the page has none.
    choices : mapping or None
        What the page offers to choose from: values, and what it calls them.
    """

    name: str
    help: str
    type: Any = str
    default: Any = None
    parse: Callable[[Any], Any] | None = None
    metavar: str = ""
    flags: tuple[str, ...] | None = None
    panel: str = ""
    part_of: str = ""
    field: str = ""
    choices: Mapping[str, str] | None = None

    @property
    def all_flags(self) -> tuple[str, ...]:
        """The flags on the command line; none for a positional argument."""
        return (f"--{self.name.replace('_', '-')}",) if self.flags is None else self.flags

    def read(self, typed: Any, decimals: str = ".,") -> Any:
        """Return the value of what was typed: one text, or several where the type says so.

        Parameters
        ----------
        typed : str, bool, or sequence of str
        decimals : str
            The decimal marks that bounds may have.

        Examples
        --------
        >>> Option("drop", "Columns.", parse=split_names).read("id,name")
        ['id', 'name']
        """
        value = typed
        if self.type == tuple[float, float]:
            value = tuple(parse_figure(text, self.name, decimals) for text in typed)
        elif self.type in _READERS:
            value = _READERS[self.type](typed, self.name)
        elif self.type == list[Path]:
            value = [Path(text) for text in typed]
        return value if self.parse is None else self.parse(value)


_READERS: dict[Any, Callable[[str, str], Any]] = {
    float: parse_amount,
    int: _parse_integer,
    Path: lambda text, _: Path(text),
    bool: lambda typed, _: bool(typed),
}
"""How one text is read, by the type of an option."""


def parse_options(options: Mapping[str, Option], typed: Mapping[str, Any]) -> dict[str, Any]:
    """Return what was typed as arguments of a Python function; parts of a dialect or a ledger are put together.

    Parameters
    ----------
    options : mapping
        By name.
    typed : mapping
        What was typed for each, or None.

    Examples
    --------
    >>> from labeldp.app.options import OPTIONS
    >>> parse_options(OPTIONS, {"epsilon": "0,5", "drop": "id,name", "missing": None})
    {'epsilon': 0.5, 'drop': ['id', 'name'], 'missing': 'error'}
    """
    parts: dict[str, dict[str, Any]] = {"": {}, "dialect": {}, "ledger": {}}
    for name, value in typed.items():
        option = options[name]
        parts[option.part_of][name] = option.default if value in (None, []) else option.read(value)
    values = parts[""]
    if parts["dialect"]:
        values["dialect"] = Dialect(**parts["dialect"])
    if parts["ledger"]:
        values["ledger"] = open_ledger(**parts["ledger"])
    return values


def open_ledger(ledger: Path | None, limit: float | None = None) -> Ledger:
    """Return the ledger to charge; a new file is created with its first charge, so that a refusal leaves none."""
    budget = None if limit is None else Budget(limit)
    if ledger is not None:
        return Ledger.prepare(ledger, limit=budget)
    if budget is not None:
        raise ParameterError(Setting("limit"), " needs a file to keep it: add ", Setting("ledger", "FILE"))
    return Ledger()
