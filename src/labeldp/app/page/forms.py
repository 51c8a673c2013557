"""Forms: typed text as values of options, and problems in the page's words."""

from __future__ import annotations

import inspect
import re
import traceback
from collections.abc import Collection, Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from starlette.datastructures import ImmutableMultiDict

from labeldp._values import Data
from labeldp.accounts.ledger import Ledger
from labeldp.app.cli import OPTIONS
from labeldp.app.sentences import EXPLAINED, as_field, explain_charges, explain_error
from labeldp.errors import ParameterError, Setting

Problems = dict[str, str]
"""Sentences on what is wrong, by the names of form fields."""

Texts = dict[str, list[str]]
"""Typed texts, by the names of form fields."""

Form = ImmutableMultiDict[str, Any]
"""Typed text by the name of its field: the body or the query of a request."""

_FIRST_WORD = re.compile("^(?!labeldp)[a-z]+(?=[ ,:])")
"""The first word of a sentence, which is not the name of a file."""


def explain(error: BaseException, ledger: Ledger | None = None) -> str:
    """Return what went wrong, with options called by their form fields, and what stays spent in a ledger.

    Of an unexpected error only its kind and where it was raised: its message may quote a label.
    """
    if not isinstance(error, EXPLAINED):
        frame = traceback.extract_tb(error.__traceback__)[-1]
        name = f"{type(error).__name__} at {Path(frame.filename).name}:{frame.lineno}"
        return f"Something went wrong inside, {name}{explain_charges(ledger) or '.'}"
    return _FIRST_WORD.sub(lambda word: word[0].capitalize(), explain_error(error, as_field, ledger))


@contextmanager
def collect_problem(problems: Problems, field: str, fields: Collection[str] = ()) -> Iterator[None]:
    """Note what goes wrong in the block as the problem of a form field, or of another one that the error names.

    Examples
    --------
    >>> problems = {}
    >>> with collect_problem(problems, "epsilon"):
    ...     OPTIONS["epsilon"].read("0")
    >>> list(problems)
    ['epsilon']
    """
    try:
        yield
    except EXPLAINED as error:
        option = str(getattr(error, "option", field))
        problems[option if option in fields else field] = explain(error)


def parse_fields(names: Iterable[str], form: Form, problems: Problems, decimals: str = ".,") -> Data:
    """Return the values of options, by name; those that are wrong are left out, and noted as problems.

    Bounds are written as the table is: their decimal mark is one of ``decimals``.
    """
    values = dict[str, Any]()
    for name in names:
        with collect_problem(problems, name):
            option = OPTIONS[name]
            texts = [str(text).strip() for text in form.getlist(name)]
            if any(texts):
                typed = texts if name == "bounds" else texts[0]
                values[name] = option.read(typed, decimals if name == "bounds" else ".,")
            elif option.default is inspect.Parameter.empty:
                raise ParameterError(Setting(name), " is empty: choose it first")
            else:
                values[name] = option.default
    return values
