"""A table as numbers for a model: columns are looked up by name, and treated as they were in the fit."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from labeldp._values import Array
from labeldp.errors import CardError, DataError, ParameterError
from labeldp.mechanisms.typed_data import plain, read
from labeldp.release.names import lookalike, nearest
from labeldp.tables.column_encoders import Categories, Numbers, Tally, fit_column, refuse_another_kind


@dataclass(frozen=True, slots=True)
class TableEncoder:
    """Encoding of the columns of a table as numbers.

    Attributes
    ----------
    columns : tuple
        The encodings, in the order of the numbers they give.
    left_out : tuple of (str, str)
        Columns of the fit that cannot serve as features, and why.

    Examples
    --------
    >>> import pyarrow as pa
    >>> from labeldp.tables import TableEncoder
    >>> table = pa.table({"size": [1.0, 2.0, None], "town": ["York", "Bath", "York"], "same": [7, 7, 7]})
    >>> encoder = TableEncoder.fit(table, ["size", "town", "same"])
    >>> encoder.transform(pa.table({"town": ["Bath", "Ely"], "size": [4, 5]}))      # Ely is new
    array([[4., 0., 0., 1.],
           [5., 0., 0., 0.]])
    >>> encoder.left_out
    (('same', 'all its values are the same'),)
    """

    columns: tuple[Numbers | Categories, ...]
    left_out: tuple[tuple[str, str], ...] = ()

    @classmethod
    def fit(
        cls, table: Any, names: Sequence[str], *, categories: Collection[str] = (), strict: bool = False
    ) -> TableEncoder:
        """Learn the encodings of some columns of an Arrow table.

        Parameters
        ----------
        table : pyarrow.Table
            Public columns.
        names : sequence of str
            The columns to encode.
        categories : collection of str
            Columns of numbers that name things, such as codes of regions.
        strict : bool
            Whether a column that cannot be used is refused instead of left out.
        """
        if not table.num_rows:
            raise DataError("the table has no rows")
        encodings: list[Numbers | Categories] = []
        unusable: list[tuple[str, str]] = []
        for name in names:
            encoding = fit_column(name, table.column(name), is_category=name in categories)
            if not isinstance(encoding, str):
                encodings.append(encoding)
            elif strict:
                raise ParameterError(f"the column {name!r} is of no use as a feature: {encoding}")
            else:
                unusable.append((name, encoding))
        if not encodings:
            why = "; ".join(f"{name!r}: {reason}" for name, reason in unusable)
            raise DataError("no column is left to learn from" + (f" ({why})" if why else ""))
        return cls(tuple(encodings), tuple(unusable))

    @classmethod
    def for_numbers(cls, fills: Mapping[str, float]) -> TableEncoder:
        """Return the encoder of columns that are numbers already, each with what stands for missing values."""
        return cls(tuple(Numbers(name, "number", float(fill), False) for name, fill in fills.items()))

    @property
    def names(self) -> list[str]:
        """The columns that a table must have."""
        return [column.name for column in self.columns]

    @property
    def texts(self) -> list[str]:
        """The columns that are text, or read as text, so that 02 in a text file is not 2 there."""
        return [column.name for column in self.columns if column.kind == "category"]

    @property
    def width(self) -> int:
        """Number of numbers of a row."""
        return sum(column.width for column in self.columns)

    def slices(self) -> dict[str, slice]:
        """Return which of the numbers are those of each column."""
        slices, start = {}, 0
        for column in self.columns:
            slices[column.name] = slice(start, start := start + column.width)
        return slices

    def categories(self) -> list[slice]:
        """Return which of the numbers are those of each column of text."""
        texts = set(self.texts)
        return [columns for name, columns in self.slices().items() if name in texts]

    def check(self, schema: Any, other_names: Collection[str] = ()) -> None:
        """Refuse a table that lacks a column, or holds something else in it than in the fit.

        ``other_names`` are the names of its further columns, for a hint.
        """
        for column in self.columns:
            if schema.names.count(column.name) > 1:
                raise DataError(f"two columns are called {column.name!r}")
            if column.name not in schema.names:
                similar = nearest(column.name, [*schema.names, *other_names])
                hint = f"{similar!r} is near, rename it if it is meant" if similar else "add it"
                raise DataError(f"the model needs the column {column.name!r}, which is not there: {hint}")
            refuse_another_kind(column, schema.field(column.name).type)

    def transform(self, table: Any, tally: Tally | None = None) -> Array:
        """Return the numbers of a table or batch, whose columns may be in any order, among others.

        Values that are missing, or new since the fit, are counted in ``tally``.
        """
        self.check(table.schema)
        tally = Counter() if tally is None else tally
        result = np.full((table.num_rows, self.width), np.nan)
        for column, columns in zip(self.columns, self.slices().values(), strict=True):
            result[:, columns] = column.encode(table.column(column.name), tally)
        return result

    def column_like(self, label: str) -> str | None:
        """Return the column that is called like a label, used or left out; None if there is none.

        Case and the Unicode form of accents do not tell names apart.
        """
        return lookalike(label, [*self.names, *dict(self.left_out)])

    def to_json(self) -> str:
        """Return all of it as JSON."""
        return json.dumps(plain(self), allow_nan=False)

    @classmethod
    def from_json(cls, text: str) -> TableEncoder:
        """Return the encoder from what `to_json` gave; anything else is refused with a `CardError`."""
        try:
            data = json.loads(text)
        except (ValueError, RecursionError):
            raise CardError("the description of the model's columns is not valid JSON") from None
        encoder: TableEncoder = read(cls, data, "the description of the model's columns")
        if not encoder.columns or len(set(encoder.names)) < len(encoder.names):
            raise CardError("the model's columns are damaged: there are none, or one is there twice")
        return encoder
