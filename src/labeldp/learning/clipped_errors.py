"""The mean squared error of a model on rows held out, from errors clipped where noise and clipping are balanced.

Noisy counts of errors by octaves say how large errors are. Then squares of errors, clipped at a limit that
follows from these counts, are summed with noise: docs/proofs/scores.md.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction

import numpy as np

from labeldp._values import Array, Counts
from labeldp.accounts.budget import Budget, Charge, new_charge
from labeldp.accounts.scores import Figure
from labeldp.accounts.statistic import Statistic
from labeldp.errors import ParameterError
from labeldp.exact.word_sources import WordSource
from labeldp.learning.fit_plan import Limits
from labeldp.learning.label_queries import OCTAVES, STEPS, DistanceQuery, RowRules
from labeldp.learning.score_sums import MOST_ROWS, rmse_of, wilson_reach
from labeldp.learning.sum_model import estimate_spread, residual_masses

COUNTS_SHARE = Fraction(1, 5)
"""The share of ε for counts of errors; the rest is for the sum of their squares."""

LEAST_ROWS_EPSILON = 30
"""With less rows · ε the noise of a sum hides every error that a useful model has."""

POINTS_PER_OCTAVE = 4
"""Candidates for the limit, and places of the errors, in one octave."""

SIGNIFICANT = 3.0
"""Counts show errors beyond the common shape if they exceed it by this many standard deviations of their noise."""


@dataclass(frozen=True, slots=True)
class ErrorPlan:
    """Counts of errors and a sum of squared errors, and their noise; all of it is public.

    Attributes
    ----------
    rows : int
        Rows that are held out.
    epsilon : Fraction
    bounds : (lo, hi)

    Examples
    --------
    >>> import numpy as np
    >>> from labeldp.exact import SecureWords
    >>> plan = ErrorPlan.of(5000, Fraction(1), (0.0, 100.0))
    >>> errors = np.random.default_rng(0).normal(size=5000)
    >>> figures, statistics = plan.measure(np.full(5000, 50.0), 50 + errors, SecureWords())
    >>> bool(abs(figures["mse"].value - 1) < 0.2), sum(one.epsilon for one in statistics)
    (True, Fraction(1, 1))
    """

    rows: int
    epsilon: Fraction
    bounds: tuple[float, float]

    @classmethod
    def of(cls, rows: int, epsilon: Fraction, bounds: tuple[float, float]) -> ErrorPlan:
        """Return the plan, or refuse one whose noise would hide every error."""
        if rows * epsilon < LEAST_ROWS_EPSILON or rows > MOST_ROWS:
            raise ParameterError(f"{rows:,} rows at ε = {float(epsilon):g} cannot measure an error")
        return cls(rows, epsilon, bounds)

    @property
    def _counts(self) -> Statistic:
        """The counts of errors by octaves."""
        share = self.epsilon * COUNTS_SHARE
        return Statistic("counts of errors", "counts", OCTAVES, 1, share, "score")

    @property
    def _squares(self) -> Statistic:
        """The sum of squared errors, each an integer from 0 to `STEPS`."""
        share = self.epsilon * (1 - COUNTS_SHARE)
        return Statistic("sum of squared errors", "sums", 1, STEPS, share, "score")

    @property
    def statistics(self) -> tuple[Statistic, ...]:
        """The released integers, for a card."""
        return self._counts, self._squares

    def charges(self, rows_per_person: int, paid: Fraction = Fraction(0)) -> list[Charge]:
        """Return the charge beyond the ε that a fit without these rows paid; none if that is enough."""
        if self.epsilon <= paid:
            return []
        note = "; ".join(map(str, self.statistics))
        budget = Budget(self.epsilon - paid)
        return [new_charge("score", budget, purpose="score", mechanism=note, rows_per_person=rows_per_person)]

    def measure(
        self, predicted: Array, labels: Array, source: WordSource
    ) -> tuple[dict[str, Figure], tuple[Statistic, ...]]:
        """Return the mean squared error and its root, with noise, and the integers that were released."""
        limits = Limits(*self.bounds)
        predicted = np.clip(predicted, *limits)
        distances = DistanceQuery(limits, RowRules(prediction=predicted)).answer(labels)[0]
        noise = self._counts.noise
        limit, beyond = self._choose_limit(noise.release(distances, source))
        exact = self._sum_squares(predicted, labels, limit)
        noisy = float(self._squares.noise.release(exact, source)[0])
        mse = self._figure(noisy / STEPS / self.rows, limit, beyond)
        return {"mse": mse, "rmse": rmse_of(mse)}, self.statistics

    def _choose_limit(self, counts: Counts) -> tuple[float, float]:
        """Return the limit of errors where noise and clipping are balanced, and the mean square beyond it."""
        width = self.bounds[1] - self.bounds[0]
        steps = np.arange(OCTAVES * POINTS_PER_OCTAVE)
        limits = width * 2.0 ** (-steps / POINTS_PER_OCTAVE)
        errors = limits * 2.0 ** (-0.5 / POINTS_PER_OCTAVE)
        excess = np.maximum(errors**2 - limits[:, None] ** 2, 0.0) @ self._masses(counts, width)
        noise = self._noise_deviation * limits**2
        best = int(np.argmin(excess**2 + noise**2))
        return float(limits[best]), float(excess[best])

    def _masses(self, counts: Counts, width: float) -> Array:
        """Return shares of errors from far to near: of a common shape, and those that counts show beyond."""
        share = float(self._counts.epsilon)
        deviation = math.sqrt(estimate_spread(counts, self.rows, share, width))
        edges = np.append(width * 2.0 ** (-np.arange(OCTAVES * POINTS_PER_OCTAVE) / POINTS_PER_OCTAVE), 0.0)
        masses = residual_masses(edges / deviation)
        expected = masses.reshape(OCTAVES, POINTS_PER_OCTAVE).sum(axis=1)
        surplus = counts / self.rows - expected
        is_clear = surplus * self.rows > SIGNIFICANT * math.sqrt(self._counts.noise.variance())
        clear = np.where(is_clear, surplus, 0.0)
        return np.asarray(masses + np.repeat(clear / POINTS_PER_OCTAVE, POINTS_PER_OCTAVE))

    @property
    def _noise_deviation(self) -> float:
        """The standard deviation of the noise of the mean square, in squares of the limit."""
        return math.sqrt(self._squares.noise.variance()) / STEPS / self.rows

    def _sum_squares(self, predicted: Array, labels: Array, limit: float) -> Counts:
        """Return the exact sum of squared errors, clipped at the limit; it must get noise."""
        with np.errstate(all="ignore"):  # a warning that depends on labels would leak them
            errors = np.minimum(np.abs(np.clip(labels, *self.bounds) - predicted) / limit, 1.0)
            return np.array([np.rint(errors**2 * STEPS).astype(np.int64).sum()])

    def _figure(self, share: float, limit: float, beyond: float) -> Figure:
        """Return the mean squared error, from the mean of squares clipped at the limit.

        What was clipped is added: of the common shape with such a mean, or what counts show, if that is more.
        """
        share = min(max(share, 0.0), 1.0)
        reach = wilson_reach(share, self._noise_deviation, self.rows)
        value = max(unclipped_square(share), share + beyond / limit**2)
        upper = max(unclipped_square(min(share + reach, 1.0)), value + reach)
        return Figure(limit**2 * value, limit**2 * (upper - value) / 2)


def unclipped_square(share: float) -> float:
    """Return the mean square of residuals of the common shape whose squares, clipped at 1, have this mean.

    Examples
    --------
    >>> round(unclipped_square(0.01), 4), round(unclipped_square(0.5), 1)
    (0.01, 1.2)
    """
    deviations = np.geomspace(1e-3, 4.0, 400)
    edges = np.append(np.geomspace(64.0, 1e-3, 400), 0.0)
    distances = np.append(edges[:-2] + edges[1:-1], edges[-2]) / 2
    clipped = [residual_masses(edges / deviation) @ np.minimum(distances, 1.0) ** 2 for deviation in deviations]
    return float(np.interp(share, clipped, deviations**2, left=share))
