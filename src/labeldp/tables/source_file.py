"""A table's file, opened once: every pass over it reads the same bytes."""

from __future__ import annotations

import os
import weakref
from pathlib import Path
from typing import Any

import pyarrow as pa

from labeldp._atomic import regular_handle
from labeldp.errors import DataError


class SourceFile:
    r"""A regular file that stays open while its table is in use.

    A newer file under the same name is never read. A file that is written to in place is refused at the end of the
    pass.

    Parameters
    ----------
    path : Path

    Examples
    --------
    >>> import tempfile
    >>> path = Path(tempfile.mkdtemp(), "flats.csv")
    >>> _ = path.write_text("price\n3.5\n")
    >>> source = SourceFile(path)
    >>> path.unlink()
    >>> _ = path.write_text("town\nYork\n")
    >>> source.stream().read()
    b'price\n3.5\n'
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        self._handle = regular_handle(path)
        weakref.finalize(self, os.close, self._handle)
        self.file: Any = pa.OSFile(str(path))
        """The file for random access, from any thread."""
        status = os.fstat(self._handle)
        if not os.path.samestat(status, os.stat(path)):
            raise self._changed()
        self._size = status.st_size
        self._time = status.st_mtime_ns
        self.rights = status.st_mode & 0o666

    def stream(self) -> Any:
        """Return a new stream of the file's bytes."""
        return self.file.get_stream(0, self._size)

    def refuse_change(self) -> None:
        """Refuse a file that was written to since it was opened."""
        status = os.fstat(self._handle)
        if (status.st_size, status.st_mtime_ns) != (self._size, self._time):
            raise self._changed()

    def _changed(self) -> DataError:
        return DataError(
            f"{self.path} changed while it was read, and nothing was written: try again when no other program "
            "writes to it"
        )
