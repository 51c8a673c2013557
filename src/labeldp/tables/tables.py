"""A table in a file, read as often as needed, in constant memory.

Whatever the file is cut into, blocks, row groups or batches, ends here: rows are cut again by number, which
follows from the types of the columns.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Sequence
from typing import Any

import pyarrow as pa

from labeldp.errors import DataError, ParameterError, Setting
from labeldp.release.names import RENAME, as_label_name, look_like_values, nearest, refuse_lookalike
from labeldp.tables.dialect import NULL_WORDS, Dialect
from labeldp.tables.paths import DELIMITERS
from labeldp.tables.source_file import SourceFile

MAY_LACK_HEADER = {*DELIMITERS, "xlsx"}
"""Formats in which names may be the values of a row, with its label: messages do not list them."""

_TOTALS = {
    *("total", "totals", "subtotal", "sum", "totaux", "somme", "totale", "totali", "somma", "totales", "suma"),
    *("summe", "gesamt", "gesamtsumme", "gesamtergebnis", "zwischensumme", "insgesamt", "totaal", "eindtotaal"),
    *("totalt", "summa", "yhteensä", "razem", "ogółem", "celkem", "összesen", "toplam", "итого", "всего"),
    *("overall", "gesamtbetrag", "σ", "σύνολο", "合計", "小計", "合计", "小计", "总计", "總計", "합계"),
    *("endsumme", "totais", "łącznie", "総計", "총계", "المجموع", "סהכ"),
}
"""Words of rows that sum up the others."""

_AVERAGES = {
    *("average", "mean", "durchschnitt", "mittelwert", "moyenne", "media", "promedio", "som"),
    *("median", "max", "maximum", "min", "minimum", "ø", "schnitt", "gemiddelde", "medelvärde", "średnia", "平均"),
}
"""Words of rows of averages and extremes; a column that is left out, as it follows from labels, may have them."""

_RENAME = "rename the column, or, if there is no header, add a first row with the names of the columns"
_NO_HEADER = (
    "the table looks as if the header is missing: most names of columns read as values. If there is none, add a "
    "first row with the names of the columns; if these are names, confirm them with ",
    Setting("header", True),
)


def _first_words(cells: Iterable[str]) -> set[str]:
    """Return the first two words of each cell, as of "Grand Total" or "Total général"."""
    words = [re.split(r"[\W_]+", cell.casefold().strip(" *:=-–—()."), maxsplit=2)[:2] for cell in cells]
    return {word for pair in words for word in pair}


def lacks_header(names: Sequence[str], format: str, dialect: Dialect) -> bool:
    """Return whether values of a row may have been taken for names: one may be a label, and is not shown."""
    return format in MAY_LACK_HEADER and not dialect.header and look_like_values(names)


class Table:
    r"""A table in a file, read in batches; `open_table` returns one.

    Parameters
    ----------
    source : SourceFile
    format : str
        One of ``csv``, ``tsv``, ``xlsx`` and ``parquet``.
    labels : sequence of str
        The private columns.
    names : list of str
        Its columns.
    drop : collection of str
        Columns that are not read.

    Attributes
    ----------
    private : set of str
        The labels, and the columns that are there and not read.
    dialect : Dialect
        How a text file is written.
    rows : int or None
        Number of rows; None where only reading shows it.
    schema : pyarrow.Schema
        Without the file's metadata. Labels are float64, and their values have no part in any of it.

    Examples
    --------
    >>> import tempfile, pathlib
    >>> from labeldp.tables import open_table
    >>> path = pathlib.Path(tempfile.mkdtemp(), "flats.csv")
    >>> _ = path.write_text("town;area;price\nYork;60,5;3,5\nBath;81,0;4,25\n")
    >>> table = open_table(path, label="price")
    >>> table.schema.names, table.field("price").type
    (['town', 'area', 'price'], DataType(double))
    >>> [batch.column("town").to_pylist() for batch in table.batches(["town"])]
    [['York', 'Bath']]
    """

    def __init__(
        self, source: SourceFile, format: str, labels: Sequence[str], names: list[str], drop: Collection[str] = ()
    ) -> None:
        if lacks_header(names, format, self.dialect):
            raise DataError(*_NO_HEADER)
        self.source, self.format, self.labels, self._names = source, format, tuple(labels), names
        for label in labels:  # first: without a header, what else is wrong with names would be about labels
            as_label_name(label, _RENAME if format in MAY_LACK_HEADER else RENAME)
            self.refuse_unknown(label)
        repeated = [name for name, times in Counter(self._names).items() if times > 1]
        if repeated:
            name = "of the same name" if format in MAY_LACK_HEADER else f"named {repeated[0]!r}"
            raise DataError(
                f"the table has two columns {name}: rename one, or add the header if there is none; lines above "
                "a header are left out with ",
                Setting("skip"),
            )
        for label in labels:
            if label in drop:
                raise ParameterError(f"{label!r} is the label: it cannot be left out", option="drop")
        self.private = {name for name in self._names if name in drop or name in labels}
        self._inside = [name for name in self._names if name not in drop]
        self.schema = pa.schema(self._fields())

    dialect = Dialect()
    rows: int | None = None

    @property
    def notes(self) -> list[str]:
        """Detected marks of the file, such as its separator."""
        return []

    def dialect_for(self, format: str) -> Dialect:
        """Return how text is written again: as it was read, but in UTF-8."""
        separator = self.dialect.separator if format == self.format else None
        encoding = "utf-8" if self.dialect.encoding in (None, "utf-8") else "utf-8-sig"  # which Excel recognises
        return self.dialect.with_detected(separator=separator, encoding=encoding)

    def field(self, name: str) -> Any:
        """Return a column's name and type.

        Parameters
        ----------
        name : str

        Raises
        ------
        ParameterError
            If there is no such column; the message names the nearest.
        """
        self.refuse_unknown(name)
        return self.schema.field(name)

    def batches(self, columns: Sequence[str] | None = None) -> Iterator[Any]:
        """Yield the rows, in the file's order, as record batches of a length that follows from the columns.

        Parameters
        ----------
        columns : sequence of str, optional
            Which columns, in this order; by default all.
        """
        schema = self.schema if columns is None else pa.schema([self.field(name) for name in columns])
        return self._read(schema)

    def as_text(self) -> Table:
        """Return the same table with public columns of a text file as the text that is there."""
        return self

    def with_exact_types(self) -> Table:
        """Return the same table with public columns in types from which all text of a file comes back.

        Codes such as 007 stay text.
        """
        return self

    def parse(self, batch: Any, columns: Sequence[str]) -> Any:
        """Return some columns of a batch of `as_text` or `with_exact_types` as this table has them."""
        return batch.select(list(columns))

    @property
    def rights(self) -> int:
        """The file's permissions to read and write."""
        return self.source.rights

    def _fields(self) -> list[Any]:
        """Return the columns that the file holds."""
        raise NotImplementedError

    def _read(self, schema: Any) -> Iterator[Any]:
        """Yield rows in the types of a schema."""
        raise NotImplementedError

    def _cells(self, names: Sequence[str], row: int) -> list[str]:
        """Return the text of a row of a text file or a sheet in some columns, without blanks around it."""
        raise NotImplementedError

    def refuse_total(self, row: int) -> None:
        """Refuse a table whose last row looks like a total of the others, by its columns other than labels.

        A word such as "Total" counts in columns that are left out, too: a total is one whatever is read of it. A
        word such as "Average" does not: a column such as "level", made of the label, is left out for that.
        Blank are the public columns, if there are any: a column that is left out may be blank by its label.

        Parameters
        ----------
        row : int
            The number of the last row that has a label, from 0 on.
        """
        columns, left_out = [name for name in self._names if name not in self.labels], self.dialect.skip_last
        if self.format not in MAY_LACK_HEADER or left_out == 0 or not columns:
            return
        cells = dict(zip(columns, self._cells(columns, row), strict=True))
        public = [cell for name, cell in cells.items() if name not in self.private]
        is_blank = {*NULL_WORDS, *self.dialect.na}.issuperset(public or cells.values())
        words, public_words = _first_words(cells.values()), _first_words(public)
        if is_blank or words & _TOTALS or public_words & _AVERAGES:
            below = "take lines below it out of the file, and " if left_out else ""
            raise DataError(
                "the last row looks like a total of the others, by its other columns, and would release every "
                "label a second time: leave it out with ",
                Setting("skip_last", (left_out or 0) + 1),
                ". If it is a row like the others, " + below + "keep it with ",
                Setting("skip_last", 0),
            )

    def refuse_lookalike(self, names: Iterable[str]) -> None:
        """Refuse public columns if one has the name of the label but for case, blanks or forms of letters."""
        for label in self.labels:
            for name in names:
                remedy = ["leave it out with ", Setting("drop", [name]), ", or rename it in the file"]
                if name in self.labels:
                    remedy = ["rename one of the labels"]
                if name != label:
                    refuse_lookalike(label, [name], *remedy)

    def refuse_unknown(self, name: str, option: str = "label") -> None:
        """Name the nearest column if there is none of this name, which an option has."""
        if name in self._names:
            return
        if similar := nearest(name, self._names):
            raise ParameterError(f"there is no column {name!r}; did you mean {similar!r}?", option=option)
        raise ParameterError(  # no separator that was found: labels of a first row may decide it
            f"there is no column {name!r}; does the first line name the columns? Lines above are left out with ",
            Setting("skip", 1),
            ". If values have another separator, name it, as in ",
            Setting("separator", ";"),
            option=option,
        )
