"""The model fitted to private labels and noisy sums: a Bayesian linear model, and boosted trees if they help.

The weight of the trees is estimated on held-out private labels: the slope of a regression on their predictions,
minus one standard error. Only rows of the last round are held out, because labels of earlier rounds determined the
intervals of later ones. Labels of held-out rows are also part of the sums that the linear model is fitted to. This
favours the linear model, never the trees. `describe_weakness` finds weak models by their predictions for public
rows, at no cost in ε.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray
from sklearn.ensemble import HistGradientBoostingRegressor

from labeldp._values import Array, Index
from labeldp.accounts.numbers import number, percent
from labeldp.learning.feature_maps import Codes
from labeldp.learning.features import FeatureTable
from labeldp.learning.fit_plan import LabelSummary, Pair
from labeldp.learning.linear_gaussian import Observation, explained_risk
from labeldp.learning.model_average import Posterior, prior_grid
from labeldp.learning.threads import limit_libraries

_AT_BOUND, _AT_BOUND_SPREAD, _NEARLY_ALL = 0.01, 0.5, 0.95
"""A prediction is at a bound if its distance is less than the first number in widths of the bounds, and than the
second in standard deviations of residuals. A model with a larger share of them than the third is weak."""

_OTHER_UNIT = 1e-4
"""Predictions that are this close to a bound, in widths of the bounds, are at it: labels are in another unit."""

_FLAT = 0.05
"""A model is constant if its predictions have a standard deviation below this fraction of that of residuals."""

WEAKNESS_ROWS = 2_000
"""The largest number of rows, evenly spaced, whose predictions are used to find a weak model."""


@dataclass(frozen=True, slots=True)
class PrivateRows:
    """Private labels of rows that have the same round and noise variance."""

    rows: Index
    labels: Array
    noise: float
    round: int

    def where(self, keep: NDArray[np.bool_]) -> PrivateRows:
        """Return some of these rows."""
        return PrivateRows(self.rows[keep], self.labels[keep], self.noise, self.round)

    def observation(self, table: FeatureTable, middle: float) -> Observation:
        """Return the labels as a linear model takes them, measured from the middle of their range."""
        return table.observation(self.rows, self.labels - middle, self.noise)


@dataclass(frozen=True, slots=True)
class Ensemble:
    """A fitted model: linear + weight · (trees − linear).

    Attributes
    ----------
    linear : Posterior
    trees : HistGradientBoostingRegressor or None
    weight : float
        The weight of the trees, from 0 to 1.
    rest : float
        Estimated variance of a label around its best prediction.
    error : float
        Estimated mean squared error of this model's predictions of labels.
    label_summary : LabelSummary
        The range of predictions.
    """

    linear: Posterior
    trees: HistGradientBoostingRegressor | None
    weight: float
    rest: float
    error: float
    label_summary: LabelSummary

    @limit_libraries()
    def predict(self, table: FeatureTable, rows: Index) -> Array:
        """Return predictions inside the range for some rows of a table."""
        linear = self.label_summary.clip(table.predict(self.linear, rows))
        if self.trees is None:
            return linear
        trees = self.label_summary.clip(self.trees.predict(table.codes(rows)))
        return np.asarray(linear + self.weight * (trees - linear))


def describe_weakness(units: Array, spread: float, bounds: Pair) -> str | None:
    """Return a sentence on what is wrong with a model, judged by its predictions; None if nothing is.

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
    near = _AT_BOUND
    if spread:  # in wide bounds all is near the bounds
        near = min(near, max(_OTHER_UNIT, _AT_BOUND_SPREAD * math.sqrt(spread)))
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


_VALIDATION_ROWS, _QUICK_ROWS, GROWN = 60_000, 40_000, 400_000
"""The largest numbers of rows to compare trees, to fit them between rounds, and to fit the final ones."""

_LEAST_SHARE = 0.02
"""Trees with a smaller weight are left out."""

_SURE, _MOST_CHANGE = 0.3, 20
"""The error on held-out rows replaces the expected one if its standard error is below the first number times the
expected error; the second number limits how many times smaller it may be."""

_FIT_ERROR = 0.1
"""The fraction of the mean squared error that a better fit could remove."""

_CLEAR = 1.5
_FOR_CLEAR_LABELS = (31, 0.06, (30, 60, 120, 250), 1)
_FOR_NOISY_LABELS = (10, 0.1, (20, 40, 80, 160), 3)
"""Parameters of trees: leaves, learning rate, numbers of trees to choose from, and codes merged into one bin.
Trees are large if the variance of noise is below ``_CLEAR`` times that of labels."""

_LEAF_VARIANCE, _LEAST_LEAF, _MOST_LEAF = 50, 20, 0.1
"""A leaf has so many rows that its mean has 1/50 of the variance of labels as noise, but at least 20 rows and at
most a tenth of all."""


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
        The learning rate.
    stages : tuple of int
        Numbers of trees to choose from.
    coarse : int
        How many neighbouring codes are merged into one bin.
    quick : bool
        Whether to save time: fewer trees, fitted to fewer rows, and one third of the last round held out once. If
        False, each half of the last round is held out in turn.
    """

    leaf: int
    leaves: int
    rate: float
    stages: tuple[int, ...]
    coarse: int
    quick: bool

    @classmethod
    def for_noise(cls, noise: float, rows: int, *, quick: bool) -> Growth:
        """Return the parameters for this many rows; ``noise`` is the variance of noise over that of labels."""
        leaf = int(np.clip(_LEAF_VARIANCE * noise, _LEAST_LEAF, max(_LEAST_LEAF, _MOST_LEAF * rows)))
        leaves, rate, stages, coarse = _FOR_CLEAR_LABELS if noise < _CLEAR else _FOR_NOISY_LABELS
        return cls(leaf, leaves, rate, stages[:3] if quick else stages, coarse, quick)

    def grow(
        self, stages: int, seed: int, codes: Codes, labels: Array, weight: Array
    ) -> HistGradientBoostingRegressor:
        """Fit trees to the labels of rows with these codes; they predict from codes that are not merged."""
        trees = HistGradientBoostingRegressor(
            max_iter=stages,
            learning_rate=self.rate,
            min_samples_leaf=self.leaf,
            max_leaf_nodes=self.leaves,
            max_bins=255 // self.coarse,
            l2_regularization=1.0,  # scikit-learn's scale: one row's weight
            max_features=0.6,  # of columns in a split: trees differ more, and take less time
            early_stopping=False,
            random_state=seed,
        )
        middle = self.coarse // 2  # so that thresholds lie between codes
        return trees.fit(codes // self.coarse * self.coarse + middle, labels, weight)


def add_trees(
    table: FeatureTable,
    parts: list[PrivateRows],
    plain: Ensemble,
    sums: list[Observation],
    growth: Growth,
) -> Ensemble:
    """Return the ensemble with trees beside its linear model, or as it is if they do not help.

    Parameters
    ----------
    table : FeatureTable
    parts : list of PrivateRows
        Round by round.
    plain : Ensemble
        The linear model, fitted to all parts and sums.
    sums : list of Observation
        The noisy sums.
    growth : Growth
    """
    rng = np.random.default_rng(0)
    some = _thin(parts, _VALIDATION_ROWS, rng)
    held_out = _predict_held_out(table, some, plain, sums, growth, rng)
    stages, share = held_out.best_trees()
    if stages is None:
        return plain
    rest, error = plain.rest, plain.error
    measured, deviation = held_out.error(stages, share)
    if deviation < _SURE * error:
        error = float(np.clip(measured + deviation, error / _MOST_CHANGE, 2 * error))
        rest = min(rest, max((1 - _FIT_ERROR) * error, rest / _MOST_CHANGE))
    rows, labels, noise = _join(_thin(parts, _QUICK_ROWS if growth.quick else GROWN, rng))
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
        Predictions of the linear model.
    trees : dict
        Predictions of trees, by the number of trees.
    """

    labels: Array
    noise: Array
    weight: Array
    linear: Array
    trees: dict[int, Array]

    def best_trees(self) -> tuple[int | None, float]:
        """Return the number of trees that reduces the error most, and their weight; (None, 0) if none does."""
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
    sums: list[Observation],
    growth: Growth,
    rng: np.random.Generator,
) -> _HeldOut:
    """Return predictions for held-out rows of the last round, by models fitted to all other rows."""
    label_summary = plain.label_summary
    rows, labels, noise = _join(parts)
    weight = 1 / (noise + plain.rest)
    weight /= weight.mean()
    codes = table.codes(rows)
    last = np.arange(rows.size - parts[-1].rows.size, rows.size)
    fold = np.full(rows.size, -1)
    fold[last] = rng.permutation(last.size) % (3 if growth.quick else 2)
    *earlier, whole = (part.observation(table, label_summary.middle) for part in parts if part.rows.size)
    first = parts[-1].where(fold[last] == 0).observation(table, label_summary.middle)
    priors = plain.linear.top_priors or prior_grid(label_summary.width, few=True)
    linear = np.zeros(rows.size)
    staged = {stages: np.zeros(rows.size) for stages in growth.stages}
    held_out = (whole.without(first),) if growth.quick else (whole.without(first), first)
    for k, kept in enumerate(held_out):
        train, test = fold != k, fold == k
        model = table.fit_linear([*sums, *earlier, kept], label_summary.limits, priors)
        linear[test] = label_summary.clip(table.predict(model, rows[test]))
        trees = growth.grow(growth.stages[-1], k, codes[train], labels[train], weight[train])
        for stages, prediction in enumerate(trees.staged_predict(codes[test]), start=1):
            if stages in staged:
                staged[stages][test] = label_summary.clip(prediction)
    held = (fold >= 0) & (fold < len(held_out))
    predicted = {stages: prediction[held] for stages, prediction in staged.items()}
    return _HeldOut(labels[held], noise[held], weight[held], linear[held], predicted)


def _thin(parts: list[PrivateRows], most: int, rng: np.random.Generator) -> list[PrivateRows]:
    """Return a random sample of the rows of all parts, of about ``most`` rows at most."""
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


_WORTH = 60
"""Trees are tried only if the noise variance over the number of rows is below 1/60 of the labels' variance."""


def fit_ensemble(
    table: FeatureTable,
    parts: list[PrivateRows],
    label_summary: LabelSummary,
    *,
    sums: Sequence[Observation] = (),
    quick: bool = False,
) -> Ensemble:
    """Fit the model to private labels and noisy sums.

    Parameters
    ----------
    table : FeatureTable
    parts : list of PrivateRows
        Round by round.
    label_summary : LabelSummary
    sums : list of Observation
        The noisy sums.
    quick : bool
        Whether to save time, as between rounds: fewer priors are averaged, and there are fewer trees.
    """
    observed = [part.observation(table, label_summary.middle) for part in parts if part.rows.size]
    priors = prior_grid(label_summary.width, few=quick)
    linear = table.fit_linear([*sums, *observed], label_summary.limits, priors)
    rows = sum(each.count for each in observed)
    noise = rows / sum(
        each.count / (each.noise_variance + linear.residual_variance) for each in observed
    )  # of a row, harmonic mean
    variance = linear.signal_variance + linear.residual_variance
    error = linear.residual_variance + explained_risk(table.spectrum, linear.signal_variance, noise / rows)
    plain = Ensemble(linear, None, 0.0, linear.residual_variance, min(variance, error), label_summary)
    if noise / rows * _WORTH > variance:
        return plain
    growth = Growth.for_noise(noise / variance, sum(part.rows.size for part in parts), quick=quick)
    return add_trees(table, parts, plain, list(sums), growth)
