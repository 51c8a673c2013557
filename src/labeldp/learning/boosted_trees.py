"""Boosted trees beside the linear model, where held-out private labels show that they help.

Trees see the columns only. They are blended in by their slope on held-out private labels, less one standard error.
Held-out rows come from the last round only: earlier rows served to centre later intervals, and must not judge
them. Their labels are in the sums of the linear model, which makes that look better than it is, never the trees.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np
from sklearn.ensemble import HistGradientBoostingRegressor

from labeldp._values import Array, Index
from labeldp.learning.bayes import unknown_variance
from labeldp.learning.bayes_solvers import Observations
from labeldp.learning.ensemble import Ensemble, PrivateRows
from labeldp.learning.feature_maps import Codes
from labeldp.learning.feature_table import FeatureTable
from labeldp.learning.threads import idle_cores, limit_threads

_VALIDATION_ROWS, GROWN = 60_000, 400_000
"""Rows at most on which trees are compared, and from which they grow in the end."""

_LEAST_SHARE = 0.02
"""Trees with a smaller weight beside the linear model are not worth their place in it."""

_SURE, _MOST_CHANGE = 0.3, 20
"""An error measured on held-out rows counts if its standard error is less than this part of what was expected; it
may be so many times smaller than that."""

_FIT_ERROR = 0.1
"""The part of the error that is that of the fit itself, and not of labels around the best prediction."""

_CLEAR = 1.5
"""Labels are clear if their noise is less than so many times their variance: then large trees learn more. Else
trees of a third of the size, at larger steps and on every third code, are no worse, in 40 % of the time."""

_LEAF_VARIANCE, _LEAST_LEAF, _MOST_LEAF = 50, 20, 0.1
"""A leaf averages noise down to 1/50 of the variance of labels; it has 20 rows, and a tenth of all at most."""


class Effort(NamedTuple):
    """How much work trees are worth.

    Attributes
    ----------
    parts : int
        Into how many parts the last round is cut.
    held_out : int
        How many of them are held out, one after the other.
    stages : int
        How many numbers of trees to choose from.
    rows : int
        From how many rows trees grow at most.
    """

    parts: int
    held_out: int
    stages: int
    rows: int


BETWEEN_ROUNDS = Effort(parts=3, held_out=1, stages=3, rows=40_000)
AT_LAST = Effort(parts=2, held_out=2, stages=4, rows=GROWN)


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
        leaf = int(np.clip(_LEAF_VARIANCE * noise, _LEAST_LEAF, max(_LEAST_LEAF, _MOST_LEAF * rows)))
        if noise < _CLEAR:
            return cls(leaf, 31, 0.06, (30, 60, 120, 250), 1)
        return cls(leaf, 10, 0.1, (20, 40, 80, 160), 3)

    def grow(
        self, stages: int, seed: int, codes: Codes, labels: Array, weight: Array
    ) -> HistGradientBoostingRegressor:
        """Return trees fitted to labels of rows with these codes; they predict from codes as they are."""
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


def add_trees(
    table: FeatureTable,
    parts: list[PrivateRows],
    plain: Ensemble,
    sums: list[Observations],
    growth: Growth,
    effort: Effort,
) -> Ensemble:
    """Return the ensemble with trees beside its linear model, or as it is if they do not help.

    Parameters
    ----------
    table : FeatureTable
    parts : list of PrivateRows
        Round by round.
    plain : Ensemble
        The linear model of all of them.
    sums : list of Observations
        What else it learnt from.
    growth : Growth
    effort : Effort
    """
    rng = np.random.default_rng(0)
    some = _thin(parts, _VALIDATION_ROWS, rng)
    held_out = _predict_held_out(table, some, plain, sums, growth, effort, rng)
    stages, share = held_out.best_trees()
    if stages is None:
        return plain
    rest, error = plain.rest, plain.error
    measured, deviation = held_out.error(stages, share)
    if deviation < _SURE * error:
        error = float(np.clip(measured + deviation, error / _MOST_CHANGE, 2 * error))
        rest = min(rest, max((1 - _FIT_ERROR) * error, rest / _MOST_CHANGE))
    rows, labels, noise = _join(_thin(parts, effort.rows, rng))
    weight = 1 / (noise + rest)
    trees = growth.grow(stages, 0, table.codes(rows), labels, weight / weight.mean())
    return replace(plain, trees=trees, weight=share, rest=rest, error=error)


@dataclass(frozen=True, slots=True)
class _HeldOut:
    """Private labels that were held out, and predictions of them.

    Attributes
    ----------
    labels, noise, weight : arrays
    linear : array
        What the linear model predicts.
    trees : dict
        What trees predict, by the number of them.
    """

    labels: Array
    noise: Array
    weight: Array
    linear: Array
    trees: dict[int, Array]

    def best_trees(self) -> tuple[int | None, float]:
        """Return the number of trees that help most, and how much of them to take; None if none do."""
        best, most, best_share = None, 0.0, 0.0
        gap = self.labels - self.linear
        for stages, prediction in self.trees.items():
            step = prediction - self.linear
            size = float(self.weight @ step**2) + 1e-30
            slope = float(self.weight @ (gap * step)) / size
            deviation = float(np.sqrt(self.weight**2 @ (gap**2 * step**2))) / size
            share = float(np.clip(slope - deviation, 0.0, 1.0))
            gain = (2 * share * slope - share**2) * size
            if gain > most and share > _LEAST_SHARE:
                best, most, best_share = stages, gain, share
        return best, best_share

    def error(self, stages: int, share: float) -> tuple[float, float]:
        """Return the ensemble's mean squared error on true labels, and its standard error."""
        blended = self.linear + share * (self.trees[stages] - self.linear)
        excess = (self.labels - blended) ** 2 - self.noise
        mean = float(self.weight @ excess / self.weight.sum())
        return mean, float(np.sqrt(self.weight**2 @ (excess - mean) ** 2) / self.weight.sum())


def _predict_held_out(
    table: FeatureTable,
    parts: list[PrivateRows],
    plain: Ensemble,
    sums: list[Observations],
    growth: Growth,
    effort: Effort,
    rng: np.random.Generator,
) -> _HeldOut:
    """Return predictions of a part of the last round's rows by models of all others, and of the next part."""
    knowledge = plain.knowledge
    rows, labels, noise = _join(parts)
    weight = 1 / (noise + plain.rest)
    weight /= weight.mean()
    codes = table.codes(rows)
    last = np.arange(rows.size - parts[-1].rows.size, rows.size)
    fold = np.full(rows.size, -1)
    fold[last] = rng.permutation(last.size) % effort.parts
    *earlier, whole = (part.observations(table, knowledge.middle) for part in parts if part.rows.size)
    first = parts[-1].where(fold[last] == 0).observations(table, knowledge.middle)
    choices = plain.linear.likely or unknown_variance(knowledge.width, few=True)
    linear = np.zeros(rows.size)
    stage_choices = growth.stages[: effort.stages]
    staged = {stages: np.zeros(rows.size) for stages in stage_choices}
    for k, kept in enumerate((whole.without(first), first)[: effort.held_out]):
        train, test = fold != k, fold == k
        model = table.fit_linear([*sums, *earlier, kept], knowledge.limits, choices)
        linear[test] = knowledge.clip(table.predict(model, rows[test]))
        trees = growth.grow(stage_choices[-1], k, codes[train], labels[train], weight[train])
        for stages, prediction in enumerate(trees.staged_predict(codes[test]), start=1):
            if stages in staged:
                staged[stages][test] = knowledge.clip(prediction)
    held = (fold >= 0) & (fold < effort.held_out)
    predicted = {stages: prediction[held] for stages, prediction in staged.items()}
    return _HeldOut(labels[held], noise[held], weight[held], linear[held], predicted)


def _thin(parts: list[PrivateRows], most: int, rng: np.random.Generator) -> list[PrivateRows]:
    """Return the parts with at most this many rows in all, chosen at random."""
    total = sum(part.rows.size for part in parts)
    if total <= most:
        return parts
    return [part.where(rng.random(part.rows.size) < most / total) for part in parts]


def _join(parts: list[PrivateRows]) -> tuple[Index, Array, Array]:
    """Return rows, labels and noise of all parts."""
    return (
        np.concatenate([part.rows for part in parts]),
        np.concatenate([part.labels for part in parts]),
        np.concatenate([np.full(part.rows.size, part.noise) for part in parts]),
    )
