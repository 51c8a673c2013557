"""A report compared with its card: it is written again from the card, and every text in it compared."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from html import unescape
from html.parser import HTMLParser
from itertools import zip_longest
from typing import Any

from labeldp import __version__
from labeldp.accounts.verification import Check, Verification
from labeldp.app.report.card_report import BESIDE, RecordedLedger, render_report
from labeldp.app.report.figures import escaped
from labeldp.app.report.reviewer import environment
from labeldp.errors import LabelDPError

_ABOUT = re.compile(r'<meta name="labeldp-report" content="([^"]{1,10000})">')
_BESIDE = re.compile(f"\n{BESIDE[0]}.*?{BESIDE[1]}", re.DOTALL)
_HEADING = re.compile(r"<h2>([^<]*)</h2>")


def stated_card(page: str) -> dict[str, Any] | None:
    """Return what a report says of the card that it was written from; None if it is no report that says so."""
    found = _ABOUT.search(page)
    try:
        about = json.loads(unescape(found[1])) if found else None
    except (ValueError, RecursionError):
        return None
    return about if isinstance(about, dict) else None


def check_report(page: str, card_text: str, verification: Verification) -> Iterator[Check]:
    """Write the report of a card again, and compare all that follows from the card.

    Parameters
    ----------
    page : str
        The report.
    card_text : str
        The card's text.
    verification : Verification
        What `verify_card` returned for it.
    """
    about = stated_card(page)
    if about is None or about.get("version") != __version__:
        by = "it does not say by which version" if about is None else f"by labeldp {about.get('version')}"
        detail = f"cannot be checked: written {by}, and this is labeldp {__version__}"
        yield Check("report", None, detail, needed=True)
        return
    if about.get("card") != json.loads(card_text)["checksum"]:
        yield Check("report", False, "it is the report of another card")
        return
    try:
        terms = verification.require_card(allow_open=True).terms
        ledger = RecordedLedger.from_data(about.get("ledger"), terms.charges)
        again = render_report(card_text, ledger=ledger, verification=verification)
    except LabelDPError as error:
        yield Check("report", None, f"it cannot be written again: {error}", needed=True)
        return
    written = str(about.get("environment"))
    again = again.replace(escaped(environment()), escaped(written))
    given, again = _BESIDE.sub("", page), _BESIDE.sub("", again)
    texts = zip_longest(_texts(given), _texts(again))
    if difference := next((pair for pair in texts if pair[0] != pair[1]), None):
        says, right = (repr(text[:80]) if text else "nothing" for text in difference)
        yield Check("report", False, f"it says {says} where the card gives {right}")
        return
    yield Check("report", True, "written again from the card, it has the same text, every number included")
    if given != again:
        same = written == environment()
        why = "they are not those of this card" if same else f"not compared: they were drawn with {written}"
        yield Check("figures", False if same else None, why)
    if ledger is not None:
        yield Check("ledger", None, "what else was spent is the word of the report: compare with the ledger")
    if parts := _BESIDE.findall(page):
        titles = [unescape(title) for part in parts for title in _HEADING.findall(part) or ["one without heading"]]
        yield Check("other parts", None, f"not on the card, so not compared: {', '.join(titles)}")


class _Texts(HTMLParser):
    def __init__(self) -> None:
        super().__init__()
        self.texts: list[str] = []

    def handle_data(self, data: str) -> None:
        if data.strip():
            self.texts.append(" ".join(data.split()))


def _texts(page: str) -> list[str]:
    """Return all texts of a page: paragraphs, cells, and what is written in figures."""
    reader = _Texts()
    reader.feed(page)
    return reader.texts
