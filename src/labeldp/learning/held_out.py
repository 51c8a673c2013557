"""Rows that a model was not trained on, by public group: their labels, predictions, and the charge for both.

Scores and intervals measure labels of such rows, by `HeldOutRows`. That a model was not trained on them is checked
by public features.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from fractions import Fraction
from typing import Any, TypeVar

import numpy as np
from numpy.typing import ArrayLike
from sklearn.frozen import FrozenEstimator
from sklearn.pipeline import Pipeline

from labeldp._values import Array, Index, Interval, Labels, refuse_other_order
from labeldp.accounts.budget import Charge
from labeldp.accounts.ledger import Ledger, as_ledger, ledger_to_charge
from labeldp.accounts.numbers import percent
from labeldp.accounts.scope import Scope
from labeldp.accounts.terms import Terms
from labeldp.errors import LabelError, ParameterError, Setting
from labeldp.exact.word_sources import WordSource
from labeldp.release.group_means import parse_groups
from labeldp.release.label_access import LabelAccess

_MARGIN = 0.05
"""Rows are refused if their share in the training exceeds the share by chance by more than this."""

_DEEPEST = 12
"""The deepest nesting of pipelines and searches."""


Result = TypeVar("Result")


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


def fit_terms(model: Any) -> Terms | None:
    """Return the terms of a fit by this library; None if the model is another."""
    terms = getattr(innermost(model)[0], "terms_", None)
    return terms if isinstance(terms, Terms) else None


@dataclass(frozen=True, slots=True, eq=False)
class HeldOutRows:
    """Rows that a model was not trained on.

    Attributes
    ----------
    labels : array
        Private, and clipped by nobody yet.
    predicted : array
        The predictions of the model.
    groups : dict of arrays
        The rows of each public group, by its name.
    scope : Scope
        As a ledger admitted it.
    ledger : Ledger or None
        The ledger to charge.
    epsilon : Fraction
        The cost of a label.
    y : array-like
        The labels as they were given.
    """

    labels: Array = field(repr=False)
    predicted: Array
    groups: Mapping[Any, Index]
    scope: Scope
    ledger: Ledger | None
    epsilon: Fraction
    y: Any = field(repr=False)

    @classmethod
    def parse(
        cls,
        model: Any,
        X: Any,
        y: Any,
        *,
        bounds: Interval,
        by: ArrayLike | None,
        scope: Scope,
        ledger: Ledger | None,
        epsilon: Fraction,
        harm: str,
    ) -> HeldOutRows:
        """Return the rows that a ledger admits, after every check that needs no label's value.

        ``harm`` states the damage by rows that the model was trained on, and the remedy.
        """
        refuse_narrower_bounds(model, bounds)
        labels, predicted = fresh_predictions(model, X, y, harm)
        refuse_other_order(X, by, "by")
        names, numbers = parse_groups(by, labels.size)
        ledger = as_ledger(ledger)
        scope = (ledger or Ledger()).admit(scope, labels.size, epsilon)
        numbers = scope.select(numbers)
        groups = {names[number]: np.flatnonzero(numbers == number) for number in np.unique(numbers).tolist()}
        return cls(scope.select(labels), scope.select(predicted), groups, scope, ledger, epsilon, y)

    @np.errstate(all="ignore")  # strict settings of a user must not lose measurements after their charge
    def measure(
        self, charge: Charge, source: WordSource, measure: Callable[[Any, Array, LabelAccess], Result]
    ) -> dict[Any, Result]:
        """Charge the ledger once, and return the measurement of each group: a label is in one of them.

        ``measure`` takes the name of a group, the predictions for its rows, and the access to their labels.
        """
        ledger, charges = ledger_to_charge(self.ledger, self.y), [charge]
        accesses = {}
        for name, rows in self.groups.items():
            accesses[name] = LabelAccess(self.labels[rows], source, charge.purpose)
            accesses[name].charge(ledger, charges, self.scope, epsilon=self.epsilon)
            charges = []
        return {name: measure(name, self.predicted[rows], accesses[name]) for name, rows in self.groups.items()}


def refuse_narrower_bounds(model: Any, bounds: Interval) -> None:
    """Refuse bounds inside those of a model of this library: labels would be clipped that it can predict."""
    terms = fit_terms(model)
    if terms is None:
        return
    low, high = learnt = tuple(terms.bounds[0])
    if bounds[0] > low or bounds[1] < high:
        raise ParameterError(
            Setting("bounds", tuple(bounds)),
            " are narrower than those of the model: labels beyond them would count as the nearest bound; give ",
            Setting("bounds", learnt),
        )


def refuse_seen_rows(model: Any, X: Any, harm: str) -> None:
    """Refuse rows that a regressor of this library was trained on, also inside pipelines and searches.

    By chance, fresh rows equal rows of the training as often as these equal each other.
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
            f"{percent(chance)} would have them by chance: its errors are too small there, {harm}"
        )


def fresh_predictions(model: Any, X: Any, y: Any, harm: str) -> tuple[Array, Array]:
    """Return the labels of rows that a model was not trained on, and its predictions for them."""
    labels = Labels.parse(y).values.astype(np.float64)
    if labels.ndim != 1:
        raise LabelError(f"labels must be one column, got shape {labels.shape}")
    refuse_other_order(X, y)
    if not hasattr(model, "predict"):
        raise ParameterError(f"model must have predict, got {type(model).__name__}")
    predicted = finite_predictions(model, X, labels.size)
    refuse_seen_rows(model, X, harm)
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
