"""Checks, by public features, that a model was not trained on given rows; and its predictions for them."""

from __future__ import annotations

import math
from contextlib import suppress
from typing import Any

import numpy as np
from sklearn.frozen import FrozenEstimator
from sklearn.pipeline import Pipeline

from labeldp._values import Array, Labels
from labeldp.accounts.numbers import percent
from labeldp.errors import LabelError, ParameterError
from labeldp.tables.frames import refuse_other_order

_MARGIN = 0.05
"""Rows are refused if their share in the training exceeds the share by chance by more than this."""

_DEEPEST = 12
"""The deepest nesting of pipelines and searches."""


def innermost(model: Any) -> tuple[Any, list[Pipeline]]:
    """Return the regressor inside pipelines, searches and frozen models, and the steps that X takes to it."""
    steps: list[Pipeline] = []
    for _ in range(_DEEPEST):
        if isinstance(model, Pipeline):
            steps += [model[:-1]] if len(model) > 1 else []
            model = model[-1]
        elif isinstance(model, FrozenEstimator):
            model = model.estimator
        else:
            model = getattr(model, "best_estimator_", model)
    return model, steps


def final_step(model: Any) -> Any:
    """Return the regressor at the end of pipelines: the very object that a fit of the whole model fits."""
    while isinstance(model, Pipeline):
        model = model[-1]
    return model


def refuse_seen_rows(model: Any, X: Any, why: str) -> None:
    """Refuse rows that a regressor of this library was trained on, also inside pipelines and searches.

    By chance, fresh rows equal rows of the training as often as these equal each other. ``why`` says what would go
    wrong, and what to do.
    """
    inner, steps = innermost(model)
    if not hasattr(inner, "remembers"):
        return
    for step in steps:
        X = step.transform(X)
    digests, trained = inner.remembers(X)
    if trained is None:
        return
    counts = np.unique(trained, return_counts=True)[1]
    chance = 1 - np.count_nonzero(counts == 1) / trained.size
    share = float(np.isin(digests, trained).mean())
    if share > chance + _MARGIN + 4 * math.sqrt(chance * (1 - chance) / digests.size):
        raise ParameterError(
            f"{percent(share)} of these rows have the features of rows that the model was trained on, where "
            f"{percent(chance)} would have them by chance: its errors are too small there, {why}"
        )


def fresh_predictions(model: Any, X: Any, y: Any, why: str) -> tuple[Array, Array]:
    """Return the labels of rows that a model was not trained on, and its predictions for them."""
    labels = Labels.parse(y).values.astype(np.float64)
    if labels.ndim != 1:
        raise LabelError(f"labels must be one column, got shape {labels.shape}")
    refuse_other_order(X, y)
    if not hasattr(model, "predict"):
        raise ParameterError(f"model must have predict, got {type(model).__name__}")
    predicted = finite_predictions(model, X, labels.size)
    refuse_seen_rows(model, X, why)
    return labels, predicted


def finite_predictions(model: Any, X: Any, rows: int) -> Array:
    """Return one finite prediction for each row.

    Predictions in a column would be compared with all labels each, so that one label would move a sum of errors by
    far more than its noise is for.
    """
    predicted = np.asarray(model.predict(X))
    is_number = predicted.shape == (rows,) and predicted.dtype.kind in "fiuO"
    with suppress(TypeError, ValueError, OverflowError):
        if is_number and np.isfinite(numbers := predicted.astype(np.float64)).all():
            return numbers
    raise ParameterError(f"the model must predict a finite number for each of {rows:,} rows of labels")
