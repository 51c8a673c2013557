"""Private labels for the rows of a table from models of its public columns.

`FeatureRows` keeps the public columns and the labels that the first pass over the table sees, while a fit to them
fits into memory. Then `fit_labels` charges the ledger and returns the labels of all rows.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import numpy as np

from labeldp._atomic import StrPath
from labeldp._values import Array, Index
from labeldp.accounts.ledger import Ledger
from labeldp.accounts.scope import Scope
from labeldp.app.file_labels import FittedLabels
from labeldp.app.inputs import encode
from labeldp.errors import DataError, Message, Setting, WeakModelWarning
from labeldp.exact.word_sources import WordSource
from labeldp.learning.label_columns import LabelColumn
from labeldp.learning.label_release import release_mean, release_with_model
from labeldp.learning.models import columns_text, reserve_model, write_model
from labeldp.learning.released_labels import ReleasedColumn
from labeldp.release.plan import Request
from labeldp.tables.arrow import arrow
from labeldp.tables.feature_encoder import TableEncoder
from labeldp.tables.memory import fit_size, has_memory
from labeldp.tables.opening import TableInput
from labeldp.tables.tables import Table


@dataclass(frozen=True, slots=True)
class Features:
    """The public columns of a table as numbers, with the labels of the same rows, rows × labels.

    Attributes
    ----------
    X, labels : arrays
    encoder : TableEncoder
    notes : list of str
        Columns that were left out, and values that were missing.
    order : array of int, or None
        A random order in which fits see the rows, for a table whose order is private.
    """

    X: Array
    labels: Array
    encoder: TableEncoder
    notes: list[str]
    order: Index | None = None

    def of_label(self, number: int, name: str) -> tuple[Array, LabelColumn]:
        """Return the features and the labels of one column, in the order that a fit sees."""
        order = slice(None) if self.order is None else self.order
        labels = np.ascontiguousarray(self.labels[order, number])
        return self.X[order], LabelColumn(name, labels, labels)


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
        self._is_too_large = False
        self._require_memory(table.rows or 0)

    def _require_memory(self, rows: int) -> None:
        """Let go of all rows if a fit to so many would not fit into memory."""
        if not has_memory(fit_size(rows, len(self._schema.names))):
            self._is_too_large = True
            self._batches, self._labels = [], []

    def update(self, public: list[Any], labels: Array) -> None:
        """Add the public columns and the labels of the next rows."""
        if self._is_too_large:
            return
        batch = arrow().RecordBatch.from_arrays(public, schema=self._schema)
        self._batches.append(batch if self._table is None else self._table.parse(batch, self._schema.names))
        self._labels.append(labels)
        self._rows += len(labels)
        self._require_memory(self._rows)

    def labels(self, number: int, scope: Scope) -> Array | None:
        """Return one label of the rows that are used; None if they are not in memory."""
        return scope.select(np.concatenate(self._labels))[:, number] if self._labels else None

    def features(self, scope: Scope) -> Features | Message:
        """Return features and labels of the rows that are used, or the reason why there can be no model."""
        if not self._schema.names:
            return Message("There is no public column to learn from.")
        if not self._is_too_large:
            table = arrow().Table.from_batches(self._batches, self._batches[0].schema)
            try:
                encoder = TableEncoder.fit(table, self._schema.names)
            except DataError as error:
                return Message("The public columns cannot help: ", error, ".")
            if has_memory(fit_size(self._rows, encoder.width)):
                return self._encode(encoder, table, scope)
        return Message(
            "The table is too large for a model in the memory that is free: leave columns out with ",
            Setting("drop"),
            ", or use a larger machine.",
        )

    def _encode(self, encoder: TableEncoder, table: Any, scope: Scope) -> Features:
        """Return the features as numbers."""
        X, notes = encode(encoder, table, of_model=" of the model")
        labels = np.concatenate(self._labels)
        self._batches, self._labels = [], []
        arrow().default_memory_pool().release_unused()  # makes room for the fit
        return Features(scope.select(X), scope.select(labels), encoder, notes)


@contextmanager
def model_saver(
    path: StrPath | None, encoder: TableEncoder, label: str, *, force: bool
) -> Iterator[Callable[[ReleasedColumn], None]]:
    """Reserve a place for a model, and yield a function that writes it there; without a path it does nothing.

    Names and values that a model cannot hold are refused.
    """
    if path is None:
        yield lambda release: None
        return
    columns_text(encoder, label)
    with reserve_model(path, force=force) as open_draft:

        def write(release: ReleasedColumn) -> None:
            model: Any = release.model
            with open_draft() as draft:
                write_model(model, encoder, draft, label=label, quality=release.error)

        yield write


def fit_labels(
    request: Request, features: Features, number: int, name: str, ledger: Ledger, source: WordSource
) -> FittedLabels:
    """Charge a ledger, fit a private model to a label, and return the labels that it gives all rows."""
    X, column = features.of_label(number, name)
    if features.order is not None:
        request = request.with_scope(request.scope.take(features.order))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", WeakModelWarning)  # it is among the notes
        release = release_with_model(request, column, X, ledger, source, features=features.encoder.names)
    if features.order is not None:
        release.labels[features.order] = release.labels.copy()
    return FittedLabels(release)


def mean_labels(request: Request, name: str, labels: Array, ledger: Ledger, source: WordSource) -> FittedLabels:
    """Charge a ledger, and return the private mean of all labels as the label of each row."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", WeakModelWarning)  # it was said before the charge
        return FittedLabels(release_mean(request, LabelColumn(name, labels, labels), ledger, source))


def model_notes(releases: Sequence[ReleasedColumn], features: Features) -> list[str]:
    """Return notes on the models behind labels."""
    names, labels = ", ".join(features.encoder.names), ", ".join(release.name for release in releases)
    is_single = len(releases) == 1
    models = "a private model" if is_single else "private models"
    notes = [f"Released labels are means under {models} of {labels}, which learnt from {names}.", *features.notes]
    for release in releases:
        weakness = None if release.model is None else release.model.weakness_
        if weakness is not None:
            notes.append(f"Note{'' if is_single else f' on {release.name}'}: {weakness}.")
    return notes
