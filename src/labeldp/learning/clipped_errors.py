"""The mean squared error of a model on rows held out, from errors clipped where noise and clipping are balanced.

Noisy counts of errors by octaves say how large errors are, and how heavy their tails. Then squares of errors,
clipped at a limit that follows from these counts, are summed with noise: docs/proofs/scores.md. The figure is the
posterior mean of the mean square, over shapes and scales of errors.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field, replace
from fractions import Fraction
from functools import lru_cache

import numpy as np
from scipy.special import softmax
from scipy.stats import laplace, norm
from scipy.stats import t as student

from labeldp._values import Array, Counts, Interval
from labeldp.accounts.scores import Figure
from labeldp.accounts.statistic import Statistic
from labeldp.errors import ParameterError
from labeldp.learning.fit_plan import Limits
from labeldp.learning.label_queries import OCTAVES, STEPS, DistanceCounts, RowRules
from labeldp.learning.score_sums import MOST_ROWS, HeldOutPlan, rmse_of
from labeldp.release.label_access import LabelAccess
from labeldp.release.queries import IntegerQuery


@dataclass(frozen=True, slots=True)
class SquaredErrors(IntegerQuery):
    """The sum of squared errors of predictions, each clipped at a limit.

    Attributes
    ----------
    bounds : (lo, hi)
        Labels outside count as the bounds.
    limit : float
        The error whose square becomes `STEPS`.
    predicted : array, optional
        The predictions of the rows.
    """

    bounds: Interval
    limit: float = 1.0
    predicted: Array | None = field(default=None, repr=False)
    kind = "sums"
    description = "sum of squared errors"
    largest = STEPS

    def integers(self, labels: Array) -> Array:
        """Return the square of each error, in steps of the limit's."""
        errors = np.minimum(np.abs(np.clip(labels, *self.bounds) - np.asarray(self.predicted)) / self.limit, 1.0)
        return np.asarray(np.rint(errors**2 * STEPS))


COUNTS_SHARE = Fraction(1, 5)
"""The share of ε for counts of errors; the rest is for the sum of their squares."""

LEAST_ROWS_EPSILON = 30
"""With less rows · ε the noise of a sum hides every error that a useful model has."""

POINTS_PER_OCTAVE = 4
"""Candidates for the limit, and places of the errors, in one octave."""

SCALES_PER_OCTAVE = 24
"""Candidates for the scale of errors, in one octave."""

SHAPES = (student(2.5), student(3), student(5), laplace(), norm())
"""Distributions of errors, from heavy tails to none, equally likely before noisy counts are seen."""

ODDS_OF_DOUBLE_SCALE = 1.5
"""The odds of a scale over those of half of it, before noisy counts are seen: where noise hides errors, so the
figure is not far below them."""

MISFIT = 0.03
"""The share of rows, and of a count at most all of it, by which counts may differ from those of every shape."""

SIGNIFICANT = 4.0
"""Counts show a group beside all shapes if they exceed their mean by this many standard deviations of noise."""

GROUP_ODDS = 0.01
"""The odds of such a group of one size before the counts."""

GROUP_SIZES = (0.5, 0.75, 1.0, 1.25, 1.5)
"""Candidates for the size of such a group, times the size that counts show."""

ONE_SIDED = 1.65
"""Standard deviations that a sum of Laplace noises exceeds in 5 % of draws: 1.63 for one noise, 1.645 for many."""

CAUTION = 1.4
"""The standard error is the posterior one times this: errors may have heavier tails than every shape."""


EDGES = np.append(2.0 ** (-np.arange(OCTAVES * POINTS_PER_OCTAVE) / POINTS_PER_OCTAVE), 0.0)
"""The edges of cells of distances, from far to near, in widths."""

DISTANCES = EDGES[:-1] * 2.0 ** (-0.5 / POINTS_PER_OCTAVE)
"""The distance that stands for each cell, in widths."""


@dataclass(frozen=True, slots=True)
class ErrorModel:
    """Candidates for the distribution of errors, in widths of the bounds, and how likely each is.

    Attributes
    ----------
    masses : array, candidates × cells
        Probabilities of distances, from far to near.
    log_weights : array
        Of the candidates, up to a constant.
    """

    masses: Array
    log_weights: Array

    @property
    def weights(self) -> Array:
        """The probabilities of the candidates."""
        return np.asarray(softmax(self.log_weights))

    @property
    def mean_squares(self) -> Array:
        """The mean squared error of each candidate."""
        return self.clipped(math.inf, 2)

    def clipped(self, limit: float, power: int) -> Array:
        """Return the mean power of errors, clipped at a limit, of each candidate."""
        return np.asarray(self.masses @ np.minimum(DISTANCES, limit) ** power)

    def observe(self, values: Array, expected: Array, variances: Array) -> ErrorModel:
        """Return the model given values in columns, with Laplace noise of these variances."""
        deviations = np.sqrt(variances)
        misfit = math.sqrt(2) * np.abs(values - expected) / deviations + np.log(deviations)
        return replace(self, log_weights=self.log_weights - misfit.sum(axis=1))

    def with_group(self, shares: Array) -> ErrorModel:
        """Return the model with further candidates: a group of rows, of about these shares of cells."""
        sizes = [factor * shares for factor in GROUP_SIZES]
        masses = [self.masses, *((self.masses + size) / (1 + size.sum()) for size in sizes)]
        odds = [0.0, *([math.log(GROUP_ODDS)] * len(sizes))]
        return ErrorModel(np.concatenate(masses), np.add.outer(odds, self.log_weights).reshape(-1))

    def estimate(self) -> tuple[float, float]:
        """Return the geometric posterior mean of the mean squared error, and its root mean squared error.

        The arithmetic mean follows candidates of heavy tails that are hardly possible.
        """
        value = float(np.exp(self.weights @ np.log(self.mean_squares)))
        return value, math.sqrt(float(self.weights @ (self.mean_squares - value) ** 2))

    def expected_variance(self, limit: float, noise_variance: float, rows: int) -> float:
        """Return the variance of the mean squared error that is left by an observed mean of clipped squares."""
        weights, clipped = self.weights, self.clipped(limit, 2)
        squares = self.mean_squares - weights @ self.mean_squares
        deviations = clipped - weights @ clipped
        chance = weights @ (self.clipped(limit, 4) - clipped**2) / rows
        observed_variance = weights @ deviations**2 + noise_variance + chance
        explained = (weights @ (squares * deviations)) ** 2 / observed_variance
        return float(weights @ squares**2 - explained)


@lru_cache(maxsize=1)
def error_model() -> ErrorModel:
    """Return the model of errors before anything is known: all shapes are equally likely, small scales less so.

    Distances beyond the width of the bounds count as the width.

    Examples
    --------
    >>> bool(np.allclose(error_model().masses.sum(axis=1), 1))
    True
    """
    octaves = -np.arange(SCALES_PER_OCTAVE, OCTAVES * SCALES_PER_OCTAVE) / SCALES_PER_OCTAVE
    scales = 2.0**octaves
    log_odds = math.log(ODDS_OF_DOUBLE_SCALE) * octaves
    edges = np.append(np.inf, EDGES[1:])
    within = np.concatenate([2 * shape.cdf(edges / scales[:, None]) - 1 for shape in SHAPES])
    return ErrorModel(within[:, :-1] - within[:, 1:], np.tile(log_odds, len(SHAPES)))


@dataclass(frozen=True, slots=True)
class ErrorPlan(HeldOutPlan):
    """Counts of errors and a sum of squared errors, and their noise; all of it is public.

    Attributes
    ----------
    rows, epsilon, bounds : as in `HeldOutPlan`

    Examples
    --------
    >>> import numpy as np
    >>> import labeldp as ldp
    >>> from labeldp.accounts.scope import Scope
    >>> from labeldp.exact import SecureWords
    >>> plan = ErrorPlan.of(5000, Fraction(1), (0.0, 100.0))
    >>> access = LabelAccess(50 + np.random.default_rng(0).normal(size=5000), SecureWords(), "score")
    >>> access.charge(ldp.Ledger(), plan.charges(Scope()), epsilon=plan.epsilon)
    >>> figures = plan.measure(np.full(5000, 50.0), access)
    >>> bool(abs(figures["mse"].value - 1) < 0.2), access.remaining
    (True, Fraction(0, 1))
    """

    @classmethod
    def of(cls, rows: int, epsilon: Fraction, bounds: Interval) -> ErrorPlan:
        """Return the plan, or refuse one whose noise would hide every error."""
        if rows * epsilon < LEAST_ROWS_EPSILON or rows > MOST_ROWS:
            raise ParameterError(f"{rows:,} rows at ε = {float(epsilon):g} cannot measure an error")
        return cls(rows, epsilon, bounds)

    @property
    def _counts(self) -> Statistic:
        """The counts of errors by octaves."""
        return self._distances().statistic(self.epsilon * COUNTS_SHARE, "score")

    @property
    def _squares(self) -> Statistic:
        """The sum of squared errors."""
        return SquaredErrors(self.bounds).statistic(self.epsilon * (1 - COUNTS_SHARE), "score")

    def _distances(self, predicted: Array | None = None) -> DistanceCounts:
        """Return the counts of errors of these predictions."""
        return DistanceCounts(Limits(*self.bounds), RowRules(prediction=predicted), "counts of errors")

    @property
    def statistics(self) -> tuple[Statistic, ...]:
        """The released integers, for a card."""
        return self._counts, self._squares

    def measure(self, predicted: Array, access: LabelAccess) -> dict[str, Figure]:
        """Return the mean squared error and its root, with noise."""
        predicted = np.clip(predicted, *self.bounds)
        counts = access.measure(self._distances(predicted), self._counts.epsilon)
        counted = self._given_counts(counts.values)
        limit = self._choose_limit(counted)
        width = self.bounds[1] - self.bounds[0]
        squares = access.measure(SquaredErrors(self.bounds, limit * width, predicted), self._squares.epsilon)
        share = float(squares.values[0]) / STEPS / self.rows
        mse = self._figure(counted, share, limit)
        largest = max(mse.limit, width**2 * self._largest(counts.values, share, limit))
        return {"mse": mse, "rmse": rmse_of(mse), "rmse_limit": Figure(math.sqrt(largest), 0.0)}

    def _largest(self, counts: Counts, share: float, limit: float) -> float:
        """Return the limit of the mean squared error of these rows, in squared widths, whatever its shape.

        An error of an octave that begins beyond the limit is at most the upper edge of its octave, so the mean of
        clipped squares and the counts of octaves bound the mean of squares. Both are known up to their noise.
        """
        excess = np.maximum(4.0 ** -np.arange(OCTAVES) - limit**2, 0.0) / self.rows
        bound = share * limit**2 + float(counts @ excess)
        variance = (self._noise_deviation * limit**2) ** 2 + self._counts.noise.variance() * float(excess @ excess)
        return bound + ONE_SIDED * math.sqrt(variance)

    def _given_counts(self, counts: Counts) -> ErrorModel:
        """Return the model of errors given noisy counts."""
        model = self._observe_counts(error_model(), counts)
        expected = model.weights @ self._expected_counts(model)
        surplus = counts - expected
        threshold = SIGNIFICANT * math.sqrt(self._counts.noise.variance()) + self._misfit(expected)
        if not (surplus > threshold).any():
            return model
        group = np.repeat(np.where(surplus > threshold, surplus, 0.0) / self.rows, POINTS_PER_OCTAVE)
        with_group = error_model().with_group(group / POINTS_PER_OCTAVE)
        return self._observe_counts(with_group, counts)

    def _expected_counts(self, model: ErrorModel) -> Array:
        """Return the expected counts of each candidate."""
        shares = model.masses.reshape(-1, OCTAVES, POINTS_PER_OCTAVE).sum(axis=2)
        return np.asarray(self.rows * shares)

    def _misfit(self, expected: Array) -> Array:
        """Return the largest difference of counts from those of a shape; 0 where a count is 0."""
        return np.minimum(MISFIT * self.rows, expected)

    def _observe_counts(self, model: ErrorModel, counts: Counts) -> ErrorModel:
        """Return a model of errors given noisy counts."""
        expected = self._expected_counts(model)
        variance = self._counts.noise.variance() + expected + self._misfit(expected) ** 2
        return model.observe(counts.astype(np.float64), expected, variance)

    def _choose_limit(self, counted: ErrorModel) -> float:
        """Return the limit of errors, in widths, whose sum leaves the least variance of the mean squared error."""
        noise = self._noise_deviation**2
        limits = EDGES[:-1]
        variances = [counted.expected_variance(limit, noise * limit**4, self.rows) for limit in limits]
        return float(limits[np.argmin(variances)])

    @property
    def _noise_deviation(self) -> float:
        """The standard deviation of the noise of the mean square, in squares of the limit."""
        return math.sqrt(self._squares.noise.variance()) / STEPS / self.rows

    def _figure(self, counted: ErrorModel, share: float, limit: float) -> Figure:
        """Return the mean squared error, from counts and from the mean of clipped squares, in limits²."""
        clipped = counted.clipped(limit, 2)
        chance = (counted.clipped(limit, 4) - clipped**2) / self.rows
        noise = (self._noise_deviation * limit**2) ** 2
        observed = counted.observe(np.array([share * limit**2]), clipped[:, None], (chance + noise)[:, None])
        value, error = observed.estimate()
        square = (self.bounds[1] - self.bounds[0]) ** 2
        return Figure(square * value, square * CAUTION * error)
