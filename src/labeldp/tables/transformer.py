"""The encoder of tables as a step of a scikit-learn pipeline."""

from __future__ import annotations

from collections.abc import Collection
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator, TransformerMixin
from sklearn.utils.validation import check_is_fitted, validate_data

from labeldp._values import Array
from labeldp.errors import ParameterError
from labeldp.tables.encoder import TableEncoder
from labeldp.tables.frames import as_table, frame_names, is_frame


class TableTransformer(TransformerMixin, BaseEstimator):  # type: ignore[misc]
    """Public columns of a data frame as numbers: categories, text, booleans, dates and gaps.

    It looks at features alone, never at a label, so it costs nothing and may stand before a private regressor.
    Both regressors do the same by themselves if they are fitted to a data frame.

    Parameters
    ----------
    categories : collection of str
        Columns of numbers that name things, such as codes of regions. A categorical column of pandas or Polars
        needs no mention.

    Attributes
    ----------
    encoder_ : TableEncoder
        Its ``left_out`` says which columns cannot serve as features, and why.
    feature_names_in_ : array of str
        Only if it was fitted to a data frame.
    n_features_in_ : int
        How many columns the fit got.

    Examples
    --------
    >>> import pandas as pd
    >>> from labeldp.tables import TableTransformer
    >>> frame = pd.DataFrame({"size": [1.0, 2.0, None], "town": ["York", "Bath", "York"]})
    >>> encode = TableTransformer().fit(frame)
    >>> encode.get_feature_names_out().tolist()
    ['size', 'size is missing', 'town=York', 'town=Bath']
    >>> encode.transform(pd.DataFrame({"town": ["Ely"], "size": [3.0]}))      # in any order; Ely is new
    array([[3., 0., 0., 0.]])
    """

    encoder_: TableEncoder

    def __init__(self, *, categories: Collection[str] = ()) -> None:
        self.categories = categories

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.allow_nan = tags.input_tags.string = tags.input_tags.categorical = True
        return tags

    def fit(self, X: Any, y: Any = None) -> TableTransformer:
        """Learn how columns become numbers, from public features alone.

        Parameters
        ----------
        X : data frame of pandas, Polars or Arrow, or array
            Public features.
        y : ignored
            No label has a part in it.
        """
        table = self._table(X, reset=True)
        self.encoder_ = TableEncoder.fit(table, table.column_names, categories=self.categories)
        return self

    def transform(self, X: Any) -> Array:
        """Return the numbers of rows.

        Parameters
        ----------
        X : data frame of pandas, Polars or Arrow, or array
            The columns of the fit, in any order, among others.

        Returns
        -------
        array, rows × numbers
        """
        check_is_fitted(self)
        return self.encoder_.transform(self._table(X, reset=False))

    def get_feature_names_out(self, input_features: Any = None) -> NDArray[np.object_]:
        """Return a name for each number of a row.

        Parameters
        ----------
        input_features : sequence of str, optional
            Names for the columns of an array.
        """
        check_is_fitted(self)
        names = self._names()
        given = names if input_features is None else [str(name) for name in input_features]
        if len(given) != len(names):
            raise ParameterError(f"input_features should have length equal to {len(names)}, got {len(given)}")
        if hasattr(self, "feature_names_in_") and given != names:
            raise ParameterError("input_features is not equal to feature_names_in_")
        renamed = dict(zip(names, given, strict=True))
        listed = [renamed[column.name] + suffix for column in self.encoder_.columns for suffix in column.suffixes]
        return np.array(listed, dtype=object)

    def _table(self, X: Any, *, reset: bool) -> Any:
        if not is_frame(X):
            checked = validate_data(self, X, reset=reset, dtype=None, ensure_all_finite="allow-nan")
            return as_table(checked, self._names())
        table = as_table(X)
        if reset:
            self.feature_names_in_ = np.array(frame_names(X), dtype=object)
            self.n_features_in_ = len(self.feature_names_in_)
        return table

    def _names(self) -> list[str]:
        """Return the names of the columns; those of an array are x0, x1 and so on."""
        return list(getattr(self, "feature_names_in_", [f"x{place}" for place in range(self.n_features_in_)]))
