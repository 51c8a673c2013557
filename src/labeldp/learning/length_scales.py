"""Length scales of source columns in interactions, learnt from noisy sums and private labels.

The interactions of `PublicFeatures` are random Fourier features of the ranks of all columns, with one length scale
for each source column, as in automatic relevance determination: a source with a large length scale hardly matters.
Strengths are prior variances of weights: of each block of features, and of the levels of each category over that
of the linear block. Length scales and strengths maximise the marginal likelihood of averages of labels, with a
normal prior on their logarithms.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.optimize import minimize
from scipy.sparse import csr_array, vstack

from labeldp._values import Array, Index, Numbers, Small
from labeldp.learning.feature_maps import FREQUENCIES, frequencies
from labeldp.learning.features import FeatureTable, even_rows
from labeldp.learning.fit_plan import Limits
from labeldp.learning.groups import NoisySums
from labeldp.learning.linear_gaussian import DualGaussian, LinearGaussian, PrimalGaussian
from labeldp.learning.measurements import PrivateRows
from labeldp.learning.model_average import MEAN_VARIANCE, Posterior

MAX_SOURCES = 60
"""With more source columns, length scales are not learnt: labels hold too little information on so many."""

_SD_LOG_LENGTH_SCALE = 1.0
"""The prior standard deviation of the term of a log length scale that is the source's own."""

_SD_LOG_COMMON = 0.7
"""The prior standard deviation of the term that all log length scales share."""

_SD_LOG_STRENGTH = 1.0
"""The prior standard deviation of a log strength."""

_SD_LOG_CATEGORY = 2.0
"""The prior standard deviation of the log strength of a category, over that of the linear block."""

EXPECTED_CATEGORY_STRENGTH = math.exp(_SD_LOG_CATEGORY**2 / 2)
"""The prior mean of that strength, by which groups are formed before any sum shows which categories matter."""

_MAX_DEVIATIONS = 4.0
"""The largest distance of each term from its prior mean, in prior standard deviations."""

_LENGTH_SCALE = 0.5
"""The prior length scale, for ranks from 0 to 1, over the root of the number of sources that matter."""

_MAX_LENGTH_SCALE = 10.0
"""The longest prior length scale of a source with a small effect of its own."""

_LOG_PRIOR_ODDS = -3.0
"""Prior log odds of interactions, because length scales that fit noise cost more than good ones gain."""

_FRACTION_UNSEEN = 0.3
"""The prior fraction of the residual variance that interactions explain: groups formed without them hide it."""

_MIN_STRENGTH = 1e-7
"""The smallest prior mean of a strength, in squared widths of the range."""

_MIN_STRENGTH_SHARE = 0.03
"""The smallest prior mean of a strength, as a fraction of all strengths."""

_MAX_SIGNAL_TO_NOISE = 1e5
"""Below this ratio, of all averages together, numbers have single precision: rounding errors are about 1e-6 of the
signal, far below the noise."""

_GUARD = 1e-5
"""The fraction by which a diagonal is increased, for single precision and averages over a sample of rows."""

_MAX_ROWS_SUMS = 2048
"""The largest sample of rows, evenly spaced, for learning from sums alone."""

_MAX_ROWS_LABELS = 4096
"""The largest sample of rows, evenly spaced, for learning from labels too."""

_STEPS_NEW_START = 20
"""Iterations of the optimiser from a new start."""

_STEPS_KNOWN_START = 12
"""Iterations of the optimiser from length scales that were learnt before."""

_PRECISION = 1e-5
"""The optimiser stops where the log evidence grows by less than this fraction: single precision has no more."""

_BLOCKS = 3
"""The number of blocks whose strengths are optimised: linear, additive, interactions."""


@dataclass(frozen=True, slots=True)
class LengthScales:
    """Length scales of source columns.

    Attributes
    ----------
    values : array
    strengths : array
        Prior variances of weights of sources in the linear block, over that of the block: 1 for quantities.
    log_prior_odds : float
        Log odds of interactions with these length scales, by Laplace's approximation.
    center : array
        Prior means of log length scales.
    point : array
        The optimum, in prior standard deviations from the means: the term that all log length scales share, then
        one for each source.
    """

    values: Array
    strengths: Array
    log_prior_odds: float
    center: Array
    point: Array


def equal_length_scales(sources: int) -> Array:
    """Return equal length scales, the prior mean for sources that all matter."""
    return np.full(sources, _LENGTH_SCALE * math.sqrt(sources))


def can_learn(table: FeatureTable) -> bool:
    """Return whether the number of sources is such that length scales can be learnt."""
    return 2 <= table.sources <= MAX_SOURCES


def learn_length_scales(
    table: FeatureTable,
    linear: Posterior,
    limits: Limits,
    sums: Sequence[NoisySums],
    labels: Sequence[PrivateRows],
    *,
    residual_variance: float = 0.0,
    start: LengthScales | None = None,
) -> LengthScales:
    """Return the length scales with the largest evidence.

    Parameters
    ----------
    table : FeatureTable
    linear : Posterior
        The model so far.
    limits : Limits
        The range of labels.
    sums, labels : sequences
        The released sums and labels.
    residual_variance : float
        Variance of labels around the model so far; 0 if it was not measured.
    start : LengthScales, optional
        Length scales learnt from sums. The optimiser starts twice: from equal length scales, and from these, or
        without them from length scales that are short for sources with large effects of their own. The result with
        the larger evidence is returned. A new start helps because sums by groups that were formed without an
        interaction may hide it, while labels show it.
    """
    residual = min(linear.residual_variance, residual_variance or linear.residual_variance)
    averages = Averages.of(table, limits, sums, labels, residual)
    log_strengths = _expected_log_strengths(linear, residual_variance, limits.width)
    likelihood = MarginalLikelihood(table, averages, log_strengths)
    origin = np.zeros(1 + table.sources)
    strengths = np.ones(table.sources)
    equal = likelihood.maximize(np.log(equal_length_scales(table.sources)), origin, strengths, _STEPS_NEW_START)
    if start is not None:
        second = likelihood.maximize(start.center, start.point, start.strengths, _STEPS_KNOWN_START)
    else:
        center = likelihood.center_by_effects(equal[1])
        second = likelihood.maximize(center, origin, equal[1].strengths, _STEPS_NEW_START)
    return max(equal, second, key=lambda result: result[0])[1]


def _expected_log_strengths(linear: Posterior, residual_variance: float, width: float) -> Array:
    """Return the prior means of log strengths, in squared widths of the range."""
    blocks = np.array(linear.block_variances) / width**2
    interactions = max(blocks[2:].sum(), _FRACTION_UNSEEN * residual_variance / width**2)
    expected = np.array([blocks[0], blocks[1], interactions])
    smallest = max(_MIN_STRENGTH, _MIN_STRENGTH_SHARE * blocks.sum())
    return np.asarray(np.log(np.maximum(expected, smallest)))


@dataclass(frozen=True, slots=True)
class Averages:
    """Averages of labels by groups of rows, and labels of single rows.

    Attributes
    ----------
    rows : array of int
        A sample of the table's rows, over which interactions are averaged.
    matrix : sparse array, averages × rows
        The matrix that averages the sample.
    fixed : array, averages × features
        Averages of linear and additive features, over all rows of a group.
    values : array
        Averages of labels minus the middle of the range, in widths of the range.
    variances : array
        Variances of their errors, in squared widths.
    """

    rows: Index
    matrix: csr_array
    fixed: Small
    values: Array
    variances: Array

    @classmethod
    def of(
        cls,
        table: FeatureTable,
        limits: Limits,
        sums: Sequence[NoisySums],
        labels: Sequence[PrivateRows],
        residual_variance: float,
    ) -> Averages:
        """Return averages from released sums and labels."""
        rows = even_rows(table.rows, _MAX_ROWS_LABELS if labels else _MAX_ROWS_SUMS)
        fixed = int(np.count_nonzero(table.public.block < 2))  # linear and additive features
        averages = [_averages_of_sums(item, rows, fixed, residual_variance) for item in sums]
        averages += [_averages_of_labels(item, table, rows, fixed, limits, residual_variance) for item in labels]
        return cls(
            rows,
            vstack([item.matrix for item in averages], format="csr"),
            np.concatenate([item.fixed for item in averages]),
            np.concatenate([item.values for item in averages]) / limits.width,
            np.concatenate([item.variances for item in averages]) / limits.width**2,
        )


def _averages_of_sums(sums: NoisySums, rows: Index, fixed: int, residual_variance: float) -> Averages:
    """Return averages of groups that have rows in the sample."""
    sampled_groups, group = np.unique(sums.groups.group[rows], return_inverse=True)
    sizes = sums.groups.sizes[sampled_groups]
    design: Any = sums.groups.features[sampled_groups, :fixed] / sums.groups.sample_sizes[
        sampled_groups, None
    ].astype(np.float32)
    variances = (residual_variance + sums.noise_variance / sizes) / sizes
    matrix = _averaging(group, np.arange(rows.size), rows.size)
    return Averages(rows, matrix, design, sums.values[sampled_groups] / sizes, variances)


def _averages_of_labels(
    private: PrivateRows, table: FeatureTable, rows: Index, fixed: int, limits: Limits, residual_variance: float
) -> Averages:
    """Return the labels of rows in the sample, each a group of its own."""
    position = np.full(table.rows, -1)
    position[rows] = np.arange(rows.size)
    sample = private.where(position[private.rows] >= 0)
    count = sample.rows.size
    pieces = table.map(lambda features, _: features[:, :fixed], sample.rows)
    design: Small = np.concatenate([np.zeros((0, fixed), np.float32), *pieces])
    matrix = _averaging(np.arange(count), position[sample.rows], rows.size)
    variances = np.full(count, residual_variance + sample.noise)
    return Averages(rows, matrix, design, sample.labels - limits.middle, variances)


def _averaging(group: Index, position: Index, rows: int) -> csr_array:
    """Return a matrix that averages rows at these positions by groups."""
    sizes = np.bincount(group)
    share = (1 / sizes[group]).astype(np.float32)
    return csr_array((share, (group, position)), shape=(sizes.size, rows))


class MarginalLikelihood:
    """The log evidence of averages of labels, as a function of strengths and length scales.

    A point has the log strengths of three blocks (linear, additive, interactions), those of categories over that
    of the linear block, the term that all log length scales share, and one term for each source, all in prior
    standard deviations from their prior means.

    Parameters
    ----------
    table : FeatureTable
    averages : Averages
    log_strengths : array
        Prior means of log strengths.
    """

    def __init__(self, table: FeatureTable, averages: Averages, log_strengths: Array) -> None:
        root = (1 / np.sqrt(averages.variances)).astype(np.float32)[:, None]
        signal_to_noise = float(np.square(root, dtype=np.float64).sum() * np.exp(log_strengths).sum())
        self.kind: Any = np.float64 if signal_to_noise >= _MAX_SIGNAL_TO_NOISE else np.float32
        self.log_strengths = log_strengths
        self._set_columns(table)
        self._set_values(table, averages, root.astype(self.kind))
        block = table.public.block[: averages.fixed.shape[1]]
        interactions = np.full(2 * FREQUENCIES, _BLOCKS - 1)
        self.owner = np.concatenate([block, [_BLOCKS], interactions])  # the constant is a block of its own
        self.interactions = slice(self.fixed.shape[1], self.owner.size)
        self.is_dual = self.values.size <= self.owner.size
        self.products = self._products() if self.is_dual else np.dot(self.fixed.T, self.fixed)

    def _set_columns(self, table: FeatureTable) -> None:
        """Set the sources and the categories of the table's columns."""
        public = table.public
        self.frequencies: Numbers = frequencies(table.columns).astype(self.kind)
        self.source, self.feature_source = public.source, public.feature_source
        self.level_shares = table.level_shares()
        self.levels = slice(public.quantities, table.columns)
        self.category = public.sources.category
        self.categories = table.sources - public.quantities
        self.sds = np.repeat([_SD_LOG_STRENGTH, _SD_LOG_CATEGORY], [_BLOCKS, self.categories])

    def _set_values(self, table: FeatureTable, averages: Averages, root: Numbers) -> None:
        """Set the averages and their fixed features, divided by the standard deviations of their errors."""
        self.root = root
        self.matrix = averages.matrix.astype(self.kind)
        self.transposed = self.matrix.T.tocsr()
        self.values: Numbers = averages.values * root[:, 0]
        ranks = table.ranks(averages.rows) - np.float32(0.5)
        self.ranks: Numbers = np.ascontiguousarray(ranks.T, dtype=self.kind)
        constant = np.full((self.values.size, 1), math.sqrt(MEAN_VARIANCE))
        design = np.concatenate([averages.fixed, constant], axis=1)
        self.fixed: Numbers = design.astype(self.kind) * root

    def _products(self) -> Numbers:
        """Return AAᵀ for the columns A of each block of fixed features but levels, and of the constant."""
        fixed, owner = self.fixed.astype(np.float64), self.owner[: self.fixed.shape[1]].copy()
        owner[self.levels] = -1
        blocks = [fixed[:, owner == k] for k in range(_BLOCKS + 1)]
        return np.array([design @ design.T for design in blocks])

    def maximize(self, center: Array, start: Array, strengths: Array, steps: int) -> tuple[float, LengthScales]:
        """Return the log evidence, integrated over length scales by Laplace's approximation, and the optimum.

        Parameters
        ----------
        center : array
            Prior means of log length scales.
        start : array
            The first point's terms of length scales.
        strengths : array
            The first point's strengths of sources.
        steps : int
        """
        first = np.log(strengths[strengths.size - self.categories :]) / _SD_LOG_CATEGORY
        optimum = minimize(
            self.loss,
            np.concatenate([np.zeros(_BLOCKS), first, start]),
            (center,),
            "L-BFGS-B",
            jac=True,
            bounds=[(-_MAX_DEVIATIONS, _MAX_DEVIATIONS)] * (self.sds.size + start.size),
            options={"maxiter": steps, "maxfun": 2 * steps, "ftol": _PRECISION},
        )
        learnt, log_volume = self._integrate(center, optimum.x, optimum.hess_inv.todense())
        return log_volume - float(optimum.fun), learnt

    def _integrate(self, center: Array, optimum: Array, covariance: Array) -> tuple[LengthScales, float]:
        """Return the length scales of an optimum, and the log volume of their posterior."""
        covariance = covariance[self.sds.size :, self.sds.size :]
        variances = np.clip(np.linalg.eigvalsh((covariance + covariance.T) / 2), 1e-12, 1.0)
        log_volume = 0.5 * float(np.log(variances).sum())
        categories, point = optimum[_BLOCKS : self.sds.size], optimum[self.sds.size :]
        strengths = np.ones(center.size)
        strengths[center.size - self.categories :] = np.exp(_SD_LOG_CATEGORY * categories)
        log_prior_odds = _LOG_PRIOR_ODDS - 0.5 * float(point @ point) + log_volume
        return LengthScales(_length_scales(center, point), strengths, log_prior_odds, center, point), log_volume

    def center_by_effects(self, learnt: LengthScales) -> Array:
        """Return log length scales that are short for sources with large linear and additive effects."""
        averages = self._cosine_features(learnt.values)[1]
        model = self._condition(np.zeros(self.sds.size), averages)
        squares = model.coefficients[: self.feature_source.size] ** 2
        squares[self.levels] *= self.level_shares
        effects = np.bincount(self.feature_source, squares)
        share = effects / max(float(effects.sum()), 1e-300)
        smallest = (_LENGTH_SCALE / _MAX_LENGTH_SCALE) ** 2
        return np.log(_LENGTH_SCALE / np.sqrt(np.maximum(share, smallest)))

    def loss(self, point: Array, center: Array) -> tuple[float, Array]:
        """Return minus the sum of the log evidence and the log prior of a point, and its gradient."""
        length_scales = _length_scales(center, point[self.sds.size :])
        features, averages = self._cosine_features(length_scales)
        model = self._condition(point[: self.sds.size], averages)
        log_evidence, by_weight = model.log_evidence, model.strength_gradient()
        by_average = model.design_gradient(self.interactions).astype(self.kind)
        by_length_scale = self._chain_to_length_scales(length_scales, features, by_average)
        by_block = np.bincount(self.owner, by_weight, _BLOCKS + 1)[:_BLOCKS]
        by_category = np.bincount(self.category, by_weight[self.levels], self.categories)
        gradient = np.concatenate(
            [
                self.sds * np.append(by_block, by_category),
                [_SD_LOG_COMMON * by_length_scale.sum()],
                _SD_LOG_LENGTH_SCALE * by_length_scale,
            ]
        )
        return float(0.5 * point @ point - log_evidence), np.asarray(point - gradient, dtype=np.float64)

    def _strengths(self, point: Array) -> Array:
        """Return the prior variances of weights: of each block, and of the constant."""
        return np.asarray(np.exp(np.append(self.log_strengths + self.sds[:_BLOCKS] * point[:_BLOCKS], 0.0)))

    def _cosine_features(self, length_scales: Array) -> tuple[Numbers, Numbers]:
        """Return the interactions of the sample's rows, and their whitened averages."""
        angles = (self.ranks / length_scales[self.source].astype(self.kind)) @ self.frequencies
        features = np.concatenate([np.cos(angles), np.sin(angles)], axis=1) / self.kind(math.sqrt(FREQUENCIES))
        averages: Numbers = (self.matrix @ features) * self.root
        return features, averages

    def _condition(self, point: Array, averages: Numbers) -> LinearGaussian:
        """Return the model of averages for these strengths, of blocks and categories, and interactions."""
        strengths = self._strengths(point)
        variances = strengths[self.owner]
        variances[self.levels] *= np.exp(self.sds[_BLOCKS:] * point[_BLOCKS:])[self.category]
        design = np.concatenate([self.fixed, averages], axis=1)
        if self.is_dual:
            design = design.astype(np.float64)
            products = self._dual_products(strengths, variances, design)
            return DualGaussian(variances, design, self.values, products=products)
        values = self.values.astype(self.kind)
        moment = (values @ design).astype(np.float64)
        square = float(self.values @ self.values)
        return PrimalGaussian(
            variances, self._primal_products(averages), moment, square, design=design, values=self.values
        )

    def _dual_products(self, strengths: Array, variances: Array, design: Array) -> Array:
        """Return AVAᵀ; the products of blocks whose weights share one variance are known."""
        products = np.tensordot(strengths, self.products, 1)
        for varying in (self.levels, self.interactions):
            products += (design[:, varying] * variances[varying]) @ design[:, varying].T
        products[np.diag_indices_from(products)] *= 1 + _GUARD
        return products

    def _primal_products(self, averages: Numbers) -> Array:
        """Return AᵀA; the products of fixed features are known."""
        across = averages.T @ self.fixed
        gram = np.block([[self.products, across.T], [across, averages.T @ averages]]).astype(np.float64)
        if self.kind is np.float32:
            gram[np.diag_indices_from(gram)] *= 1 + _GUARD
        return gram

    def _chain_to_length_scales(self, length_scales: Array, features: Numbers, by_average: Numbers) -> Array:
        """Return the gradient in log length scales, from that in whitened averages."""
        by_feature = self.transposed @ (by_average * self.root)
        cosine, sine = np.split(features, 2, axis=1)
        by_cosine, by_sine = np.split(by_feature, 2, axis=1)
        by_angle = self.ranks.T @ (by_cosine * sine - by_sine * cosine)
        by_column = (by_angle * self.frequencies).sum(axis=1)
        return np.bincount(self.source, by_column) / length_scales


def _length_scales(center: Array, point: Array) -> Array:
    return np.asarray(np.exp(center + _SD_LOG_COMMON * point[0] + _SD_LOG_LENGTH_SCALE * point[1:]))
