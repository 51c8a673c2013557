"""A card as a page: what was done, what it cost, what it protects, what to expect, and how to verify it."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from datetime import UTC, datetime

from labeldp._atomic import StrPath
from labeldp._values import Data
from labeldp.accounts.budget import Charge, missing_charges, rounded_up, total_of
from labeldp.accounts.explanation import Explanation, explain
from labeldp.accounts.ledger import Ledger
from labeldp.accounts.numbers import at_most, percent, times
from labeldp.accounts.scores import coefficient_cells, describe_fit
from labeldp.accounts.terms import Terms
from labeldp.accounts.verification import Verification, verify_card
from labeldp.app.report.page import Kind, Section, render_page, write_page
from labeldp.app.report.reviewer import proof_sections
from labeldp.app.report.summary import summary_sections
from labeldp.tables.paths import Target


def write_report(
    path: StrPath,
    card_text: str,
    *,
    ledger: Ledger | None = None,
    force: bool = False,
    like: StrPath | None = None,
) -> None:
    """Write the report of a card: one HTML file, whole or not at all.

    Parameters
    ----------
    path : path-like
        The file to write.
    card_text, ledger
        As for `render_report`.
    force : bool
        Whether to replace a file.
    like : path-like, optional
        The file that the report is about: who may not read it may not read the report.

    Raises
    ------
    ParameterError
        If there is a file already.
    CardError, PrivacyProofError
        If the card does not hold.

    Examples
    --------
    >>> import tempfile, pathlib, labeldp as ldp
    >>> from labeldp.app.report import write_report
    >>> release = ldp.privatize([2.5, 4.0], epsilon=1.0, bounds=(0, 5), mechanism="two-point")
    >>> path = pathlib.Path(tempfile.mkdtemp(), "release.html")
    >>> write_report(path, release.to_card(), ledger=release.ledger)
    >>> path.exists()
    True
    """
    Target(str(path), force).refuse()
    write_page(path, render_report(card_text, ledger=ledger), force=force, like=like)


def render_report(
    card_text: str,
    kind: Kind = "report",
    *,
    ledger: Ledger | None = None,
    verification: Verification | None = None,
) -> str:
    """Return the report of a card, as HTML.

    Parameters
    ----------
    card_text : str
        The card of a mechanism, a release or a model.
    kind : {"report", "summary"}
        All of it, or one A4 page for a data-protection impact assessment.
    ledger : Ledger, optional
        Shows what else was spent on these labels, and what is left.
    verification : Verification, optional
        What `verify_card` or `verify_files` returned for this card, where that was called before.

    Returns
    -------
    str
        HTML that loads nothing and runs nothing.

    Raises
    ------
    CardError, PrivacyProofError
        If the card, or a file that was compared, does not hold.

    Examples
    --------
    >>> import labeldp as ldp
    >>> from labeldp.app.report import render_report
    >>> card = ldp.TwoPoint(bounds=(0, 5), epsilon=1.0).to_json()
    >>> "at most e^ε = 2.72×" in render_report(card), "Text for the assessment" in render_report(card, "summary")
    (True, True)
    """
    card = (verification or verify_card(card_text)).require_card(allow_open=kind == "report")
    terms = card.terms
    others = None if ledger is None else total_of(missing_charges(ledger.charges, terms.charges))
    explanation = explain(terms, card.kind, card.content, others)
    texts = dict(explanation.sections)
    if ledger is not None and terms.charges:
        texts["What it cost"] += tuple(_describe_ledger(ledger, terms.charges))
    values = {"lead": texts.pop("What was done"), "when": _last_time(terms.charges)}
    if kind == "summary":
        return render_page(
            title=f"{explanation.title}: summary for an assessment",
            warnings=(),
            sections=summary_sections(card, explanation, texts),
            style="summary.css",
            **values,
        )
    explained = [Section(heading, lines) for heading, lines in texts.items()]
    return render_page(
        title=explanation.title,
        warnings=explanation.warnings,
        is_private=explanation.private,
        sections=[
            *_coefficients(card.content),
            *_tiles(explanation, terms),
            *explained,
            *proof_sections(card),
        ],
        style="style.css",
        **values,
    )


def _describe_ledger(ledger: Ledger, charges: Sequence[Charge]) -> list[str]:
    """Return the sum of all charges of a ledger and of a release, and the rest of its limit."""
    missing = missing_charges(charges, ledger.charges)
    total = total_of([*ledger.charges, *missing])
    limit = "The ledger has no limit: it counts, and refuses nothing."
    if ledger.limit is not None:
        limit = f"The limit is {ledger.limit}; left is {ledger.limit.minus(total)}."
    lacks = ["The ledger given does not hold all charges of this release."] if missing else []
    return [*lacks, f"With all else in the ledger, {total} is spent. {limit}"]


def _last_time(charges: Sequence[Charge]) -> str:
    """Return the day and time of the last of the charges, or nothing."""
    times = []
    for charge in charges:
        with suppress(ValueError):
            times.append(datetime.fromisoformat(charge.when).astimezone(UTC))
    return f"{max(times):%Y-%m-%d %H:%M} UTC" if times else ""


def _coefficients(content: Data) -> list[Section]:
    """Return the table of coefficients of a regression's card."""
    table = content.get("regression")
    if table is None or not {"pvalues", "conf_int"} <= table.keys():
        return []
    head, *rows = coefficient_cells(table)
    notes = [*content.get("note", "").splitlines(), *describe_fit(content.get("fit", {}))]
    title = f"The regression table of {content.get('label', 'the label')}"
    return [Section(title, [], head, rows), Section("How to read it", notes)]


def _tiles(explanation: Explanation, terms: Terms) -> list[Section]:
    """Return the figures that matter most, if the release is private."""
    if not explanation.private:
        return []
    whose = "one label" if len(terms.bounds) < 2 else "all labels of one row"
    whose = whose if terms.rows_per_person == 1 else "all labels of one person"
    epsilon, ledger = explanation.budget.epsilon, explanation.ledger
    tiles = {f"ε, the most that this costs {whose}": rounded_up(epsilon, 4)}
    tiles["is the most by which odds can grow by this alone"] = times(epsilon)
    tiles["is the most a guess can gain by this alone"] = f"50 % → {percent(at_most(0.5, epsilon))}"
    if ledger is not None:
        tiles["ε of everything in its ledger"] = rounded_up(ledger.epsilon, 4)
        tiles["is the most by everything in its ledger"] = times(ledger.epsilon)
    if terms.rows:
        tiles["labels"] = f"{terms.rows:,}"
    return [Section(tiles=tiles)]
