"""A table in memory, as features and labels: for models and regressions."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from labeldp._values import Array, Interval, Mask
from labeldp.accounts.scope import RowOptions
from labeldp.app.file_job import FileJob
from labeldp.app.sentences import counted
from labeldp.errors import DataError, ParameterError
from labeldp.tables.batches import label_values
from labeldp.tables.column_encoders import Tally, kind_of, text_or_null
from labeldp.tables.feature_encoder import TableEncoder
from labeldp.tables.hints import table_hints
from labeldp.tables.memory import read_columns
from labeldp.tables.tables import Table

LEFT_OUT = "Left out, because they have "
"""Beginning of the note on rows that are not used."""


@dataclass(frozen=True, slots=True)
class Columns:
    """The columns that options name.

    Attributes
    ----------
    features : sequence of str
        To read; all by default.
    drop : sequence of str
    categories : sequence of str
        Numbers that are read as text.
    """

    features: Sequence[str] = ()
    drop: Sequence[str] = ()
    categories: Sequence[str] = ()


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Rows:
    """The rows of a table that are used: public columns as an Arrow table, labels, and notes."""

    public: Any
    labels: Array
    notes: list[str]
    rights: int
    scope: RowOptions = field(default_factory=RowOptions)


def read_rows(
    job: FileJob, columns: Columns, *, complete: bool = False, bounds: Interval | None = None, option: str = "drop"
) -> Rows:
    """Read the table of a job, and give its owner hints.

    Parameters
    ----------
    job : FileJob
        Has one label.
    columns : Columns
    complete : bool
        Treat gaps in public columns as missing labels are treated.
    bounds : pair of float, optional
        A hint says if these seem to be in another unit.
    option : str
        The option that leaves a column out, for hints.
    """
    (label,) = job.labels
    table = job.open_table(text=columns.categories, drop=columns.drop)
    names = _feature_names(job, table, columns)
    read = _read_columns(job, table, [label, *names, *job.id_columns.values()])
    labels, unusable = label_values(read.column(label), allow_missing=job.drops_unlabelled)
    if not unusable.all():
        table.refuse_total(int(np.flatnonzero(~unusable)[-1]))
    notes, reason = [*table.notes], "no label"
    if complete:
        unusable = unusable | _gap_rows(read, names, is_allowed=job.drops_unlabelled)
        reason = "no label or a gap in a column that is used"
    if unusable.any():
        read, labels = read.filter(~unusable), labels[~unusable]
        notes.append(f"{LEFT_OUT}{reason}: {counted(int(unusable.sum()), 'row')}.")
    if not labels.size:
        raise ParameterError("no row has a label")
    public = read.select(names)
    if job.hints is not None:  # they take time
        job.give_hints(table_hints(public, labels, label, table.dialect, option, bounds))
    ids = {name: read.column(name).to_pylist() for name in job.id_columns.values()}
    return Rows(public, labels, notes, table.rights, job.row_options(ids))


def _read_columns(job: FileJob, table: Table, names: Sequence[str]) -> Any:
    """Return columns of a table in memory."""
    is_counted = table.format == "parquet"  # progress in text before a fault would show where blocks end

    def report(done: int) -> None:
        job.report("Reading", done if is_counted else 0, table.rows)

    return read_columns(table, list(dict.fromkeys(names)), report)


def _feature_names(job: FileJob, table: Table, columns: Columns) -> list[str]:
    """Return the names of the columns to learn from."""
    for option in ("features", "categories"):
        names: Sequence[str] = getattr(columns, option)
        for name in names:
            table.refuse_unknown(name, option)
            if name in job.labels:
                raise ParameterError(f"{name!r} is the label: it cannot be a feature too", option="label")
    private_names = {*job.labels, *job.id_columns.values()}
    names = columns.features or [name for name in table.schema.names if name not in private_names]
    names = [name for name in dict.fromkeys(names) if name not in columns.drop]
    table.refuse_lookalike(names)
    return names


def _gap_rows(table: Any, names: Sequence[str], *, is_allowed: bool) -> Mask:
    """Return True for rows with a gap in a column; gaps are refused unless their rows are left out."""
    gaps = {name: _gaps(table.column(name)) for name in names}
    incomplete = [name for name, rows in gaps.items() if rows.any()]
    if incomplete and not is_allowed:
        raise DataError(
            f"values are missing in {', '.join(map(repr, incomplete))}: leave these columns out, or, on the "
            "command line, these rows by --missing drop"
        )
    with_gaps = np.zeros(table.num_rows, dtype=np.bool_)
    for rows in gaps.values():
        with_gaps |= rows
    return with_gaps


def _gaps(column: Any) -> Mask:
    """Return True for values that are missing; empty text is, as in models."""
    values = text_or_null(column) if kind_of(column.type) == "category" else column
    return np.asarray(values.is_null(nan_is_null=True), dtype=np.bool_)


# ---- columns as numbers -----------------------------------------------------------------------------------


def fit_encoder(public: Any, columns: Columns) -> TableEncoder:
    """Return the encoder of public columns as numbers; features that options name must be of use."""
    is_strict = bool(columns.features)
    return TableEncoder.fit(public, public.column_names, categories=columns.categories, strict=is_strict)


def encode(encoder: TableEncoder, table: Any, *, of_model: str = "") -> tuple[Array, list[str]]:
    """Return features as numbers, and notes on columns that were left out and values that were missing."""
    tally: Tally = Counter()
    X = encoder.transform(table, tally)
    notes = [f"{name} was left out{of_model}: {reason}." for name, reason in encoder.left_out]
    return X, notes + tally_notes(tally)


def encode_rows(encoder: TableEncoder, rows: Rows, label: str) -> tuple[Array, list[str]]:
    """Return features of rows as numbers, and notes on the columns of a model and on the table."""
    X, notes = encode(encoder, rows.public)
    names = ", ".join(encoder.names) or "no column"
    return X, [f"The model predicts {label} from {names}.", *rows.notes, *notes]


def weakness_notes(model: Any) -> list[str]:
    """Return a note on the weakness of a fitted model, if it has one."""
    return [] if model.weakness_ is None else [f"Note: {model.weakness_}."]


_TALLIED: Mapping[str, str] = {
    "missing": "missing: numbers are replaced by the median of the column, text counts as missing",
    "new": "new since the fit, and counted as rare",
}


def tally_notes(tally: Tally) -> list[str]:
    """Return notes on values that were missing, or new since the fit."""
    return [
        f"{name}: {counted(count, 'value')} {_TALLIED[kind]}." for (name, kind), count in tally.items() if count
    ]
