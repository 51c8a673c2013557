"""Tables written completely or not at all, with their cards, without metadata, in row groups of their own size."""

from __future__ import annotations

import os
import shutil
import sys
from contextlib import ExitStack
from typing import Any, Self

import pyarrow as pa

from labeldp._atomic import StrPath, atomic_file
from labeldp.mechanisms.card_format import MAX_TEXT
from labeldp.tables.batches import is_text, size_of
from labeldp.tables.dialect import Dialect
from labeldp.tables.file_writers import ParquetFileWriter, TextFileWriter, refuse_schema, refuse_values
from labeldp.tables.paths import DELIMITERS, Target, output_format, sha256

GROUP_ROWS = 1 << 20
GROUP_BYTES = 1 << 27
"""A row group ends at whichever comes first, after a whole piece of rows: both follow from the values in it."""

SMALL_ROWS = 1 << 17
"""Formats without row groups are written in smaller pieces."""


class TableWriter:
    r"""A table that appears when its block ends without an error, or never.

    Parameters
    ----------
    path : path-like
    schema : pyarrow.Schema
        Its metadata is not written.
    format : str, optional
        By default the name implies it.
    force : bool
        Replace a file that exists.
    max_rights : int
        The most rights that the files get; the umask may leave them fewer.
    dialect : Dialect, optional
        How text is written.
    reserved : bool
        Whether `reserve` has checked the place.

    Examples
    --------
    >>> import pathlib, tempfile, pyarrow as pa
    >>> from labeldp.tables import TableWriter
    >>> batch = pa.record_batch({"price": [3.5, 4.0]})
    >>> path = pathlib.Path(tempfile.mkdtemp(), "flats.csv")
    >>> with TableWriter(path, batch.schema) as out:
    ...     out.write(batch)
    >>> path.read_text()
    'price\n3.5\n4\n'
    """

    def __init__(
        self,
        path: StrPath,
        schema: Any,
        format: str | None = None,
        force: bool = False,
        *,
        max_rights: int = 0o666,
        dialect: Dialect | None = None,
        reserved: bool = False,
    ) -> None:
        self._to, self._force, self._max_rights = os.fspath(path), force, max_rights
        self.format = output_format(self._to, format)
        self.schema = pa.schema([field.remove_metadata() for field in schema])
        self._group_rows = GROUP_ROWS if self.format == "parquet" else min(GROUP_ROWS, SMALL_ROWS)
        self._dialect = (dialect or Dialect()).with_defaults(self.format)
        self._tried_rows = self._tried_bytes = self._written = 0
        refuse_schema(self.schema, self.format)
        if not reserved:
            Target(self._to, force).refuse()

    def rehearse(self, public: Any) -> None:
        """Refuse public columns of some rows that the format cannot hold, or the disk; called before a charge.

        Parameters
        ----------
        public : pyarrow.RecordBatch
            Some columns of the next rows.
        """
        refuse_values(public, self.format)
        self._tried_rows += public.num_rows
        if self.format in DELIMITERS:
            texts = [position for position, kind in enumerate(public.schema.types) if is_text(kind)]
            self._tried_bytes += size_of(public.select(texts)) + public.num_rows * public.num_columns
        refuse_size(self._to, self._tried_bytes)

    def __enter__(self) -> Self:
        with ExitStack() as stack:
            self._path = stack.enter_context(
                atomic_file(self._to, public=True, max_rights=self._max_rights, replace=self._force)
            )
            stream = stack.enter_context(pa.OSFile(str(self._path), "wb"))
            self._encoder: Any = (
                TextFileWriter(stream, self.schema, self._dialect)
                if self.format in DELIMITERS
                else ParquetFileWriter(stream, self.schema)
            )
            stack.callback(setattr, self, "_encoder", None)
            self._stream, self._stack = stream, stack.pop_all()
        self._pending: list[Any] = []
        self._rows = self._bytes = 0
        return self

    def write(self, batch: Any) -> None:
        """Add rows.

        Parameters
        ----------
        batch : pyarrow.RecordBatch
            Of the schema.
        """
        self._written += batch.num_rows
        if self._written > self._tried_rows:
            self.rehearse(batch)
        start = 0
        while start < batch.num_rows:
            piece = batch.slice(start, self._group_rows - self._rows)
            start += piece.num_rows
            self._pending.append(piece)
            self._rows += piece.num_rows
            self._bytes += size_of(piece)
            if self._rows >= self._group_rows or self._bytes >= GROUP_BYTES:
                self._flush()

    def finish(self) -> str:
        """Write all that is left; return the SHA-256 of the file, which has its name only after the block."""
        self._close()
        return sha256(self._path)

    def text_facts(self) -> dict[str, str]:
        """Return the marks of a text file for its card."""
        if self.format not in DELIMITERS:
            return {}
        return {name: str(getattr(self._dialect, name)) for name in ("separator", "decimal", "encoding")}

    def _close(self) -> None:
        if self._encoder is not None:
            if self._pending:
                self._flush()
            self._encoder.close()
            self._stream.close()
            self._encoder = None

    def __exit__(self, *error: Any) -> None:
        if error[0] is not None:
            self._stack.__exit__(*error)
            return
        with self._stack:
            self._close()

    def _flush(self) -> None:
        """Encode a row group."""
        table = pa.Table.from_batches(self._pending, self.schema)
        self._pending, self._rows, self._bytes = [], 0, 0
        if self._encoder is not None:
            self._encoder.write(table.combine_chunks())  # how rows came shows in no page or batch


# ---- space ----------------------------------------------------------------------------------------------------


def refuse_size(to: str, size: int) -> None:
    """Refuse an output of at least this size where there is no space for it and its card.

    Parameters
    ----------
    to : str
        A file or folder.
    size : int
        In bytes.
    """
    folder = os.path.dirname(os.path.abspath(to))
    free, needed = shutil.disk_usage(folder).free, size + MAX_TEXT
    if sys.platform != "win32":
        import resource  # noqa: PLC0415 (not on Windows)

        limit = resource.getrlimit(resource.RLIMIT_FSIZE)[0]  # ulimit -f
        free = free if limit == resource.RLIM_INFINITY else min(free, limit)
    if free < needed:
        raise OSError(28, f"No space left: about {needed:,} bytes are needed, and {free:,} are free", folder)
