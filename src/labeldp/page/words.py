"""What the page calls what the command line has options for: the names of its fields, in one place."""

from __future__ import annotations

import re

from labeldp.jobs.sentences import explain_error
from labeldp.ledger import Ledger

FIELDS = {
    "separator": "“Between values”",
    "decimal": "“Decimal mark”",
    "thousands": "“Between thousands”",
    "encoding": "“Encoding”",
    "na": "“Words for missing values”",
    "sheet": "“The sheet”",
    "formulas": "“Columns whose formulas may be used”",
    "header": "“The first row names the columns”",
    "names": "“Names of all columns”",
    "multiline": "“Column with line breaks”",
    "drop": "“leave out”",
    "score": "“ε more for a score”",
    "shuffle": "“random order”",
}
"""Fields of the forms, by the options that do the same."""

PHRASES = {
    "pass --force to replace it": "choose another name",
    "is not beside the card: give its path to check it too": "is not beside the card, where links do not count",
    "name another with --column": "rename it, or leave it out, and try again",
    "--missing drop": "the tick at “Leave out rows without a label”",
    "--trust KEY.pub says whom you trust": "below you can name the public key that you trust",
    "See private_score, or compare": "Ask for a score when you order a model, or compare",
    "by --limit and --limit-delta": "on the command line, by --limit-delta",
}
"""What is said in other words, where no field is like an option."""


CHARGES = {
    "labels": "labels with noise",
    "prior (curator)": "about where labels lie (a prior, which makes the noise smaller)",
    "sums": "sums with noise, which a model learns from",
    "score": "the score of a model",
}
"""What charges paid for, by what ledgers and cards call it."""


def plain_cost(line: str) -> str:
    """Return a line of what something cost in words for those who never saw a ledger.

    Examples
    --------
    >>> plain_cost("  0.7 for labels")
    '  0.7 for labels with noise'
    """
    amount, for_, what = line.partition(" for ")
    return f"{amount}{for_}{CHARGES.get(what, what)}"


def as_fields(text: str) -> str:
    """Return a sentence of the command line with the page's fields instead of options.

    Examples
    --------
    >>> as_fields("say which, as in --decimal ','; or --na unknown")
    'say which, as in “Decimal mark” = “,”; or “Words for missing values” = “unknown”'
    >>> as_fields("out.csv exists already: pass --force to replace it")
    'out.csv exists already: choose another name'
    >>> as_fields("50 rows are too few to hold some out: leave --score out")
    '50 rows are too few to hold some out: leave “ε more for a score” out'
    """
    for option, phrase in PHRASES.items():
        text = text.replace(option, phrase)

    def field(found: re.Match[str]) -> str:
        name, value = found.groups()
        is_value = value and (name != "score" or value[0].isdigit())
        given = f" = “{value.strip(chr(39))}”" if is_value else f" {value}" if value else ""
        return FIELDS[name] + given

    return re.sub(rf"--({'|'.join(FIELDS)})\b(?: ('[^']*'|[\w,.-]*\w))?", field, text)


def explain_in_page(error: BaseException, ledger: Ledger | None = None) -> str:
    """Return what went wrong, and what stays spent, as the command line says it but for names of fields."""
    return as_fields(explain_error(error, ledger))
