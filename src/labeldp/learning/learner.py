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
from typing import Any

import numpy as np
from sklearn.ensemble import HistGradientBoostingRegressor

from labeldp._values import Array, Index
from labeldp.accounts.numbers import number, percent
from labeldp.learning.feature_maps import Codes
from labeldp.learning.features import FeatureTable
from labeldp.learning.fit_plan import LabelSummary, Pair
from labeldp.learning.linear_gaussian import Observation, explained_risk
from labeldp.learning.measurements import LabelRows, Measurements, PrivateRows, join_arrays
from labeldp.learning.model_average import Posterior, prior_grid
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
class EarlierLabels:
    """Private labels of rows that a table does not have.

    Attributes
    ----------
    observations : sequence of Observation
        The labels as a linear model takes them, if there are any.
    rows : LabelRows or None
        The labels as trees take them, if they were kept.
    ensemble : Ensemble or None
        The model that was fitted to them.
    """

    observations: Sequence[Observation] = ()
    rows: LabelRows | None = None
    ensemble: Ensemble | None = None

    @property
    def trees(self) -> HistGradientBoostingRegressor | None:
        """Trees that were fitted to the labels."""
        return None if self.ensemble is None else self.ensemble.trees


NO_LABELS = EarlierLabels()
"""The labels of other rows in a first fit: none."""


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

    def with_linear(self, plain: Ensemble) -> Ensemble:
        """Return the trees of this model, with their weight, beside another linear model."""
        lowest = plain.error if self.trees is None else plain.error / 2
        error = float(np.clip(self.error, lowest, plain.error))
        return replace(plain, trees=self.trees, weight=self.weight, rest=self.rest, error=error)

    @limit_libraries()
    def predict(self, table: FeatureTable, rows: Index) -> Array:
        """Return predictions inside the range for some rows of a table."""
        linear = self.label_summary.clip(table.predict(self.linear, rows))
        if self.trees is None:
            return linear
        trees = self.label_summary.clip(self.trees.predict(table.codes(rows)))
        return np.asarray(linear + self.weight * (trees - linear))


@dataclass(frozen=True, slots=True)
class EarlierFit:
    """A model that further rows update, and its measurements."""

    ensemble: Ensemble
    known: Measurements

    @property
    def labels(self) -> EarlierLabels:
        """Its private labels, and the trees that were fitted to them."""
        return EarlierLabels(self.known.labels, self.known.label_rows, self.ensemble)


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


_MAX_ROWS_VALIDATION = 60_000
"""The largest number of rows to compare trees with the linear model."""

_MAX_ROWS_QUICK = 40_000
"""The largest number of rows to fit trees between rounds."""

MAX_ROWS_FINAL_TREES = 400_000
"""The largest number of rows to fit the final trees."""

_MIN_SHARE = 0.02
"""Trees with a smaller weight are left out."""

_MAX_RELATIVE_DEVIATION = 0.3
"""The error on held-out rows replaces the expected one if its standard error is below this fraction of it."""

_MAX_CHANGE = 20
"""The error on held-out rows counts as at least this fraction, 1/20, of the expected one."""

_FIT_ERROR = 0.1
"""The fraction of the mean squared error that a better fit could remove."""

_MAX_NOISE_LARGE_TREES = 1.5
"""Trees are large if the variance of noise, over that of labels, is below this."""

_LARGE_TREES: dict[str, Any] = {"leaves": 31, "rate": 0.06, "stages": (30, 60, 120, 250), "coarse": 1}
"""Parameters of `Growth` for labels with little noise."""

_SMALL_TREES: dict[str, Any] = {"leaves": 10, "rate": 0.1, "stages": (20, 40, 80, 160), "coarse": 3}
"""Parameters of `Growth` for noisy labels."""

_LEAF_PRECISION = 50
"""A leaf has so many rows that the noise of its mean has 1/50 of the variance of labels, …"""

_MIN_LEAF = 20
"""… but at least this number, …"""

_MAX_LEAF_SHARE = 0.1
"""… and at most this share of all rows."""


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
        leaf = int(np.clip(_LEAF_PRECISION * noise, _MIN_LEAF, max(_MIN_LEAF, _MAX_LEAF_SHARE * rows)))
        growth = cls(leaf=leaf, quick=quick, **(_LARGE_TREES if noise < _MAX_NOISE_LARGE_TREES else _SMALL_TREES))
        return replace(growth, stages=growth.stages[:3]) if quick else growth

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
    observations: Sequence[Observation],
    sums: Sequence[Observation],
    plain: Ensemble,
    growth: Growth,
    earlier: EarlierLabels,
) -> Ensemble:
    """Return the ensemble with trees beside its linear model, or as it is if they do not help.

    Parameters
    ----------
    table : FeatureTable
    parts : list of PrivateRows
        Round by round.
    observations : list of Observation
        The parts, as a linear model takes them.
    sums : list of Observation
        The noisy sums.
    plain : Ensemble
        The linear model, fitted to all parts and sums.
    growth : Growth
    earlier : EarlierLabels
        Labels of other rows.
    """
    rng = np.random.default_rng(0)
    sample = _thin(parts, _MAX_ROWS_VALIDATION, rng)
    if sample is not parts:
        observations = [part.observation(table, plain.label_summary.middle) for part in sample]
    known = None if earlier.rows is None else earlier.rows.thin(_MAX_ROWS_VALIDATION, rng)
    others, sums = replace(earlier, rows=known), [*sums, *earlier.observations]
    held_out = _predict_held_out(table, sample, observations, sums, plain, growth, rng, others)
    candidate, share = held_out.best_trees()
    if candidate is None:
        return plain
    rest, error = plain.rest, plain.error
    measured, deviation = held_out.error(candidate, share)
    if deviation < _MAX_RELATIVE_DEVIATION * error:
        error = float(np.clip(measured + deviation, error / _MAX_CHANGE, 2 * error))
        rest = min(rest, max((1 - _FIT_ERROR) * error, rest / _MAX_CHANGE))
    if candidate == len(growth.stages):
        return replace(plain, trees=earlier.trees, weight=share, rest=rest, error=error)
    max_rows = _MAX_ROWS_QUICK if growth.quick else MAX_ROWS_FINAL_TREES
    rows = LabelRows.of(table, _thin(parts, max_rows, rng))
    if earlier.rows is not None:
        rows = join_arrays([earlier.rows.thin(max_rows, rng), rows])
    trees = growth.grow(growth.stages[candidate], 0, rows.codes, rows.labels, rows.weights(rest))
    return replace(plain, trees=trees, weight=share, rest=rest, error=error)


@dataclass(frozen=True, slots=True)
class _HeldOut:
    """Private labels that were held out, and predictions of them.

    Candidates are several numbers of trees, and the trees of an earlier fit if its labels were not kept.

    Attributes
    ----------
    labels, noise, weight : arrays
    linear : array
        Predictions of the linear model.
    trees : array, candidates × rows
        Predictions of trees.
    """

    labels: Array
    noise: Array
    weight: Array
    linear: Array
    trees: Array

    def best_trees(self) -> tuple[int | None, float]:
        """Return the candidate that reduces the error most, and its weight; (None, 0) if none does."""
        best, most, best_share = None, 0.0, 0.0
        gap = self.labels - self.linear
        for candidate, prediction in enumerate(self.trees):
            step = prediction - self.linear
            size = float(self.weight @ step**2) + 1e-30
            slope = float(self.weight @ (gap * step)) / size
            deviation = float(np.sqrt(self.weight**2 @ (gap**2 * step**2))) / size
            share = float(np.clip(slope - deviation, 0.0, 1.0))
            gain = (2 * share * slope - share**2) * size
            if gain > most and share > _MIN_SHARE:
                best, most, best_share = candidate, gain, share
        return best, best_share

    def error(self, candidate: int, share: float) -> tuple[float, float]:
        """Return the ensemble's mean squared error on true labels, and its standard error."""
        blended = self.linear + share * (self.trees[candidate] - self.linear)
        excess = (self.labels - blended) ** 2 - self.noise
        mean = float(self.weight @ excess / self.weight.sum())
        return mean, float(np.sqrt(self.weight**2 @ (excess - mean) ** 2) / self.weight.sum())


def _predict_held_out(
    table: FeatureTable,
    parts: list[PrivateRows],
    observations: Sequence[Observation],
    sums: Sequence[Observation],
    plain: Ensemble,
    growth: Growth,
    rng: np.random.Generator,
    known: EarlierLabels,
) -> _HeldOut:
    """Return predictions for held-out rows of the last round, by models fitted to all other rows."""
    summary, last = plain.label_summary, parts[-1]
    fold = rng.permutation(last.rows.size) % (3 if growth.quick else 2)
    first = last.where(fold == 0).observation(table, summary.middle)
    *earlier, last_round = observations
    remainder = last_round.without(first)
    priors = plain.linear.top_priors or prior_grid(summary.width, few=True)
    labels = LabelRows.of(table, parts)
    weights = labels.weights(plain.rest)
    folds = []
    for k, training in enumerate((remainder,) if growth.quick else (remainder, first)):
        is_test = np.append(np.zeros(labels.labels.size - fold.size, dtype=np.bool_), fold == k)
        train, test = labels.take(~is_test), labels.take(is_test)
        model = table.fit_linear([*sums, *earlier, training], summary.limits, priors)
        linear = summary.clip(table.predict(model, last.rows[fold == k]))
        weight = weights[~is_test]
        if known.rows is not None:
            train = join_arrays([known.rows, train])
            weight = train.weights(plain.rest)
        booster = growth.grow(growth.stages[-1], k, train.codes, train.labels, weight)
        staged = enumerate(booster.staged_predict(test.codes), start=1)
        trees = [prediction for stages, prediction in staged if stages in growth.stages]
        if known.rows is None and known.trees is not None:
            trees.append(known.trees.predict(test.codes))
        folds.append(_HeldOut(test.labels, test.noise, weights[is_test], linear, summary.clip(np.array(trees))))
    return join_arrays(folds, axis=-1)


def _thin(parts: list[PrivateRows], most: int, rng: np.random.Generator) -> list[PrivateRows]:
    """Return a random sample of the rows of all parts, of about ``most`` rows at most."""
    total = sum(part.rows.size for part in parts)
    if total <= most:
        return parts
    return [part.where(rng.random(part.rows.size) < most / total) for part in parts]


_MIN_UPDATE = 2 * _MIN_LEAF
"""An update of fewer rows keeps the trees of the model: two halves of its labels are too few to judge them."""

_WORTH = 60
"""Trees are tried only if the noise variance over the number of rows is below 1/60 of the labels' variance."""


def fit_ensemble(
    table: FeatureTable,
    parts: list[PrivateRows],
    label_summary: LabelSummary,
    *,
    observations: Sequence[Observation],
    sums: Sequence[Observation] = (),
    quick: bool = False,
    earlier: EarlierLabels = NO_LABELS,
) -> Ensemble:
    """Fit the model to private labels and noisy sums.

    Parameters
    ----------
    table : FeatureTable
    parts : list of PrivateRows
        Round by round.
    label_summary : LabelSummary
    observations : list of Observation
        The parts, as a linear model takes them.
    sums : list of Observation
        The noisy sums.
    quick : bool
        Whether to save time, as between rounds: fewer priors are averaged, and there are fewer trees.
    earlier : EarlierLabels
        Labels of other rows.
    """
    priors = prior_grid(label_summary.width, few=quick)
    labels = [*earlier.observations, *observations]
    linear = table.fit_linear([*sums, *labels], label_summary.limits, priors)
    rows = sum(part.count for part in labels)
    precisions = [part.count / (part.noise_variance + linear.residual_variance) for part in labels]
    noise = rows / sum(precisions)  # of a row, harmonic mean
    variance = linear.signal_variance + linear.residual_variance
    error = linear.residual_variance + explained_risk(table.spectrum, linear.signal_variance, noise / rows)
    plain = Ensemble(linear, None, 0.0, linear.residual_variance, min(variance, error), label_summary)
    if earlier.ensemble is not None and parts[-1].rows.size < _MIN_UPDATE:
        return earlier.ensemble.with_linear(plain)
    if noise / rows * _WORTH > variance:
        return plain
    known = 0 if earlier.rows is None else earlier.rows.labels.size
    growth = Growth.for_noise(noise / variance, known + sum(part.rows.size for part in parts), quick=quick)
    return add_trees(table, parts, observations, sums, plain, growth, earlier)
