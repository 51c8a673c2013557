"""Messages in the words of the page: options are called by their form fields."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from labeldp.accounts.ledger import Ledger
from labeldp.app.sentences import EXPLAINED, as_field, explain_error
from labeldp.errors import Message

CHARGES = {
    "labels": "labels with noise",
    "prior (curator)": "a rough picture of the values (prior), which makes the noise smaller",
    "sums": "sums with noise, which a model learns from",
    "score": "the score of a model",
}
"""What charges paid for, by what ledgers and cards call it."""


def explain(error: BaseException, ledger: Ledger | None = None) -> str:
    """Return what went wrong, and what stays spent in a ledger."""
    return explain_error(error, as_field, ledger)


def spelled(text: str) -> str:
    """Return a text with options called by their form fields.

    Examples
    --------
    >>> from labeldp.errors import Setting
    >>> spelled(Message("too few rows for ", Setting("score")))
    'too few rows for “ε more for a score”'
    """
    return text.spell(as_field) if isinstance(text, Message) else text


def hint_text(hint: Message) -> str:
    """Return a hint for the owner; columns are left out by their ticks."""
    return hint.spell(lambda setting: "its tick" if setting.option == "drop" else as_field(setting))


@contextmanager
def collect_problem(problems: dict[str, str], field: str) -> Iterator[None]:
    """Note what goes wrong in the block as the problem of a form field.

    Examples
    --------
    >>> from labeldp.app.options import OPTIONS
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
