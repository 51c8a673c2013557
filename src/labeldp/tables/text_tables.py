"""Tables in text files: the types of public columns, and how files are written, follow from public values."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Sequence
from typing import Any

import pyarrow as pa

from labeldp.errors import LabelDPError, LabelError, ParameterError, Setting
from labeldp.tables.batches import cut, rows_per_batch
from labeldp.tables.dialect import Dialect
from labeldp.tables.sources import Part
from labeldp.tables.tables import Table
from labeldp.tables.text_files import TextFile, first_fault, may_hide_records, read_header, text_batches
from labeldp.tables.text_records import find_dialect, find_marks
from labeldp.tables.text_types import LabelText, TextType, parse_text


class TextTable(Table):
    """A table in text files; the type of a public column is decided from all of it, and nothing else.

    With ``exact``, a column is another type than text only if all its text comes back from it.
    """

    def __init__(
        self,
        parts: list[Part],
        format: str,
        label: str | None,
        is_text: Callable[[str], bool],
        dialect: Dialect,
        *,
        exact: bool,
        drop: Collection[str] = (),
    ) -> None:
        self._is_text, self._exact, self._given = is_text, exact, dialect
        private = {*drop, *(() if label is None else (label,))}
        self._has_checked_quotes = not private
        written = [find_dialect(part, dialect, format, private) for part in parts]
        self._files = {part.name: TextFile(part, each) for part, each in zip(parts, written, strict=True)}
        names = [read_header(file)[0] for file in self._files.values()]
        self.dialect = written[0].found(encoding=_common_encoding(parts, written, dialect.names))
        super().__init__(parts, format, label, names, drop)
        self._refuse_multiline_label()

    def _refuse_multiline_label(self) -> None:
        if self.dialect.multiline is not None:
            self.refuse_unknown(self.dialect.multiline, "multiline")
            if self.dialect.multiline == self.label:
                raise ParameterError(
                    Setting("multiline"), f" must name a public column, and {self.label!r} is the label"
                )

    @property
    def notes(self) -> list[str]:
        """What was detected about the files, such as their separator."""
        words = self.dialect.describe(self.format)
        return [f"The table was read as {self.format.upper()} with {words}."] if words else []

    def as_text(self) -> Table:
        """Return the same table with columns of text files as the text that is there, to the last digit."""
        marks = self._given.found(decimal=self.dialect.decimal, thousands=self.dialect.thousands)
        drop = {*self.private} - {self.label}
        return TextTable(self._parts, self.format, None, lambda name: True, marks, exact=False, drop=drop)

    def parse(self, batch: Any, columns: Sequence[str]) -> Any:
        """Return some columns of a batch of `as_text` as this table has them."""
        schema = pa.schema([self.field(name) for name in columns])
        return pa.RecordBatch.from_arrays([self._parse(batch, field) for field in schema], schema=schema)

    def _parse(self, batch: Any, field: Any, before: int = 0) -> Any:
        """Return a column of text as values; ``before`` counts the rows before it."""
        column = batch.column(field.name)
        if field.name == self.label:
            return self._labels.parse(column, before)
        return column if field.name in self._keys else parse_text(column, field.type, self.dialect)

    def _fields(self) -> list[Any]:
        decimal, thousands = find_marks([(file.part, file.dialect) for file in self._files.values()], self.private)
        self.dialect = self.dialect.found(decimal=decimal, thousands=thousands)
        self._labels = LabelText(str(self.label), self.dialect)
        kinds = {name: pa.float64() if name == self.label else pa.string() for name in self._inside}
        public = [name for name in self._inside if name != self.label]
        guesses = {name: TextType(self.dialect, exact=self._exact) for name in public if not self._is_text(name)}
        if guesses:
            for batch in self._text(pa.schema(dict.fromkeys(public, pa.string()))):
                for name, guess in guesses.items():
                    guess.see(batch.column(name))
        kinds |= {name: guess.kind for name, guess in guesses.items()}
        return [pa.field(name, kind) for name, kind in kinds.items()]

    def _part_batches(self, part: Part, names: list[str]) -> Iterator[Any]:
        return text_batches(self._files[part.name], names)

    def _text(self, schema: Any) -> Iterator[Any]:
        """Yield the rows as they are written.

        What is wrong is looked for again, row by row, and raised from here, whoever found that there is something:
        not even a traceback shows where a block ended. A public value with a line break or a separator may come
        from a stray quote, and hold a label: the quotes of all records are checked then.
        """
        texts = pa.schema(dict.fromkeys(schema.names, pa.string()))
        public = [name for name in schema.names if name not in self._keys and name not in self.private]
        separators = {file.separator for file in self._files.values()}
        found, problem = False, None
        try:
            for batch in cut(self._stored_batches(schema), rows_per_batch(texts)):
                found |= may_hide_records(batch, public, separators)
                yield batch
        except LabelDPError as error:
            problem = type(error)(*error.args)
        if problem is not None or (found and not self._has_checked_quotes):
            self._raise_first_fault(problem)

    def _raise_first_fault(self, otherwise: LabelDPError | None) -> None:
        """Raise what is wrong with the files, else another problem; without one only quotes may be wrong."""
        files = list(self._files.values())
        problem = first_fault(files, self.private, self.label, only_quotes=otherwise is None) or otherwise
        if problem is not None:
            raise problem
        self._has_checked_quotes = True

    def _read(self, schema: Any) -> Iterator[Any]:
        """Yield rows in the types of a schema.

        That a label is not a number is said once the rest was read: what is wrong with the file itself is said
        first, wherever a block ended.
        """
        row, problem = 0, None
        for batch in self._text(schema):
            if problem is not None:
                continue
            try:
                arrays = [self._parse(batch, field, row) for field in schema]
            except LabelError as error:
                problem = LabelError(*error.args)
                continue
            row += batch.num_rows
            yield pa.RecordBatch.from_arrays(arrays, schema=schema)
        if problem is not None:
            self._raise_first_fault(problem)


def _common_encoding(parts: list[Part], written: Sequence[Dialect], names: Collection[str]) -> str:
    """Return the encoding that holds all text: that of all files, else UTF-8; given names may be any text."""
    encodings = {str(each.encoding) for each in written}
    if len(encodings) > 1 or parts[0].keys:
        return "utf-8"
    try:
        "".join(names).encode(*encodings)
    except UnicodeEncodeError:
        return "utf-8"
    return encodings.pop()
