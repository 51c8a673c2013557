"""Forms: what was typed into their fields as values of options, and what is wrong with it in the page's words."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from typing import Any

from starlette.datastructures import FormData

from labeldp.accounts.ledger import Ledger
from labeldp.app.option import REQUIRED, Option, parse_figure
from labeldp.app.options import OPTIONS
from labeldp.app.sentences import EXPLAINED, as_field, explain_error
from labeldp.errors import ParameterError, Setting

_FIRST_WORD = re.compile("^(?!labeldp)[a-z]+(?=[ ,:])")
"""Of a sentence, and not the name of a file."""


def explain(error: BaseException, ledger: Ledger | None = None) -> str:
    """Return what went wrong, with options called by their form fields, and what stays spent in a ledger."""
    return _FIRST_WORD.sub(lambda word: word[0].capitalize(), explain_error(error, as_field, ledger))


@contextmanager
def collect_problem(problems: dict[str, str], field: str) -> Iterator[None]:
    """Note what goes wrong in the block as the problem of a form field.

    Examples
    --------
    >>> problems = {}
    >>> with collect_problem(problems, "epsilon"):
    ...     OPTIONS["epsilon"].parse(0)
    >>> list(problems)
    ['epsilon']
    """
    try:
        yield
    except EXPLAINED as error:
        problems[field] = explain(error)


def parse_fields(
    names: Iterable[str], form: FormData, problems: dict[str, str], decimals: str = ".,"
) -> dict[str, Any]:
    """Return the values of options, by name; those that are wrong are left out, and noted as problems.

    Bounds are written as the table is: their decimal mark is one of ``decimals``.
    """
    values = dict[str, Any]()
    for name in names:
        with collect_problem(problems, name):
            texts = [str(text).strip() for text in form.getlist(name)]
            value = _typed_value(OPTIONS[name], texts, decimals if name == "bounds" else ".,")
            values[name] = value if value is None else OPTIONS[name].parse(value)
    return values


def _typed_value(option: Option, texts: list[str], decimals: str) -> Any:
    """Return what was typed into the fields of one option, for its parser; by default what the option has."""
    if not any(texts):
        if option.default is REQUIRED:
            raise ParameterError(Setting(option.name), " is empty: choose it first")
        return option.default
    if option.type is bool:
        return True
    if option.type is str or option.type == list[str]:
        return texts[0]
    numbers = [parse_figure(text, option.name, decimals) for text in texts]
    if option.type is int and numbers[0].is_integer():
        return int(numbers[0])
    return numbers[0] if option.type in (int, float) else tuple(numbers)
