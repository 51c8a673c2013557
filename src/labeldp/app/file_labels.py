"""Private labels for the rows of a table in a file: from a model of its public columns, or each by itself.

`FeatureRows` keeps the public columns and the labels that the first pass over the table sees, while a fit to them
fits into memory. Then `fit_labels` charges the ledger and returns the labels of all rows. Without a model,
`StreamedLabels` randomises labels batch by batch, in constant memory.
"""

from __future__ import annotations

import math
import warnings
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, Protocol, Self

import numpy as np

from labeldp._atomic import StrPath
from labeldp._values import Array, Data, Index
from labeldp.accounts.accuracy import round_to, rounding_step, step_below
from labeldp.accounts.ledger import Ledger
from labeldp.accounts.terms import Terms
from labeldp.app.inputs import tally_notes
from labeldp.errors import DataError, Message, Setting, WeakModelWarning
from labeldp.exact.word_sources import WordSource
from labeldp.release.plan import Request
from labeldp.release.stream import LabelStream
from labeldp.tables.arrow import arrow
from labeldp.tables.column_encoders import Tally
from labeldp.tables.feature_encoder import TableEncoder
from labeldp.tables.memory import fit_size, has_memory

if TYPE_CHECKING:
    from labeldp.learning.label_columns import LabelColumn
    from labeldp.learning.released_labels import ReleasedColumn
    from labeldp.tables.opening import Progress, TableInput
    from labeldp.tables.tables import Table

LEAST_STEP = 1e-6
"""The least standard deviation around a model that a rounding step follows from, over the width of the bounds."""

CHANGED = "than were counted: the table changed while it was read"


def uses_model(request: Request, *, model: bool) -> bool:
    """Return whether labels are to come from a model of the public columns.

    An option of one mechanism asks for labels of that mechanism alone.
    """
    is_open = request.mechanism == "auto" and request.prior is None and request.epsilon_prior is None
    return model and is_open and request.purpose == "training" and request.trust == "curator"


class FileLabels(Protocol):
    """Private labels that are paid for, in the order of the rows."""

    @property
    def step(self) -> float | None:
        """The power of ten that labels are rounded to."""

    @property
    def rows(self) -> int:
        """The number of rows."""

    def next_rows(self, labels: Array) -> Array:
        """Return the private labels of the next rows, rounded."""

    def finish(self) -> Terms:
        """Return the terms, if all rows that were counted had their labels."""

    @property
    def entries(self) -> Data:
        """Further entries of the card."""


@dataclass(slots=True)
class StreamedLabels:
    """Labels that a mechanism randomises batch by batch."""

    stream: LabelStream
    request: Request
    step: float | None = field(init=False)

    def __post_init__(self) -> None:
        """Choose the rounding by the noise."""
        self.step = rounding_step(self.stream.mechanism)

    @property
    def rows(self) -> int:
        """The number of rows."""
        return self.stream.terms.rows

    def next_rows(self, labels: Array) -> Array:
        """Return the private labels of the next rows, rounded."""
        private = self.stream.release(labels)
        if private.size:
            private = self.request.labels_of(self.stream.mechanism, private)
        return round_to(private, self.step)

    def finish(self) -> Terms:
        """Return the terms, if all rows that were counted had their labels."""
        return self.stream.finish()

    @property
    def entries(self) -> Data:
        """Further entries of the card."""
        return {"purpose": self.request.purpose}


@dataclass(slots=True)
class FittedLabels:
    """Labels that a model gave, all at once."""

    release: ReleasedColumn
    step: float | None = field(init=False)
    _done: int = 0

    def __post_init__(self) -> None:
        """Choose the rounding by the private variance of labels around the model."""
        low, high = self.release.terms.bounds[0]
        deviation = math.sqrt(self.entries["residual_variance"])
        self.step = step_below(max(deviation, LEAST_STEP * (high - low)))

    @property
    def rows(self) -> int:
        """The number of rows."""
        return self.release.terms.rows

    def next_rows(self, labels: Array) -> Array:
        """Return the private labels of the next rows, rounded; true labels have no part in them."""
        first, self._done = self._done, self._done + labels.size
        if self._done > self.release.labels.size:
            raise DataError(f"there are more labels now {CHANGED}")
        return round_to(self.release.labels[first : self._done], self.step)

    def finish(self) -> Terms:
        """Return the terms, if all rows that were counted had their labels."""
        if self._done < self.release.labels.size:
            raise DataError(f"there are fewer labels now {CHANGED}")
        return self.release.terms

    @property
    def entries(self) -> Data:
        """Further entries of the card."""
        return dict(self.release.entries)


@dataclass(slots=True)
class PartialLabels:
    """Labels of the rows that are used; those of the others stay empty.

    Attributes
    ----------
    labels : FileLabels
    kept : array of int
        The rows that are used.
    rows : int
        The number of all rows.
    """

    labels: FileLabels
    kept: Index
    rows: int
    _done: int = 0

    @property
    def step(self) -> float | None:
        """The power of ten that labels are rounded to."""
        return self.labels.step

    @property
    def release(self) -> ReleasedColumn | None:
        """The release of a model."""
        return getattr(self.labels, "release", None)

    def next_rows(self, labels: Array) -> Array:
        """Return the private labels of the next rows, NaN for those that stay empty."""
        first, self._done = self._done, self._done + labels.size
        used = _places(self.kept, first, self._done)
        values = np.full(labels.size, np.nan)
        values[used] = self.labels.next_rows(labels[used])
        return values

    def finish(self) -> Terms:
        """Return the terms, if all rows that were counted had their labels."""
        return self.labels.finish()

    @property
    def entries(self) -> Data:
        """Further entries of the card."""
        return self.labels.entries


def select_rows(batches: Iterable[Array], kept: Index | None) -> Iterator[Array]:
    """Yield the labels of the rows that are used, batch by batch.

    Examples
    --------
    >>> list(select_rows([np.array([1.0, 2.0]), np.array([3.0, 4.0])], np.array([1, 2])))
    [array([2.]), array([3.])]
    """
    done = 0
    for labels in batches:
        yield labels if kept is None else labels[_places(kept, done, done + labels.size)]
        done += labels.size


def _places(kept: Index, first: int, end: int) -> Index:
    """Return the places of rows that are used among some rows."""
    start, stop = np.searchsorted(kept, [first, end])
    return kept[start:stop] - first


@dataclass(frozen=True, slots=True)
class Features:
    """The public columns of a table as numbers, with the labels of the same rows, rows × labels.

    Attributes
    ----------
    X, labels : arrays
    encoder : TableEncoder
    notes : list of str
        Columns that were left out, and values that were missing.
    """

    X: Array
    labels: Array
    encoder: TableEncoder
    notes: list[str]


class FeatureRows:
    """The rows of a table in memory, while a fit to them would fit there too.

    Parameters
    ----------
    table : Table
        Has the columns in the types to learn from.
    rows : TableInput
        The rows of the same, or of its columns as text.
    """

    def __init__(self, table: Table, rows: TableInput) -> None:
        self._table = None if table is rows.table else table
        self._schema = rows.public
        self._batches: list[Any] = []
        self._labels: list[Array] = []
        self._rows = 0
        self._is_too_large = not has_memory(fit_size(table.rows or 0, len(self._schema.names)))

    def update(self, public: list[Any], labels: Array) -> None:
        """Add the public columns and the labels of the next rows."""
        if self._is_too_large:
            return
        batch = arrow().RecordBatch.from_arrays(public, schema=self._schema)
        self._batches.append(batch if self._table is None else self._table.parse(batch, self._schema.names))
        self._labels.append(labels)
        self._rows += len(labels)
        self._is_too_large = not has_memory(fit_size(self._rows, len(self._schema.names)))
        if self._is_too_large:
            self._batches, self._labels = [], []

    @property
    def labels(self) -> Array | None:
        """The labels of all rows, rows × labels; None if they are not in memory."""
        return np.concatenate(self._labels) if self._labels else None

    def features(self) -> Features | Message:
        """Return the features and labels of all rows, or the reason why there can be no model."""
        if not self._schema.names:
            return Message("There is no public column to learn from.")
        if not self._is_too_large:
            table = arrow().Table.from_batches(self._batches, self._batches[0].schema)
            try:
                encoder = TableEncoder.fit(table, self._schema.names)
            except DataError as error:
                return Message("The public columns cannot help: ", error, ".")
            if has_memory(fit_size(self._rows, encoder.width)):
                return self._encode(encoder, table)
        return Message(
            "The table is too large for a model in the memory that is free: leave columns out with ",
            Setting("drop"),
            ", or use a larger machine.",
        )

    def _encode(self, encoder: TableEncoder, table: Any) -> Features:
        """Return the features as numbers."""
        tally: Tally = Counter()
        X, labels = encoder.transform(table, tally), np.concatenate(self._labels)
        self._batches, self._labels = [], []
        arrow().default_memory_pool().release_unused()  # makes room for the fit
        notes = [f"{name} was left out of the model: {reason}." for name, reason in encoder.left_out]
        return Features(X, labels, encoder, [*notes, *tally_notes(tally)])


class ModelSaving:
    """Block in which a place is reserved for a model; nothing is done without a path."""

    def __init__(self, path: StrPath | None, encoder: TableEncoder, label: str, *, force: bool) -> None:
        self._path, self._encoder, self._label, self._force = path, encoder, label, force
        self._stack = ExitStack()

    def __enter__(self) -> Self:
        """Reserve the place, and refuse names and values that a model cannot hold."""
        if self._path is not None:
            from labeldp.learning.models import columns_text, reserve_model  # noqa: PLC0415

            columns_text(self._encoder, self._label)
            self._open_draft = self._stack.enter_context(reserve_model(self._path, force=self._force))
        return self

    def write(self, release: ReleasedColumn) -> None:
        """Write the model, its private labels and its card."""
        if self._path is not None:
            from labeldp.learning.models import write_model  # noqa: PLC0415

            model: Any = release.model
            with self._open_draft() as draft:
                write_model(model, self._encoder, draft, label=self._label, quality=release.error)

    def __exit__(self, *error: object) -> None:
        self._stack.close()


def fit_labels(
    request: Request,
    features: Features,
    column: LabelColumn,
    ledger: Ledger,
    source: WordSource,
    progress: Progress,
    *,
    order: Index | None = None,
) -> FittedLabels:
    """Charge a ledger, fit a private model to a label, and return the labels that it gives all rows.

    ``order`` is a random order in which the fit sees the rows, for a table whose order is private.
    """
    from labeldp.learning.label_release import release_with_model  # noqa: PLC0415 (scikit-learn is slow to import)
    from labeldp.learning.label_rounds import listening  # noqa: PLC0415

    X, names = features.X, features.encoder.names
    if order is not None:
        labels = column.array[order]
        X, column = X[order], replace(column, labels=labels, array=labels)
    with listening(lambda step: progress(f"Fitting a model: {step}", 0, None)), warnings.catch_warnings():
        warnings.simplefilter("ignore", WeakModelWarning)  # it is among the notes
        release = release_with_model(request, column, X, ledger, source, features=names)
    if order is not None:
        release.labels[order] = release.labels.copy()
    return FittedLabels(release)


def is_mean(request: Request, rows: int, *, model: bool) -> bool:
    """Return whether labels are too few to learn from, with a model or without, by public numbers."""
    from labeldp.learning.label_release import is_model_constant, is_only_mean  # noqa: PLC0415

    return is_model_constant(request, rows) if model else is_only_mean(request, rows)


def label_column(name: str, labels: Array) -> LabelColumn:
    """Return one column of labels."""
    from labeldp.learning.label_columns import LabelColumn  # noqa: PLC0415

    return LabelColumn(name, labels, labels)


def mean_labels(request: Request, column: LabelColumn, ledger: Ledger, source: WordSource) -> FittedLabels:
    """Charge a ledger, and return the private mean of all labels as the label of each row."""
    from labeldp.learning.label_release import release_mean  # noqa: PLC0415

    with warnings.catch_warnings():
        warnings.simplefilter("ignore", WeakModelWarning)
        return FittedLabels(release_mean(request, column, ledger, source))


def model_notes(releases: Sequence[ReleasedColumn], features: Features) -> list[str]:
    """Return notes on the models behind labels."""
    names, labels = ", ".join(features.encoder.names), ", ".join(one.name for one in releases)
    models = "a private model" if len(releases) == 1 else "private models"
    notes = [f"Released labels are means under {models} of {labels}, which learnt from {names}.", *features.notes]
    for release in releases:
        weakness = None if release.model is None else release.model.weakness_
        note = "Note" if len(releases) == 1 else f"Note on {release.name}"
        notes += [] if weakness is None else [f"{note}: {weakness}."]
    return notes
