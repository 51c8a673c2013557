"""Designs: which sums of labels a curator releases, chosen by what is public or private already.

Either sums over balanced groups of similar rows, where a label touches one sum; or sums against a few leading
directions of the features, where it touches all. A design is chosen by the Bayes risk of the linear model under
its known noise; that needs features, ε, the label's range and what earlier sums gave, and no label.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import cho_factor, cho_solve
from scipy.sparse import csr_array

from labeldp.estimators.bayes import Observations
from labeldp.estimators.feature_table import FeatureTable
from labeldp.noise import DiscreteGaussian, DiscreteLaplace, LatticeNorm
from labeldp.randomness import WordSource

__all__ = ["Design", "Noise", "PublicGeometry", "Sums", "balanced_groups", "choose_design"]

Array = NDArray[np.float64]
Small = NDArray[np.float32]
Index = NDArray[np.int64]
Sums = NDArray[np.int64]
Noise = DiscreteLaplace | LatticeNorm | DiscreteGaussian

STEPS = 1 << 16
"""Labels are integers from 0 to this where they are summed."""

_WEIGHTS = 1 << 12
"""Directions are integers with this many steps to a unit."""

_COUNTS = (0, 1, 2, 3, 4, 6, 8, 12, 16)
"""Directions to choose from; with none, only the mean is released."""

_MANY = (24, 32, 48, 64)
"""More of them, for Gaussian noise: K-norm noise grows with their number."""


@dataclass(frozen=True, slots=True)
class Design:
    """Integer weights of rows in sums: a row is in one group, or has a weight in each direction.

    Attributes
    ----------
    features : array, sums × features
        The features' averages, with the same weights as the labels'.
    share : float
        What part of a row's unexplained variance is in one average.
    group, sizes : arrays or None
        Of a design of groups.
    weights, squared_norm : array and int, or None
        Of a design of directions; the norm is the largest of a row.
    """

    features: Small
    share: float
    group: Index | None = None
    sizes: Array | None = None
    weights: NDArray[np.int64] | None = None
    squared_norm: int = 0

    @property
    def count(self) -> int:
        """The number of sums."""
        return len(self.features)

    def noise(self, epsilon: Fraction, delta: Fraction = Fraction(0)) -> Noise:
        """Return the noise for the sums, as integers.

        One label moves one group's sum by at most `STEPS`; or the vector of sums against directions by at most
        `STEPS` times the norm of its row: then whichever of K-norm noise and, if δ is given, Gaussian noise is
        smaller.
        """
        if self.weights is None:
            return DiscreteLaplace.calibrated(sensitivity=STEPS, epsilon=epsilon)
        squared = STEPS**2 * self.squared_norm
        norm = LatticeNorm.calibrated(squared_sensitivity=squared, epsilon=epsilon)
        if not delta:
            return norm
        gaussian = DiscreteGaussian.calibrated(squared_sensitivity=squared, epsilon=epsilon, delta=delta)
        many = self.count > 1 + max(_COUNTS)  # too many for K-norm noise, which is drawn by rejection
        return gaussian if many or gaussian.variance() < norm.variance(self.count) else norm

    def variance(self, noise: Noise, width: float) -> float:
        """Return the variance that the noise gives an average of labels in a range of this width."""
        unit = width / STEPS * self.share
        if self.weights is not None:
            unit /= _WEIGHTS
        return noise.variance(self.count) * unit**2

    @np.errstate(all="ignore")  # a warning that depends on labels would leak them
    def sums(self, labels: Array, width: float, rows: Index | None = None) -> Sums:
        """Return exact integer sums of labels in [0, width], of some rows or of all; sums of parts add up."""
        steps = np.clip(np.rint(labels / width * STEPS), 0, STEPS).astype(np.int64)
        if self.group is not None and self.sizes is not None:
            sums = np.zeros(self.sizes.size, dtype=np.int64)
            np.add.at(sums, self.group if rows is None else self.group[rows], steps)
            return sums
        assert self.weights is not None  # noqa: S101 (for the type checker)
        return np.asarray((self.weights if rows is None else self.weights[rows]).T @ steps)

    def noisy(self, sums: Sums, width: float, noise: Noise, source: WordSource) -> Array:
        """Return averages with noise from the sums of all rows, exact integers until the last division."""
        noisy = noise.release(sums, source)
        if self.sizes is not None:
            return np.asarray(noisy / self.sizes * (width / STEPS))
        return np.asarray(noisy * (self.share * width / STEPS / _WEIGHTS))

    def average(self, values: Array) -> Array:
        """Return averages of public values, with the same weights."""
        if self.group is not None and self.sizes is not None:
            return np.asarray(np.bincount(self.group, values, self.sizes.size) / self.sizes)
        assert self.weights is not None  # noqa: S101 (for the type checker)
        return np.asarray(self.weights.T @ values * (self.share / _WEIGHTS))

    def observations(self, averages: Array, noise: float) -> Observations:
        """Return the statistics for the linear model."""
        moment = (self.features.T @ averages.astype(np.float32)).astype(np.float64)
        gram = self.features.T @ self.features
        return Observations(gram, moment, float(averages @ averages), averages.size, self.share, noise)


@dataclass(frozen=True, slots=True)
class PublicGeometry:
    """Where rows lie, for designs.

    Attributes
    ----------
    places : array
        Leading directions of all features, weighted by their prior: similar rows are close.
    whitened : array
        Leading directions of the columns, with unit variance.
    gram : array
        The features' second moments, FᵀF/n.
    """

    places: Array
    whitened: Array
    gram: Small

    @classmethod
    def of(cls, table: FeatureTable, prior: Array) -> PublicGeometry:
        """Return the geometry of a table's rows, under a prior of the weights."""
        rows = np.arange(table.rows)
        sample = rows[:: max(1, table.rows // 20_000)]
        features = np.concatenate([part for _, part in table.pieces(sample)])
        gram = features.T @ features / np.float32(len(features))
        root = np.sqrt(prior).astype(np.float32)
        scaled = (gram * root * root[:, None])[:-1, :-1].astype(np.float64)
        vectors = np.linalg.eigh(scaled)[1][:, ::-1][:, :12] * root[:-1, None]
        places = np.full((table.rows, vectors.shape[1]), np.nan)
        for piece, part in table.pieces(rows):
            places[piece] = part[:, :-1] @ vectors.astype(np.float32)
        columns = table.columns(rows)
        columns = columns - columns.mean(axis=0)
        variance, axes = np.linalg.eigh(columns.T @ columns / table.rows)
        enough = variance[::-1] > 1e-9 * max(float(variance[-1]), 1e-300)
        scaled_axes = axes[:, ::-1][:, enough][:, : max(_MANY)] / np.sqrt(variance[::-1][enough][: max(_MANY)])
        return cls(places, columns @ scaled_axes, gram.astype(np.float32))


def balanced_groups(places: Array, size: int) -> Index:
    """Return groups of about ``size`` similar rows: halve along the widest direction until small enough."""
    group = np.zeros(len(places), dtype=np.int64)
    todo, groups = [np.arange(len(places))], 0
    while todo:
        rows = todo.pop()
        parts = round(len(rows) / size)
        if parts < 2:
            group[rows] = groups
            groups += 1
            continue
        widest = int(np.argmax(places[rows].var(axis=0)))
        cut = round(len(rows) * (parts // 2) / parts)
        order = np.argpartition(places[rows, widest], cut)
        todo += [rows[order[:cut]], rows[order[cut:]]]
    return group


def _groups(table: FeatureTable, geometry: PublicGeometry, size: int) -> Design:
    group = balanced_groups(geometry.places, size)
    sizes = np.bincount(group).astype(np.float64)
    sums = np.zeros((sizes.size, geometry.gram.shape[0]), dtype=np.float32)
    for piece, part in table.pieces(np.arange(table.rows)):
        members = (np.ones(len(part), dtype=np.float32), (group[piece], np.arange(len(part))))
        sums += csr_array(members, shape=(sizes.size, len(part))) @ part
    means = (sums / sizes[:, None]).astype(np.float32)
    return Design(means, 1 / float(sizes.mean()), group=group, sizes=sizes)


def _directions(table: FeatureTable, geometry: PublicGeometry, count: int) -> Design:
    rows = np.column_stack([np.ones(table.rows), geometry.whitened[:, :count]])
    norms = np.linalg.norm(rows, axis=1)
    rows *= np.minimum(1.0, float(np.quantile(norms, 0.95)) / norms)[:, None]
    weights = np.rint(rows * _WEIGHTS).astype(np.int64)
    largest = int((weights**2).sum(axis=1).max())
    sums = np.zeros((count + 1, geometry.gram.shape[0]))
    for piece, part in table.pieces(np.arange(table.rows)):
        sums += weights[piece].T.astype(np.float32) @ part
    means = (sums / (table.rows * _WEIGHTS)).astype(np.float32)
    return Design(means, 1 / table.rows, weights=weights, squared_norm=largest)


def choose_design(
    table: FeatureTable,
    geometry: PublicGeometry,
    *,
    prior: Array,
    rest: float,
    precision: Small | None,
    width: float,
    epsilon: Fraction,
    delta: Fraction = Fraction(0),
) -> Design:
    """Return the design of least Bayes risk.

    Parameters
    ----------
    prior : array
        Prior variance of each weight.
    rest : float
        Variance that features do not explain.
    precision : array or None
        That earlier releases give.
    width : float
        The labels' range.
    epsilon, delta : Fraction
        The budget.
    """
    rows = table.rows
    root = np.sqrt(prior).astype(np.float32)
    target = geometry.gram * root * root[:, None]
    start = np.zeros_like(target) if precision is None else precision * root * root[:, None]
    start[np.diag_indices_from(start)] += 1

    def risk(design: Design) -> float:
        level = np.float32(design.share * rest + design.variance(design.noise(epsilon, delta), width))
        scaled = design.features * root
        factor = cho_factor(start + scaled.T @ scaled / level, lower=True, check_finite=False)
        return float(np.trace(cho_solve(factor, target, check_finite=False)))

    tried: dict[int, tuple[float, Design]] = {}

    def grouped(size: int) -> tuple[float, Design]:
        if size not in tried:
            design = _groups(table, geometry, size)
            tried[size] = (risk(design), design)
        return tried[size]

    size = 1 << int(np.clip(round(math.log2(12 / float(epsilon))), 1, max(1.0, math.log2(max(2.0, rows / 8)))))
    while True:
        near = [s for s in (size // 2, size, size * 2) if s >= 2 and rows / s >= 8]
        better = min(near or [size], key=lambda s: grouped(s)[0])
        if better == size:
            break
        size = better
    best = grouped(size)
    if rows / size < 600:
        for count in (*_COUNTS, *_MANY) if delta else _COUNTS:
            if count > geometry.whitened.shape[1]:
                break
            design = _directions(table, geometry, count)
            best = min(best, (risk(design), design), key=lambda pair: pair[0])
    return best[1]
