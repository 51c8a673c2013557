"""Rows that a model was not trained on, as far as their public features show it, and its predictions there."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from labeldp._arrays import Array
from labeldp._values import Labels
from labeldp.errors import LabelError, ParameterError
from labeldp.estimators.wrappers import innermost
from labeldp.release.numbers import percent
from labeldp.tabular import refuse_other_order

Digests = NDArray[np.uint64]

_MARGIN = 0.05
"""So many more rows than by chance must look like rows of the training before it counts as told."""


def row_digests(X: Any) -> Digests:
    """Return 64 bits for each row of checked public features, equal for equal rows, dense or sparse.

    Examples
    --------
    >>> bool((row_digests(np.eye(3)) == row_digests(sparse.csr_array(np.eye(3)))).all())
    True
    """
    rows, columns = X.shape
    odd = np.random.default_rng(0).integers(0, 1 << 63, columns, dtype=np.uint64) * np.uint64(2) + np.uint64(1)
    if sparse.issparse(X):
        X = sparse.csr_array(X)
        digests = np.zeros(rows, dtype=np.uint64)
        places = np.repeat(np.arange(rows), np.diff(X.indptr))
        np.add.at(digests, places, _mixed(X.data) * odd[X.indices])
        return digests
    return sum((_mixed(X[:, k]) * odd[k] for k in range(columns)), start=np.zeros(rows, dtype=np.uint64))


def _mixed(values: NDArray[np.float64]) -> Digests:
    """Return numbers' bits, the high ones in the low ones too; 0 for 0, as sparse tables leave it out."""
    bits = np.ascontiguousarray(values + 0.0).view(np.uint64)
    return bits ^ (bits >> np.uint64(32))


def refuse_seen_rows(model: Any, X: Any, why: str) -> None:
    """Refuse rows that a regressor of this library was trained on, looking inside pipelines and searches.

    Fresh rows look like rows of the training as often as rows of the training look like each other. ``why`` says
    what would go wrong, and what to do.
    """
    inner, steps = innermost(model)
    if not hasattr(inner, "remembers"):
        return
    for step in steps:
        X = step.transform(X)
    digests, trained = inner.remembers(X)
    if trained is None:
        return
    _, place, counts = np.unique(trained, return_inverse=True, return_counts=True)
    chance = float(np.mean(counts[place] > 1))
    share = float(np.mean(np.isin(digests, trained)))
    if share > chance + _MARGIN + 4 * math.sqrt(chance * (1 - chance) / digests.size):
        raise ParameterError(
            f"{percent(share)} of these rows have the features of rows that the model was trained on, where "
            f"{percent(chance)} would have them by chance: its errors are too small there, {why}"
        )


def fresh_predictions(model: Any, X: Any, y: Any, why: str) -> tuple[Array, Array]:
    """Return labels of rows that a model was not trained on, and what it predicts for them."""
    labels = Labels.parse(y).values.astype(np.float64)
    if labels.ndim != 1:
        raise LabelError(f"labels must be one column, got shape {labels.shape}")
    refuse_other_order(X, y)
    predicted = _predictions(model, X, labels.size)
    refuse_seen_rows(model, X, why)
    return labels, predicted


def _predictions(model: Any, X: Any, rows: int) -> Array:
    if not hasattr(model, "predict"):
        raise ParameterError(f"model must have predict, got {type(model).__name__}")
    predicted = np.asarray(model.predict(X), dtype=np.float64)
    if predicted.shape != (rows,):
        raise ParameterError(f"the model predicts {predicted.shape} values for {rows:,} rows of private labels")
    if not np.isfinite(predicted).all():
        raise ParameterError("the model's predictions must be finite")
    return predicted
