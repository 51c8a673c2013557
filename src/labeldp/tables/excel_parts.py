"""The parts of an Excel workbook: a bounded archive, and an XML parser that reads only the elements named here.

An element that is not named is skipped, or refused among cells. Document types are refused, and without them there
are no entities.
"""

from __future__ import annotations

import posixpath
import zipfile
from collections.abc import Iterator
from typing import Any
from xml.parsers import expat

MOST_ROWS = 1_048_576
MOST_COLUMNS = 16_384
MOST_CHARACTERS = 32_767
"""Excel's own limits."""

MOST_UNPACKED = 64 << 20
MOST_RATIO = 100
"""What is read of a workbook unpacks to 64 MiB at most, or to 100 times the size of its file if that is more."""

MOST_DEPTH = 100
CHUNK = 1 << 18
MOST_TAG = 1 << 20
"""Limits of the parser: open elements, bytes read at once, bytes of one tag with its attributes."""

RELATIONS = (
    "http://schemas.openxmlformats.org/officeDocument/2006/relationships",
    "http://purl.oclc.org/ooxml/officeDocument/relationships",
)
NAMESPACES = (
    "http://schemas.openxmlformats.org/spreadsheetml/2006/main",
    "http://purl.oclc.org/ooxml/spreadsheetml/main",
    "http://schemas.openxmlformats.org/package/2006/relationships",
)
KINDS_OF_PARTS = {"officeDocument", "worksheet", "styles", "sharedStrings", "table", "pivotTable"}

DATA = "/worksheet/sheetData"
ROW = f"{DATA}/row"
CELL = f"{ROW}/c"
TABLE_COLUMN = "/table/tableColumns/tableColumn"
PATHS = {
    *("/Relationships", "/Relationships/Relationship"),
    *("/workbook", "/workbook/workbookPr", "/workbook/sheets", "/workbook/sheets/sheet"),
    *("/styleSheet", "/styleSheet/numFmts", "/styleSheet/numFmts/numFmt", "/styleSheet/cellXfs"),
    *("/styleSheet/cellXfs/xf", "/sst", "/sst/si", "/sst/si/t", "/sst/si/r", "/sst/si/r/t"),
    *("/worksheet", "/worksheet/cols", "/worksheet/cols/col", DATA, ROW, CELL, f"{CELL}/extLst", "/table"),
    *(f"{ROW}/extLst", f"{CELL}/f", f"{CELL}/v", f"{CELL}/is", f"{CELL}/is/t", f"{CELL}/is/r", f"{CELL}/is/r/t"),
    *("/table/tableColumns", TABLE_COLUMN, f"{TABLE_COLUMN}/calculatedColumnFormula"),
}
"""The elements that are read."""

CLOSED = {"", DATA, ROW, CELL}
"""Where any other element is refused; elsewhere it is skipped."""

_STEPS = {
    (path.rpartition("/")[0], f"{space}}}{path.rpartition('/')[2]}"): path
    for path in PATHS
    for space in NAMESPACES
}

Element = tuple[str, dict[str, str], str]
"""Path, attributes and text."""


class RefusedError(Exception):
    """What is wrong with a workbook, to be said after its name; quotes nothing from it."""


class Archive:
    """The parts of a workbook.

    Parameters
    ----------
    stream : seekable binary stream
    size : int
        Its length in bytes.
    """

    def __init__(self, stream: Any, size: int) -> None:
        self._archive = zipfile.ZipFile(stream)
        self._left = max(MOST_UNPACKED, MOST_RATIO * size)
        self._infos = {info.filename: info for info in self._archive.infolist()}
        if len({name.casefold() for name in self._infos}) < len(self._archive.infolist()):
            raise RefusedError("has two parts of one name")

    def relations(self, part: str) -> dict[str, tuple[str, str]]:
        """Return the parts that one part refers to, and their kinds, by their ids; all lie in the archive."""
        folder, name = posixpath.split(part)
        source = posixpath.join(folder, "_rels", f"{name}.rels")
        relations = dict[str, tuple[str, str]]()
        for path, attributes, _ in self.elements(source) if source in self._infos else ():
            prefix, _, kind = attributes.get("Type", "").rpartition("/")
            known = path.endswith("/Relationship") and prefix in RELATIONS and kind in KINDS_OF_PARTS
            if known and attributes.get("TargetMode") != "External":
                target = posixpath.normpath(posixpath.join("/", folder, attributes["Target"])).lstrip("/")
                if relations.setdefault(attributes["Id"], (kind, target)) != (kind, target):
                    raise RefusedError("has two relations of one id")
        return relations

    def elements(self, part: str) -> Iterator[Element]:
        """Yield path, attributes and text of each element that is read, as it ends: children before parents."""
        info = self._infos[part]
        self._left -= info.file_size  # no more than this is unpacked
        if self._left < 0:
            raise RefusedError(f"unpacks to more than {MOST_RATIO} times its size: save it as CSV")
        if info.compress_type not in (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED):
            raise RefusedError("is compressed in another way than Excel does")
        events, read = _Events(), 0
        with self._archive.open(info) as stream:
            while chunk := stream.read(CHUNK):
                read += len(chunk)
                yield from events.feed(chunk)
                if read - events.position > MOST_TAG:
                    raise RefusedError("has a tag of more than 1 MiB")
        yield from events.feed(b"", last=True)


class _Events:
    """An XML parser that collects the elements that are read, and refuses document types and so all entities."""

    def __init__(self) -> None:
        self._parser = parser = expat.ParserCreate(namespace_separator="}")
        parser.buffer_text = True
        parser.StartDoctypeDeclHandler = self._refuse
        parser.StartElementHandler = self._start
        parser.EndElementHandler = self._end
        parser.CharacterDataHandler = self._add_text
        self._open: list[str] = [""]
        self._attributes: list[dict[str, str]] = []
        self._skipped = 0
        self._text: list[str] = []
        self._length = 0
        self._ended: list[Element] = []

    @property
    def position(self) -> int:
        return int(self._parser.CurrentByteIndex)

    def feed(self, chunk: bytes, *, last: bool = False) -> list[Element]:
        self._ended = []
        self._parser.Parse(chunk, last)
        return self._ended

    def _refuse(self, *_: Any) -> None:
        raise RefusedError("has a document type or entities, which Excel does not write")

    def _start(self, tag: str, attributes: dict[str, str]) -> None:
        path = None if self._skipped else _STEPS.get((self._open[-1], tag))
        if path is not None:
            self._open.append(path)
            self._attributes.append(attributes)
            return
        if not self._skipped and self._open[-1] in CLOSED:
            raise RefusedError("has an element among its cells that Excel does not write there")
        self._skipped += 1
        if self._skipped > MOST_DEPTH:
            raise RefusedError(f"has more than {MOST_DEPTH} elements inside each other")

    def _end(self, _: str) -> None:
        if self._skipped:
            self._skipped -= 1
            return
        self._ended.append((self._open.pop(), self._attributes.pop(), "".join(self._text)))
        self._text.clear()
        self._length = 0

    def _add_text(self, text: str) -> None:
        if not self._skipped and self._open[-1].endswith(("/v", "/t")):
            self._text.append(text)
            self._length += len(text)
            if self._length > MOST_CHARACTERS:
                raise RefusedError(f"has a cell of more than {MOST_CHARACTERS:,} characters")
