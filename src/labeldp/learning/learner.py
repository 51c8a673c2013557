"""The learner for private labels and noisy sums: a Bayesian linear model, and trees where the noise allows.

Boosted trees see the columns only, and are blended in by their slope on held-out private labels, less one standard
error. Held-out rows come from the last round only: earlier rows served to centre later intervals, and must not
judge them.
Their labels are in the sums of the linear model, which makes that look better than it is, never the trees.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from sklearn.ensemble import HistGradientBoostingRegressor

from labeldp._values import Array, Index
from labeldp.learning.bayes import Posterior, explained_risk, unknown_variance
from labeldp.learning.bayes_solvers import Observations
from labeldp.learning.feature_table import FeatureTable
from labeldp.learning.label_units import LabelSummary
from labeldp.learning.ranks import Codes
from labeldp.learning.threads import idle_cores, limit_threads

_WORTH = 60
"""Trees are tried only if this many rows average the noise below the labels' variance."""

_VALIDATION_ROWS = 60_000
"""Rows at most on which trees are compared."""

GROWN = 400_000
_GROWN_BETWEEN = 40_000
"""Rows at most from which trees grow, in the end and between rounds."""


_LEAST_SHARE = 0.02
"""Trees with a smaller weight beside the linear model are not worth their place in it."""

_SURE, _MOST_CHANGE = 0.3, 20
"""An error measured on held-out rows counts if its standard error is less than this part of what was expected; it
may be so many times smaller than that."""

_CLEAR = 1.5
"""Labels are clear if their noise is less than so many times their variance: then large trees learn more. Else
trees of a third of the size, at larger steps and on every third code, are no worse, in 40 % of the time."""


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


@dataclass(frozen=True, slots=True)
class Ensemble:
    """A fitted learner: linear + weight · (trees − linear).

    Attributes
    ----------
    rest : float
        Estimated variance of a label around its best prediction.
    error : float
        Estimated mean squared error of this learner's predictions of labels.
    """

    linear: Posterior
    trees: HistGradientBoostingRegressor | None
    weight: float
    rest: float
    error: float
    knowledge: LabelSummary

    def predict(self, table: FeatureTable, rows: Index) -> Array:
        """Return predictions inside the bounds for some rows of a table."""
        linear = self.knowledge.clip(table.predict(self.linear, rows))
        if self.trees is None:
            return linear
        with limit_threads(idle_cores()):
            trees = self.knowledge.clip(self.trees.predict(table.codes(rows)))
        return np.asarray(linear + self.weight * (trees - linear))


def fit_ensemble(
    table: FeatureTable,
    blocks: list[PrivateRows],
    knowledge: LabelSummary,
    *,
    sums: Sequence[Observations] = (),
    quick: bool = False,
    observed: list[Observations] | None = None,
) -> Ensemble:
    """Return the learner for private rows and noisy sums; between rounds a ``quick`` one.

    Where the table is a sample, ``observed`` are the statistics of all rows, block by block: the linear model
    learns from these, and trees from the sample.
    """
    if observed is None:
        observed = _observed(table, blocks, knowledge)
    choices = unknown_variance(knowledge.width, few=quick)
    linear = table.fit_linear([*sums, *observed], knowledge.limits, choices)
    rest, rows = linear.rest, sum(part.count for part in observed)
    variance = linear.explained + rest
    level = rows / sum(part.count / (part.noise + rest) for part in observed)  # of a row, harmonic over rounds
    error = rest + explained_risk(table.spectrum, linear.explained, level / rows)
    plain = Ensemble(linear, None, 0.0, rest, min(variance, error), knowledge)
    if level / rows * _WORTH > variance:
        return plain
    sample = sum(part.rows.size for part in blocks)
    growth = Growth.for_noise(level / variance, sample)
    return _with_trees(table, blocks, plain, list(sums), growth, quick=quick)


def quick_linear(
    table: FeatureTable, blocks: list[PrivateRows], knowledge: LabelSummary, sums: Sequence[Observations]
) -> Posterior:
    """Return the linear model for private rows and noisy sums, averaged over few choices."""
    observed = _observed(table, blocks, knowledge)
    choices = unknown_variance(knowledge.width, few=True)
    return table.fit_linear([*sums, *observed], knowledge.limits, choices)


def _observed(table: FeatureTable, blocks: list[PrivateRows], knowledge: LabelSummary) -> list[Observations]:
    """Return the statistics of blocks; a table remembers them."""
    return [
        table.observations(part.rows, part.labels - knowledge.middle, part.noise)
        for part in blocks
        if part.rows.size
    ]


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
        """Return what suits labels with so much noise, in variances of labels, of so many rows.

        A leaf averages noise down to 1/50 of the variance, if a tenth of the rows can do that.
        """
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


@dataclass(frozen=True, slots=True)
class _Validation:
    """Held-out predictions: of the linear model, and of trees by the number of them."""

    labels: Array
    noise: Array
    weight: Array
    linear: Array
    trees: dict[int, Array]

    def best(self) -> tuple[int | None, float]:
        """Return the trees that help most, and how much of them to take."""
        best, most, share = None, 0.0, 0.0
        for choice, prediction in self.trees.items():
            step = prediction - self.linear
            gap = self.labels - self.linear
            size = float(self.weight @ step**2) + 1e-30
            slope = float(self.weight @ (gap * step)) / size
            deviation = float(np.sqrt(self.weight**2 @ (gap**2 * step**2))) / size
            careful = float(np.clip(slope - deviation, 0.0, 1.0))
            gain = (2 * careful * slope - careful**2) * size
            if gain > most and careful > _LEAST_SHARE:
                best, most, share = choice, gain, careful
        return best, share

    def error(self, choice: int, share: float) -> tuple[float, float]:
        """Return the ensemble's mean squared error on true labels, and its standard error."""
        blended = self.linear + share * (self.trees[choice] - self.linear)
        excess = (self.labels - blended) ** 2 - self.noise
        mean = float(self.weight @ excess / self.weight.sum())
        return mean, float(np.sqrt(self.weight**2 @ (excess - mean) ** 2) / self.weight.sum())


def _with_trees(
    table: FeatureTable,
    blocks: list[PrivateRows],
    plain: Ensemble,
    sums: list[Observations],
    growth: Growth,
    *,
    quick: bool,
) -> Ensemble:
    rng = np.random.default_rng(0)
    validation = _validate(table, _thin(blocks, _VALIDATION_ROWS, rng), plain, sums, growth, rng, quick=quick)
    stages, share = validation.best()
    if stages is None:
        return plain
    rest, error = plain.rest, plain.error
    measured, deviation = validation.error(stages, share)
    if deviation < _SURE * error:
        error = float(np.clip(measured + deviation, error / _MOST_CHANGE, 2 * error))
        rest = min(rest, max(0.9 * error, rest / _MOST_CHANGE))  # a tenth is the error of the fit itself
    rows, labels, noise = _joined(_thin(blocks, _GROWN_BETWEEN if quick else GROWN, rng))
    weight = 1 / (noise + rest)
    trees = growth.grow(stages, 0, table.codes(rows), labels, weight / weight.mean())
    return Ensemble(plain.linear, trees, share, rest, error, plain.knowledge)


def _thin(blocks: list[PrivateRows], most: int, rng: np.random.Generator) -> list[PrivateRows]:
    """Return the blocks with at most this many rows in all, chosen at random."""
    total = sum(part.rows.size for part in blocks)
    if total <= most:
        return blocks
    return [part.where(rng.random(part.rows.size) < most / total) for part in blocks]


def _joined(blocks: list[PrivateRows]) -> tuple[Index, Array, Array]:
    """Return rows, labels and noise of all blocks."""
    return (
        np.concatenate([part.rows for part in blocks]),
        np.concatenate([part.labels for part in blocks]),
        np.concatenate([np.full(part.rows.size, part.noise) for part in blocks]),
    )


def _validate(
    table: FeatureTable,
    blocks: list[PrivateRows],
    plain: Ensemble,
    sums: list[Observations],
    growth: Growth,
    rng: np.random.Generator,
    *,
    quick: bool,
) -> _Validation:
    """Hold out half of the last round's rows and predict them, then the other half; a quick one a third."""
    knowledge = plain.knowledge
    rows, labels, noise = _joined(blocks)
    weight = 1 / (noise + plain.rest)
    weight /= weight.mean()
    codes, last = table.codes(rows), np.arange(rows.size - blocks[-1].rows.size, rows.size)
    fold = np.full(rows.size, -1)
    fold[last] = rng.permutation(last.size) % (3 if quick else 2)
    folds, stages = (1, growth.stages[:-1]) if quick else (2, growth.stages)
    linear = np.zeros(rows.size)
    staged = {stage: np.zeros(rows.size) for stage in stages}
    *earlier, whole = _observed(table, blocks, knowledge)
    (held,) = _observed(table, [blocks[-1].where(fold[last] == 0)], knowledge)
    choices = plain.linear.likely or unknown_variance(knowledge.width, few=True)
    for k, kept in enumerate((whole.without(held), held)[:folds]):
        train, test = fold != k, fold == k
        model = table.fit_linear([*sums, *earlier, kept], knowledge.limits, choices)
        linear[test] = knowledge.clip(table.predict(model, rows[test]))
        trees = growth.grow(stages[-1], k, codes[train], labels[train], weight[train])
        for stage, prediction in enumerate(trees.staged_predict(codes[test]), start=1):
            if stage in staged:
                staged[stage][test] = knowledge.clip(prediction)
    judged = (fold >= 0) & (fold < folds)
    trees_judged = {stage: prediction[judged] for stage, prediction in staged.items()}
    return _Validation(labels[judged], noise[judged], weight[judged], linear[judged], trees_judged)
