"""Tables in files: public columns that follow from the number of rows, and labels as text in any format."""

import datetime
import decimal
import gzip
import io
import math
from dataclasses import dataclass, replace
from itertools import pairwise
from pathlib import Path

import numpy as np
import openpyxl
import pyarrow as pa
import pyarrow.parquet as pq

from interference import changes

LABEL = "income"
FORMATS = ("csv", "tsv", "csv.gz", "parquet")


def public(rows):
    """Return public columns of many kinds as text, with words that need quotes, and some that are missing."""
    words = ["plain", "with, comma", 'with "quotes"', "", "tab\there", "ünïcode", "it's / here"]
    return {
        "id": [str(1000 + row) for row in range(rows)],
        "word": [words[row % len(words)] for row in range(rows)],
        "day": [str(datetime.date(2020, 1, 1) + datetime.timedelta(row)) for row in range(rows)],
        "ratio": [str(row / 8) if row % 11 else "" for row in range(rows)],
        "code": [f"{row:04d}" for row in range(rows)],
        "kind": ["abcd"[row % 4] for row in range(rows)],
    }


TYPES = {
    "id": pa.int64(),
    "day": pa.date32(),
    "ratio": pa.float64(),
    "kind": pa.dictionary(pa.int32(), pa.string()),
}


@dataclass(frozen=True)
class Input:
    """A table to write: two inputs that are compared differ in ``labels`` and in what a writer makes of them.

    Row groups or record batches begin at ``cuts``: many writers count bytes, labels
    included, so that this follows from labels.
    """

    labels: list  # as they are written in text; empty if missing
    cuts: tuple = ()
    kind: str = "float64"  # in binary formats, one of `KINDS`
    columns: dict | None = None  # the public columns, as text; by default those of `public`
    place: int | None = None  # how many columns stand before the label; by default half of them

    def in_pieces(self):
        """Return a table for each piece; the dictionaries of its columns have the words that the piece uses."""
        pieces = [slice(a, b) for a, b in pairwise([0, *self.cuts, len(self.labels)])]
        columns = [{name: cells[rows] for name, cells in _columns(self).items()} for rows in pieces]
        return [
            replace(self, labels=self.labels[rows], cuts=(), columns=own)
            for rows, own in zip(pieces, columns, strict=True)
        ]


def _decimals(labels):
    with decimal.localcontext(prec=60):
        step = decimal.Decimal("0.0000000001")
        most = decimal.Decimal(10) ** 20
        exact = [None if text == "" else min(max(decimal.Decimal(text), -most), most) for text in labels]
        return pa.array([None if one is None else one.quantize(step) for one in exact], pa.decimal128(38, 10))


def _typed(kind):
    def made(labels):
        values = changes.numbers([text or "0" for text in labels], kind)
        return pa.array(values, mask=np.array([text == "" for text in labels], dtype=bool))

    return made


KINDS = {
    "float64": _typed(np.float64),
    "float32": _typed(np.float32),
    "int64": _typed(np.int64),
    "int8": _typed(np.int8),
    "decimal": _decimals,
    "dictionary of floats": lambda labels: _typed(np.float64)(labels).dictionary_encode(),
    "dictionary of integers": lambda labels: _typed(np.int64)(labels).dictionary_encode(),
}


def _columns(given):
    return public(len(given.labels)) if given.columns is None else given.columns


def quoted(cell, delimiter):
    return '"' + cell.replace('"', '""') + '"' if set(cell) & {delimiter, '"', "\n"} else cell


def ordered(columns, label, place):
    """Return the columns with the label among them."""
    names = list(columns)
    names.insert(len(names) // 2 if place is None else place, LABEL)
    return {name: label if name == LABEL else columns[name] for name in names}


def as_text(given, delimiter=","):
    """Return the table as text; labels stand there as they are."""
    columns = {name: [quoted(cell, delimiter) for cell in cells] for name, cells in _columns(given).items()}
    whole = ordered(columns, given.labels, given.place)
    rows = [delimiter.join(row) for row in zip(*whole.values(), strict=True)]
    return "".join(f"{line}\n" for line in [delimiter.join(whole), *rows])


def _public_array(name, cells):
    kind = TYPES.get(name, pa.string())
    array = pa.array([None if cell == "" and name in TYPES else cell for cell in cells], pa.string())
    if pa.types.is_dictionary(kind):
        return array.dictionary_encode()
    return array.cast(kind)


def as_arrow(given):
    """Return the table in Arrow, in one piece."""
    columns = {name: _public_array(name, cells) for name, cells in _columns(given).items()}
    return pa.table(ordered(columns, KINDS[given.kind](given.labels), given.place))


DIALECTS = {"german.csv": (";", "cp1252"), "excel.csv": ("\t", "utf-16")}
"""Text with decimal commas: separators and encodings, as programs in some countries write it."""


def _with_commas(given):
    """Return the table with commas in decimals."""
    columns = {**_columns(given)}
    if "ratio" in columns:
        columns["ratio"] = [cell.replace(".", ",") for cell in columns["ratio"]]
    return replace(given, labels=[label.replace(".", ",") for label in given.labels], columns=columns)


def as_workbook(given):
    """Return the table as an Excel file; negative labels and infinite ones are text there, others numbers."""
    labels = [float(label) if label and 0 <= float(label) < math.inf else label for label in given.labels]
    book = openpyxl.Workbook()
    whole = ordered(_columns(given), labels, given.place)
    for row in [list(whole), *zip(*whole.values(), strict=True)]:
        book.active.append(row)
    sink = io.BytesIO()
    book.save(sink)
    return sink.getvalue()


def as_bytes(given, form):
    """Return the table as a file's bytes; row groups and record batches are cut where the input says."""
    if form == "xlsx":
        return as_workbook(given)
    if form in DIALECTS:
        separator, encoding = DIALECTS[form]
        return as_text(_with_commas(given), separator).encode(encoding)
    if form in ("csv", "tsv", "csv.gz"):
        text = as_text(given, "\t" if form == "tsv" else ",").encode(errors="surrogateescape")
        return gzip.compress(text, mtime=0) if form.endswith("gz") else text
    return written([as_arrow(piece) for piece in given.in_pieces()])


def written(pieces):
    """Return the bytes of a Parquet file, with a row group for each piece."""
    sink = io.BytesIO()
    with pq.ParquetWriter(sink, pieces[0].schema) as writer:
        for piece in pieces:
            writer.write_table(piece)
    return sink.getvalue()


def write(folder, given, form, name="table"):
    """Put the table into a folder, as one file."""
    Path(folder, f"{name}.{form}").write_bytes(as_bytes(given, form))
