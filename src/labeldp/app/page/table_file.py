"""A file or a folder of files with a table, as it was when it was opened."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from labeldp.errors import DataError
from labeldp.tables.dialect import Dialect
from labeldp.tables.opening import TableHeader
from labeldp.tables.overview import table_header

Stamp = tuple[tuple[str, int, int, int, int], ...]


@dataclass(frozen=True)
class TableFile:
    """A table of the folder.

    Attributes
    ----------
    source : Path
    dialect : Dialect
        How it is written, as far as the owner said so.
    stamp : tuple
        Shows whether its files were changed or exchanged since.
    header : TableHeader
        The names of its columns.
    """

    source: Path
    dialect: Dialect
    stamp: Stamp
    header: TableHeader

    @classmethod
    def open(cls, source: Path, dialect: Dialect) -> TableFile:
        """Return a table as it is now; only its header is read."""
        stamp = _stamp_of(source)
        return cls(source, dialect, stamp, table_header(source, dialect=dialect))

    def refuse_changed(self) -> None:
        """Refuse to go on with a file that is not the one that was opened, whatever it contains."""
        if _stamp_of(self.source) != self.stamp:
            raise DataError("the file changed since it was opened: begin again with it")


def _stamp_of(source: Path) -> Stamp:
    """Return the name, inode, size and times of each file; none of it is ever shown."""
    files = sorted(path for path in source.rglob("*") if path.is_file()) if source.is_dir() else [source]
    stats = [(str(path), path.stat()) for path in files if path.exists()]
    return tuple((name, each.st_ino, each.st_size, each.st_mtime_ns, each.st_ctime_ns) for name, each in stats)
