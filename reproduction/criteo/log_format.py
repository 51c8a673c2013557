"""The file format of the Criteo Sponsored Search Conversion Log: its columns, and reading them as a stream.

Tab-separated, no header, no quotes, 23 columns a line. ``-1`` or an empty field is missing.
"""

from __future__ import annotations

import gzip
import tarfile
import zlib
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import IO, Any, cast

import pyarrow as pa
from pyarrow import csv

from labeldp.errors import DataError
from reproduction.datasets.data_files import byte_bar

NUMBERS = (
    "Sale",
    "SalesAmountInEuro",
    "time_delay_for_conversion",
    "click_timestamp",
    "nb_clicks_1week",
    "product_price",
)
CATEGORIES = (
    "product_age_group",
    "device_type",
    "audience_id",
    "product_gender",
    "product_brand",
    *(f"product_category{k}" for k in range(1, 8)),
    "product_country",
    "product_id",
    "product_title",
    "partner_id",
    "user_id",
)
COLUMNS = NUMBERS + CATEGORIES

_MISSING = ["", "-1", "-1.0"]
_BLOCK = 1 << 23
_MEMBER = "CriteoSearchData"


def batches(path: Path) -> Iterator[Any]:
    """Yield the lines of a log as record batches, a few megabytes at a time.

    Numbers are float64 and categories strings; what is missing is null.

    Parameters
    ----------
    path : Path
        A plain file, a ``.gz``, or the official ``.tar.gz``.

    Raises
    ------
    DataError
        If a line is not of the format; the message has its number and none of its content.
    """
    types = dict.fromkeys(NUMBERS, pa.float64()) | dict.fromkeys(CATEGORIES, pa.string())
    try:
        with _open_log(path) as (stream, position), byte_bar() as bar:
            task = bar.add_task(f"reading {path.name}", total=path.stat().st_size)
            reader = csv.open_csv(
                pa.PythonFile(stream, mode="r"),
                read_options=csv.ReadOptions(column_names=list(COLUMNS), block_size=_BLOCK),
                parse_options=csv.ParseOptions(delimiter="\t", quote_char=False),
                convert_options=csv.ConvertOptions(
                    column_types=types, null_values=_MISSING, strings_can_be_null=True
                ),
            )
            for batch in reader:
                bar.update(task, completed=position())
                yield batch
    except pa.ArrowInvalid:  # its message quotes the line, and so a label
        raise DataError(f"{path} is not Criteo's log: {_first_fault(path)}") from None
    except (OSError, EOFError, zlib.error, tarfile.TarError):
        raise DataError(f"{path} cannot be read to its end: it is damaged, or cut short") from None


@contextmanager
def _open_log(path: Path) -> Iterator[tuple[IO[bytes], Callable[[], int]]]:
    """Open a log, unpacked; also give a function that returns how far the file on disk has been read."""
    with ExitStack() as stack:
        raw = stack.enter_context(open(path, "rb"))
        stream: IO[bytes] = raw
        if path.suffix in {".gz", ".tgz"}:
            stream = cast("IO[bytes]", stack.enter_context(gzip.open(raw)))
        if path.suffix == ".tgz" or path.name.endswith(".tar.gz"):
            archive = stack.enter_context(tarfile.open(fileobj=stream, mode="r|", bufsize=1 << 20))
            stream = _member(archive, path)
        yield stream, raw.tell


def _member(archive: tarfile.TarFile, path: Path) -> IO[bytes]:
    for member in archive:
        stream = archive.extractfile(member) if Path(member.name).name.startswith(_MEMBER) else None
        if stream is not None:
            return stream
    raise DataError(f"{path} holds no file {_MEMBER}")


def _first_fault(path: Path) -> str:
    """Say which line is the first that breaks the format, and nothing of its content."""
    number = 0
    with _open_log(path) as (stream, _):
        for number, line in enumerate(stream, start=1):
            fields = line.rstrip(b"\r\n").split(b"\t")
            if fields == [b""]:
                continue
            if len(fields) != len(COLUMNS):
                return f"line {number} has {len(fields)} columns, not {len(COLUMNS)}"
            for name, field in zip(NUMBERS, fields, strict=False):
                if not _is(float, field or b"0"):
                    return f"line {number} has no number in the column {name}"
            if not _is(bytes.decode, line):
                return f"line {number} is not UTF-8 text"
    return "it is empty" if number == 0 else "a line is too long, or is not text"


def _is(parse: Callable[[bytes], object], text: bytes) -> bool:
    try:
        parse(text)
    except ValueError:
        return False
    return True
