"""Private labels of rows, the model that learns from them, and whether it is weak.

A model is a linear one with boosted trees beside it. Its own predictions for public rows show weakness at no cost.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from sklearn.ensemble import HistGradientBoostingRegressor

from labeldp._values import Array, Index
from labeldp.accounts.numbers import number, percent
from labeldp.learning.bayes import Posterior
from labeldp.learning.bayes_solvers import Observations
from labeldp.learning.feature_table import FeatureTable
from labeldp.learning.label_units import LabelSummary, Pair
from labeldp.learning.threads import idle_cores, limit_threads

_AT_BOUND, _AT_BOUND_SPREAD, _NEARLY_ALL = 0.01, 0.5, 0.95
"""A prediction lies at a bound within this part of the bounds, and of the spread; the share that is too much."""

_FLAT = 0.05
"""A model counts as constant if its predictions vary by less than this part of the spread around them."""

_MOST_ROWS = 2_000
"""Rows at most that are looked at for it."""


@dataclass(frozen=True, slots=True)
class PrivateRows:
    """Private labels of some rows that share a noise level and a round."""

    rows: Index
    labels: Array
    noise: float
    round: int

    def where(self, keep: NDArray[np.bool_]) -> PrivateRows:
        """Return some of these rows."""
        return PrivateRows(self.rows[keep], self.labels[keep], self.noise, self.round)

    def observations(self, table: FeatureTable, middle: float) -> Observations:
        """Return their statistics for a linear model, with labels measured from the middle of their range."""
        return table.observations(self.rows, self.labels - middle, self.noise)


@dataclass(frozen=True, slots=True)
class Ensemble:
    """A fitted model: linear + weight · (trees − linear).

    Attributes
    ----------
    linear : Posterior
    trees : HistGradientBoostingRegressor or None
    weight : float
        How much of the trees is blended in.
    rest : float
        Estimated variance of a label around its best prediction.
    error : float
        Estimated mean squared error of this model's predictions of labels.
    knowledge : LabelSummary
        The range of predictions.
    """

    linear: Posterior
    trees: HistGradientBoostingRegressor | None
    weight: float
    rest: float
    error: float
    knowledge: LabelSummary

    def predict(self, table: FeatureTable, rows: Index) -> Array:
        """Return predictions inside the range for some rows of a table."""
        linear = self.knowledge.clip(table.predict(self.linear, rows))
        if self.trees is None:
            return linear
        with limit_threads(idle_cores()):
            trees = self.knowledge.clip(self.trees.predict(table.codes(rows)))
        return np.asarray(linear + self.weight * (trees - linear))


def sample_rows(rows: int) -> Index:
    """Return some rows, evenly spread, that stand for all of a table."""
    return np.unique(np.linspace(0, rows - 1, min(rows, _MOST_ROWS)).astype(np.int64))


def describe_weakness(units: Array, spread: float, bounds: Pair) -> str | None:
    """Return what is wrong with a model by its own predictions; None if nothing is.

    Parameters
    ----------
    units : array
        Predictions in units of the bounds.
    spread : float
        The private estimate of labels' variance around them, in the same units; 0 if there is none.
    bounds : (lo, hi)

    Examples
    --------
    >>> print(describe_weakness(np.full(100, 0.999), 0.01, (0.0, 5.0)))
    100 % of the fitted values lie at the bound 5: check that labels and bounds are in the same unit, or ...
    """
    near = _AT_BOUND
    if spread:  # in wide bounds all is near the bounds
        near = min(near, _AT_BOUND_SPREAD * math.sqrt(spread))
    for bound, distance in zip(bounds, (units, 1 - units), strict=True):
        share = float(np.mean(distance < near))
        if share > _NEARLY_ALL:
            return (
                f"{percent(share)} of the fitted values lie at the bound {number(bound)}: check that labels and "
                "bounds are in the same unit, or give bounds closer to the labels"
            )
    if np.std(units) < _FLAT * math.sqrt(spread):
        return (
            "the model predicts nearly the same for all rows, the private mean: rows and epsilon do not show what "
            "features explain; give more rows, a larger epsilon, tighter bounds or other features"
        )
    return None
