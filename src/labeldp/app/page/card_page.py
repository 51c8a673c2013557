"""The page of one release: its card is verified, explained, signed, and its files are handed out."""

from __future__ import annotations

import os
from io import BytesIO
from pathlib import Path
from urllib.parse import quote
from zipfile import ZIP_DEFLATED, ZipFile

from starlette.concurrency import run_in_threadpool
from starlette.datastructures import FormData, UploadFile
from starlette.requests import Request
from starlette.responses import FileResponse, HTMLResponse, Response

from labeldp.accounts.reading import read_any_card
from labeldp.accounts.signatures import new_key, read_public_key
from labeldp.accounts.verification import Verification, verify_card
from labeldp.app.card_files import CardSignature, read_card_file, report_path, sign_card_file
from labeldp.app.page.chosen_folder import ChosenFolder
from labeldp.app.page.ledgers import ledger_of, ledgers_in
from labeldp.app.page.messages import collect_problem
from labeldp.app.page.releases import released_file, signature_of, verified
from labeldp.app.page.site import check_form, show, site_of, text_in
from labeldp.app.report.card_report import render_report
from labeldp.app.sentences import printable
from labeldp.errors import ParameterError
from labeldp.tables.paths import MODEL_FILES

REPORT_POLICY = {
    "content-security-policy": (
        "sandbox; default-src 'none'; style-src 'unsafe-inline'; img-src data:; form-action 'none'; "
        "frame-ancestors 'none'; base-uri 'none'"
    )
}
"""A report has its style and its figures inside, and is kept apart from the page: it runs nothing."""

LONGEST_KEY = 1 << 16
"""Bytes of a form with a key and its passphrase."""


def card_page(
    request: Request, name: str = "", *, signed: CardSignature | None = None, trust: str = "", problem: str = ""
) -> Response:
    """Verify a card, say what it means, and offer what can be done with it."""
    folder, name = site_of(request).folder, name or request.query_params.get("name", "")
    path = folder.card(name)
    result = verified(folder, path, read_card_file(path)[1], [read_public_key(trust.encode())] if trust else [])
    explanation = None
    if result.card is not None:
        book = ledger_of(result.card, ledgers_in(folder)[0])
        explanation = result.card.explain(book.charges if book else None)
    files = {what: folder.name(file) for what, file in _files_of(folder, path, result).items()}
    return show(
        request,
        "card",
        status=400 if problem else 200,
        name=name,
        signed=signed,
        trust=trust,
        problem=problem,
        result=result,
        model=files.pop("model", ""),
        files=files,
        explanation=explanation,
    )


def _files_of(folder: ChosenFolder, card: Path, result: Verification) -> dict[str, Path]:
    """Return what may be saved: the card, what is beside it, and the released file if it is the card's."""
    beside, signature = card.parent, signature_of(folder, card)
    files = {"card": card} | ({} if signature is None else {"signature": signature})
    reports = [report_path(card)]
    if card.name == "card.json":
        reports.append(beside.with_name(f"{beside.name}.report.html"))
    for report in reports:
        if folder.plain_size(report) is not None and report.is_file():
            files["report"] = report
    if result.card is not None and any(check.name == "file" and check.holds for check in result.checks):
        released = released_file(card, result.card)
        if released.is_file():
            files["table"] = released
        elif card == released / "card.json" and released != folder.root:
            files["model"] = released
    return files


def save_file(request: Request) -> Response:
    """Hand out a file of a release: nothing else of the folder, and least of all a table with true labels."""
    folder, what = site_of(request).folder, request.query_params.get("what", "")
    path = folder.card(request.query_params.get("card", ""))
    text = read_card_file(path)[1]
    file = _files_of(folder, path, verified(folder, path, text)).get(what)
    if file is None:
        raise ParameterError("there is no such file, or it is not the one that the card is about")
    folder.refuse_elsewhere(file)
    if what == "report" and "open" in request.query_params:
        return FileResponse(file, media_type="text/html", headers=REPORT_POLICY)
    if file.is_dir():
        return Response(_zipped(file), media_type="application/zip", headers=_attached(f"{file.name}.zip"))
    return FileResponse(file, media_type="application/octet-stream", headers=_attached(file.name))


def _attached(name: str) -> dict[str, str]:
    return {"content-disposition": f"attachment; filename*=UTF-8''{quote(name, safe='')}"}


def _zipped(folder: Path) -> bytes:
    """Return a model's files, its card and its signature in a zip file; a model is small."""
    with BytesIO() as stream:
        with ZipFile(stream, "w", ZIP_DEFLATED) as archive:
            for name in [*sorted(MODEL_FILES), "card.json", "card.json.sig"]:
                if (folder / name).is_file():
                    archive.write(folder / name, f"{folder.name}/{name}")
        return stream.getvalue()


def report_page(request: Request) -> Response:
    """Show the report of a card, made for this moment, with the ledger that paid for it if the folder has it."""
    folder = site_of(request).folder
    path = folder.card(request.query_params.get("card", ""))
    text = read_card_file(path)[1]
    verification = verify_card(text)
    book = None if verification.card is None else ledger_of(verification.card, ledgers_in(folder)[0])
    html = render_report(text, ledger=book.ledger if book else None, verification=verification)
    saved = _attached(report_path(path).name) if "save" in request.query_params else {}
    return HTMLResponse(html, headers={**REPORT_POLICY, **saved})


# ---- signatures -----------------------------------------------------------------------------------------------


async def sign_form(request: Request) -> Response:
    """Sign a card with a key that was chosen in the browser; it is used in memory, and not kept."""
    if len(await request.body()) > LONGEST_KEY:  # larger files of a form would be written to the disk
        raise ParameterError("the file is far too large for a key: choose that of your private Ed25519 key")
    async with request.form(max_files=1, max_fields=20) as form:
        file = check_form(request, form).get("key")
        key = await file.read() if isinstance(file, UploadFile) else b""
    return await run_in_threadpool(_sign, request, form, key)


def _sign(request: Request, form: FormData, key: bytes) -> Response:
    folder, name, problems = site_of(request).folder, text_in(form, "name"), dict[str, str]()
    path = folder.card(name)
    with collect_problem(problems, "key"):
        if not key:
            raise ParameterError("choose the file of your private key first, or make one below")
        released = released_file(path, read_any_card(read_card_file(path)[1]))
        if os.path.lexists(released) and folder.plain_size(released) is None:
            raise ParameterError(
                f"{printable(released.name)} is a link, or contains one: put the file itself beside its card first"
            )
        signed = sign_card_file(path, key, lambda: str(form["passphrase"]), force=bool(form.get("again")))
        return card_page(request, name, signed=signed, trust=signed.public_key)
    return card_page(request, name, problem=problems["key"])


def trust_form(request: Request, form: FormData) -> Response:
    """Verify a card by a public key that its reader trusts."""
    name, problems = text_in(form, "name"), dict[str, str]()
    with collect_problem(problems, "trust"):
        return card_page(request, name, trust=text_in(form, "trust"))
    return card_page(request, name, problem=problems["trust"])


def key_form(request: Request, form: FormData) -> Response:
    """Hand out a new private key under a passphrase; it is written nowhere but where the browser saves it."""
    problems = dict[str, str]()
    with collect_problem(problems, "new_passphrase"):
        key = new_key(str(form.get("new_passphrase", "")))
        return Response(key, media_type="application/octet-stream", headers=_attached("labeldp_ed25519"))
    return card_page(request, text_in(form, "name"), problem=problems["new_passphrase"])
