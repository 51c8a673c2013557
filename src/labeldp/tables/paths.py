"""Names of files: which format they imply, which a table is read from, and where one may be written.

Needs no PyArrow.
"""

from __future__ import annotations

import errno
import hashlib
import os
import tempfile
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import chain, combinations, product
from pathlib import Path, PurePath
from typing import Any

from labeldp._atomic import MARK, StrPath, as_path, open_regular, regular_status, reserve_name
from labeldp.errors import DataError, ParameterError, Setting

FORMATS = ("csv", "tsv", "xlsx", "parquet")
"""The formats; the names of their files end like this."""

DELIMITERS = {"csv": ",", "tsv": "\t"}
"""The formats that are text."""

PACKED = ".gz"
"""The end of the names of CSV and TSV files that are compressed; they are read, and not written."""

MODEL_FILES = {"columns.json", "measurements.npz", "model.npz", "release.npz"}
"""Files in the folder of a model beside its card."""

_ENDINGS = {
    **{f".{format}": format for format in FORMATS},
    **{".tab": "tsv", ".txt": "csv", ".xlsm": "xlsx", ".pq": "parquet"},
}


def as_format(name: str) -> str:
    """Return a format that a user named."""
    format = {"excel": "xlsx"}.get(name.lower(), name.lower())
    if format not in FORMATS:
        raise ParameterError(f"unknown format {name!r}; known are {', '.join(FORMATS)}", option="format")
    return format


def format_in(name: str) -> str | None:
    """Return the format that a file's name implies, or None.

    Examples
    --------
    >>> format_in("sales.csv.gz"), format_in("sales.pq"), format_in("sales")
    ('csv', 'parquet', None)
    """
    path = PurePath(name.lower())
    inner = _ENDINGS.get(PurePath(path.stem).suffix)
    return inner if inner in DELIMITERS and path.suffix == PACKED else _ENDINGS.get(path.suffix)


def format_of(name: str) -> str:
    """Return the format that a file's name implies, or refuse it."""
    if name.endswith("/"):
        raise ParameterError(f"{name} is a folder: name a file in it, such as {name}table.csv")
    format = format_in(name)
    if format is None:
        raise DataError(
            f"the name {PurePath(name).name!r} implies no known format: known are {', '.join(_ENDINGS)}, and .gz "
            "after .csv or .tsv; save it in one of them, or name the format, as in ",
            Setting("format", "csv"),
        )
    return format


def output_format(name: str, default: str | None = None) -> str:
    """Return the format in which a table is written: of its name, else the default."""
    refuse_pipe(name)
    format = format_in(name) or (as_format(default) if default and not name.endswith("/") else format_of(name))
    if format == "xlsx" or name.lower().endswith(PACKED):
        raise ParameterError(f"{name}: Excel and {PACKED} are read, and not written; name a .csv or .parquet file")
    return format


def sha256(path: Path, limit: int | None = None) -> str:
    """Return the SHA-256 of a regular file, as cards have it; a file of more than ``limit`` bytes is refused."""
    with open_regular(path) as stream:
        if limit is not None and os.fstat(stream.fileno()).st_size > limit:
            raise DataError(f"{path} is too large: it may have {limit:,} bytes at most")
        return hashlib.file_digest(stream, "sha256").hexdigest()


@dataclass(frozen=True, slots=True)
class Target:
    """A place to write to.

    Attributes
    ----------
    to : str
        A file or a folder.
    force : bool
        Whether a file that exists may be replaced.
    may_go : callable or None
        Which files may be in a folder that is replaced; without it, the target must not be a folder.
    """

    to: str
    force: bool
    may_go: Callable[[str], Any] | None = None

    def refuse_existing(self) -> None:
        """Refuse to destroy a file or folder, unless it may be replaced."""
        path, force = Path(self.to), self.force
        if not os.path.lexists(path):
            return
        if path.is_dir():
            names = os.listdir(path)
            if self.may_go is None or path.is_symlink() or not all(map(self.may_go, names)):
                raise ParameterError(f"{path} is a folder that cannot be replaced: name a file in it, or another")
            force = force or not names
        elif self.to.endswith("/") or (path.exists() and not path.is_file()):
            raise ParameterError(f"{path} is not a folder, or not a regular file: choose another name")
        if not force:
            raise ParameterError(f"{path} exists already: replace it with ", Setting("force", True))
        os.rename(path, path)  # fails where another program has it open, and Windows would not let it be replaced

    def refuse(self) -> None:
        """Refuse to write where that cannot work, or would destroy something."""
        path = as_path(self.to)
        self.refuse_existing()
        _refuse_folder(path)


@contextmanager
def reserve(target: Target) -> Iterator[None]:
    """Refuse as `Target.refuse` does, and refuse all others that would write to this place during the block.

    Entered before a charge, so that of two who write to one place at once only one pays. Paths are parsed.
    """
    _refuse_folder(Path(target.to))
    with reserve_name(target.to):
        target.refuse_existing()  # now, as another may have been done just before
        yield


def _refuse_folder(path: Path) -> None:
    """Refuse a target in a folder that does not exist, or to which no file of such a name can be written."""
    if not path.parent.is_dir():
        raise ParameterError(f"there is no folder {path.parent}: create it first")
    if not os.access(path.parent, os.W_OK | os.X_OK):
        raise PermissionError(13, "Permission denied", str(path.parent))
    try:
        with tempfile.NamedTemporaryFile(dir=path.parent, prefix=f"{path.name}.", suffix=".part"):
            pass  # fails on a read-only disk
    except OSError as error:
        if error.errno != errno.ENAMETOOLONG:
            raise
        raise ParameterError(
            f"the name {path.name[:100]!r} is too long for files that are written beside it: shorten it"
        ) from None


def refuse_same(outputs: Mapping[str, StrPath | None], inputs: Mapping[str, StrPath | None]) -> None:
    """Refuse to use one place for two purposes: the second file would replace the first.

    A folder is replaced as a whole, so nothing else may lie in it either: a ledger there would be lost with it.
    Names that differ in case only are one place: on many disks they are.

    Parameters
    ----------
    outputs : mapping
        Paths that are written, by a name for messages; a ledger is written too. None is nowhere.
    inputs : mapping
        Files or folders that are read.

    Examples
    --------
    >>> refuse_same({"the table": "out.csv", "the ledger": "budget.db"}, {"the source": "in.csv"})
    >>> refuse_same({"the table": "out/", "the ledger": "out/budget.db"}, {})
    Traceback (most recent call last):
    labeldp.errors.ParameterError: the ledger, out/budget.db, and the table, out, lie in one place: name another
    """
    targets, sources = (
        [(f"{name}, {Path(path)}", as_path(path, follow=True)) for name, path in paths.items() if path is not None]
        for paths in (outputs, inputs)
    )
    for name, path in targets:
        if path.name.casefold().endswith(MARK):
            raise ParameterError(f"{name}, ends in {MARK}, as files that reserve a name do: name another")
    for (name, path), (second, second_path) in chain(
        combinations(reversed(targets), 2), product(targets, sources)
    ):
        if _overlap(path, second_path):
            raise ParameterError(f"{name}, and {second}, lie in one place: name another")


def _overlap(path: Path, second: Path) -> bool:
    """Return whether two paths are the same place, by any name, or one lies in the other."""
    name, second_name = PurePath(str(path).casefold()), PurePath(str(second).casefold())
    if name.is_relative_to(second_name) or second_name.is_relative_to(name):
        return True
    return path.exists() and second.exists() and path.samefile(second)


# ---- where a table is read from -------------------------------------------------------------------------------


def refuse_pipe(path: str) -> None:
    """Refuse ``-``: what goes through a pipe cannot be complete or not at all, and labels are read twice."""
    if path == "-":
        raise ParameterError(
            "a table is read from a file and written to a file, not through a pipe: name a file (one that is "
            "called - is ./-)"
        )


def find_table(source: StrPath, format: str | None = None) -> tuple[Path, str]:
    """Return the file of a table, and its format."""
    refuse_pipe(os.fspath(source))
    path = as_path(source)
    if path.is_dir():
        raise DataError(
            f"{path} is a folder, and a table is one file: put the rows into one file, such as Parquet; a table "
            "on a cluster is read by labeldp.spark"
        )
    regular_status(path)
    return path, as_format(format) if format else format_of(path.name)
