"""A card on one page, for a data-protection impact assessment."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from labeldp.accounts.explanation import Explanation, public_rows
from labeldp.accounts.numbers import PEOPLE, number, odds_figures
from labeldp.accounts.reading import ReadCard
from labeldp.app.report.page import Section

MOST_NAMES = 300
"""Characters of the names of columns: the page is one page, however many there are."""

_ASSESSMENT = (
    "The processing releases {what} from {rows:,} records. The private column is protected by label differential "
    "privacy with {cost}, proven for the mechanism used. {others} Residual risks: further releases of the same "
    "records, which the ledger lists, add up; public columns may identify people or hint at the private value; "
    "the guarantee rests on secure random numbers, and on the true values staying with the controller."
)
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
_OPEN = (
    "That someone is in the table, {columns}, {rows}, and the bounds; and what other columns reveal about the "
    "private value without this release."
)


def summary_sections(
    card: ReadCard, explanation: Explanation, texts: Mapping[str, Sequence[str]]
) -> list[Section]:
    """Return what was shared, why, with whom, and what can be learnt about a person, in a paragraph or two each.

    Parameters
    ----------
    card : ReadCard
    explanation : Explanation
        Of the card.
    texts : mapping
        Its sections, by their headings.
    """
    terms, said, split = card.terms, card.terms.declaration, card.terms.split
    kind = "regression" if "regression" in card.content else card.kind
    is_table = kind not in _RELEASED
    assessment = _ASSESSMENT.format(
        what=_RELEASED.get(kind, "one noisy value a row"),
        rows=terms.rows if split is None else split.train_rows + split.test_rows,
        cost=explanation.budget,
        others=_TABLE if is_table else _NO_TABLE,
    )
    columns = "its other columns that are released" if is_table else "what the result reveals of other columns"
    stated = {
        "Purpose": said.purpose,
        "Recipient": said.recipient,
        "Bounds of the private value": " and ".join(f"{number(a, 9)} to {number(b, 9)}" for a, b in terms.bounds),
        "How the bounds were chosen": said.bounds_reason,
    }
    file = card.content.get("file", {})
    names = ", ".join(name for name in file.get("columns", ()) if name != file["column"])
    learnt = [texts["What it means"][0], PEOPLE.format(**odds_figures(explanation.budget.epsilon))]
    sections: dict[str, Sequence[str]] = {
        "Read this first": explanation.warnings,
        "What is released": texts["What is released"][:1],
        "Why, with whom, and in which bounds": [
            f"{name}: {text or 'not stated on the card'}" for name, text in stated.items()
        ],
        "What can be learnt about a person at most": learnt if explanation.private else ["Everything."],
        "What it cost": texts["What it cost"],
        "How noisy it is": texts["How noisy it is"],
        "What is not protected": [
            _OPEN.format(columns=columns, rows=public_rows(card.content)),
            *([f"Columns that are released as they are: {names[:MOST_NAMES]}"] if names else ()),
        ],
        "Text for the assessment": [assessment if explanation.private else "NOT PRIVATE: not for release."],
    }
    return [Section(heading, lines) for heading, lines in sections.items() if lines]
