"""`open_table`: the one way to a table, whatever its format."""

from __future__ import annotations

import os
from collections.abc import Callable, Collection

from labeldp.files.dialect import Dialect
from labeldp.files.excel import SheetTable
from labeldp.files.places import DELIMITERS, as_format
from labeldp.files.sources import Part, find_parts
from labeldp.files.tables import Table, TypedTable
from labeldp.files.text_tables import TextTable


def open_table(
    source: str | os.PathLike[str],
    format: str | None = None,
    *,
    label: str | None = None,
    as_written: bool = False,
    text: Collection[str] = (),
    drop: Collection[str] = (),
    dialect: Dialect | None = None,
) -> Table:
    r"""Open a table: CSV, TSV, Excel, Parquet, Arrow or Feather.

    Parameters
    ----------
    source : path-like
        A file, a folder, a glob, or ``-`` for standard input. What comes through a pipe is kept in a temporary
        file.
    format : str, optional
        One of ``csv``, ``tsv``, ``xlsx``, ``parquet``, ``arrow`` and ``arrow-stream``; by default the name implies
        it.
    label : str, optional
        The private column: read as float64, and never looked at to decide anything.
    as_written : bool
        Read columns of text files as the text that is there, so that they can be written back unchanged. By
        default their types are guessed, each from the whole column.
    text : collection of str
        Columns of text files that are text even if they look like numbers.
    drop : collection of str
        Columns that are not read, and decide nothing, if there are such.
    dialect : Dialect, optional
        How text files are written, and which sheet of a workbook is read; what it does not say is detected from
        the header and the public columns.

    Raises
    ------
    DataError
        If it cannot be read; the message quotes nothing from it.
    ParameterError
        If the format is unknown.

    Examples
    --------
    >>> import tempfile, pathlib
    >>> from labeldp.files import open_table
    >>> path = pathlib.Path(tempfile.mkdtemp(), "flats.csv")
    >>> _ = path.write_text("rooms,price\n2,3.5\n3,4\n")
    >>> table = open_table(path)
    >>> table.schema.names, [batch.num_rows for batch in table.batches(["price"])]
    (['rooms', 'price'], [2])
    """
    parts, kind = find_parts(os.fspath(source), None if format is None else as_format(format))
    return table_of(parts, kind, label, lambda name: as_written or name in text, dialect or Dialect(), drop=drop)


def table_of(
    parts: list[Part],
    format: str,
    label: str | None,
    is_text: Callable[[str], bool],
    dialect: Dialect,
    *,
    exact: bool = False,
    drop: Collection[str] = (),
) -> Table:
    """Return the table in some files; ``exact`` keeps all that public columns hold, ``is_text`` is for text."""
    if format in DELIMITERS:
        return TextTable(parts, format, label, is_text, dialect, exact=exact, drop=drop)
    if format == "xlsx":
        return SheetTable(parts, label, dialect, drop)
    return TypedTable(parts, format, label, exact=exact, drop=drop)
