"""Which kind of file it is: by its name, or by its first bytes."""

from __future__ import annotations

import re
from pathlib import PurePath

from labeldp._validation import nearest
from labeldp.errors import DataError, ParameterError

__all__ = ["DELIMITERS", "EXTENSIONS", "as_format", "compression_of", "format_of", "sniff_format"]

EXTENSIONS = {"csv": "csv", "tsv": "tsv", "parquet": "parquet", "arrow": "arrow", "arrow-stream": "arrows"}
"""The formats, and how the names of their files end; Feather is ``arrow``, Arrow's file format."""

DELIMITERS = {"csv": ",", "tsv": "\t"}
"""The formats that are text."""

_NAMES = {f".{extension}": format for format, extension in EXTENSIONS.items()} | {
    ".tab": "tsv",
    ".pq": "parquet",
    ".feather": "arrow",
    ".ipc": "arrow",
}
_COMPRESSIONS = {".gz": "gzip", ".bz2": "bz2", ".zst": "zstd"}
"""How CSV and TSV may be compressed, by the end of the name."""


def as_format(name: str) -> str:
    """Return a format that a user named."""
    known = {**dict.fromkeys(EXTENSIONS), "feather": "arrow", "ipc": "arrow"}
    if name.lower() not in known:
        raise ParameterError(f"unknown format {name!r}; known are {', '.join(EXTENSIONS)} and feather")
    return known[name.lower()] or name.lower()


def compression_of(name: str) -> str | None:
    """Return how a text file of this name is compressed, or None."""
    return _COMPRESSIONS.get(PurePath(name).suffix.lower())


def format_of(name: str) -> str:
    """Return the format that a file's name tells, or refuse it.

    Examples
    --------
    >>> format_of("sales.csv.gz"), format_of("sales.feather")
    ('csv', 'arrow')
    """
    path = PurePath(name)
    if compression_of(name) and _NAMES.get(PurePath(path.stem).suffix.lower()) in DELIMITERS:
        path = PurePath(path.stem)
    suffix = path.suffix.lower()
    if suffix not in _NAMES:
        near = nearest(suffix, _NAMES)
        hint = f" (did you mean {near}?)" if near else ""
        raise DataError(
            f"the name {path.name!r} does not tell the format{hint}: known are {', '.join(_NAMES)}, and .gz after "
            '.csv or .tsv; or say which, as in format="csv". A folder to write ends in /'
        )
    return _NAMES[suffix]


def sniff_format(start: bytes) -> str:
    r"""Return the format that a file's first bytes tell; text is CSV, or TSV if its first line has tabs only.

    Examples
    --------
    >>> sniff_format(b"PAR1...."), sniff_format(b"name,price"), sniff_format(b"name\tprice")
    ('parquet', 'csv', 'tsv')
    """
    marks = {b"PAR1": "parquet", b"ARROW1": "arrow", b"\xff\xff\xff\xff": "arrow-stream"}
    for mark, name in marks.items():
        if start.startswith(mark):
            return name
    header = re.split(rb"[\r\n]", start, maxsplit=1)[0]
    return "tsv" if b"\t" in header and b"," not in header else "csv"
