"""A table in files as a regressor takes it, for the commands that learn."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from labeldp.cli.options import Policy, listed
from labeldp.errors import ParameterError
from labeldp.tabular import TableEncoder, Tally, read_columns
from labeldp.tabular.memory import refuse_too_wide

__all__ = ["Inputs", "notes", "read_inputs"]

Array = NDArray[np.float64]


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Inputs:
    """Features and labels.

    Attributes
    ----------
    X, labels : arrays
    encoder : TableEncoder
        How the columns became numbers.
    notes : list of str
        What to say of them: all of it is public.
    """

    X: Array
    labels: Array
    encoder: TableEncoder
    notes: list[str]


def read_inputs(
    source: str,
    label: str,
    *,
    features: str | None,
    drop: str | None,
    categories: str | None,
    missing: Policy,
    rows: int | None = None,
    format: str | None = None,
) -> Inputs:
    """Read a table, and refuse whatever cannot be used of it before anything is paid.

    Parameters
    ----------
    source, label : str
    features, drop, categories : str, optional
        Which columns to learn from, to leave out, and to take as names of things, with commas between them.
    missing : Policy
        What to do with rows without a label.
    rows : int, optional
        Rows at most, chosen by chance.
    format : str, optional
    """
    from labeldp.files import open_table  # noqa: PLC0415 (an extra)
    from labeldp.files.columns import label_values  # noqa: PLC0415

    wanted, unwanted, named = listed(features), listed(drop), listed(categories)
    table = open_table(source, format, label=label, text=named)
    for name in [*wanted, *unwanted, *named]:
        table.field(name)
    if label in wanted or label in named:
        raise ParameterError(f"{label!r} is the label: it cannot be a feature too")
    names = wanted or [name for name in table.schema.names if name != label]
    names = [name for name in dict.fromkeys(names) if name not in unwanted]
    read = read_columns(table, [label, *names])
    labels, gone = label_values(read.column(label), allow_missing=missing is not Policy.error)
    said = []
    if gone.any():
        read, labels = read.filter(~gone), labels[~gone]
        said.append(f"{int(gone.sum()):,} rows without a label were left out.")
    if not len(labels):
        raise ParameterError("no row has a label")
    if rows is not None and len(labels) > rows:
        some = np.sort(np.random.default_rng(0).permutation(len(labels))[:rows])
        read, labels = read.take(some), labels[some]
    encoder = TableEncoder.fit(read, names, categories=named, strict=bool(wanted))
    refuse_too_wide(read.num_rows, encoder.width)
    tally: Tally = Counter()
    X = encoder.transform(read, tally)
    said += [f"{name} was left out: {why}." for name, why in encoder.left_out]
    return Inputs(X, labels, encoder, said + notes(tally))


def notes(tally: Tally) -> list[str]:
    """Return what to say of values that were missing, or new since the fit."""
    says = {
        "missing": "missing; the column's middle value, or none of its categories, stood in",
        "new": "new since the fit; they count as rare ones",
    }
    return [f"{name}: {count:,} values were {says[what]}." for (name, what), count in tally.items() if count]
