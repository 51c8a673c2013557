"""How trees grow: how many, how large and how fast, by how noisy the labels are."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from sklearn.ensemble import HistGradientBoostingRegressor

from labeldp._arrays import Array
from labeldp.estimators.rank_waves import Codes
from labeldp.estimators.threads import idle_cores, limit_threads

_CLEAR = 1.5
"""Labels are clear if their noise is less than so many times their variance: then large trees tell more. Else
trees of a third of the size, at larger steps and on every third code, are no worse, in 40 % of the time."""


@dataclass(frozen=True, slots=True)
class Growth:
    """Parameters of boosted trees.

    Attributes
    ----------
    leaf : int
        The fewest rows of a leaf.
    leaves : int
        The most leaves of a tree.
    rate : float
        How much of each tree is added.
    stages : tuple of int
        Numbers of trees to choose from.
    coarse : int
        How many neighbouring codes are seen as one.
    """

    leaf: int
    leaves: int
    rate: float
    stages: tuple[int, ...]
    coarse: int

    @classmethod
    def for_noise(cls, noise: float, rows: int) -> Growth:
        """Return what suits labels with so much noise, in variances of labels, of so many rows."""
        leaf = int(np.clip(50 * noise, 20, max(20, rows / 10)))
        if noise < _CLEAR:
            return cls(leaf, 31, 0.06, (30, 60, 120, 250), 1)
        return cls(leaf, 10, 0.1, (20, 40, 80, 160), 3)

    def grow(
        self, stages: int, seed: int, codes: Codes, labels: Array, weight: Array
    ) -> HistGradientBoostingRegressor:
        """Return trees fitted to labels of rows with so many codes; they predict from codes as they are."""
        trees = HistGradientBoostingRegressor(
            max_iter=stages,
            learning_rate=self.rate,
            min_samples_leaf=self.leaf,
            max_leaf_nodes=self.leaves,
            max_bins=255 // self.coarse,
            l2_regularization=1.0,
            max_features=0.6,
            early_stopping=False,
            random_state=seed,
        )
        middle = self.coarse // 2  # cuts between middles of what is seen as one are cuts between codes
        with limit_threads(idle_cores()):
            return trees.fit(codes // self.coarse * self.coarse + middle, labels, weight)
