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

from labeldp.datasets.fetch import byte_bar
from labeldp.errors import DataError
from labeldp.tabular.arrow import arrow

__all__ = ["CATEGORIES", "COLUMNS", "NUMBERS", "batches"]

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
    pa, csv, _, _ = arrow()
    types = dict.fromkeys(NUMBERS, pa.float64()) | dict.fromkeys(CATEGORIES, pa.string())
    try:
        with _opened(path) as (stream, position), byte_bar() as bar:
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
def _opened(path: Path) -> Iterator[tuple[IO[bytes], Callable[[], int]]]:
    """Open a log, unpacked; also give a function that says how far the file on disk has been read."""
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
        if member.isfile() and Path(member.name).name.startswith(_MEMBER):
            found = archive.extractfile(member)
            if found is not None:
                return found
    raise DataError(f"{path} holds no file {_MEMBER}")


def _first_fault(path: Path) -> str:
    """Say which line is the first that breaks the format; the reader itself does not know."""
    number = 0
    with _opened(path) as (stream, _):
        for number, line in enumerate(stream, start=1):
            fields = line.rstrip(b"\r\n").split(b"\t")
            if fields == [b""]:
                continue
            if len(fields) != len(COLUMNS):
                return f"line {number} has {len(fields)} columns, not {len(COLUMNS)}"
            for name, field in zip(NUMBERS, fields, strict=False):
                if not _is_number(field):
                    return f"line {number} has no number in the column {name}"
            if not _is_text(line):
                return f"line {number} is not UTF-8 text"
    return "it is empty" if number == 0 else "a line is too long, or holds something that is no text"


def _is_number(field: bytes) -> bool:
    try:
        return not field or float(field) is not None
    except ValueError:
        return False


def _is_text(line: bytes) -> bool:
    try:
        line.decode()
    except UnicodeDecodeError:
        return False
    return True
