"""A table as features and labels, for models."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from labeldp._values import Array, parse_choice
from labeldp.app.sentences import counted
from labeldp.errors import ParameterError
from labeldp.tables.encoder import TableEncoder
from labeldp.tables.encodings import Tally
from labeldp.tables.memory import read_columns, refuse_too_large

if TYPE_CHECKING:
    from labeldp.tables.dialect import Dialect
    from labeldp.tables.opening import Progress


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Inputs:
    """Features and labels, how columns became numbers, and what to say of them, which is public."""

    X: Array
    labels: Array
    encoder: TableEncoder
    notes: list[str]


def read_rows(
    source: str,
    label: str,
    *,
    missing: str,
    format: str | None,
    dialect: Dialect | None,
    progress: Progress | None,
    columns: Mapping[str, Sequence[str]],
) -> tuple[Any, Array, list[str], int]:
    """Return public columns as an Arrow table, labels, what to say of the table, and who may read its files.

    ``columns`` are the names given by the options "features", which are read, all if there are none, "drop",
    which are left out, and "categories", which are read as text.
    """
    parse_choice(missing, "missing", ("error", "drop"))
    from labeldp.tables.batches import label_values  # noqa: PLC0415
    from labeldp.tables.opening import open_table  # noqa: PLC0415 (an extra)

    features, drop, text = (columns.get(option, ()) for option in ("features", "drop", "categories"))
    table = open_table(source, format, label=label, text=text, drop=drop, dialect=dialect)
    for option, listed in columns.items():
        for name in listed:
            table.refuse_unknown(name, option)
    if label in features or label in text:
        raise ParameterError(f"{label!r} is the label: it cannot be a feature too", option="label")
    names = features or [name for name in table.schema.names if name != label]
    names = [name for name in dict.fromkeys(names) if name not in drop]

    def report(done: int) -> None:
        if progress is not None:  # how far it got in text before a fault shows where blocks end
            progress("Reading", done if table.format == "parquet" else 0, table.rows)

    read = read_columns(table, [label, *names], report)
    labels, missing_rows = label_values(read.column(label), allow_missing=missing == "drop")
    notes = list(table.notes)
    labelled = np.flatnonzero(~missing_rows)
    if labelled.size:
        table.refuse_total(int(labelled[-1]))
    if missing_rows.any():
        read, labels = read.filter(~missing_rows), labels[~missing_rows]
        notes.append(f"Left out, because they have no label: {counted(int(missing_rows.sum()), 'row')}.")
    if not len(labels):
        raise ParameterError("no row has a label")
    return read.select(names), labels, notes, table.rights


def read_inputs(
    source: str,
    label: str,
    *,
    features: Sequence[str],
    drop: Sequence[str],
    categories: Sequence[str],
    **reading: Any,
) -> Inputs:
    """Read a table, and refuse whatever cannot be used before anything is paid."""
    given = {"features": features, "drop": drop, "categories": categories}
    read, labels, notes, _ = read_rows(source, label, columns=given, **reading)
    encoder = TableEncoder.fit(read, read.column_names, categories=categories, strict=bool(features))
    refuse_too_large(8 * read.num_rows * encoder.width)
    tally: Tally = Counter()
    X = encoder.transform(read, tally)
    left_out = [f"{name} was left out: {why}." for name, why in encoder.left_out]
    return Inputs(X, labels, encoder, [*notes, *left_out, *tally_notes(tally)])


def tally_notes(tally: Tally) -> list[str]:
    """Return what to say of values that were missing, or new since the fit."""
    says = {
        "missing": "missing; the column's middle value, or none of its categories, stood in",
        "new": "new since the fit, and counted as rare",
    }
    return [f"{name}: {counted(count, 'value')} {says[what]}." for (name, what), count in tally.items() if count]
