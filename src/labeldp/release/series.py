"""Private labels in the shape that the labels came in: a Series with its index and name."""

from __future__ import annotations

from importlib import import_module
from typing import Any

import numpy as np
from numpy.typing import NDArray

from labeldp.errors import ParameterError, Setting
from labeldp.release.names import UNNAMED, name_of_labels


def as_series(values: NDArray[np.float64], like: Any) -> Any:
    """Return values as a Series or data frame of the library that ``like`` is from, with its index and names.

    Of ``like``, its type, its index and its names are used, and no value in it. A Series that is named by the
    number of a column, and the only column of a frame without names, is called ``label``.

    Parameters
    ----------
    values : array, n or n × d
    like : Series, DataFrame, Arrow array or table, or NumPy array
        With n rows.

    Examples
    --------
    >>> import pandas as pd
    >>> as_series(np.array([1.5, 2.5]), pd.Series([0, 0], index=["ann", "bo"], name="pay")).to_dict()
    {'ann': 1.5, 'bo': 2.5}
    """
    if isinstance(like, np.ndarray):
        return values
    roots = {parent.__module__.split(".")[0] for parent in type(like).__mro__}
    root = next((name for name in ("pandas", "polars", "pyarrow") if name in roots), None)
    if root is None:
        raise ParameterError(
            Setting("like"),
            f" must be a Series or data frame of pandas, Polars or Arrow, got {type(like).__name__}",
        )
    names = getattr(like, "column_names", getattr(like, "columns", None))  # None for a single column
    shape = (len(like),) if names is None else (len(like), len(names))
    if shape not in (values.shape, (*values.shape, 1)):
        raise ParameterError(
            Setting("like"), f" has the shape {shape}, and there are private labels of shape {values.shape}"
        )
    name = getattr(like, "name", None)
    if name_of_labels(like) is None:
        name = UNNAMED if name not in (None, "") else name
        names = [UNNAMED] if names is not None and len(names) == 1 else names
    library, columns = import_module(root), values.reshape(shape)
    if root == "pandas":
        how = {"name": name} if names is None else {"columns": names}
        return (library.Series if names is None else library.DataFrame)(columns, index=like.index, **how)
    if root == "polars":
        return library.Series(name, columns) if names is None else library.DataFrame(columns, schema=list(names))
    if names is None:
        return library.array(columns)
    return library.Table.from_arrays([library.array(column) for column in columns.T.copy()], names=list(names))
