"""`privatize_file`: a table with a private label column in, the same table with private labels out.

Order: refuse bad requests, read the table once, charge, release, write. The first reading counts labels, tries all
that is written, and keeps the public columns that labels for training learn from. Labels meet nothing here but a
channel, the sums of a fit, or the counts of a curator. The output follows from the public part of the rows and
from measurements, in pieces that follow from the public part alone.
The card appears before the table: a card without its table is harmless, and a table without its card is not.
"""

from __future__ import annotations

import os
from collections import deque
from collections.abc import Callable, Collection, Iterator, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
from numpy.typing import NDArray

from labeldp._atomic import StrPath
from labeldp._values import Interval, parse_choice
from labeldp.accounts.budget import declared, exact_sum
from labeldp.accounts.card import Card
from labeldp.accounts.explanation import SUMMARY
from labeldp.accounts.ledger import Ledger, as_ledger
from labeldp.accounts.scope import Scope
from labeldp.accounts.terms import Terms, card_of_labels, join_terms
from labeldp.app.file_labels import (
    FeatureRows,
    Features,
    FileLabels,
    FittedLabels,
    ModelSaving,
    PartialLabels,
    StreamedLabels,
    fit_labels,
    is_mean,
    label_column,
    mean_labels,
    model_notes,
    select_rows,
    uses_model,
)
from labeldp.app.row_columns import RowColumns, ScopeReader
from labeldp.errors import DataError, Message, ParameterError, Setting, WeakModelWarning, warn
from labeldp.exact.word_sources import WordSource, resolve_source
from labeldp.mechanisms.base import Mechanism
from labeldp.mechanisms.histogram import Histogram
from labeldp.release.label_requests import charge_in_turn, label_requests
from labeldp.release.plan import Request
from labeldp.release.stream import LabelStream
from labeldp.tables import Dialect, TableWriter
from labeldp.tables.arrow import arrow
from labeldp.tables.batches import MOST_SHUFFLED, draw_words, read_ahead, shuffle_rows, size_of
from labeldp.tables.hints import Identifiers
from labeldp.tables.opening import Progress, RowReader, TableInput, in_memory, label_names, open_table
from labeldp.tables.paths import DELIMITERS, as_format, format_in, output_format, refuse_same
from labeldp.tables.placement import OutputsAndCard
from labeldp.tables.tables import Table

if TYPE_CHECKING:
    from labeldp.learning.released_labels import Release

NOT_COPIED = "metadata of the files and columns, row groups, batches, file names, sort orders"

ALONE = "Labels are randomised one by one, without a model: they are worse to train on."
TOO_FEW = "There are too few rows for this ε to learn from: every released label is the private mean of all."


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
        Detected marks of the source, such as its separator, the columns that labels know, and public columns that
        single out rows.
    release : Release or None
        The private labels in the order of the table, the model and its error, of a release with a model.

    Examples
    --------
    >>> import tempfile, labeldp as ldp
    >>> from pathlib import Path
    >>> folder = Path(tempfile.mkdtemp())
    >>> source, out = folder / "flats.csv", folder / "out.csv"
    >>> _ = source.write_text("area;price\n" + "60,5;3,5\n81,0;4,25\n" * 200)
    >>> done = ldp.privatize_file(source, out, label="price", bounds=(0, 5), epsilon=1)
    >>> done.card_path.name, done.terms.rows
    ('out.csv.card.json', 400)
    >>> print(*done.notes, sep="\n")
    The table was read as CSV with separator ';', decimal mark ','.
    Released labels are means under a private model of price, which learnt from area.
    """

    path: str
    terms: Terms
    card: str = field(repr=False)
    card_path: Path
    notes: tuple[str, ...]
    release: Release | None = field(default=None, repr=False)

    def summary(self) -> str:
        """Return the release in plain words: actions, cost, noise, and warnings."""
        return Card.parse(self.card).explain().text(SUMMARY)


def privatize_file(
    source: StrPath | Any,
    out: StrPath,
    *,
    label: str | Sequence[str],
    bounds: Any,
    epsilon: float,
    shares: Sequence[float] | None = None,
    mechanism: str | Mechanism | Sequence[str | Mechanism] = "auto",
    prior: Histogram | Sequence[Histogram | None] | None = None,
    zeta: float | None = None,
    epsilon_prior: float | None = None,
    trust: str = "curator",
    purpose: Literal["training", "statistics", "values"] = "training",
    model: bool = True,
    save_model: StrPath | None = None,
    missing: Literal["error", "drop"] = "error",
    shuffle: bool = False,
    ledger: Ledger | None = None,
    rows_per_person: int = 1,
    segment: str | None = None,
    segment_by: str | None = None,
    id: str | None = None,
    person: str | None = None,
    most_rows_per_person: int | None = None,
    intended_use: str | None = None,
    recipient: str | None = None,
    bounds_reason: str | None = None,
    format: str | None = None,
    dialect: Dialect | None = None,
    drop: Collection[str] = (),
    force: bool = False,
    progress: Progress | None = None,
    hints: Callable[[list[Message]], None] | None = None,
    notice: Callable[[Message], None] | None = None,
    random_state: int | WordSource | None = None,
) -> FileRelease:
    r"""Write a table again with private labels; all other columns stay as they are.

    Labels for training know the public columns that are written: they are posterior means under a private model,
    as `labeldp.privatize` gives them with ``X``, and take as long as a fit. A table that is too large for a fit in
    memory, or has no column to learn from, gets labels of a mechanism alone. With an option of one mechanism
    (``mechanism``, ``prior``, ``zeta``, ``epsilon_prior``), with ``trust="local"`` or for another purpose there is
    no model either, and memory is constant.

    Parameters
    ----------
    source, out : path-like
        CSV, TSV or Parquet files; ``source`` may also be an Excel file, or rows of Arrow in memory: a
        `pyarrow.RecordBatchReader`, as queries return, or a data frame.
    label : str or sequence of str
        The private column, or several of a row, which share ε as in `labeldp.privatize`; none is a feature of
        another. In ``out`` it is a column of float64 in the same place, rounded to a power of ten that is at most
        a hundredth of the noise, or of the deviation of labels from the model.
    bounds, epsilon, shares, mechanism, prior, zeta, epsilon_prior, trust, ledger, rows_per_person, random_state
        As in `labeldp.privatize`.
    segment : str, optional
        The segment of all rows; as in `labeldp.privatize`.
    segment_by, id, person : str, optional
        Public columns with the segment, the id and the person of each row. In text files ids are text, as they
        are written. With ``drop`` they are read, and not written.
    most_rows_per_person : int, optional
        As in `labeldp.privatize`. Rows that are left out keep their place, with an empty label.
    intended_use, recipient, bounds_reason : str, optional
        As in `labeldp.privatize`.
    purpose : {"training", "statistics", "values"}
        As in `labeldp.privatize`.
    model : bool
        Whether labels for training know the public columns.
    save_model : path-like, optional
        For one label, a folder for the model and the private labels that it learnt from, as `labeldp.fit_file`
        writes it; nothing more is charged. It is written before the table, and stays if that fails.
    missing : {"error", "drop"}
        What to do with rows without a label, or without one of several. Which rows are left out is public.
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
    notice : callable, optional
        Called before the charge with a public sentence if there can be no model, or none but a constant; an
        exception of it stops the release, and nothing is spent. By default it is a `WeakModelWarning`.

    Returns
    -------
    FileRelease

    Examples
    --------
    >>> import tempfile, labeldp as ldp
    >>> from pathlib import Path
    >>> folder = Path(tempfile.mkdtemp())
    >>> source, out = folder / "flats.csv", folder / "out.csv"
    >>> _ = source.write_text("area,price\n" + "".join(f"{i},{i % 50}\n" for i in range(100, 1100)))
    >>> done = ldp.privatize_file(source, out, label="price", bounds=(0, 50), epsilon=1)
    >>> done.terms.cost, out.read_text()[:15]
    (Budget(epsilon=1.0), 'area,price\n100,')
    """
    names = label_names(label)
    requests = label_requests(
        len(names),
        epsilon=epsilon,
        shares=shares,
        bounds=bounds,
        mechanism=mechanism,
        prior=prior,
        trust=trust,
        epsilon_prior=epsilon_prior,
        zeta=zeta,
        scope=Scope.parse(rows_per_person, segment=segment),
        purpose=purpose,
    )
    parse_choice(missing, "missing", ("error", "drop"))
    for request in requests:
        request.refuse_biased()
    output = _Output.parse(os.fspath(out), format, shuffle=shuffle, force=force)
    reading = {"label": names, "format": format, "drop": drop, "dialect": dialect}
    is_modelled = all(uses_model(request, model=model) for request in requests)
    if save_model is not None and not is_modelled:
        raise ParameterError(Setting("save_model"), " needs a model: leave out the options of a mechanism alone")
    if save_model is not None and len(names) > 1:
        raise ParameterError(
            Setting("save_model"), " is for one label, and each of several has a model: leave it out"
        )
    work = _Work(
        names=names,
        requests=requests,
        scope=RowColumns(segment, segment_by, id, person, most_rows_per_person),
        is_modelled=is_modelled,
        save_model=save_model,
        force=force,
        ledger=as_ledger(ledger) or Ledger(),
        rehearsal=_Rehearsal(hints, shuffle=shuffle, bounds=[request.bounds for request in requests]),
        notice=notice or _warn,
        progress=progress or (lambda *_: None),
        words=resolve_source(random_state),
    )
    statements = {"intended_use": intended_use, "recipient": recipient, "bounds_reason": bounds_reason}
    with declared(**statements):
        return _release_table(
            source if in_memory(source) else os.fspath(source),
            output,
            reading,
            work,
            is_incomplete=missing == "drop",
        )


def _warn(sentence: Message) -> None:
    warn(sentence, WeakModelWarning)


@dataclass(frozen=True, slots=True)
class _Work:
    """A release as it was asked for, but for its table and its file."""

    names: tuple[str, ...]
    requests: list[Request]
    scope: RowColumns
    is_modelled: bool
    save_model: StrPath | None
    force: bool
    ledger: Ledger
    rehearsal: _Rehearsal
    notice: Callable[[Message], None]
    progress: Progress
    words: WordSource

    def pay(
        self, rows: TableInput, table: Table, writer: TableWriter, *, shuffled: bool
    ) -> tuple[list[FileLabels], list[str]]:
        """Read the rows once, charge the ledger, and return private labels of each column for them, with notes."""
        if not self.is_modelled and not self.scope.columns:
            first_pass = self.rehearsal.labels(rows, writer, self.words)
            return self._charge(partial(self._stream, chain([first_pass], iter(rows.labels, None)))), []
        learnt, scope = FeatureRows(table, rows), ScopeReader(self.scope)
        readers = (learnt,) if self.is_modelled else ()
        deque(self.rehearsal.labels(rows, writer, self.words, *readers, ids=scope.add), maxlen=0)
        work = self._admitted(scope)
        notes = list[str]()
        if work.is_modelled:
            labels, notes = work._pay_for_model(rows, learnt, shuffled=shuffled)
        else:
            labels = work._charge(partial(work._stream, iter(rows.labels, None)))
        kept = work.row_scope.kept
        return labels if kept is None else [PartialLabels(column, kept, scope.rows) for column in labels], notes

    @property
    def row_scope(self) -> Scope:
        """The scope of the rows: one for all labels."""
        return self.requests[0].scope

    def _admitted(self, rows: ScopeReader) -> _Work:
        """Return the work for the rows that the ledger admits."""
        price = exact_sum(request.epsilon.exact for request in self.requests)
        scope = self.ledger.admit(rows.scope(self.row_scope.rows_per_person), rows.rows, price)
        return replace(self, requests=[request.with_scope(scope) for request in self.requests])

    def _charge(self, release: Callable[[int, Request], FileLabels]) -> list[FileLabels]:
        """Charge the ledger for each label, and return the private labels of each."""
        return charge_in_turn(self.requests, self.names, self.ledger, release)

    def _notify(self, label: str, *pieces: object) -> None:
        """Give notice before the charge; it names the label if there are several."""
        self.notice(Message(*([f"{label}: "] if len(self.names) > 1 else []), *pieces))

    def _pay_for_model(
        self, rows: TableInput, learnt: FeatureRows, *, shuffled: bool
    ) -> tuple[list[FileLabels], list[str]]:
        """Charge the ledger, and return labels that models give, or those of mechanisms where there are none."""
        features = learnt.features()
        if isinstance(features, Features):
            return self._fit(features, shuffled=shuffled)
        if self.save_model is not None:
            raise ParameterError("there can be no model to save: ", features, option="save_model")
        labels = None if learnt.labels is None else self.row_scope.select(learnt.labels)
        constant = [labels is not None and is_mean(request, len(labels), model=False) for request in self.requests]
        for name, is_constant in zip(self.names, constant, strict=True):
            self._notify(name, features, f" {TOO_FEW if is_constant else ALONE}")
        stream = partial(self._stream, iter(rows.labels, None))

        def release(number: int, request: Request) -> FileLabels:
            if labels is None or not constant[number]:
                return stream(number, request)
            column = label_column(self.names[number], labels[:, number])
            return mean_labels(request, column, self.ledger, self.words)

        return self._charge(release), []

    def _stream(self, readings: Iterator[Any], number: int, request: Request) -> FileLabels:
        """Return labels that one mechanism randomises; each reading yields all true labels from the start."""

        def read() -> Iterator[Any]:
            return select_rows((labels[:, number] for labels in next(readings)), request.scope.kept)

        return StreamedLabels(LabelStream(read, request, ledger=self.ledger, random_state=self.words), request)

    def _fit(self, features: Features, *, shuffled: bool) -> tuple[list[FileLabels], list[str]]:
        """Return labels that models of the public columns give, and save the model if that was asked for."""
        used, order = self.row_scope.select, None
        features = replace(features, X=used(features.X), labels=used(features.labels))
        rows = len(features.labels)
        for name, request in zip(self.names, self.requests, strict=True):
            if is_mean(request, rows, model=True):
                self._notify(name, TOO_FEW)
        if shuffled:
            order = np.argsort(draw_words(rows, self.words))

        def release(number: int, request: Request) -> FittedLabels:
            column = label_column(self.names[number], np.ascontiguousarray(features.labels[:, number]))
            if order is not None:
                request = request.with_scope(request.scope.take(order))
            with ModelSaving(self.save_model, features.encoder, column.name, force=self.force) as saving:
                labels = fit_labels(request, features, column, self.ledger, self.words, self.progress, order=order)
                saving.write(labels.release)
            return labels

        labels = charge_in_turn(self.requests, self.names, self.ledger, release)
        return [*labels], model_notes([column.release for column in labels], features)


def _release_table(
    source: Any, output: _Output, reading: dict[str, Any], work: _Work, *, is_incomplete: bool
) -> FileRelease:
    """Open a table, charge the ledger, write the table with private labels, and put its card."""
    output.refuse_same_place(source, work.ledger, work.save_model)
    with OutputsAndCard(output.path, force=output.force) as placement:
        work.progress("Opening", 0, None)
        table = _open_source(source, work.scope, is_typed=work.is_modelled, **reading)
        written, hidden = output.columns_of(table), work.scope.hidden(reading["drop"])
        rows = TableInput(written, drop=is_incomplete, progress=work.progress, hidden=hidden)
        writer = output.writer(rows)
        labels, notes = work.pay(rows, table, writer, shuffled=output.is_shuffled)
        released = _release_rows(rows, labels)
        if output.is_shuffled:
            released = shuffle_rows(released, work.words)
        with writer:
            for batch in read_ahead(released):  # the next rows get their noise while these are encoded
                writer.write(batch)
            stated = {
                name: (column.finish(), {"rounding": [column.step], **column.entries})
                for name, column in zip(work.names, labels, strict=True)
            }
            terms = join_terms([one for one, _ in stated.values()])
            card = card_of_labels(stated, file=output.facts(rows, writer, terms))
            placement.put_card(card + "\n", table.rights)
    notes = [*table.notes, *notes, *work.rehearsal.identifiers.hints()]
    return FileRelease(output.path, terms, card, placement.card, tuple(notes), _release_of(labels, work.ledger))


def _release_of(labels: Sequence[FileLabels], ledger: Ledger) -> Release | None:
    """Return the labels that models gave; None where a mechanism randomised some."""
    columns = [getattr(column, "release", None) for column in labels]
    known = [column for column in columns if column is not None]
    if len(known) < len(labels):
        return None
    from labeldp.learning.released_labels import Release  # noqa: PLC0415 (scikit-learn is slow to import)

    return Release.of(known, ledger)


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

    @property
    def is_text(self) -> bool:
        """True for a text file, to which public columns are copied as text."""
        return self.format in DELIMITERS

    def columns_of(self, table: Table) -> Table:
        """Return a table with its columns as they are written."""
        return table.as_text() if self.is_text else table.with_exact_types()

    def writer(self, rows: TableInput) -> TableWriter:
        """Return what writes the rows of a table; its place is reserved."""
        dialect = rows.table.dialect_for(self.format)
        return TableWriter(
            self.path,
            rows.schema,
            self.format,
            self.force,
            max_rights=rows.table.rights,
            dialect=dialect,
            reserved=True,
        )

    def refuse_same_place(self, source: Any, ledger: Ledger, model: StrPath | None) -> None:
        """Refuse a file that would replace the source or the ledger."""
        card = f"{self.path}.card.json"
        outputs = {"the output": self.path, "the card": card, "the ledger": ledger.path, "the model": model}
        refuse_same(outputs, {} if in_memory(source) else {"the source": source})

    def facts(self, rows: TableInput, writer: TableWriter, terms: Terms) -> dict[str, Any]:
        """Return the facts about the file for its card, once all rows are written."""
        return {
            "name": Path(self.path).name,
            "format": self.format,
            **writer.text_facts(),
            "rows": terms.rows,
            "rows_left_out": rows.left_out,
            **({"column": rows.table.labels[0]} if len(rows.table.labels) == 1 else {}),
            "columns": list(rows.schema.names),
            "types_changed": {},
            "sha256": writer.finish(),
            "row_order": "shuffled" if self.is_shuffled else "public, and kept",
            "not_copied": NOT_COPIED,
        }


def _open_source(
    source: Any, scope: RowColumns, format: str | None, *, is_typed: bool, drop: Collection[str], **reading: Any
) -> Table:
    """Open the table, with columns of text in types to learn from, or as text; ids are as they are written."""
    if format is not None and not in_memory(source):
        option = as_format(format)
        format = option if format_in(source) is None else None
    ids = scope.columns.values()
    unread = [name for name in drop if name not in ids]
    table = open_table(source, format, as_written=not is_typed and not ids, text=ids, drop=unread, **reading)
    for name in drop:
        table.refuse_unknown(name, "drop")
    for label in table.labels:
        scope.refuse_unknown(table, label)
    return table


class _Rehearsal:
    """The first pass over a table: all that can fail with its public part fails before the charge."""

    def __init__(
        self, hints: Callable[[list[Message]], None] | None, *, shuffle: bool, bounds: list[Interval]
    ) -> None:
        self.identifiers = Identifiers()
        self._hints, self._shuffle, self._bounds = hints, shuffle, bounds
        self._size = 0

    def labels(
        self,
        rows: TableInput,
        writer: TableWriter,
        words: WordSource,
        *readers: RowReader,
        ids: Callable[[Any], None] = lambda _: None,
    ) -> Iterator[NDArray[np.float64]]:
        """Yield the labels, which readers see too, then call ``hints`` if something gives labels away."""
        samplers = [] if self._hints is None else rows.hint_samplers(words)

        def rehearse(public: Any) -> None:
            writer.rehearse(public)
            self._add(public)

        yield from rows.labels(rehearse, readers, ids, samplers)
        self.identifiers.hints()  # before the charge, as all that can fail
        sentences = list[Message]()
        for sampler, bounds in zip(samplers, self._bounds, strict=False):
            sentences += sampler.hints(ordered=not self._shuffle, bounds=bounds)
        if self._hints is not None and sentences:
            self._hints(sentences)

    def _add(self, public: Any) -> None:
        """Add the public part of the next rows."""
        self.identifiers.update(public)
        self._size += size_of(public)
        if self._shuffle and self._size > MOST_SHUFFLED:
            raise DataError("the table is too large to be shuffled: 1 GiB of values at most; shuffle it before")


def _release_rows(rows: TableInput, private: Sequence[FileLabels]) -> Iterator[Any]:
    """Yield the rows with private labels in place of labels."""
    schema, pa = rows.schema, arrow()
    for public, labels in rows.rows(private[0].rows):
        columns = dict(zip(rows.public.names, public, strict=True))
        for name, column, true in zip(rows.table.labels, private, labels.T, strict=True):
            columns[name] = pa.array(column.next_rows(true), from_pandas=True)
        yield pa.RecordBatch.from_arrays([columns[name] for name in schema.names], schema=schema)
