"""A card on one page, for a data-protection impact assessment: HTML or Markdown."""

from __future__ import annotations

import json
import re
from importlib import resources
from string import Template
from typing import Any

from labeldp import __version__
from labeldp.accounts.budget import Budget, missing_charges, total_of
from labeldp.accounts.explanation import Explanation
from labeldp.accounts.ledger import Ledger
from labeldp.accounts.numbers import PEOPLE, odds_figures
from labeldp.accounts.reading import ReadCard
from labeldp.accounts.verification import verify_card
from labeldp.app.report.figures import escaped, visible

MOST_NAMES = 400
"""Characters of the names of columns: the page is one page, however many there are."""

_ASSESSMENT = (
    "The processing releases {what} from {rows:,} records. The private column is protected by label differential "
    "privacy with {cost}, proven for the mechanism used. All other columns, the number of rows and the bounds are "
    "released as they are, and have to be assessed by themselves. Residual risks: further releases of the same "
    "records add up; public columns may identify people or hint at the private value; the guarantee rests on "
    "secure random numbers, and on the true values staying with the controller."
)
_RELEASED = {"model": "a statistical model", "mechanism": "nothing yet"}
_ELSEWHERE = "What else was released from the same records is not on the card: ask for the ledger."
_OPEN = "That someone is in the table, all other columns, the number and order of the rows, and the bounds."


def summary_page(card_text: str, *, markdown: bool, ledger: Ledger | None = None) -> str:
    """Return one page on a card: what was shared, why, with whom, and what can be learnt about a person.

    Parameters
    ----------
    card_text : str
    markdown : bool
        Whether to write Markdown; else HTML that prints on one A4 page.
    ledger : Ledger, optional
        Shows what was spent before.

    Raises
    ------
    CardError
        If the card does not hold.

    Examples
    --------
    >>> import labeldp as ldp
    >>> release = ldp.privatize([2.5, 4.0], epsilon=1.0, bounds=(0, 5), purpose="rent index")
    >>> print(summary_page(release.to_card(), markdown=True)[:57])
    # A release of private labels: summary for an assessment
    """
    card = verify_card(card_text).require_card()
    explanation = card.explain(None if ledger is None else ledger.charges)
    title = f"{explanation.title}: summary for an assessment"
    sections = _sections(card, explanation, ledger)
    foot = f"Verified by labeldp {__version__}, from the card {json.loads(card_text)['checksum']}"
    if markdown:
        parts = [f"## {heading}\n\n" + "\n\n".join(map(_plain, lines)) for heading, lines in sections.items()]
        return "\n\n".join([f"# {_plain(title)}", *parts, f"---\n\n{foot}"]) + "\n"
    main = ""
    for heading, lines in sections.items():
        main += f"<h2>{heading}</h2>" + "".join(f"<p>{escaped(line)}</p>" for line in lines) + "\n"
    template = resources.files("labeldp.app.report").joinpath("summary.html").read_text(encoding="utf-8")
    return Template(template).substitute(title=escaped(title), main=main, foot=f"<p>{escaped(foot)}</p>")


def _plain(line: str) -> str:
    """Return text that Markdown shows as it is."""
    return re.sub(r"([\\`*_{}\[\]<>#|!])", r"\\\1", visible(" ".join(line.split())))


def _sections(card: ReadCard, explanation: Explanation, ledger: Ledger | None) -> dict[str, list[str]]:
    texts, terms, said, cost = explanation.sections, card.terms, card.terms.declaration, explanation.budget
    learnt = [texts["What it means"][0], PEOPLE.format(**odds_figures(cost.epsilon))]
    what = _RELEASED.get(card.kind, "one noisy value a row")
    assessment = _ASSESSMENT.format(what=what, rows=terms.rows, cost=cost)
    sections = {
        "Read this first": list(explanation.warnings),
        "What was shared": [texts["What was done"][0], *texts["What is released"][:1]],
        "Why, and with whom": [_stated("Purpose", said.purpose), _stated("Recipient", said.recipient)],
        "What can be learnt about a person at most": learnt if explanation.private else ["Everything."],
        "What was spent": [f"This release: {total_of(terms.charges)}.", _spent_before(card, ledger)],
        "What is not protected": [
            _OPEN,
            *_other_columns(card.content.get("file", {})),
            "What other columns reveal about the private value without this release.",
            _stated("How the bounds were chosen", said.bounds_reason),
        ],
        "Text for the assessment": [assessment if explanation.private else "NOT PRIVATE: not for release."],
    }
    return {heading: lines for heading, lines in sections.items() if lines}


def _stated(name: str, text: str | None) -> str:
    return f"{name}: {text or 'not stated on the card'}"


def _other_columns(file: dict[str, Any]) -> list[str]:
    """Return which columns of a file are released as they are; of many, the first."""
    labels = (file.get("column"), file.get("unbiased_column"))
    names = ", ".join(name for name in file.get("columns", []) if name not in labels)
    shown = names if len(names) <= MOST_NAMES else f"{names[:MOST_NAMES]}…"
    return [f"Columns that are released as they are: {shown}"] if names else []


def _spent_before(card: ReadCard, ledger: Ledger | None) -> str:
    if ledger is None:
        return _ELSEWHERE
    others = total_of(missing_charges(ledger.charges, card.terms.charges))
    limit = "it has no limit" if ledger.limit is None else f"its limit is {ledger.limit}"
    return f"The ledger counts {'nothing' if others == Budget(0) else others} for other releases; {limit}."
