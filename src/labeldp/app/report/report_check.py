"""A report or a summary compared with its card: it is written again from the card, and both are compared."""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from html import unescape
from html.parser import HTMLParser
from itertools import zip_longest
from pathlib import Path
from typing import Annotated

from labeldp import __version__
from labeldp._atomic import read_regular
from labeldp._values import Data
from labeldp.accounts.budget import Charge, total_of
from labeldp.accounts.ledger import Ledger
from labeldp.accounts.signatures import check_signature
from labeldp.accounts.verification import Check, Verification
from labeldp.app.card_files import reports_beside
from labeldp.app.report.card_report import StatedLedger, render_report
from labeldp.app.report.reviewer import environment
from labeldp.app.report.summary import summary_page
from labeldp.errors import LabelDPError, Message, Setting
from labeldp.mechanisms.card_format import MAX_TEXT
from labeldp.mechanisms.typed_data import like, read

_ABOUT = re.compile(r'<meta name="labeldp-report" content="([^"]{1,10000})">')
_VERSION = r"[\w.+-]{1,30}"
_WRITTEN_WITH = rf"labeldp {_VERSION}, Python {_VERSION} \(\w{{1,20}}\), NumPy {_VERSION}, Matplotlib {_VERSION}"
_WrittenWith = Annotated[str, like(_WRITTEN_WITH, "names and versions")]
_FIGURE = re.compile("<figure>.*?</figure>", re.DOTALL)
_TAG_OR_TEXT = re.compile(r'<(/?\w+)((?: [\w:-]+="[^"<>]*")*) ?/?>|[^<>]+', re.ASCII)
_ATTRIBUTE = re.compile(r' ([\w:-]+)="([^"]*)"', re.ASCII)
_HERE = re.compile(r"#[\w-]+|url\(#[\w-]+\)", re.ASCII)


def stated_card(page: str) -> Data | None:
    """Return what a page says of the card that it was written from; None if it does not say so."""
    found = _ABOUT.search(page)
    try:
        about = json.loads(unescape(found[1])) if found else None
    except (ValueError, RecursionError):
        return None
    return about if isinstance(about, dict) else None


def check_report(
    page: str, card_text: str, verification: Verification, paid_from: Ledger | None = None
) -> Iterator[Check]:
    """Write the report or the summary of a card again, and compare: outside figures both must be the same text.

    Figures that another version of Matplotlib drew otherwise cannot be compared; they may only have the tags,
    attributes and properties that such figures have here.

    Parameters
    ----------
    page : str
        The report or the summary.
    card_text : str
        The card's text.
    verification : Verification
        What `verify_card` returned for it.
    paid_from : Ledger, optional
        The ledger whose figures the page shows, as they were when it was written.
    """
    about = stated_card(page)
    kind = "summary" if about and "summary" in about else "report"
    if about is None or about.get("version") != __version__:
        by = "it does not say by which version" if about is None else f"by labeldp {about.get('version')}"
        detail = f"cannot be checked: written {by}, and this is labeldp {__version__}"
        yield Check(kind, None, detail, needed=True)
        return
    try:
        card = verification.require_card(allow_open=True)  # a summary of what does not hold is none
        ledger = read(StatedLedger | None, about.get("ledger"), "the ledger of the report")
        compared, written_with = False, ""
        if kind == "summary":
            again, compared = _summary_again(page, card_text, ledger, verification)
        else:
            written_with = read(_WrittenWith, about.get("environment"), "what the report was written with")
            again = render_report(card_text, ledger=ledger, verification=verification, written_with=written_with)
    except LabelDPError as error:
        yield Check(kind, None, Message("it cannot be written again: ", error), needed=True)
        return
    if difference := _difference(page, again, kind):
        yield Check(kind, False, difference)
        return
    beyond = "" if ledger is None else ", but for figures of a ledger, which the card does not hold"
    yield Check(kind, True, f"written again from the card, it is the same{beyond}")
    if compared and not any(check.name == "file" and check.holds for check in verification.checks):
        detail = "that the file was compared is what the summary says, and was not done here: give its path"
        yield Check("file", None, detail)
    if page != again:
        yield _figures(page, again, written_with)
    if ledger is not None:
        yield _ledger_figures(kind, ledger, paid_from, card.terms.charges)


def _ledger_figures(kind: str, stated: StatedLedger, ledger: Ledger | None, own: Sequence[Charge]) -> Check:
    """Compare what a page shows of a ledger with the ledger itself, which may have further charges by now."""
    if ledger is None:
        missing = "the limit, what is left and what else was spent were not compared: add "
        return Check("ledger", None, Message(missing, Setting("paid_from")))
    if stated in _states(ledger, own):
        detail = "what else was spent, and the limit, are as it shows, now or before later charges"
        return Check("ledger", True, detail)
    return Check(kind, False, "it shows another limit, or another sum of what else was spent, than the ledger has")


def _states(ledger: Ledger, own: Sequence[Charge]) -> Iterator[StatedLedger]:
    """Yield what a ledger stated before and after each of its charges."""
    missing, others = Counter(charge.key for charge in own), total_of(())
    yield StatedLedger(ledger.limit, others, not own)
    for charge in ledger.charges:
        if missing[charge.key]:
            missing[charge.key] -= 1
        else:
            others += charge.budget
        yield StatedLedger(ledger.limit, others, not missing.total())


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
                page = read_regular(path, MAX_TEXT).decode(errors="replace")
            except (LabelDPError, OSError):
                yield Check("report", None, f"{path.name} cannot be read", needed=False)
                continue
            for check in check_report(page, card_text, verification, paid_from):
                yield replace(check, detail=Message(f"{path.name}: ", check.detail), needed=False)


def _summary_again(
    page: str, card_text: str, ledger: StatedLedger | None, verification: Verification
) -> tuple[str, bool]:
    """Return the summary nearest to a page, and whether it says that the file was compared.

    A page may be older than a signature, or written without the file.
    """
    kept = [check for check in verification.checks if check.name not in ("file", "signature")]
    signatures = [check for check in verification.checks if check.name == "signature"]
    markdown, texts = (stated_card(page) or {}).get("summary") == "markdown", _texts(page)
    written = [
        (
            summary_page(
                card_text, markdown=markdown, ledger=ledger, verification=replace(verification, checks=checks)
            ),
            bool(compared),
        )
        for compared in (True, None)
        for signed in (*signatures, check_signature(card_text, None))
        for checks in [(*kept, Check("file", compared, ""), signed)]
    ]
    return max(written, key=lambda again: sum(map(str.__eq__, texts, _texts(again[0]))))


def _difference(page: str, again: str, kind: str) -> str:
    """Return how a page differs from that of its card, texts in figures included; nothing if it does not."""
    given, right = (stated_card(text) or {} for text in (page, again))
    if given.get("card") != right.get("card"):
        return f"it is the {kind} of another card"
    for said, text in zip_longest(_texts(page), _texts(again)):
        if said != text:
            says, gives = (repr(words[:80]) if words else "nothing" for words in (said, text))
            return f"it says {says} where the {kind} written again says {gives}"
    same = _FIGURE.split(page) == _FIGURE.split(again)
    return "" if same else f"it has other tags or attributes than the {kind} written again"


def _figures(page: str, again: str, written_with: str) -> Check:
    """Return what is to be said of figures that differ: another Matplotlib may draw the same figure otherwise."""
    given, right = (_parts("".join(_FIGURE.findall(text))) for text in (page, again))
    if written_with == environment() or not given <= right:
        return Check("figures", False, "they are not those of this card")
    return Check("figures", None, f"cannot be compared here: they were drawn with {written_with}", needed=True)


def _parts(drawings: str) -> set[tuple[str, ...]]:
    """Return the tags of drawings with their attributes, properties of styles, and what is none of these."""
    parts: set[tuple[str, ...]] = {("else", text) for text in _TAG_OR_TEXT.sub("", drawings).split()}
    for tag, attributes in _TAG_OR_TEXT.findall(drawings):
        parts.add((tag,))
        for name, value in _ATTRIBUTE.findall(attributes):
            parts.add((tag, name))
            if name == "style":
                parts |= {(tag, name, rule.partition(":")[0].strip()) for rule in value.split(";")}
            if name == "href" or "url" in value.lower():
                parts.add((tag, name, "here" if _HERE.fullmatch(value) else value))
    return parts


class _Texts(HTMLParser):
    def __init__(self) -> None:
        super().__init__()
        self.texts: list[str] = []

    def handle_data(self, data: str) -> None:
        self.texts += [" ".join(line.split()) for line in data.splitlines() if line.strip()]


def _texts(page: str) -> list[str]:
    """Return all texts of a page: paragraphs, cells, and what is written in figures."""
    reader = _Texts()
    try:
        reader.feed(page)
    except (AssertionError, ValueError):  # how Python refuses tags and numbers that are broken
        reader.texts.append("a broken tag")
    return reader.texts
