"""The files of a release in one archive: the release, its certificate, its report and its summary."""

from __future__ import annotations

import io
import zipfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from labeldp.accounts.card import Card
from labeldp.app.card_check import find_release, verify_files
from labeldp.app.card_files import KINDS, reports_beside
from labeldp.app.released_table import open_release
from labeldp.app.report import render_report
from labeldp.errors import CardError, DataError

_DATE = (1980, 1, 1, 0, 0, 0)
"""The date of files in an archive: equal files make equal archives."""

MAX_SHEET_ROWS = 1_048_575
"""Rows below the header of an Excel sheet."""


def pack_release(card: Path, text: str) -> bytes:
    """Return an archive of the files of a card, which are verified first.

    It has the files that the card has checksums of, and pages that follow from the card.

    Parameters
    ----------
    card : Path
    text : str
        The card.
    """
    result = verify_files(text, folder=card.parent)
    if result.card is None or not result.holds:
        raise CardError(f"{card.name} is not valid, or its file is not beside it: it is not handed over")
    data = io.BytesIO()
    with zipfile.ZipFile(data, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, content in _contents(card, text, result.card):
            archive.writestr(zipfile.ZipInfo(name, _DATE), content, zipfile.ZIP_DEFLATED)
    return data.getvalue()


def _contents(card: Path, text: str, parsed: Card) -> Iterator[tuple[str, bytes]]:
    """Yield names and bytes of the files of a card, those of a model in a folder."""
    root = card.parent.parent if card.name == "card.json" else card.parent
    subject, names = find_release(parsed, card.parent)
    files = [subject / name if name else subject for name in names]
    for path in [card, *files]:
        yield path.relative_to(root).as_posix(), path.read_bytes()
    if parsed.kind in ("release", "releases") and subject.with_suffix(".xlsx").exists():
        yield subject.with_suffix(".xlsx").name, as_workbook(subject, parsed)
    for kind in KINDS:
        yield reports_beside(card, kind)[-1].name, render_report(text, kind).encode()


def as_workbook(path: Path, card: Card) -> bytes:
    """Return a released table as an Excel workbook; text stays text, whatever it begins with."""
    from openpyxl import Workbook  # noqa: PLC0415 (an extra)
    from openpyxl.cell import WriteOnlyCell  # noqa: PLC0415

    def cell(value: Any) -> Any:
        entry = WriteOnlyCell(sheet, value)
        if isinstance(value, str):
            entry.data_type = "s"  # no formula
        return entry

    if card.terms.rows > MAX_SHEET_ROWS:
        raise DataError(f"an Excel sheet has {MAX_SHEET_ROWS:,} rows at most, and the table {card.terms.rows:,}")
    book = Workbook(write_only=True)
    sheet = book.create_sheet("private")
    table = open_release(path, card, label=[str(name) for name in card.releases])
    sheet.append([cell(name) for name in table.schema.names])
    for batch in table.batches():
        for row in batch.to_pylist():
            sheet.append([cell(value) for value in row.values()])
    data = io.BytesIO()
    book.save(data)
    return data.getvalue()
