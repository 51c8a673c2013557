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
from typing import TYPE_CHECKING, Any, Literal, Unpack

import numpy as np

from labeldp._atomic import StrPath
from labeldp._values import Array
from labeldp.accounts.budget import exact_sum
from labeldp.accounts.card import Card
from labeldp.accounts.explanation import SUMMARY
from labeldp.accounts.ledger import Ledger, as_ledger
from labeldp.accounts.scope import Scope
from labeldp.accounts.terms import Terms, card_of_labels, join_terms
from labeldp.app.file_job import FileJob, FileOptions
from labeldp.app.file_labels import FileLabels, StreamedLabels, UsedRows, select_rows
from labeldp.app.released_table import describe_file
from labeldp.errors import DataError, Message, ParameterError, Setting, WeakModelWarning, warn
from labeldp.exact.word_sources import RandomState, WordSource, resolve_source
from labeldp.mechanisms.base import Mechanism
from labeldp.mechanisms.histogram import Histogram
from labeldp.release.label_requests import charge_in_turn, label_requests
from labeldp.release.plan import Request
from labeldp.release.stream import LabelStream
from labeldp.tables.arrow import arrow
from labeldp.tables.batches import MOST_SHUFFLED, draw_words, read_ahead, shuffle_rows, size_of
from labeldp.tables.hints import Identifiers
from labeldp.tables.opening import TableInput, in_memory, label_names
from labeldp.tables.paths import DELIMITERS, as_format, format_in, output_format
from labeldp.tables.placement import OutputAndCard
from labeldp.tables.tables import Table
from labeldp.tables.writer import TableWriter

if TYPE_CHECKING:
    from labeldp.app.label_models import FeatureRows, Features
    from labeldp.learning.released_labels import Release, ReleasedColumn

WITHOUT_MODEL = "Labels are randomised one by one, without a model: they are worse to train on."
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
    shuffle: bool = False,
    ledger: Ledger | None = None,
    drop: Collection[str] = (),
    notice: Callable[[Message], None] | None = None,
    random_state: RandomState = None,
    **options: Unpack[FileOptions],
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
        scope=Scope.parse(options.get("rows_per_person", 1), segment=options.get("segment")),
        purpose=purpose,
    )
    work = _TableRelease(
        job=FileJob(source=source, labels=names, ledger=as_ledger(ledger) or Ledger(), **options),
        requests=requests,
        out=os.fspath(out),
        drop=drop,
        is_modelled=model and all(request.may_use_features for request in requests),
        save_model=save_model,
        is_shuffled=shuffle,
        notice=notice or partial(warn, category=WeakModelWarning),
        words=resolve_source(random_state),
    )
    with work.job.declared():
        return work.run()


@dataclass(frozen=True, slots=True)
class _PaidLabels:
    """Private labels of each column that are paid for, the scope of their rows, and notes."""

    columns: Sequence[FileLabels]
    scope: Scope
    notes: Sequence[str] = ()

    def columns_of_models(self, ledger: Ledger) -> Release | None:
        """Return the labels that models gave; None where a mechanism randomised some."""
        columns = [column.release for column in self.columns if column.release is not None]
        if len(columns) < len(self.columns):
            return None
        from labeldp.learning.released_labels import Release  # noqa: PLC0415 (scikit-learn is slow to import)

        return Release.of(columns, ledger)


@dataclass(frozen=True, slots=True, kw_only=True)
class _TableRelease:
    """A release as it was asked for: a table, a request for each of its labels, and a file."""

    job: FileJob
    requests: list[Request]
    out: str
    drop: Collection[str]
    is_modelled: bool
    save_model: StrPath | None
    is_shuffled: bool
    notice: Callable[[Message], None]
    words: WordSource

    def __post_init__(self) -> None:
        """Refuse biased labels, a model to save where there is none, and one for each of several labels."""
        for request in self.requests:
            request.refuse_biased()
        if self.save_model is not None and not self.is_modelled:
            raise ParameterError(
                Setting("save_model"), " needs a model: leave out the options of a mechanism alone"
            )
        if self.save_model is not None and len(self.requests) > 1:
            raise ParameterError(
                Setting("save_model"), " is for one label, and each of several has a model: leave it out"
            )

    @property
    def scope(self) -> Scope:
        """The scope of the rows: one for all labels."""
        return self.requests[0].scope

    def run(self) -> FileRelease:
        """Open the table, charge the ledger, write the table with private labels, and put its card."""
        format = output_format(self.out, self.job.format)
        outputs = {"the output": self.out, "the card": f"{self.out}.card.json", "the model": self.save_model}
        self.job.refuse_same(outputs)
        with OutputAndCard(self.out, force=self.job.force) as placement:
            self.job.report("Opening")
            table = self._open_table()
            first = _FirstPass(self, table, format)
            release = self._pay(first)
            card, terms = self._write(first, release, placement)
        notes = [*table.notes, *release.notes, *first.identifiers.hints()]
        return FileRelease(
            self.out, terms, card, placement.card, tuple(notes), release.columns_of_models(self.job.ledger)
        )

    def _open_table(self) -> Table:
        """Open the table, with columns of text in types to learn from, or as text."""
        job = self.job
        if job.format is not None and not in_memory(job.source):
            format = as_format(job.format)
            job = replace(job, format=format if format_in(os.fspath(job.source)) is None else None)
        table = job.open_table(drop=self.drop, as_written=not self.is_modelled)
        job.warn_of_charged(set(table.schema.names).difference(self.drop))
        return table

    # ---- the charge ---------------------------------------------------------------------------------------

    def _pay(self, first: _FirstPass) -> _PaidLabels:
        """Read the rows once, charge the ledger, and return private labels of each column for them."""
        later_readings = iter(first.rows.labels, None)
        if not self.is_modelled and not self.job.id_columns:
            readings = chain([first.labels()], later_readings)
            return _PaidLabels(self._charge(partial(self._stream, readings)), self.scope)
        deque(first.labels(), maxlen=0)
        price = exact_sum(request.epsilon.exact for request in self.requests)
        rows = Scope.parse(self.scope.rows_per_person, **self.job.row_options(first.ids))
        scope = self.job.ledger.admit(rows, first.count, price)
        admitted = replace(self, requests=[request.with_scope(scope) for request in self.requests])
        stream = partial(admitted._stream, later_readings)
        if first.features is None:
            return _PaidLabels(admitted._charge(stream), scope)
        features = first.features.features(scope)
        if isinstance(features, Message):
            return admitted._release_alone(features, first.features, stream)
        return admitted._release_with_models(features)

    def _charge(self, release: Callable[[int, Request], FileLabels]) -> list[FileLabels]:
        """Charge the ledger for each label, and return the private labels of each."""
        return charge_in_turn(self.requests, self.job.labels, self.job.ledger, release)

    def _notify(self, label: str, *pieces: object) -> None:
        """Give notice before the charge; it names the label if there are several."""
        self.notice(Message(*([f"{label}: "] if len(self.requests) > 1 else []), *pieces))

    def _stream(self, readings: Iterator[Any], number: int, request: Request) -> FileLabels:
        """Return labels that one mechanism randomises; each reading yields all true labels from the start."""

        def read() -> Iterator[Any]:
            return select_rows((labels[:, number] for labels in next(readings)), request.scope.kept)

        return StreamedLabels(LabelStream(read, request, ledger=self.job.ledger, random_state=self.words), request)

    def _release_alone(
        self, reason: Message, rows: FeatureRows, stream: Callable[[int, Request], FileLabels]
    ) -> _PaidLabels:
        """Return labels without a model: of mechanisms, or the private mean where they are too few."""
        from labeldp.app.label_models import mean_labels  # noqa: PLC0415 (scikit-learn is slow to import)
        from labeldp.learning.label_release import is_only_mean  # noqa: PLC0415

        if self.save_model is not None:
            raise ParameterError("there can be no model to save: ", reason, option="save_model")
        means = dict[int, Array]()
        for number, (name, request) in enumerate(zip(self.job.labels, self.requests, strict=True)):
            labels = rows.labels(number, self.scope)
            if labels is not None and is_only_mean(request, len(labels)):
                means[number] = labels
            self._notify(name, reason, f" {TOO_FEW if number in means else WITHOUT_MODEL}")

        def release(number: int, request: Request) -> FileLabels:
            if number not in means:
                return stream(number, request)
            return mean_labels(request, self.job.labels[number], means[number], self.job.ledger, self.words)

        return _PaidLabels(self._charge(release), self.scope)

    def _release_with_models(self, features: Features) -> _PaidLabels:
        """Return labels that models of the public columns give, and save the model if that was asked for."""
        from labeldp.app.label_models import fit_labels, model_notes, model_saver  # noqa: PLC0415 (as above)
        from labeldp.learning.label_release import is_model_constant  # noqa: PLC0415
        from labeldp.learning.label_rounds import listening  # noqa: PLC0415

        rows = len(features.labels)
        for name, request in zip(self.job.labels, self.requests, strict=True):
            if is_model_constant(request, rows):
                self._notify(name, TOO_FEW)
        if self.is_shuffled:
            features = replace(features, order=np.argsort(draw_words(rows, self.words)))
        releases: list[ReleasedColumn] = []

        def release(number: int, request: Request) -> FileLabels:
            name = self.job.labels[number]
            with model_saver(self.save_model, features.encoder, name, force=self.job.force) as save:
                labels = fit_labels(request, features, number, name, self.job.ledger, self.words)
                save(labels.release)
            releases.append(labels.release)
            return labels

        with listening(lambda step: self.job.report(f"Fitting a model: {step}")):
            columns = self._charge(release)
        return _PaidLabels(columns, self.scope, model_notes(releases, features))

    # ---- the table ----------------------------------------------------------------------------------------

    def _write(self, first: _FirstPass, release: _PaidLabels, placement: OutputAndCard) -> tuple[str, Terms]:
        """Write the rows with private labels, and put the card; return it, and the terms."""
        rows, writer = first.rows, first.writer
        released = _release_rows(rows, release, first.count)
        if self.is_shuffled:
            released = shuffle_rows(released, self.words)
        with writer:
            for batch in read_ahead(released):  # the next rows get their noise while these are encoded
                writer.write(batch)
            contents = {
                name: (column.finish(), {"rounding": [column.step], **column.entries})
                for name, column in zip(self.job.labels, release.columns, strict=True)
            }
            terms = join_terms([terms for terms, _ in contents.values()])
            file = describe_file(
                writer,
                self.out,
                rows=terms.rows,
                left_out=rows.left_out,
                labels=self.job.labels,
                is_shuffled=self.is_shuffled,
            )
            card = card_of_labels(contents, file=file)
            placement.put_card(card + "\n", rows.table.rights)
        return card, terms


class _FirstPass:
    """The first pass over a table: all that can fail with its public part fails before the charge.

    Attributes
    ----------
    rows : TableInput
    writer : TableWriter
        Its place is reserved.
    ids : dict of list
        The values of columns of ids, of the rows with their labels.
    features : FeatureRows or None
    identifiers : Identifiers
    count : int
        The number of rows with their labels.
    """

    def __init__(self, work: _TableRelease, table: Table, format: str) -> None:
        self._work, self._size = work, 0
        job = work.job
        self.rows = TableInput(
            table.as_text() if format in DELIMITERS else table.with_exact_types(),
            drop=job.drops_unlabelled,
            progress=job.report,
            hidden=[name for name in job.id_columns.values() if name in work.drop],
        )
        self.writer = TableWriter(
            work.out,
            self.rows.schema,
            format,
            job.force,
            max_rights=table.rights,
            dialect=self.rows.table.dialect_for(format),
            reserved=True,
        )
        self.ids: dict[str, list[Any]] = {name: [] for name in job.id_columns.values()}
        self.identifiers, self.count = Identifiers(), 0
        self.features: FeatureRows | None = None
        if work.is_modelled:
            from labeldp.app.label_models import FeatureRows  # noqa: PLC0415 (scikit-learn is slow to import)

            self.features = FeatureRows(table, self.rows)

    def labels(self) -> Iterator[Array]:
        """Yield the labels, then give the owner hints if something gives labels away."""
        readers = [] if self.features is None else [self.features]
        samplers = [] if self._work.job.hints is None else self.rows.hint_samplers(self._work.words)
        for labels in self.rows.labels(self._rehearse, readers, self._keep_ids, samplers):
            self.count += len(labels)
            yield labels
        self.identifiers.hints()  # before the charge, as all that can fail
        sentences = list[Message]()
        for sampler, request in zip(samplers, self._work.requests, strict=False):
            sentences += sampler.hints(ordered=not self._work.is_shuffled, bounds=request.bounds)
        self._work.job.give_hints(sentences)

    def _keep_ids(self, rows: Any) -> None:
        """Keep the ids of the next rows with their labels, a record batch."""
        for name, values in self.ids.items():
            values.extend(rows.column(name).to_pylist())

    def _rehearse(self, public: Any) -> None:
        """Try the public part of the next rows."""
        self.writer.rehearse(public)
        self.identifiers.update(public)
        self._size += size_of(public)
        if self._work.is_shuffled and self._size > MOST_SHUFFLED:
            raise DataError("the table is too large to be shuffled: 1 GiB of values at most; shuffle it before")


def _release_rows(rows: TableInput, release: _PaidLabels, count: int) -> Iterator[Any]:
    """Yield the rows with private labels in place of labels; those of rows that are not used are empty."""
    schema, pa = rows.schema, arrow()
    used_rows = UsedRows(release.scope.kept)
    for public, labels in rows.rows(count):
        columns = dict(zip(rows.public.names, public, strict=True))
        indices = used_rows.next_rows(len(labels))
        for name, column, true in zip(rows.table.labels, release.columns, labels.T, strict=True):
            private = np.full(true.size, np.nan)
            private[indices] = column.next_rows(true[indices])
            columns[name] = pa.array(private, from_pandas=True)
        yield pa.RecordBatch.from_arrays([columns[name] for name in schema.names], schema=schema)
