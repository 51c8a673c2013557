"""What a regressor takes: scikit-learn's interface, and the checks of X and y before any label is used."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse
from sklearn.base import BaseEstimator, RegressorMixin
from sklearn.utils import column_or_1d
from sklearn.utils.validation import check_consistent_length, check_is_fitted, validate_data

from labeldp._values import Array, Labels
from labeldp.errors import LabelError, ParameterError, warn
from labeldp.learning.features import PIECE
from labeldp.release.names import name_of_labels
from labeldp.tables.encoder import TableEncoder
from labeldp.tables.frames import as_table, frame_names, is_frame, refuse_other_order
from labeldp.tables.memory import refuse_too_wide


class TableRegressor(RegressorMixin, BaseEstimator):  # type: ignore[misc]
    """A regressor of scikit-learn that takes arrays, sparse tables and data frames.

    Attributes
    ----------
    encoder_ : TableEncoder or None
        How the columns of a data frame became numbers.
    label_name_ : str or None
        The name of y, if it has one.
    """

    encoder_: TableEncoder | None
    label_name_: str | None
    _rows_seen: NDArray[np.uint64]

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        tags.non_deterministic = True  # noise is fresh for every fit
        tags.regressor_tags.poor_score = True  # privacy has its price on tiny data
        return tags

    @property
    def transform(self) -> Any:
        """A parameter that `get_params` has: scikit-learn takes whatever has this attribute for a transformer."""
        raise AttributeError("transform is a parameter, see get_params()")

    @transform.setter
    def transform(self, name: str | None) -> None:
        self.__dict__["transform"] = name

    @classmethod
    def _get_param_names(cls) -> list[str]:
        return [name for name in super()._get_param_names() if name != "transform"]

    def get_params(self, deep: bool = True) -> dict[str, Any]:
        """Return the parameters by name.

        Parameters
        ----------
        deep : bool
            Whether to return those of an estimator inside, too.
        """
        return {**super().get_params(deep), "transform": self.__dict__["transform"]}

    def _check_inputs(self, X: Any, y: Any) -> tuple[Any, Array]:
        """Return X, dense or sparse, and y, after every check that needs no label's value."""
        refuse_other_order(X, y)
        self.encoder_ = None
        self.label_name_ = name_of_labels(y, X)
        if is_frame(X):
            X = self._fit_encoder(X)
        else:
            refuse_single_column(X)
            X = validate_data(self, X, dtype=np.float64, accept_sparse="csr", ensure_min_samples=1)
        labels = single_column(Labels.parse(y).values)
        check_consistent_length(X, labels)
        self._rows_seen = row_digests(X)
        return X, labels

    def _fit_encoder(self, X: Any) -> Array:
        """Learn how the columns of a data frame become numbers, and return the numbers."""
        names = frame_names(X)
        table = as_table(X)
        self.encoder_ = TableEncoder.fit(table, names)
        refuse_too_wide(table.num_rows, self.encoder_.width)
        self.feature_names_in_ = np.array(names, dtype=object)
        self.n_features_in_ = len(names)
        if self.encoder_.left_out:
            listed = "; ".join(f"{name!r}: {why}" for name, why in self.encoder_.left_out)
            warn(f"columns of no use were left out ({listed})")
        return self.encoder_.transform(table)

    def _inputs(self, X: Any) -> Any:
        """Return X as numbers, after the checks of a prediction."""
        check_is_fitted(self)
        encoder: TableEncoder | None = getattr(self, "encoder_", None)
        if encoder is None:
            refuse_single_column(X)
            return validate_data(self, X, dtype=np.float64, accept_sparse="csr", reset=False)
        if is_frame(X):
            return encoder.transform(as_table(X))
        warn(
            f"X does not have valid feature names, but {type(self).__name__} was fitted with feature names: its "
            "columns are taken in the order of the fit"
        )
        return encoder.transform(as_table(X, list(self.feature_names_in_)))

    def remembers(self, X: Any) -> tuple[NDArray[np.uint64], NDArray[np.uint64] | None]:
        """Return digests of these rows' features and of those of the fit; None where these were not kept."""
        return row_digests(self._inputs(X)), getattr(self, "_rows_seen", None)


def refuse_arguments(y: Any, unknown: dict[str, Any]) -> None:
    """Refuse a fit without labels, and arguments that it does not know."""
    if unknown:
        raise ParameterError(
            f"fit does not take {', '.join(unknown)}: weights would change how much one label can move "
            "the result, and with it the guarantee; leave them out"
        )
    if y is None:
        raise ParameterError("this regressor requires y to be passed, but the target y is None")


def refuse_single_column(X: Any) -> None:
    """Refuse what is no table by its shape: scikit-learn would print it, and it may be y in the place of X."""
    dimensions = X.ndim if hasattr(X, "ndim") else np.asarray(X).ndim
    if dimensions < 2:
        raise ParameterError(
            f"Expected 2D array, got {dimensions}D array instead: X is the table of features, rows × columns, and "
            "comes before y. Reshape your data with reshape(-1, 1) if it is a single feature, or with "
            "reshape(1, -1) if it is a single row"
        )


def single_column(labels: NDArray[Any]) -> Array:
    """Return labels, one for each row, or refuse another shape."""
    if labels.ndim != 1 and (labels.ndim != 2 or labels.shape[1] != 1):
        raise LabelError(
            f"y must be one column of labels, got the shape {labels.shape}: fit a model for each column, with a "
            "part of epsilon each, as costs add up; or privatize all columns at once, and fit any learner to that"
        )
    column: Array = column_or_1d(labels, warn=True).astype(np.float64)
    return column


def row_digests(X: Any) -> NDArray[np.uint64]:
    """Return 64 bits for each row of checked public features, equal for equal rows, dense or sparse."""
    odd = np.random.default_rng(0).integers(0, 1 << 63, X.shape[1], dtype=np.uint64) * np.uint64(2) + np.uint64(1)
    return np.concatenate([_mixed(X[start : start + PIECE]) @ odd for start in range(0, X.shape[0], PIECE)])


def _mixed(X: Any) -> Any:
    """Return numbers' bits, the high ones in the low ones too; 0 for 0, as sparse tables leave it out."""
    if sparse.issparse(X):
        return sparse.csr_array((_mixed(X.data), X.indices, X.indptr), shape=X.shape)
    bits = np.ascontiguousarray(X + 0.0).view(np.uint64)
    return bits ^ (bits >> np.uint64(32))
