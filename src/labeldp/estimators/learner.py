"""The learner for private labels: a Bayesian linear model, and boosted trees where the noise allows.

Trees are blended in by their slope on held-out private labels, less one standard error. Held-out rows come
from the last round only: earlier rows served to centre later intervals, and must not judge them.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from sklearn.ensemble import HistGradientBoostingRegressor

from labeldp.estimators.bayes import (
    Choices,
    Observations,
    Posterior,
    explained_risk,
    fit_linear,
    known_variance,
)
from labeldp.estimators.feature_table import FeatureTable

__all__ = ["GROWN", "Blend", "Knowledge", "PrivateRows", "fit_blend"]

Array = NDArray[np.float64]
Index = NDArray[np.int64]

_STAGES = (30, 60, 120, 250)
_WORTH = 60
"""Trees are tried only if this many rows average the noise below the labels' variance."""

_VALIDATION_ROWS = 60_000
"""Rows at most on which trees are compared; all rows count for the final ones, up to `GROWN`."""

GROWN = 400_000


@dataclass(frozen=True, slots=True)
class Knowledge:
    """What is known of the labels: bounds, mean with its uncertainty, variance, and whether that was counted."""

    low: float
    high: float
    mean: float
    mean_variance: float
    variance: float
    counted: bool

    def clip(self, values: Array) -> Array:
        """Return values inside the bounds."""
        return np.asarray(np.clip(values, self.low, self.high))


@dataclass(frozen=True, slots=True)
class PrivateRows:
    """Private labels of some rows that share a noise level and a round."""

    rows: Index
    labels: Array
    noise: float
    round: int

    def without(self, rows: Index) -> PrivateRows:
        """Return these rows but for some."""
        return self.where(~np.isin(self.rows, rows))

    def where(self, keep: NDArray[np.bool_]) -> PrivateRows:
        """Return some of these rows."""
        return PrivateRows(self.rows[keep], self.labels[keep], self.noise, self.round)


@dataclass(frozen=True, slots=True)
class Blend:
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
    knowledge: Knowledge

    def predict(self, table: FeatureTable, rows: Index) -> Array:
        """Return predictions inside the bounds for some rows of a table."""
        linear = self.knowledge.clip(table.predict(self.linear, rows))
        if self.trees is None:
            return linear
        inputs = np.column_stack([table.columns(rows), linear])
        trees = self.knowledge.clip(self.trees.predict(inputs))
        return np.asarray(linear + self.weight * (trees - linear))


def fit_blend(
    table: FeatureTable,
    blocks: list[PrivateRows],
    knowledge: Knowledge,
    spectrum: Array,
    *,
    draft: bool = False,
    seed: int = 0,
    observed: list[Observations] | None = None,
) -> Blend:
    """Return the learner for private rows of a table; a draft, made between rounds, takes less time.

    Where the table is a sample, ``observed`` are the statistics of all rows, block by block: the linear model
    learns from these, and trees from the sample.
    """
    folds = 2 if draft else 3
    if observed is None:
        observed = _observed(table, blocks, knowledge)
    posterior = _linear(table, observed, knowledge, known_variance(knowledge.variance, few=draft))
    rest = max(posterior.rest, 0.03 * knowledge.variance)
    rows = sum(part.count for part in observed)
    level = rows / sum(part.count / (part.noise + rest) for part in observed)  # of a row, harmonic over rounds
    error = rest + explained_risk(spectrum, posterior.explained, level / rows)
    plain = Blend(posterior, None, 0.0, rest, min(knowledge.variance, error), knowledge)
    if level / rows * _WORTH > knowledge.variance or not posterior.likely:
        return plain
    sample = sum(part.rows.size for part in blocks)
    leaves = sorted({int(np.clip(k * level / knowledge.variance, 20, max(20, sample / 10))) for k in (25, 100)})
    return _with_trees(table, blocks, plain, leaves, folds, seed)


def _observed(table: FeatureTable, blocks: list[PrivateRows], knowledge: Knowledge) -> list[Observations]:
    return [
        table.observations(part.rows, part.labels - knowledge.mean, part.noise)
        for part in blocks
        if part.rows.size
    ]


def _linear(
    table: FeatureTable, observed: list[Observations], knowledge: Knowledge, choices: Choices
) -> Posterior:
    return fit_linear(
        observed,
        table.public.block,
        mean=knowledge.mean,
        mean_variance=knowledge.mean_variance,
        choices=choices,
    )


@dataclass(frozen=True, slots=True)
class _Validation:
    """Held-out predictions: of the linear model, and of trees by leaf size and stage."""

    labels: Array
    noise: Array
    weight: Array
    linear: Array
    trees: dict[tuple[int, int], Array]

    def best(self) -> tuple[tuple[int, int] | None, float]:
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
            if gain > most and careful > 0.02:
                best, most, share = choice, gain, careful
        return best, share

    def error(self, choice: tuple[int, int], share: float) -> tuple[float, float]:
        """Return the blend's mean squared error on true labels, and its standard error."""
        blended = self.linear + share * (self.trees[choice] - self.linear)
        excess = (self.labels - blended) ** 2 - self.noise
        mean = float(self.weight @ excess / self.weight.sum())
        return mean, float(np.sqrt(self.weight**2 @ (excess - mean) ** 2) / self.weight.sum())


def _with_trees(
    table: FeatureTable,
    blocks: list[PrivateRows],
    plain: Blend,
    leaves: list[int],
    folds: int,
    seed: int,
) -> Blend:
    knowledge, rng = plain.knowledge, np.random.default_rng(seed)
    validation = _validate(table, _thin(blocks, _VALIDATION_ROWS, rng), plain, leaves, folds, rng)
    choice, share = validation.best()
    if choice is None:
        return plain
    rest, error = plain.rest, plain.error
    measured, deviation = validation.error(choice, share)
    if deviation < 0.3 * error:
        error = float(np.clip(measured + deviation, 0.01 * knowledge.variance, knowledge.variance))
        rest = min(rest, max(0.9 * error, 0.01 * knowledge.variance))
    parts = _thin(blocks, GROWN, rng)
    rows = np.concatenate([part.rows for part in parts])
    labels = np.concatenate([part.labels for part in parts])
    weight = np.concatenate([np.full(part.rows.size, 1 / (part.noise + rest)) for part in parts])
    guess = knowledge.clip(table.predict(plain.linear, rows))
    inputs = np.column_stack([table.columns(rows), guess])
    trees = _trees(*choice, seed).fit(inputs, labels, weight / weight.mean())
    return Blend(plain.linear, trees, share, rest, error, knowledge)


def _thin(blocks: list[PrivateRows], most: int, rng: np.random.Generator) -> list[PrivateRows]:
    """Return the blocks with at most this many rows in all, chosen at random."""
    total = sum(part.rows.size for part in blocks)
    if total <= most:
        return blocks
    return [part.where(rng.random(part.rows.size) < most / total) for part in blocks]


def _validate(
    table: FeatureTable,
    blocks: list[PrivateRows],
    plain: Blend,
    leaves: list[int],
    folds: int,
    rng: np.random.Generator,
) -> _Validation:
    """Hold out rows of the last round, fold by fold, and predict them."""
    knowledge = plain.knowledge
    rows = np.concatenate([part.rows for part in blocks])
    labels = np.concatenate([part.labels for part in blocks])
    noise = np.concatenate([np.full(part.rows.size, part.noise) for part in blocks])
    last = max(part.round for part in blocks)
    newest = np.concatenate([np.full(part.rows.size, part.round == last) for part in blocks])
    fold = np.where(newest, rng.integers(0, folds, rows.size), -1)
    weight = 1 / (noise + plain.rest)
    weight /= weight.mean()
    starts = np.cumsum([0, *[part.rows.size for part in blocks]])
    columns = table.columns(rows)
    linear = np.zeros(rows.size)
    staged = {(leaf, stage): np.zeros(rows.size) for leaf in leaves for stage in _STAGES}
    for k in range(folds):
        train, test = fold != k, fold == k
        parts = []
        for part, start in zip(blocks, starts[:-1], strict=True):
            parts.append(part.where(train[start : start + part.rows.size]))
        model = _linear(table, _observed(table, parts, knowledge), knowledge, plain.linear.likely)
        guess = knowledge.clip(table.predict(model, rows))
        linear[test] = guess[test]
        inputs = np.column_stack([columns, guess])
        for leaf in leaves:
            trees = _trees(leaf, _STAGES[-1], k).fit(inputs[train], labels[train], weight[train])
            for stage, prediction in enumerate(trees.staged_predict(inputs[test]), start=1):
                if stage in _STAGES:
                    staged[leaf, stage][test] = knowledge.clip(prediction)
    trees_newest = {choice: prediction[newest] for choice, prediction in staged.items()}
    return _Validation(labels[newest], noise[newest], weight[newest], linear[newest], trees_newest)


def _trees(leaf: int, stages: int, seed: int) -> HistGradientBoostingRegressor:
    return HistGradientBoostingRegressor(
        max_iter=stages,
        learning_rate=0.06,
        min_samples_leaf=leaf,
        max_leaf_nodes=31,
        l2_regularization=1.0,
        max_features=0.6,
        early_stopping=False,
        random_state=seed,
    )
