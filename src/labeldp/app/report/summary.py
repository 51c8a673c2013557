"""A card on one page, for a data-protection impact assessment."""

from __future__ import annotations

import json

from labeldp._values import Data
from labeldp.accounts.budget import Budget, total_of
from labeldp.accounts.explanation import Explanation, describe_clipping, explain, private_column, public_rows
from labeldp.accounts.ledger import Ledger
from labeldp.accounts.numbers import PEOPLE, number, odds_figures
from labeldp.accounts.reading import ReadCard
from labeldp.accounts.verification import Verification, verify_card
from labeldp.app.report.card_report import last_time
from labeldp.app.report.figures import escaped
from labeldp.app.report.page import (
    PageSource,
    StatedLedger,
    fill_template,
    paragraphs_html,
    state_ledger,
    written_with,
)

MOST_NAMES = 300
"""Characters of the names of columns: the page is one page, however many there are."""

_ASSESSMENT = (
    "The processing releases {what} from {rows:,} records. The private column is protected by label differential "
    "privacy with {cost}{why}, proven for the mechanism used. {others} Residual risks: further releases of the "
    "same records add up; public columns may identify people or hint at the private value; the guarantee rests on "
    "secure random numbers, and on the true values staying with the controller."
)
_SPLIT = " ({total} in all for the model and its score, but no record was used for both)"
_RELEASED = {
    "model": "a model that predicts the private column",
    "regression": "a regression table of the private column",
    "mechanism": "nothing yet",
}
_TABLE = (
    "The other columns of the released table, the number of rows and the bounds are released as they are, and "
    "have to be assessed by themselves."
)
_NO_TABLE = (
    "No column of the table is released. The other columns count as public: the guarantee does not cover what the "
    "result reveals about them, nor the number of rows and the bounds."
)
_ELSEWHERE = "What else was released from the same records is not on the card: ask for the ledger."
_OPEN = "That someone is in the table, {columns}, {rows}, and the bounds."


def summary_page(
    card_text: str, *, ledger: Ledger | StatedLedger | None = None, verification: Verification | None = None
) -> str:
    """Return one A4 page on a card: what was shared, why, with whom, and what can be learnt about a person.

    Parameters
    ----------
    card_text : str
    ledger : Ledger, optional
        Shows what was spent before.
    verification : Verification, optional
        What `verify_card` or `verify_files` returned for this card, where that was called before.

    Raises
    ------
    CardError
        If the card, or a file that was compared, does not hold.

    Examples
    --------
    >>> import labeldp as ldp
    >>> release = ldp.privatize([2.5, 4.0], epsilon=1.0, bounds=(0, 5), purpose="rent index")
    >>> "<h1>A release of private labels: summary for an assessment</h1>" in summary_page(release.to_card())
    True
    """
    card = (verification or verify_card(card_text)).require_card()
    stated = state_ledger(ledger, card.terms.charges)
    explanation = explain(card.terms, card.kind, card.content, None if stated is None else stated.others)
    title = f"{explanation.title}: summary for an assessment"
    sections = _sections(card, explanation, stated)
    source = PageSource("summary", str(json.loads(card_text)["checksum"]), written_with("summary"), stated)
    foot = f"Written by {source.written_with} from the card {source.card}; labeldp verify compares both."
    main = "\n".join(f"<h2>{heading}</h2>{paragraphs_html(lines)}" for heading, lines in sections.items())
    return fill_template(
        "summary.html", title=escaped(title), main=main, foot=paragraphs_html([foot]), about=source.tag()
    )


def _sections(card: ReadCard, explanation: Explanation, ledger: StatedLedger | None) -> dict[str, list[str]]:
    terms, said, split = card.terms, card.terms.declaration, card.terms.split
    texts, cost, total = explanation.sections, explanation.budget, total_of(terms.charges)
    kind = "regression" if "regression" in card.content else card.kind
    is_table = kind not in _RELEASED
    learnt = [texts["What it means"][0], PEOPLE.format(**odds_figures(cost.epsilon))]
    assessment = _ASSESSMENT.format(
        what=_RELEASED.get(kind, "one noisy value a row"),
        rows=terms.rows if split is None else split.train_rows + split.test_rows,
        cost=cost,
        why=_SPLIT.format(total=total) if cost != total and terms.charges else "",
        others=_TABLE if is_table else _NO_TABLE,
    )
    columns = "its other columns that are released" if is_table else "what the result reveals of other columns"
    bounds = " and ".join(dict.fromkeys(f"{number(low, 9)} to {number(high, 9)}" for low, high in terms.bounds))
    spent = [line for line in texts.get("What it cost", ())[1:] if not line.startswith("  ")]
    sections = {
        "Read this first": list(explanation.warnings),
        "What was shared": [
            *([f"Private column: {_shortened(column)}"] if (column := private_column(card.content)) else ()),
            texts["What was done"][0],
            *texts["What is released"][:1],
            *(describe_clipping(terms)[:2] if card.kind == "release" else ()),
            f"Date: {last_time(terms.charges) or 'not stated on the card'}.",
        ],
        "Why, with whom, and in which bounds": [
            _stated("Purpose", said.purpose),
            _stated("Recipient", said.recipient),
            _stated("Bounds of the private value", bounds),
            _stated("How the bounds were chosen", said.bounds_reason),
        ],
        "What can be learnt about a person at most": learnt if explanation.private else ["Everything."],
        "What was spent": [f"This release: {total}.", *spent, _spent_before(ledger)],
        "What is not protected": [
            _OPEN.format(columns=columns, rows=public_rows(card.content)),
            *_other_columns(card.content.get("file", {})),
            "What other columns reveal about the private value without this release.",
        ],
        "Text for the assessment": [assessment if explanation.private else "NOT PRIVATE: not for release."],
    }
    return {heading: lines for heading, lines in sections.items() if lines}


def _stated(name: str, text: str | None) -> str:
    return f"{name}: {text or 'not stated on the card'}"


def _other_columns(file: Data) -> list[str]:
    """Return which columns of a file are released as they are; of many, the first."""
    labels = (file.get("column"), file.get("unbiased_column"))
    names = ", ".join(name for name in file.get("columns", []) if name not in labels)
    return [f"Columns that are released as they are: {_shortened(names)}"] if names else []


def _shortened(names: str) -> str:
    return names if len(names) <= MOST_NAMES else f"{names[:MOST_NAMES]}…"


def _spent_before(ledger: StatedLedger | None) -> str:
    if ledger is None:
        return _ELSEWHERE
    others = ledger.others
    limit = "it has no limit" if ledger.limit is None else f"its limit is {ledger.limit}"
    return f"The ledger counts {'nothing' if others == Budget(0) else others} for other releases; {limit}."
