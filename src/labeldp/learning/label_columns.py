"""The label columns of a release, and their parts of ε, by public facts alone."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from typing import Any

import numpy as np

from labeldp._values import Epsilon, Labels, Numbers, as_fraction, float_below, parse_positive
from labeldp.errors import DataError, LabelError, ParameterError, Setting
from labeldp.release.names import UNNAMED, as_label_name, column_names, name_of_labels, refuse_lookalike
from labeldp.tables.frames import frame_names, is_frame, refuse_other_order, row_count

MOST_LABELS = 16
"""The most label columns of one release."""

DIGITS = 12
"""Parts of ε but the last have this many decimal digits, so that all parts add up to ε exactly."""


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
    refuse_other_order(X, labels)
    contiguous = np.ascontiguousarray(array.T)
    return [LabelColumn(name, column, column) for name, column in zip(names, contiguous, strict=True)]


def _names(labels: Any, count: int) -> list[str]:
    """Return the names of several columns of labels."""
    if type(labels) is np.ndarray:
        return [f"{UNNAMED} {number}" for number in range(1, count + 1)]
    name_of_labels(labels)
    names = column_names(labels)
    if names is None or names == [*range(count)]:
        return [f"{UNNAMED} {number}" for number in range(1, count + 1)]
    return [as_label_name(name) for name in names]


def _refuse_names(names: Sequence[str], X: Any) -> None:
    """Refuse two labels of one name, and a label among the features."""
    for number, name in enumerate(names):
        refuse_lookalike(name, [*names[:number], *names[number + 1 :]], "rename one of the labels")
        if X is not None and is_frame(X):
            refuse_lookalike(name, frame_names(X), "drop it from X, or rename it")


def one_each(value: Any, count: int, name: str) -> list[Any]:
    """Return the value of a parameter for each label: one for all, or those of a list.

    Examples
    --------
    >>> one_each((0, 5), 2, "bounds"), one_each([(0, 5), (0, 1)], 2, "bounds")
    ([(0, 5), (0, 5)], [(0, 5), (0, 1)])
    """
    is_list = isinstance(value, list | tuple | np.ndarray)
    if name == "bounds":
        is_list = is_list and len(value) > 0 and all(isinstance(item, list | tuple | np.ndarray) for item in value)
    if not is_list:
        return [value] * count
    if len(value) != count:
        raise ParameterError(
            Setting(name), f" must be one for all {count} labels, or one for each, got {len(value)}"
        )
    return list(value)


def split_epsilon(epsilon: Any, shares: Sequence[float] | None, count: int) -> list[float]:
    """Return the ε of each label; they add up to ε exactly, as decimals.

    Examples
    --------
    >>> split_epsilon(1.0, None, 3)
    [0.333333333333, 0.333333333333, 0.333333333334]
    >>> split_epsilon(1.0, [2, 1, 1], 3)
    [0.5, 0.25, 0.25]
    """
    if shares is not None and len(shares) != count:
        raise ParameterError(Setting("shares"), f" must be one for each of {count} labels, got {len(shares)}")
    if count == 1:
        return [epsilon]
    weights = [
        as_fraction(parse_positive(share, "shares")) for share in ([1] * count if shares is None else shares)
    ]
    total = Epsilon(epsilon).exact
    parts = [_rounded_down(total * weight / sum(weights)) for weight in weights[:-1]]
    return [*map(float, parts), float_below(total - sum(parts))]


def _rounded_down(part: Fraction) -> Fraction:
    """Return a part of ε with `DIGITS` decimals."""
    return Fraction(part * 10**DIGITS // 1, 10**DIGITS)
