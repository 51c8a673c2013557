"""Data frames of any kind as Arrow tables: pandas, Polars, Arrow, and whatever else speaks Arrow's interface."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from itertools import compress
from typing import Any

import numpy as np

from labeldp.errors import DataError
from labeldp.release.names import column_names
from labeldp.tables.arrow import arrow


def is_frame(X: Any) -> bool:
    """Return whether something is a table with named columns; arrays, lists and single columns are not.

    Raises
    ------
    DataError
        If it is a table that is only a plan: a LazyFrame, say.

    Examples
    --------
    >>> import numpy as np, pyarrow as pa
    >>> is_frame(pa.table({"a": [1]})), is_frame(np.ones((2, 2))), is_frame(pa.array([1]))
    (True, False, False)
    """
    if hasattr(X, "collect") and not hasattr(X, "shape"):
        raise DataError("X is a table that was not computed yet: collect() it first; for Spark see labeldp.spark")
    speaks = hasattr(X, "__arrow_c_stream__") or hasattr(X, "__arrow_c_array__")
    return speaks and len(getattr(X, "shape", ())) == 2


def row_count(X: Any) -> int:
    """Return the number of rows of a table, an array or a sequence of rows."""
    shape = getattr(X, "shape", None)
    return int(shape[0]) if shape else len(X)


def frame_names(frame: Any) -> list[str]:
    """Return the names of a data frame's columns, in order; other than text they are written out."""
    return [str(name) for name in column_names(frame) or ()]


def select_columns(frame: Any, names: Collection[str]) -> Any:
    """Return some columns of a data frame, in its order; names that it does not have are passed over."""
    columns = frame_names(frame)
    mask = [name in names for name in columns]
    return frame.loc[:, mask] if hasattr(frame, "loc") else frame.select(list(compress(columns, mask)))


def as_table(X: Any, names: Sequence[str] | None = None) -> Any:
    """Return a data frame as an Arrow table, or the columns of an array under ``names``.

    An index of pandas says which row is which: it is not a column.

    Raises
    ------
    DataError
        If two columns have one name, or a column holds values of several types.
    """
    pa = arrow()
    if is_frame(X):
        names = frame_names(X)
        if len(set(names)) < len(names):
            twice = next(name for name in names if names.count(name) > 1)
            raise DataError(f"two columns are called {twice!r}: rename one")
        plain = X.reset_index(drop=True).set_axis(names, axis=1) if hasattr(X, "reset_index") else X
    else:
        plain = np.asarray(X)
        if plain.ndim != 2 or names is None or plain.shape[1] != len(names):
            shape = "rows × columns" if names is None else f"rows of {len(names)} columns"
            raise DataError(f"X must be a data frame, or an array of {shape}, got shape {plain.shape}")
    try:
        if not isinstance(plain, np.ndarray):
            return pa.table(plain).rename_columns(list(names))
        return pa.Table.from_arrays([pa.array(column, from_pandas=True) for column in plain.T], list(names))
    except (pa.ArrowException, TypeError, ValueError) as error:
        raise DataError(
            f"a column of X holds values of several types, or of one that cannot be used{_where(error, names)}: "
            'make it text with astype("string"), or numbers with pandas.to_numeric'
        ) from None


def _where(error: Exception, names: Sequence[str]) -> str:
    """Return which column Arrow says an error is of, if it does."""
    return next((f", {name!r}" for name in names if f"column {name} " in str(error)), "")
