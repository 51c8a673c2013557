"""Private labels of rows, and the model that learns from them: a linear model with boosted trees beside it."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from sklearn.ensemble import HistGradientBoostingRegressor

from labeldp._values import Array, Index
from labeldp.learning.bayes import Posterior
from labeldp.learning.bayes_solvers import Observations
from labeldp.learning.feature_table import FeatureTable
from labeldp.learning.label_units import LabelSummary
from labeldp.learning.threads import idle_cores, limit_threads


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
