"""The shelf: what was released from this folder before, what it promises, and what it cost."""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass, replace
from io import BytesIO
from pathlib import Path
from typing import Any
from urllib.parse import quote
from zipfile import ZIP_DEFLATED, ZipFile

from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PublicKey
from starlette.concurrency import run_in_threadpool
from starlette.datastructures import UploadFile
from starlette.requests import Request
from starlette.responses import FileResponse, HTMLResponse, Response

from labeldp.cards.reading import ReadCard, read_any_card
from labeldp.cards.signatures import new_key, read_public_key
from labeldp.cards.verification import Verification, verify_card
from labeldp.errors import ParameterError
from labeldp.files.card_check import verify_files
from labeldp.files.places import MODEL_FILES
from labeldp.jobs.card_files import CardSignature, read_card_file, read_signature, report_path, sign_card_file
from labeldp.jobs.sentences import EXPLAINED, printable
from labeldp.page.chosen_folder import ChosenFolder
from labeldp.page.records import label_of, ledger_of, ledgers_in
from labeldp.page.site import explained_page, go, site_of
from labeldp.page.words import CHARGES, as_fields, explain_in_page
from labeldp.release.costs import charge_mark
from labeldp.report import render_report, write_page

REPORT_POLICY = (
    "sandbox; default-src 'none'; style-src 'unsafe-inline'; img-src data:; form-action 'none'; "
    "frame-ancestors 'none'; base-uri 'none'"
)
"""A report has its style and its figures inside, and is kept apart from the page: it runs nothing."""


NOT_CHECKED = "not checked yet"
MOST_CHECKED = 20
"""So many of the newest cards are verified where they are listed; all others, when they are opened."""

MOST_BYTES = 1 << 25
"""Of a file that is compared with its card where that is listed."""

MOST_KEY = 1 << 16
"""Bytes of a form with a key and its passphrase."""


@dataclass(frozen=True)
class ShelfCard:
    """A past release, as the shelf lists it."""

    name: str
    what: str
    cost: str
    when: str
    state: str
    is_signed: bool


def _listed(folder: ChosenFolder, name: str, *, check: bool) -> tuple[ShelfCard, ReadCard | None]:
    """Return a card as the shelf lists it, and the card that was read for it, once."""
    path = folder.inside(name)
    is_signed = _signature_of(folder, path) is not None
    try:
        text = read_card_file(path)[1]
        verification = verify_card(text)
        card, state = verification.card, verification.verdict if verification.card is None else NOT_CHECKED
        is_small = card is None or (folder.plain_size(_released(path, card)) or 0) <= MOST_BYTES
        if check and is_small:
            state = _verified(folder, path, text, verification=verification).verdict
    except EXPLAINED:
        card, state = None, "does not hold"
    if card is None:
        return ShelfCard(name, "a card that cannot be read", "", "", state, is_signed), None
    kind = {"model": "a model", "mechanism": "a mechanism"}.get(card.kind, "private labels")
    terms, label = card.terms, label_of(card)
    when = max((charge.when for charge in terms.charges), default="")
    what = f"{kind} of {printable(label, 60)}" if label else kind
    cost = str(card.costs().total) if terms.charges else ""
    return ShelfCard(name, what, cost, printable(when)[:16].replace("T", " "), state, is_signed), card


def _released(path: Path, card: ReadCard) -> Path:
    """Return where the table or the model lies that a card speaks of, if it lies beside it."""
    return path.parent if card.kind == "model" else path.parent / card.content.get("file", {}).get("name", "None")


def _signature_of(folder: ChosenFolder, path: Path) -> Path | None:
    signature = path.with_name(f"{path.name}.sig")
    return None if folder.plain_size(signature) is None else signature


@explained_page
async def shelf_page(request: Request) -> Response:
    """List the cards and the ledgers of the folder."""
    site = site_of(request)

    def look() -> dict[str, Any]:
        names = site.folder.cards()
        listed = [_listed(site.folder, name, check=place < MOST_CHECKED) for place, name in enumerate(names)]
        ledgers, troubles = ledgers_in(site.folder)
        paid: dict[tuple[object, ...], str] = {}
        for shown, card in listed:
            if card is not None:
                paid |= dict.fromkeys(map(charge_mark, card.terms.charges), shown.name)
        for_cards = [[paid.get(charge_mark(charge), "") for charge in book.charges] for book in ledgers]
        return {
            "cards": [shown for shown, _ in listed],
            "ledgers": list(zip(ledgers, for_cards, strict=True)),
            "troubles": troubles,
            "charges": CHARGES,
        }

    return site.page("shelf", **await run_in_threadpool(look))


@explained_page
async def card_page(request: Request) -> Response:
    """Verify a card, say what it means, and offer what can be done with it."""
    return await _card_page(request, request.query_params.get("name", ""))


async def _card_page(
    request: Request,
    name: str,
    *,
    signed: CardSignature | None = None,
    trust: str = "",
    sentence: str = "",
    status: int = 200,
) -> Response:
    site = site_of(request)
    path = site.folder.card(name)

    def look() -> dict[str, Any]:
        _, text = read_card_file(path)
        keys = [read_public_key(trust.encode())] if trust else []
        result = _verified(site.folder, path, text, keys)
        files = _files_of(site.folder, path, result)
        explanation = None
        if result.card is not None:
            book = ledger_of(result.card, ledgers_in(site.folder)[0])
            explanation = result.card.explain(result.card.costs(book.charges if book else None))
        return {"result": result, "files": files, "explanation": explanation}

    values = await run_in_threadpool(look)
    return site.page("card", status=status, name=name, signed=signed, trust=trust, sentence=sentence, **values)


def _verified(
    folder: ChosenFolder,
    path: Path,
    text: str,
    trusted: Sequence[Ed25519PublicKey] = (),
    verification: Verification | None = None,
) -> Verification:
    """Check a card, read once, and compare what lies beside it as plain files."""
    verification = verification or verify_card(text)
    signature, beside = _signature_of(folder, path), None
    given = None if signature is None else read_signature(path, signature)
    if verification.card is not None and folder.plain_size(_released(path, verification.card)) is not None:
        beside = path.parent
    result = verify_files(text, folder=beside, signature=given, trusted=trusted, verification=verification)
    return replace(result, checks=tuple(replace(each, detail=as_fields(each.detail)) for each in result.checks))


def _files_of(folder: ChosenFolder, card: Path, result: Verification) -> dict[str, str]:
    """Return what may be saved: the card, what lies beside it, and the table if its bytes are the card's."""
    files = {"card": folder.name(card)}
    signature, beside = _signature_of(folder, card), card.parent
    files |= {} if signature is None else {"signature": folder.name(signature)}
    for report in (report_path(card), beside.with_name(f"{beside.name}.report.html")):
        is_own = report.parent == beside or card.name == "card.json"
        if is_own and folder.plain_size(report) is not None and not report.is_dir():
            files["report"] = folder.name(report)
    if result.card is not None and any(check.name == "file" and check.holds for check in result.checks):
        released = _released(card, result.card)
        if released.is_file():
            files["table"] = folder.name(released)
        elif card == released / "card.json" and released != folder.root:
            files["model"] = folder.name(released)
    return files


@explained_page
async def save_file(request: Request) -> Response:
    """Hand out a file of a release: nothing else of the folder, and least of all a table with true labels."""
    site = site_of(request)
    path = site.folder.card(request.query_params.get("card", ""))
    what = request.query_params.get("what", "")

    def look() -> Path:
        _, text = read_card_file(path)
        files = _files_of(site.folder, path, _verified(site.folder, path, text))
        if what not in files:
            raise ParameterError("there is no such file, or it is not the one that the card speaks of")
        return site.folder.source(files[what])

    file = await run_in_threadpool(look)
    if file.is_dir():
        kind = {"content-disposition": f"attachment; filename*=UTF-8''{quote(file.name, safe='')}.zip"}
        return Response(await run_in_threadpool(_zipped, file), media_type="application/zip", headers=kind)
    if what == "report" and request.query_params.get("open"):
        return FileResponse(file, media_type="text/html", headers={"content-security-policy": REPORT_POLICY})
    disposition = f"attachment; filename*=UTF-8''{quote(file.name, safe='')}"
    return FileResponse(file, media_type="application/octet-stream", headers={"content-disposition": disposition})


def _zipped(folder: Path) -> bytes:
    """Return a model's files, its card and its signature in a zip file; a model is small."""
    names = [*sorted(MODEL_FILES), "card.json", "card.json.sig"]
    with BytesIO() as stream:
        with ZipFile(stream, "w", ZIP_DEFLATED) as archive:
            for name in names:
                if (folder / name).is_file():
                    archive.write(folder / name, f"{folder.name}/{name}")
        return stream.getvalue()


def _report_of(folder: ChosenFolder, path: Path) -> str:
    """Return the report of a card, with the ledger that paid for it where that is in the folder."""
    text = read_card_file(path)[1]
    verification = verify_card(text)
    book = None if verification.card is None else ledger_of(verification.card, ledgers_in(folder)[0])
    return render_report(text, ledger=book.ledger if book else None, verification=verification)


@explained_page
async def report_page(request: Request) -> Response:
    """Show the report of a card, made for this moment."""
    site = site_of(request)
    path = site.folder.card(request.query_params.get("card", ""))
    html = await run_in_threadpool(_report_of, site.folder, path)
    return HTMLResponse(html, headers={"content-security-policy": REPORT_POLICY})


@explained_page
async def report_form(request: Request) -> Response:
    """Write the report of a card beside it."""
    site = site_of(request)
    form = await site.form(request)
    name = str(form.get("name", ""))
    path = site.folder.card(name)
    try:
        await run_in_threadpool(lambda: write_page(report_path(path), _report_of(site.folder, path), force=False))
    except EXPLAINED as error:
        return await _card_page(request, name, sentence=explain_in_page(error), status=400)
    return go(f"/shelf/card?name={quote(name)}")


@explained_page
async def sign_form(request: Request) -> Response:
    """Sign a card with a key that was chosen in the browser; it is used in memory, and not kept."""
    site = site_of(request)
    if len(await request.body()) > MOST_KEY:  # a form's longer files would be written to the disk
        raise ParameterError("the file is far too large for a key: choose that of your private Ed25519 key")
    async with request.form(max_files=1, max_fields=20) as form:
        if form.get("form") != site.keys.form:
            raise ParameterError("the form was not sent by this page: load it again")
        name, passphrase, again = (str(form.get(field, "")) for field in ("name", "passphrase", "again"))
        key = form.get("key")
        data = await key.read() if isinstance(key, UploadFile) else b""
    path = site.folder.card(name)

    def sign() -> CardSignature:
        if not data:
            raise ParameterError("choose the file of your private key first, or make one below")
        released = _released(path, read_any_card(read_card_file(path)[1]))
        if os.path.lexists(released) and site.folder.plain_size(released) is None:
            raise ParameterError(
                f"{printable(released.name)} is a link, or holds one: put the file itself beside its card first"
            )
        return sign_card_file(path, data, lambda: passphrase, force=bool(again))

    try:
        signed = await run_in_threadpool(sign)
    except EXPLAINED as error:
        return await _card_page(request, name, sentence=explain_in_page(error), status=400)
    return await _card_page(request, name, signed=signed, trust=signed.public_key)


@explained_page
async def trust_form(request: Request) -> Response:
    """Verify a card by a public key that its reader trusts."""
    form = await site_of(request).form(request)
    name, trust = (str(form.get(field, "")).strip() for field in ("name", "trust"))
    try:
        return await _card_page(request, name, trust=trust)
    except ParameterError as error:
        return await _card_page(request, name, sentence=explain_in_page(error), status=400)


@explained_page
async def key_form(request: Request) -> Response:
    """Hand out a new private key under a passphrase; it is written nowhere but where the browser saves it."""
    form = await site_of(request).form(request)
    name, passphrase = (str(form.get(field, "")) for field in ("name", "new_passphrase"))
    try:
        key = await run_in_threadpool(new_key, passphrase)
    except EXPLAINED as error:
        return await _card_page(request, name, sentence=explain_in_page(error), status=400)
    kind = {"content-disposition": 'attachment; filename="labeldp_ed25519"'}
    return Response(key, media_type="application/octet-stream", headers=kind)
