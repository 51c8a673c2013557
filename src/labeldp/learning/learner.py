"""The model fitted to private labels and noisy sums: a Bayesian linear model, and boosted trees if they help.

The weight of the trees is estimated on held-out private labels: the slope of a regression on their predictions,
minus one standard error. Only rows of the last round are held out, because labels of earlier rounds determined the
intervals of later ones. Labels of held-out rows are also part of the sums that the linear model is fitted to. This
favours the linear model, never the trees.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
from sklearn.ensemble import HistGradientBoostingRegressor

from labeldp._values import Array, Data, Mask
from labeldp.learning.ensemble import EarlierFit, Ensemble
from labeldp.learning.feature_maps import Codes
from labeldp.learning.features import FeatureTable
from labeldp.learning.fit_plan import LabelSummary
from labeldp.learning.linear_gaussian import Observation, explained_risk
from labeldp.learning.measurements import LabelRows, PrivateRows, join_arrays
from labeldp.learning.model_average import Posterior, Priors, prior_grid


@dataclass(frozen=True, slots=True, kw_only=True)
class TrainingData:
    """Released labels and sums, which a model is fitted to.

    Attributes
    ----------
    table : FeatureTable
    label_summary : LabelSummary
    labels : list of PrivateRows
        The private labels, round by round.
    observations : list of Observation
        The same labels, as a linear model takes them.
    sums : list of Observation
        The noisy sums.
    earlier : EarlierFit or None
        The model of other rows that these rows update; None for a first fit.
    """

    table: FeatureTable
    label_summary: LabelSummary
    labels: Sequence[PrivateRows]
    observations: Sequence[Observation]
    sums: Sequence[Observation] = ()
    earlier: EarlierFit | None = None

    @property
    def earlier_observations(self) -> Sequence[Observation]:
        """The labels of the earlier fit, as a linear model takes them."""
        return () if self.earlier is None else self.earlier.measurements.labels

    @property
    def earlier_rows(self) -> LabelRows | None:
        """The labels of the earlier fit, as trees take them, if they were kept."""
        return None if self.earlier is None else self.earlier.measurements.label_rows

    @property
    def earlier_trees(self) -> HistGradientBoostingRegressor | None:
        """The trees of the earlier fit."""
        return None if self.earlier is None else self.earlier.ensemble.trees

    @property
    def label_count(self) -> int:
        """The number of labels that trees can be fitted to."""
        count = 0 if self.earlier_rows is None else self.earlier_rows.labels.size
        return count + sum(labels.rows.size for labels in self.labels)

    def fit_linear(self, observations: Sequence[Observation], priors: Priors) -> Posterior:
        """Return the linear model of all sums, the labels of the earlier fit, and these labels."""
        observations = [*self.sums, *self.earlier_observations, *observations]
        return self.table.fit_linear(observations, self.label_summary.limits, priors)

    def tree_rows(self) -> LabelRows:
        """Return the labels as trees take them, after those of the earlier fit if they were kept."""
        rows = LabelRows.of(self.table, self.labels)
        return rows if self.earlier_rows is None else join_arrays([self.earlier_rows, rows])

    def thin(self, max_rows: int, rng: np.random.Generator) -> TrainingData:
        """Return the data with a random sample of about so many labels at most, of these rows and of earlier ones.

        Observations are those of all labels.
        """
        total = sum(labels.rows.size for labels in self.labels)
        labels = self.labels
        if total > max_rows:
            labels = [item.where(rng.random(item.rows.size) < max_rows / total) for item in labels]
        if self.earlier is None or self.earlier_rows is None:
            return replace(self, labels=labels)
        rows = self.earlier_rows.thin(max_rows, rng)
        measurements = replace(self.earlier.measurements, label_rows=rows)
        return replace(self, labels=labels, earlier=replace(self.earlier, measurements=measurements))

    def observed(self) -> TrainingData:
        """Return the data with the observations of its labels, which may be a sample."""
        middle = self.label_summary.middle
        return replace(self, observations=[labels.observation(self.table, middle) for labels in self.labels])


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

_LARGE_TREES: Data = {"leaves": 31, "rate": 0.06, "stages": (30, 60, 120, 250), "coarse": 1}
"""Parameters of `Growth` for labels with little noise."""

_SMALL_TREES: Data = {"leaves": 10, "rate": 0.1, "stages": (20, 40, 80, 160), "coarse": 3}
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
        The number of neighbouring codes that are merged into one bin.
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


def add_trees(data: TrainingData, plain: Ensemble, growth: Growth) -> Ensemble:
    """Return a linear model with trees beside it, or as it is if they do not help."""
    rng = np.random.default_rng(0)
    sample = data.thin(_MAX_ROWS_VALIDATION, rng)
    if sample.labels is not data.labels:
        sample = sample.observed()
    held_out = _predict_held_out(sample, plain, growth, rng)
    candidate, share = held_out.best_trees()
    if candidate is None:
        return plain
    residual_variance, error = held_out.errors(candidate, share, plain)
    ensemble = replace(plain, weight=share, residual_variance=residual_variance, error=error)
    if candidate == len(growth.stages):
        return replace(ensemble, trees=data.earlier_trees)
    sample = data.thin(_MAX_ROWS_QUICK if growth.quick else MAX_ROWS_FINAL_TREES, rng)
    rows = sample.tree_rows()
    weights = rows.weights(residual_variance)
    return replace(ensemble, trees=growth.grow(growth.stages[candidate], 0, rows.codes, rows.labels, weights))


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
        best, max_gain, best_share = None, 0.0, 0.0
        gap = self.labels - self.linear
        for candidate, prediction in enumerate(self.trees):
            step = prediction - self.linear
            size = float(self.weight @ step**2) + 1e-30
            slope = float(self.weight @ (gap * step)) / size
            deviation = float(np.sqrt(self.weight**2 @ (gap**2 * step**2))) / size
            share = float(np.clip(slope - deviation, 0.0, 1.0))
            gain = (2 * share * slope - share**2) * size
            if gain > max_gain and share > _MIN_SHARE:
                best, max_gain, best_share = candidate, gain, share
        return best, best_share

    def error(self, candidate: int, share: float) -> tuple[float, float]:
        """Return the ensemble's mean squared error on true labels, and its standard error."""
        blended = self.linear + share * (self.trees[candidate] - self.linear)
        excess = (self.labels - blended) ** 2 - self.noise
        mean = float(self.weight @ excess / self.weight.sum())
        return mean, float(np.sqrt(self.weight**2 @ (excess - mean) ** 2) / self.weight.sum())

    def errors(self, candidate: int, share: float, plain: Ensemble) -> tuple[float, float]:
        """Return the residual variance and the error of an ensemble: the expected ones, if no better are known."""
        residual_variance, error = plain.residual_variance, plain.error
        measured, deviation = self.error(candidate, share)
        if deviation < _MAX_RELATIVE_DEVIATION * error:
            error = float(np.clip(measured + deviation, error / _MAX_CHANGE, 2 * error))
            lowest = residual_variance / _MAX_CHANGE
            residual_variance = min(residual_variance, max((1 - _FIT_ERROR) * error, lowest))
        return residual_variance, error


def _predict_held_out(data: TrainingData, plain: Ensemble, growth: Growth, rng: np.random.Generator) -> _HeldOut:
    """Return predictions for held-out rows of the last round, by models fitted to all other rows."""
    last = data.labels[-1]
    fold = rng.permutation(last.rows.size) % (3 if growth.quick else 2)
    training = _leave_out_folds(data, fold == 0, growth)
    priors = plain.linear.top_priors or prior_grid(data.label_summary.width, coarse=True)
    labels = LabelRows.of(data.table, data.labels)
    weights = labels.weights(plain.residual_variance)
    in_earlier_rounds = np.zeros(labels.labels.size - fold.size, dtype=np.bool_)
    folds = []
    for k, observations in enumerate(training):
        is_test = np.append(in_earlier_rounds, fold == k)
        model = data.fit_linear(observations, priors)
        linear = data.table.predict(model, last.rows[fold == k])
        trees = _staged_trees(data, labels, weights, is_test, plain, growth, seed=k)
        test, clip = labels.take(is_test), data.label_summary.clip
        folds.append(_HeldOut(test.labels, test.noise, weights[is_test], clip(linear), clip(trees)))
    return join_arrays(folds, axis=-1)


def _leave_out_folds(data: TrainingData, is_first: Mask, growth: Growth) -> list[list[Observation]]:
    """Return the labels without those of the first fold, then, unless time is saved, without the second one's."""
    first = data.labels[-1].where(is_first).observation(data.table, data.label_summary.middle)
    *rounds, last_round = data.observations
    remainder = last_round.without(first)
    return [[*rounds, fold] for fold in ((remainder,) if growth.quick else (remainder, first))]


def _staged_trees(
    data: TrainingData,
    labels: LabelRows,
    weights: Array,
    is_test: Mask,
    plain: Ensemble,
    growth: Growth,
    *,
    seed: int,
) -> Array:
    """Return predictions of held-out labels by several numbers of trees, fitted to the others.

    If labels of an earlier fit were not kept, its trees are the last candidate.
    """
    train, test = labels.take(~is_test), labels.take(is_test)
    weight = weights[~is_test]
    if data.earlier_rows is not None:
        train = join_arrays([data.earlier_rows, train])
        weight = train.weights(plain.residual_variance)
    booster = growth.grow(growth.stages[-1], seed, train.codes, train.labels, weight)
    staged = enumerate(booster.staged_predict(test.codes), start=1)
    predictions = [prediction for stages, prediction in staged if stages in growth.stages]
    if data.earlier_rows is None and data.earlier_trees is not None:
        predictions.append(data.earlier_trees.predict(test.codes))
    return np.array(predictions)


_MIN_UPDATE = 2 * _MIN_LEAF
"""An update of fewer rows keeps the trees of the model: two halves of its labels are too few to judge them."""

_WORTH = 60
"""Trees are tried only if the noise variance over the number of rows is below 1/60 of the labels' variance."""


def fit_ensemble(data: TrainingData, *, quick: bool = False) -> Ensemble:
    """Fit the model to private labels and noisy sums.

    Parameters
    ----------
    data : TrainingData
    quick : bool
        Whether to save time, as between rounds: fewer priors are averaged, and there are fewer trees.
    """
    summary = data.label_summary
    linear = data.fit_linear(data.observations, prior_grid(summary.width, coarse=quick))
    labels = [*data.earlier_observations, *data.observations]
    rows = sum(item.count for item in labels)
    precisions = [item.count / (item.noise_variance + linear.residual_variance) for item in labels]
    noise = rows / sum(precisions)  # of a row, harmonic mean
    variance = linear.signal_variance + linear.residual_variance
    unlearnt = float(explained_risk(data.table.spectrum, linear.signal_variance, noise / rows))
    error = min(variance, linear.residual_variance + unlearnt)
    plain = Ensemble(linear, None, 0.0, linear.residual_variance, error, summary)
    if data.earlier is not None and data.labels[-1].rows.size < _MIN_UPDATE:
        return data.earlier.ensemble.with_linear(plain)
    if noise / rows * _WORTH > variance:
        return plain
    return add_trees(data, plain, Growth.for_noise(noise / variance, data.label_count, quick=quick))
