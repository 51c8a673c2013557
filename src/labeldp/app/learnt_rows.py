"""`write_canaries`, and audits of a model or of private labels from the table that they were made of."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from labeldp._atomic import StrPath, atomic_file, read_regular
from labeldp._values import Array, Index, Interval, Mask
from labeldp.accounts.card import Card
from labeldp.app.file_job import FileJob
from labeldp.app.inputs import Columns, read_rows
from labeldp.app.released_table import open_release
from labeldp.errors import DataError, ParameterError
from labeldp.evidence.fit_audit import FitAudit, audit_fit, canary_labels
from labeldp.exact.word_sources import resolve_source
from labeldp.learning.models import load_model
from labeldp.tables.arrow import arrow
from labeldp.tables.batches import draw_words, label_values
from labeldp.tables.dialect import Dialect
from labeldp.tables.memory import read_columns
from labeldp.tables.opening import open_table
from labeldp.tables.paths import Target, output_format, refuse_same, sha256
from labeldp.tables.tables import Table
from labeldp.tables.writer import TableWriter

MAX_MARK = 1 << 10
"""Bytes of the file with the checksum of canaries, at most."""

INSTEAD = "audit canaries instead (labeldp canaries)"
"""Remedy where true labels cannot show anything."""


def write_canaries(
    source: StrPath,
    out: StrPath,
    *,
    label: str,
    bounds: Interval,
    rows: int,
    drop: Sequence[str] = (),
    format: str | None = None,
    dialect: Dialect | None = None,
    force: bool = False,
) -> None:
    """Write canaries for a table: rows with its columns, to be added to it before a fit. No label is read.

    A file beside them, ``OUT.canaries``, has the checksum of the table and of the label: nothing else is taken for
    canaries, neither another table nor another private column of this one.

    Each public value is that of a random row, drawn for each column anew; the label is one of the bounds, by a
    fair coin. Columns in ``drop`` are empty, and not read.
    """
    mark = _mark(out)
    refuse_same({"the canaries": out, "their checksum": mark}, {"the table": source})
    Target(str(mark), force).refuse()
    table = open_table(source, format, label=label, dialect=dialect).as_text()
    for name in drop:
        table.refuse_unknown(name, "drop")
    canaries = _draw_canaries(table, label, canary_labels(rows, bounds, resolve_source(None)), drop)
    dialect = table.dialect_for(output_format(str(out)))
    with TableWriter(out, table.schema, None, force, dialect=dialect) as writer:
        writer.write(canaries)
    with atomic_file(mark, public=True, replace=force) as draft:
        draft.write_text(_checksum(out, label), encoding="ascii")


def _draw_canaries(table: Table, label: str, labels: Array, drop: Sequence[str]) -> Any:
    """Return rows with these labels, and public values of a table that are drawn column by column."""
    pa, rows, words = arrow(), labels.size, resolve_source(None)
    names = [name for name in table.schema.names if name != label and name not in drop]
    table.refuse_lookalike(names)
    public = read_columns(table, names)
    columns = {name: pa.nulls(rows, table.schema.field(name).type) for name in drop}
    columns[label] = pa.array(labels)
    for name in public.column_names:
        indices = draw_words(rows, words) % np.uint64(public.num_rows)
        columns[name] = public.column(name).take(pa.array(indices)).combine_chunks()
    return pa.RecordBatch.from_arrays([columns[name] for name in table.schema.names], schema=table.schema)


def refuse_true_labels(table: StrPath, label: str | None) -> None:
    """Refuse a column that `write_canaries` did not draw: a label in it could be a true one."""
    mark = _mark(table)
    if not mark.exists() or read_regular(mark, MAX_MARK).decode("ascii", "replace") != _checksum(table, label):
        raise DataError(
            f"{mark.name} is not there, or is of another table or of another label than {label!r}: only labels "
            "that labeldp canaries drew are those of canaries. Give the file that it wrote, with the "
            "checksum beside it"
        )


def _checksum(table: StrPath, label: str | None) -> str:
    """Return the checksum of a file and of the name of one of its columns."""
    return hashlib.sha256(f"{sha256(Path(table))} {label!r}".encode()).hexdigest()


def _mark(table: StrPath) -> Path:
    return Path(f"{os.fspath(table)}.canaries")


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class LearntRows:
    """Released numbers and the labels that they were made of, row by row; bounds clip the labels."""

    card: Card
    released: Array
    labels: Array

    def audit_canaries(self, confidence: float) -> FitAudit:
        """Return the audit of rows whose labels are all of canaries."""
        return audit_fit(self.released, self.labels, epsilon=self._claim, confidence=confidence)

    def audit_true_labels(self, confidence: float) -> FitAudit:
        """Return the audit of true labels; the result is for the owner's eyes."""
        learnt, alternative_rows = self._pairs()
        released, labels = self.released[learnt], np.clip(self.labels, *self.card.terms.bounds[0])
        alternatives = labels[alternative_rows]
        if self.card.kind == "model":
            alternatives = released + (alternatives - self.released[alternative_rows])
        return audit_fit(released, labels[learnt], alternatives, epsilon=self._claim, confidence=confidence)

    @property
    def _claim(self) -> float:
        return self.card.terms.label_cost.epsilon

    def _pairs(self) -> tuple[Index, Index]:
        """Return rows to audit, and as many others whose labels or errors make the alternatives."""
        order = np.random.default_rng(0).permutation(self.labels.size)
        if self.card.kind == "model":
            is_other = np.isin(order, self._held_out())
        elif "features" in self.card.content:
            raise ParameterError(f"the private labels follow from other columns, too: {INSTEAD}")
        else:
            is_other = np.arange(order.size) % 2 == 1
        learnt, alternative_rows = order[~is_other], order[is_other]
        size = min(learnt.size, alternative_rows.size)
        return learnt[:size], alternative_rows[:size]

    def _held_out(self) -> Index:
        """Return the rows that the model did not learn from."""
        split = self.card.terms.split
        if split is None or split.method == "people":
            raise ParameterError(
                f"no row is known that the model did not learn from: fit with a score, or {INSTEAD}"
            )
        rows = split.train_rows + split.test_rows
        if self.labels.size != rows:
            raise DataError(
                f"the table has {self.labels.size:,} rows with a label, and that of the fit had {rows:,}: give "
                "the table of the fit"
            )
        return split.indices()[1]


def read_learnt(
    path: Path,
    card: Card,
    source: StrPath,
    *,
    label: str | None,
    last_rows: bool,
    format: str | None,
    dialect: Dialect | None,
) -> LearntRows:
    """Read the labels of a table, and the predictions of a model or the values of a release in its rows.

    Parameters
    ----------
    path, card
        The card of a model or of a table with private labels of one column.
    source, format, dialect
        The table that it was made of, or the canaries among its rows.
    label : str, optional
        By default the column that the card names.
    last_rows : bool
        The table is the end of the one that private labels were made of.
    """
    if card.kind == "model":
        return _read_model_rows(path, card, source, label, format, dialect)
    if card.kind != "release" or "file" not in card.content:
        raise ParameterError("with a table, give a model's folder, or a file of private labels of one column")
    if card.content["file"]["row_order"] == "shuffled":
        raise ParameterError("the private labels are in random order: no row is known to be that of a label")
    name = card.content["file"]["column"]
    file = path.with_name(path.name.removesuffix(".card.json"))
    released, is_empty = _column(open_release(file, card, label=name, only=[name]), name)
    label = label or name
    labels, is_missing = _column(open_table(source, format, label=label, only=[label], dialect=dialect), label)
    labels = labels[~is_missing]
    first = released.size - labels.size
    if first < 0 or (first and not last_rows):
        raise DataError(
            f"the table has {labels.size:,} rows with a label, and the private one {released.size:,}: give the "
            "table that was privatized, or the canaries at its end"
        )
    is_released = ~is_empty[first:]
    return LearntRows(card, released[first:][is_released], labels[is_released])


def _read_model_rows(
    path: Path, card: Card, source: StrPath, label: str | None, format: str | None, dialect: Dialect | None
) -> LearntRows:
    saved = load_model(path.parent)
    job = FileJob(source=source, labels=(label or saved.label,), missing="drop", format=format, dialect=dialect)
    rows = read_rows(job, Columns(features=saved.encoder.names, categories=saved.encoder.texts))
    return LearntRows(card, saved.predict(rows.public), rows.labels)


def _column(table: Table, name: str) -> tuple[Array, Mask]:
    """Return the numbers of a column, and True for rows without one."""
    return label_values(read_columns(table, [name]).column(name), allow_missing=True)
