"""The label columns of a release, by public facts alone."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from labeldp._values import Labels, Numbers, refuse_other_order
from labeldp.errors import DataError, LabelError
from labeldp.release.label_requests import MOST_LABELS
from labeldp.release.names import UNNAMED, as_label_name, column_names, name_of_labels, refuse_lookalike
from labeldp.tables.frames import frame_names, is_frame, row_count


@dataclass(frozen=True, slots=True)
class LabelColumn:
    """One column of private labels.

    Attributes
    ----------
    name : str
        Is public.
    labels : array-like
        The labels as they were given.
    array : array
        The labels, checked.
    """

    name: str
    labels: Any = field(repr=False)
    array: Numbers = field(repr=False)


def label_columns(labels: Any, X: Any = None) -> list[LabelColumn]:
    """Return the label columns, checked; none is among the features.

    Examples
    --------
    >>> import pandas as pd
    >>> [one.name for one in label_columns(pd.DataFrame({"pay": [1.0, 2.0], "rent": [3.0, 4.0]}))]
    ['pay', 'rent']
    >>> label_columns([2.5, 4.0])[0].name
    'label'
    """
    refuse_other_order(X, labels, "labels")
    array = Labels.parse(labels).values
    if X is not None and array.ndim and row_count(X) != len(array):
        raise DataError(
            f"X has {row_count(X):,} rows, and there are labels of {len(array):,}: give as many of both"
        )
    if array.ndim == 1 or array.shape[1:] == (1,):
        name = None if type(labels) is np.ndarray else name_of_labels(labels)
        return [LabelColumn(name or UNNAMED, labels, array)]
    if array.ndim != 2 or not 1 < array.shape[1] <= MOST_LABELS:
        raise LabelError(f"labels must be of shape (n,) or (n, k), k at most {MOST_LABELS}, got {array.shape}")
    names = _names(labels, array.shape[1])
    _refuse_names(names, X)
    contiguous = np.ascontiguousarray(array.T)
    return [LabelColumn(name, column, column) for name, column in zip(names, contiguous, strict=True)]


def _names(labels: Any, count: int) -> list[str]:
    """Return the names of several columns of labels; numbered ones for columns without names."""
    numbered = [f"{UNNAMED} {number}" for number in range(1, count + 1)]
    if type(labels) is np.ndarray:
        return numbered
    name_of_labels(labels)
    names = column_names(labels)
    if names is None or names == [*range(count)]:
        return numbered
    return [as_label_name(name) for name in names]


def _refuse_names(names: Sequence[str], X: Any) -> None:
    """Refuse two labels of one name, and a label among the features."""
    for number, name in enumerate(names):
        refuse_lookalike(name, [*names[:number], *names[number + 1 :]], "rename one of the labels")
        if X is not None and is_frame(X):
            refuse_lookalike(name, frame_names(X), "drop it from X, or rename it")
