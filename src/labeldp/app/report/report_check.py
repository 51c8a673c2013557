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
from labeldp.app.report.page import PageSource, StatedLedger, written_with
from labeldp.app.report.summary import summary_page
from labeldp.errors import LabelDPError
from labeldp.mechanisms.card_format import MAX_TEXT
from labeldp.mechanisms.typed_data import read

_VERSION = r"[\w.+-]{1,30}"
_WRITTEN_WITH = re.compile(
    rf"{re.escape(written_with('summary'))}, Python {_VERSION} \(\w{{1,20}}\), NumPy {_VERSION}, "
    rf"Matplotlib {_VERSION}",
    re.ASCII,
)
"""What a report states that this version of labeldp wrote: versions, and no other words."""

_FIGURE = re.compile(b"<figure>.*?</figure>", re.DOTALL)
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

    A page that another version of labeldp wrote cannot be checked here, nor figures drawn with other libraries;
    all that is not a figure must be the same, byte for byte.

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
    kind = "report" if source is None else source.kind
    here = written_with("summary")  # labeldp's version alone
    if source is None or card is None or source.written_with.partition(",")[0] != here:
        yield Check(kind, None, "cannot be checked here: write it again with labeldp report", needed=True)
        return
    of_card = replace(verification, checks=())  # a page follows from the card, whatever lies beside it
    write = render_report if kind == "report" else summary_page
    again = write(card_text, ledger=source.ledger, verification=of_card)
    is_elsewhere = kind == "report" and source.written_with != written_with()
    if is_elsewhere and _WRITTEN_WITH.fullmatch(source.written_with):
        again = again.replace(written_with(), source.written_with)
        if _FIGURE.split(page) == _FIGURE.split(again.encode()):
            detail = f"its text is the same, its figures cannot be compared here: {source.written_with}"
            yield Check(kind, None, detail, needed=True)
            return
    if page != again.encode():
        other = "another card" if source.card != json.loads(card_text)["checksum"] else "other words or figures"
        yield Check(kind, False, f"it is not what labeldp report writes from this card, but has {other}")
        return
    yield Check(kind, True, "written again from the card, it is the same")
    if source.ledger is not None:
        yield _check_ledger(kind, source.ledger, paid_from, card.terms.charges)


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
