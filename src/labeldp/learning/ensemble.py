"""The fitted model of a regressor: a linear model, with boosted trees beside it if they help.

`describe_weakness` finds weak models by their predictions for public rows, at no cost in ε.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

import numpy as np
from sklearn.ensemble import HistGradientBoostingRegressor

from labeldp._values import Array, Index, Interval
from labeldp.accounts.numbers import number, percent
from labeldp.learning.features import FeatureTable
from labeldp.learning.fit_plan import LabelSummary
from labeldp.learning.measurements import Measurements
from labeldp.learning.model_average import Posterior
from labeldp.learning.threads import limit_libraries

_AT_BOUND = 0.01
"""A prediction is at a bound if its distance is less than this, in widths of the bounds, …"""

_AT_BOUND_DEVIATIONS = 0.5
"""… and than this, in standard deviations of residuals."""

_MAX_SHARE_AT_BOUND = 0.95
"""A model with a larger share of predictions at a bound is weak."""

_OTHER_UNIT = 1e-4
"""Predictions that are this close to a bound, in widths of the bounds, are at it: labels are in another unit."""

_FLAT = 0.05
"""A model is constant if its predictions have a standard deviation below this fraction of that of residuals."""

WEAKNESS_ROWS = 2_000
"""The largest number of rows, evenly spaced, whose predictions are used to find a weak model."""


@dataclass(frozen=True, slots=True)
class Ensemble:
    """A fitted model: linear + weight · (trees − linear).

    Attributes
    ----------
    linear : Posterior
    trees : HistGradientBoostingRegressor or None
    weight : float
        The weight of the trees, from 0 to 1.
    residual_variance : float
        Estimated variance of a label around its best prediction.
    error : float
        Estimated mean squared error of this model's predictions of labels.
    label_summary : LabelSummary
        The range of predictions.
    """

    linear: Posterior
    trees: HistGradientBoostingRegressor | None
    weight: float
    residual_variance: float
    error: float
    label_summary: LabelSummary

    def with_linear(self, plain: Ensemble) -> Ensemble:
        """Return the trees of this model, with their weight, beside another linear model."""
        lowest = plain.error if self.trees is None else plain.error / 2
        error = float(np.clip(self.error, lowest, plain.error))
        return replace(
            plain, trees=self.trees, weight=self.weight, residual_variance=self.residual_variance, error=error
        )

    @limit_libraries()
    def predict(self, table: FeatureTable, rows: Index) -> Array:
        """Return predictions inside the range for some rows of a table."""
        linear = self.label_summary.clip(table.predict(self.linear, rows))
        if self.trees is None:
            return linear
        trees = self.label_summary.clip(self.trees.predict(table.codes(rows)))
        return linear + self.weight * (trees - linear)


@dataclass(frozen=True, slots=True)
class EarlierFit:
    """A model that further rows update, and its measurements."""

    ensemble: Ensemble
    measurements: Measurements


def describe_weakness(units: Array, spread: float, bounds: Interval) -> str | None:
    """Return a sentence on a weakness of a model, judged by its predictions; None if there is none.

    Parameters
    ----------
    units : array
        Predictions in unit scale.
    spread : float
        The private estimate of the variance of labels around them, in unit scale; 0 if there is none.
    bounds : (lo, hi)

    Examples
    --------
    >>> print(describe_weakness(np.full(100, 0.999), 0.01, (0.0, 5.0)))
    100 % of the fitted values lie at the bound 5: check that labels and bounds are in the same unit, or ...
    """
    max_distance = _AT_BOUND
    if spread:  # in wide bounds all is near the bounds
        max_distance = min(max_distance, max(_OTHER_UNIT, _AT_BOUND_DEVIATIONS * math.sqrt(spread)))
    for bound, distance in zip(bounds, (units, 1 - units), strict=True):
        share = float(np.mean(distance < max_distance))
        if share > _MAX_SHARE_AT_BOUND:
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
