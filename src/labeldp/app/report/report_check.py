"""A report or a summary checked against its card: written again, it must be the same, byte for byte."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from html import unescape
from pathlib import Path

from labeldp._atomic import read_regular
from labeldp.accounts.budget import Charge
from labeldp.accounts.ledger import Ledger
from labeldp.accounts.verification import Check, Verification
from labeldp.app.card_files import reports_beside
from labeldp.app.report.card_report import render_report
from labeldp.app.report.page import WRITTEN_WITH, PageSource, StatedLedger
from labeldp.errors import LabelDPError
from labeldp.mechanisms.card_format import MAX_TEXT
from labeldp.mechanisms.typed_data import read

_SOURCE = re.compile(rb'<meta name="labeldp-report" content="([^"]{1,10000})">')


def read_source(page: bytes) -> PageSource | None:
    """Return what a page states that it was written from and with; None if it does not say so."""
    found = _SOURCE.search(page)
    try:
        data = json.loads(unescape(found[1].decode())) if found else None
        source: PageSource = read(PageSource, data, "the page")
    except (ValueError, RecursionError):
        return None
    return source


def check_report(
    page: bytes, card_text: str, verification: Verification, paid_from: Ledger | None = None
) -> Iterator[Check]:
    """Write the report or the summary of a card again, and compare it with the one that is given.

    A page that another version of labeldp wrote cannot be checked here.

    Parameters
    ----------
    page : bytes
        The report or the summary.
    card_text : str
        The card's text.
    verification : Verification
        What `verify_card` returned for it.
    paid_from : Ledger, optional
        The ledger whose figures the page shows, as they were when it was written.
    """
    source, card = read_source(page), verification.card
    if source is None or card is None or source.written_with != WRITTEN_WITH:
        kind = "report" if source is None else source.kind
        yield Check(kind, None, "cannot be checked here: write it again with labeldp report", needed=True)
        return
    of_card = replace(verification, checks=())  # a page follows from the card, whatever lies beside it
    again = render_report(card_text, source.kind, ledger=source.ledger, verification=of_card)
    if page != again.encode():
        other = "another card" if source.card != json.loads(card_text)["checksum"] else "other words or figures"
        yield Check(source.kind, False, f"it is not what labeldp report writes from this card, but has {other}")
        return
    yield Check(source.kind, True, "written again from the card, it is the same")
    if source.ledger is not None:
        yield _check_ledger(source.kind, source.ledger, paid_from, card.terms.charges)


def _check_ledger(kind: str, stated: StatedLedger, ledger: Ledger | None, own: Sequence[Charge]) -> Check:
    """Compare what a page shows of a ledger with the ledger, which may have further charges by now."""
    if ledger is None:
        return Check("ledger", None, f"what the {kind} shows of it was not compared: labeldp verify --ledger does")
    if stated == StatedLedger.of(ledger.limit, ledger.charges[: stated.charges], own):
        return Check("ledger", True, f"the {kind} shows what was in it, later charges aside")
    return Check(kind, False, "it shows another limit, or another sum of what else was spent, than the ledger has")


def check_reports_beside(
    card: Path,
    card_text: str,
    verification: Verification,
    is_allowed: Callable[[Path], bool] = Path.is_file,
    paid_from: Ledger | None = None,
) -> Iterator[Check]:
    """Compare a card with the reports and the summary beside it; one that cannot be compared does not count."""
    for path in dict.fromkeys([*reports_beside(card), *reports_beside(card, "summary")]):
        if is_allowed(path):
            try:
                checks = [*check_report(read_regular(path, MAX_TEXT), card_text, verification, paid_from)]
            except (LabelDPError, OSError):
                checks = [Check("report", None, "it cannot be read")]
            for check in checks:
                yield replace(check, detail=f"{path.name}: {check.detail}", needed=False)
