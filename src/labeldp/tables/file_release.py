"""`privatize_file`: a table with a private label column in, the same table with private labels out.

Order: refuse bad requests, count labels, charge, release. Labels meet nothing here but a channel, or the counts of
a curator. The output follows from the public part of the rows and from private labels, in pieces that follow from
the public part alone.
The card appears before the table: a card without its table is harmless, and a table without its card is not.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Collection, Iterator
from dataclasses import dataclass, field
from itertools import chain
from pathlib import Path
from typing import Any, Literal

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from labeldp._atomic import StrPath
from labeldp._values import parse_choice
from labeldp.accounts.accuracy import round_to, rounding_step
from labeldp.accounts.budget import declared
from labeldp.accounts.ledger import Ledger, as_ledger
from labeldp.accounts.terms import Terms
from labeldp.errors import DataError, Message
from labeldp.exact.word_sources import WordSource, resolve_source
from labeldp.mechanisms.base import Mechanism
from labeldp.mechanisms.histogram import Histogram
from labeldp.release.plan import Request
from labeldp.release.stream import LabelStream
from labeldp.tables.batches import MOST_SHUFFLED, read_ahead, shuffle_rows, size_of
from labeldp.tables.dialect import Dialect
from labeldp.tables.hints import Identifiers
from labeldp.tables.opening import Progress, TableInput, open_table
from labeldp.tables.paths import DELIMITERS, as_format, format_in, output_format, refuse_same
from labeldp.tables.placement import OutputsAndCard
from labeldp.tables.tables import Table
from labeldp.tables.writer import TableWriter

NOT_COPIED = "metadata of the files and columns, row groups, batches, file names, sort orders"


@dataclass(frozen=True, slots=True)
class FileRelease:
    r"""A table that was written, and the terms of its release.

    Attributes
    ----------
    path : str
        The table.
    terms : Terms
        Mechanism, prior, charges and bounds.
    card : str
        The card's text; public.
    card_path : Path
    notes : tuple of str
        Detected marks of the source, such as its separator, and public columns that single out rows.

    Examples
    --------
    >>> import tempfile
    >>> from labeldp.tables import privatize_file
    >>> from pathlib import Path
    >>> folder = Path(tempfile.mkdtemp())
    >>> _ = (folder / "flats.csv").write_text("area;price\n" + "60,5;3,5\n81,0;4,25\n" * 200)
    >>> done = privatize_file(folder / "flats.csv", folder / "out.csv", label="price", bounds=(0, 5), epsilon=1)
    >>> done.card_path.name, done.terms.rows
    ('out.csv.card.json', 400)
    >>> done.notes
    ("The table was read as CSV with separator ';', decimal mark ','.",)
    """

    path: str
    terms: Terms
    card: str = field(repr=False)
    card_path: Path
    notes: tuple[str, ...]


def privatize_file(
    source: StrPath,
    out: StrPath,
    *,
    label: str,
    bounds: tuple[float, float],
    epsilon: float,
    mechanism: str | Mechanism = "auto",
    prior: Histogram | None = None,
    zeta: float | None = None,
    epsilon_prior: float | None = None,
    trust: str = "curator",
    purpose: Literal["training", "statistics", "values"] = "training",
    missing: Literal["error", "drop"] = "error",
    shuffle: bool = False,
    ledger: Ledger | None = None,
    rows_per_person: int = 1,
    intended_use: str | None = None,
    recipient: str | None = None,
    bounds_reason: str | None = None,
    format: str | None = None,
    dialect: Dialect | None = None,
    drop: Collection[str] = (),
    force: bool = False,
    progress: Progress | None = None,
    hints: Callable[[list[Message]], None] | None = None,
    random_state: int | WordSource | None = None,
) -> FileRelease:
    r"""Write a table again with private labels, in constant memory; all other columns stay as they are.

    Parameters
    ----------
    source, out : path-like
        CSV, TSV or Parquet files; ``source`` may also be an Excel file.
    label : str
        The private column. In ``out`` it is a column of float64 in the same place, rounded to a power of ten
        that is at most a hundredth of the noise.
    bounds, epsilon, mechanism, prior, zeta, epsilon_prior, trust, ledger, rows_per_person, random_state
        As in `labeldp.privatize`.
    intended_use, recipient, bounds_reason : str, optional
        As in `labeldp.privatize`.
    purpose : {"training", "statistics", "values"}
        As in `labeldp.privatize`.
    missing : {"error", "drop"}
        What to do with rows without a label. Which rows are left out is public.
    shuffle : bool
        Write the rows in a random order; the table must fit into memory, with 1 GiB of values at most.
    format : str, optional
        Of ``source``, and of ``out``, where a name implies none.
    dialect : Dialect, optional
        Marks of text files; the rest is detected from the header and the public columns, never from labels. Text
        is written as it was read.
    drop : collection of str
        Columns to leave out; they are read for a total in the last row only.
    force : bool
        Replace files that exist.
    progress : callable, optional
        Called with the name of a step, the rows done, and all rows, or None.
    hints : callable, optional
        Called before the charge with a sentence for each column that gives labels away in spite of the noise, and
        for the order of rows if it does; an exception of it stops the release, and nothing is spent. **For the
        owner's eyes only**: hints follow from true labels. Without it none are computed.

    Returns
    -------
    FileRelease

    Examples
    --------
    >>> import tempfile
    >>> from labeldp.tables import privatize_file
    >>> from pathlib import Path
    >>> folder = Path(tempfile.mkdtemp())
    >>> _ = (folder / "flats.csv").write_text("id,price\n" + "".join(f"{i:03},{i % 5}.5\n" for i in range(1000)))
    >>> done = privatize_file(folder / "flats.csv", folder / "out.csv", label="price", bounds=(0, 5), epsilon=1)
    >>> done.terms.cost, (folder / "out.csv").read_text()[:13]
    (Budget(epsilon=1.0), 'id,price\n000,')
    """
    request = Request(
        epsilon=epsilon,
        bounds=bounds,
        mechanism=mechanism,
        prior=prior,
        trust=trust,
        epsilon_prior=epsilon_prior,
        zeta=zeta,
        rows_per_person=rows_per_person,
        purpose=purpose,
    )
    parse_choice(missing, "missing", ("error", "drop"))
    output = _Output.parse(os.fspath(out), format, shuffle=shuffle, force=force)
    reading = {"label": label, "format": format, "drop": drop, "dialect": dialect}
    rehearsal = _Rehearsal(hints, shuffle=shuffle)
    with declared(intended_use=intended_use, recipient=recipient, bounds_reason=bounds_reason):
        return _release_table(
            os.fspath(source),
            output,
            request,
            reading,
            missing,
            as_ledger(ledger),
            rehearsal,
            progress,
            random_state,
        )


def _release_table(
    source: str,
    output: _Output,
    request: Request,
    reading: dict[str, Any],
    missing: str,
    ledger: Ledger | None,
    rehearsal: _Rehearsal,
    progress: Progress | None,
    random_state: int | WordSource | None,
) -> FileRelease:
    """Open a table, charge the ledger, write the table with private labels, and put its card."""
    request.refuse_biased()
    output.refuse_same_place(source, ledger)
    progress = progress or (lambda *_: None)
    words = resolve_source(random_state)
    with OutputsAndCard(output.path, force=output.force) as placement:
        progress("Opening", 0, None)
        table = _open_source(source, output, **reading)
        rows = TableInput(table, drop=missing == "drop", progress=progress)
        writer = output.writer(table)
        readings = chain([rehearsal.labels(rows, writer, words)], iter(rows.labels, None))
        stream = LabelStream(lambda: next(readings), request, ledger=ledger, random_state=words)
        step = rounding_step(stream.mechanism)
        released = _release_rows(rows, stream, step, request)
        if output.is_shuffled:
            released = shuffle_rows(released, words)
        with writer:
            for batch in read_ahead(released):  # the next rows get their noise while these are encoded
                writer.write(batch)
            terms = stream.finish()
            facts = output.facts(table, writer, terms, rows.left_out)
            card = terms.to_card(file=facts, rounding=[step], purpose=request.purpose)
            placement.put_card(card + "\n", table.rights)
    notes = (*table.notes, *rehearsal.identifiers.hints())
    return FileRelease(output.path, terms, card, placement.card, notes)


@dataclass(frozen=True, slots=True)
class _Output:
    """The file that is written."""

    path: str
    format: str
    is_shuffled: bool
    force: bool

    @classmethod
    def parse(cls, path: str, format: str | None, *, shuffle: bool, force: bool) -> _Output:
        """Return the output that options ask for."""
        return cls(path, output_format(path, format), shuffle, force)

    def writer(self, table: Table) -> TableWriter:
        """Return what writes the rows of a table; its place is reserved."""
        dialect = table.dialect_for(self.format)
        return TableWriter(
            self.path,
            table.schema,
            self.format,
            self.force,
            max_rights=table.rights,
            dialect=dialect,
            reserved=True,
        )

    def refuse_same_place(self, source: str, ledger: Ledger | None) -> None:
        """Refuse a file that would replace the source or the ledger."""
        card = f"{self.path}.card.json"
        ledger_path = None if ledger is None else ledger.path
        outputs = {"the output": self.path, "the card": card, "the ledger": ledger_path}
        refuse_same(outputs, {"the source": source})

    def facts(self, table: Table, writer: TableWriter, terms: Terms, rows_left_out: int) -> dict[str, Any]:
        """Return the facts about the file for its card, once all rows are written."""
        return {
            "name": Path(self.path).name,
            "format": self.format,
            **writer.text_facts(),
            "rows": terms.rows,
            "rows_left_out": rows_left_out,
            "column": table.label,
            "columns": list(table.schema.names),
            "types_changed": {},
            "sha256": writer.finish(),
            "row_order": "shuffled" if self.is_shuffled else "public, and kept",
            "not_copied": NOT_COPIED,
        }


def _open_source(source: str, output: _Output, format: str | None, **reading: Any) -> Table:
    """Open the table; public columns of text files stay as they are where text is written."""
    if format is not None:
        option = as_format(format)
        format = option if format_in(source) is None else None
    table = open_table(source, format, as_written=output.format in DELIMITERS, exact=True, **reading)
    for name in reading["drop"]:
        table.refuse_unknown(name, "drop")
    return table


class _Rehearsal:
    """The first pass over a table: all that can fail with its public part fails before the charge."""

    def __init__(self, hints: Callable[[list[Message]], None] | None, *, shuffle: bool) -> None:
        self.identifiers = Identifiers()
        self._hints, self._shuffle = hints, shuffle
        self._size = 0

    def labels(self, rows: TableInput, writer: TableWriter, words: WordSource) -> Iterator[NDArray[np.float64]]:
        """Yield the labels, then call ``hints`` if something gives labels away."""
        sampler = None if self._hints is None else rows.hint_sampler(words)

        def rehearse(public: Any) -> None:
            writer.rehearse(public)
            self._add(public)

        yield from rows.labels(rehearse, sampler)
        self.identifiers.hints()  # before the charge, as all that can fail
        sentences = [] if sampler is None else sampler.hints(ordered=not self._shuffle)
        if self._hints is not None and sentences:
            self._hints(sentences)

    def _add(self, public: Any) -> None:
        """Add the public part of the next rows."""
        self.identifiers.update(public)
        self._size += size_of(public)
        if self._shuffle and self._size > MOST_SHUFFLED:
            raise DataError("the table is too large to be shuffled: 1 GiB of values at most; shuffle it before")


def _release_rows(rows: TableInput, stream: LabelStream, step: float | None, request: Request) -> Iterator[Any]:
    """Yield the rows with private labels in place of labels."""
    schema = rows.table.schema
    position = schema.get_field_index(rows.table.label)
    for public, labels in rows.rows(stream.terms.rows):
        private = stream.release(labels)
        if private.size:
            private = request.labels_of(stream.mechanism, private)
        columns = [*public[:position], pa.array(round_to(private, step)), *public[position:]]
        yield pa.RecordBatch.from_arrays(columns, schema=schema)
