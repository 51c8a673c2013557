"""A table as features and labels, for models."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np

from labeldp._atomic import StrPath
from labeldp._values import Array, Interval, Mask, parse_choice
from labeldp.accounts.scope import RowOptions
from labeldp.app.row_columns import RowColumns
from labeldp.app.sentences import counted
from labeldp.errors import DataError, Message, ParameterError
from labeldp.tables.column_encoders import Tally, kind_of, text_or_null
from labeldp.tables.memory import read_columns

if TYPE_CHECKING:
    from labeldp.tables.dialect import Dialect
    from labeldp.tables.opening import Progress
    from labeldp.tables.tables import Table

Hints = Callable[[list[Message]], None]
"""Called with sentences that follow from true labels."""

Columns = Mapping[str, Sequence[str]]
"""The columns that options name: "features", to read, or else all; "drop"; "categories", read as text."""


LEFT_OUT = "Left out, because they have "
"""Beginning of the note on rows that are not used."""


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Rows:
    """The rows of a table that have a label: public columns as an Arrow table, labels, and notes."""

    public: Any
    labels: Array
    notes: list[str]
    rights: int
    scope: RowOptions = field(default_factory=RowOptions)


def read_rows(
    source: StrPath,
    label: str,
    *,
    columns: Columns,
    missing: str,
    format: str | None,
    dialect: Dialect | None,
    progress: Progress,
    complete: bool = False,
    hints: Hints | None = None,
    bounds: Interval | None = None,
    scope: RowColumns | None = None,
) -> Rows:
    """Read a table; with ``complete``, gaps in its columns are treated as missing labels are.

    ``hints`` is called with the columns that give labels away, if there are any, and if ``bounds`` seem to be in
    another unit: for the owner's eyes only.
    """
    parse_choice(missing, "missing", ("error", "drop"))
    from labeldp.tables.batches import label_values  # noqa: PLC0415
    from labeldp.tables.hints import table_hints  # noqa: PLC0415

    scope = scope or RowColumns()
    table, names = _open_features(source, label, columns, format, dialect, scope)

    def report(done: int) -> None:  # of text nothing: progress before a fault would show where blocks end
        progress("Reading", done if table.format == "parquet" else 0, table.rows)

    read = read_columns(table, list(dict.fromkeys([label, *names, *scope.columns.values()])), report)
    labels, unusable = label_values(read.column(label), allow_missing=missing == "drop")
    labelled = np.flatnonzero(~unusable)
    if labelled.size:
        table.refuse_total(int(labelled[-1]))
    if complete:
        unusable = unusable | _gap_rows(read, names, missing)
    notes = list(table.notes)
    if unusable.any():
        read, labels = read.filter(~unusable), labels[~unusable]
        reason = "no label or a gap in a column that is used" if complete else "no label"
        notes.append(f"{LEFT_OUT}{reason}: {counted(int(unusable.sum()), 'row')}.")
    if not len(labels):
        raise ParameterError("no row has a label")
    public = read.select(names)
    if hints is not None:
        option = "drop" if "drop" in columns else "on"
        if sentences := table_hints(public, labels, label, table.dialect, option, bounds):
            hints(sentences)
    values = {name: read.column(name).to_pylist() for name in scope.columns.values()}
    return Rows(public, labels, notes, table.rights, scope.options(values))


def _open_features(
    source: StrPath,
    label: str,
    columns: Columns,
    format: str | None,
    dialect: Dialect | None,
    scope: RowColumns,
) -> tuple[Table, list[str]]:
    """Open a table, and return it with the names of its features."""
    from labeldp.tables.opening import open_table  # noqa: PLC0415 (an extra)

    features, drop, text = (columns.get(option, ()) for option in ("features", "drop", "categories"))
    ids = scope.columns.values()
    unread = [name for name in drop if name not in ids]
    table = open_table(source, format, label=label, text=[*text, *ids], drop=unread, dialect=dialect)
    scope.refuse_unknown(table, label)
    for option, names in columns.items():
        for name in names:
            table.refuse_unknown(name, option)
    if label in features or label in text:
        raise ParameterError(f"{label!r} is the label: it cannot be a feature too", option="label")
    columns_used = features or [name for name in table.schema.names if name != label and name not in ids]
    columns_used = [name for name in dict.fromkeys(columns_used) if name not in drop]
    table.refuse_lookalike(columns_used)
    return table, columns_used


def _gap_rows(table: Any, names: Sequence[str], missing: str) -> Mask:
    """Return True for rows with a gap in a column; gaps are refused unless their rows are left out."""
    gaps = {name: _gaps(table.column(name)) for name in names}
    incomplete = [name for name, rows in gaps.items() if rows.any()]
    if incomplete and missing == "error":
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


def tally_notes(tally: Tally) -> list[str]:
    """Return notes on values that were missing, or new since the fit."""
    sentences = {
        "missing": "missing: numbers are replaced by the median of the column, text counts as missing",
        "new": "new since the fit, and counted as rare",
    }
    return [
        f"{name}: {counted(count, 'value')} {sentences[kind]}." for (name, kind), count in tally.items() if count
    ]
