"""A card as a page: its release, cost and protection, the proof run again, and how to verify it."""

from __future__ import annotations

import json
from collections.abc import Sequence
from contextlib import suppress
from datetime import UTC, datetime
from functools import cache
from typing import Literal

import numpy as np
from jinja2 import Environment, PackageLoader, StrictUndefined

from labeldp import __version__
from labeldp.accounts.budget import Charge, missing_charges, rounded_up, sum_of
from labeldp.accounts.explanation import public_rows
from labeldp.accounts.ledger_chain import Book
from labeldp.accounts.ledger_totals import describe_totals
from labeldp.accounts.numbers import PEOPLE, number, odds_figures, times
from labeldp.accounts.scores import coefficient_cells, describe_coefficients, describe_fit
from labeldp.accounts.statistic import proof_of
from labeldp.accounts.verification import Verification, noise_checks, verify_card
from labeldp.app.report.page import mark_invisible, shorten
from labeldp.exact.proof import Proof
from labeldp.mechanisms.base import Mechanism, fingerprint

Kind = Literal["report", "summary"]

MAX_LISTED = 8
"""Numbers of a parameter that are written out; of longer lists only the shape is."""


def render_report(
    card_text: str,
    kind: Kind = "report",
    *,
    ledger: Book | None = None,
    verification: Verification | None = None,
) -> str:
    """Return the report of a card, as HTML.

    Parameters
    ----------
    card_text : str
        The card of a mechanism, a release or a model.
    kind : {"report", "summary"}
        All of it, or one A4 page for a data-protection impact assessment.
    ledger : Book, optional
        Shows all other charges for these labels, and the rest of the limit.
    verification : Verification, optional
        The result of `verify_card` or `verify_files` for this card, where that was called before.

    Returns
    -------
    str
        HTML that loads nothing and runs nothing.

    Raises
    ------
    CardError, PrivacyProofError
        If the card, or a file that was compared, is not valid.

    Examples
    --------
    >>> import labeldp as ldp
    >>> from labeldp.app.report import render_report
    >>> card = ldp.TwoPoint(bounds=(0, 5), epsilon=1.0).to_json()
    >>> "at most e^ε = 2.72×" in render_report(card), "Text for the assessment" in render_report(card, "summary")
    (True, True)
    """
    verification = verify_card(card_text) if verification is None else verification
    card = verification.require_card(allow_open=kind == "report")
    charges = card.terms.charges
    explanation = card.explain(None if ledger is None else ledger.charges)
    sections = dict(explanation.sections)
    if ledger is not None and charges:
        sections["What it cost"] += tuple(_describe_ledger(ledger, charges))
    return (
        templates()
        .get_template(f"{kind}.html")
        .render(
            card=card,
            content=card.content,
            terms=card.terms,
            explanation=explanation,
            sections=sections,
            time=_last_time(charges),
            noise=list(noise_checks(card)),
            people=PEOPLE,
        )
    )


@cache
def templates() -> Environment:
    """Return the templates of pages; all values that are put into them are escaped."""
    environment = Environment(
        loader=PackageLoader("labeldp.app", "report"),
        autoescape=True,
        undefined=StrictUndefined,
        finalize=mark_invisible,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.globals["version"] = __version__
    environment.filters |= {
        "bound": _describe_bound,
        "coefficient_cells": coefficient_cells,
        "describe_coefficients": describe_coefficients,
        "describe_fit": describe_fit,
        "fingerprint": fingerprint,
        "number": number,
        "odds_figures": odds_figures,
        "parameters": _describe_parameters,
        "proof_of": proof_of,
        "public_rows": public_rows,
        "rounded_up": rounded_up,
        "shorten": shorten,
        "times": times,
    }
    return environment


def _describe_ledger(ledger: Book, charges: Sequence[Charge]) -> list[str]:
    """Return the sum of all charges of a ledger and of a release, and the rest of its limit."""
    missing = missing_charges(charges, ledger.charges)
    total = ledger.total + sum_of(missing)
    limit = "The ledger has no limit: it counts, and refuses nothing."
    if ledger.limit is not None:
        limit = f"The limit is {ledger.limit}; left is {ledger.limit.minus(total)}."
    lacks = ["The ledger given lacks charges of this release."] if missing else []
    return [*lacks, f"With all else in the ledger, {total} is spent. {limit}", *describe_totals(ledger.chain)]


def _last_time(charges: Sequence[Charge]) -> str:
    """Return the day and time of the last of the charges, or nothing."""
    times = []
    for charge in charges:
        with suppress(ValueError):
            times.append(datetime.fromisoformat(charge.when).astimezone(UTC))
    return f"{max(times):%Y-%m-%d %H:%M} UTC" if times else ""


def _describe_parameters(mechanism: Mechanism) -> str:
    """Return the parameters; of long lists only their shapes, as the fingerprint holds them to the bit."""
    texts = []
    for name, value in mechanism.parameters().items():
        if isinstance(value, list) and len(value) > MAX_LISTED:
            texts.append(f"{name} = {' × '.join(map(str, np.shape(value)))} numbers")
        elif value is not None:
            texts.append(f"{name} = {json.dumps(value, default=str)}")
    return ", ".join(texts)


def _describe_bound(bound: Mechanism | Proof) -> str:
    """Return ε, and δ where there is one, to the bit."""
    delta = f", δ ≤ {bound.delta!r}" if bound.delta else ""
    return f"ε ≤ {bound.epsilon!r}{delta}"
