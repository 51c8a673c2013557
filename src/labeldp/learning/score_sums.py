"""The integer sums behind a score, their joint sensitivity to one label, and their noise.

A row's error becomes an integer k from 0 to `STEPS`. Sums of STEPS·k and k·(STEPS − k) move by no more together
than the first of them alone, so a mean absolute error comes with the squared one at no more noise for the sums:
docs/proofs/scores.md.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction

import numpy as np

from labeldp._values import Array, Counts
from labeldp.accounts.budget import Budget, Charge, new_charge
from labeldp.accounts.numbers import number
from labeldp.accounts.scores import METRICS, Figure
from labeldp.accounts.statistic import Statistic
from labeldp.errors import ParameterError
from labeldp.exact.word_sources import WordSource
from labeldp.learning.quality import rmse_of

STEPS = 1 << 18
_REACH = math.log(20) / math.sqrt(2)
"""Laplace noise is within so many of its standard deviations in 95 % of draws; of normal noise, 97 % is."""

MOST_ROWS = 1 << 26
"""Sums of this many squares of `STEPS`, and their noise, are 64-bit integers."""


@dataclass(frozen=True, slots=True)
class ScorePlan:
    """Which sums a score takes, and with what noise; all of it is public.

    Attributes
    ----------
    rows : int
    epsilon : Fraction
    bounds : (lo, hi)
    largest : float
        The largest error that any label in the bounds could have, at most their width.
    """

    rows: int
    epsilon: Fraction
    bounds: tuple[float, float]
    largest: float

    @classmethod
    def of(
        cls, rows: int, epsilon: Fraction, bounds: tuple[float, float], largest: float | None = None
    ) -> ScorePlan:
        """Return the plan, or refuse one that would say nothing.

        Noise must not hide even the mean absolute error of guessing the middle for labels spread evenly.
        """
        if rows > MOST_ROWS:
            raise ParameterError(
                f"a score takes at most {MOST_ROWS:,} rows, got {rows:,}: give a random part of them"
            )
        width = bounds[1] - bounds[0]
        plan = cls(rows, epsilon, bounds, width if largest is None else largest)
        short = 1.01 * 2 * plan.expected()["mae"] / (width / 4)
        if short >= 1.01:
            raise ParameterError(
                f"a score of {plan._ask} would say nothing: its noise is ± {number(plan.expected()['mae'], 2)}; "
                f"give ε = {number(short * float(epsilon), 3)} or more, {math.ceil(rows * short):,} rows or more, "
                "or tighter bounds"
            )
        return plan

    @property
    def statistic(self) -> Statistic:
        """What is released, for a card: all sums together move by at most STEPS² with one label."""
        return Statistic("sums of errors", "score", 2, STEPS**2, self.epsilon, "score")

    def charge(self, rows_per_person: int) -> Charge:
        """Return what the score costs, for a ledger."""
        people = {"rows_per_person": rows_per_person}
        return new_charge("score", Budget(self.epsilon), purpose="score", mechanism=str(self.statistic), **people)

    def sums(self, predicted: Array, labels: Array) -> Counts:
        """Return the exact sums; predictions and labels outside the bounds count as the bounds."""
        with np.errstate(all="ignore"):  # a warning that depends on labels would leak them
            errors = np.abs(np.clip(predicted, *self.bounds) - np.clip(labels, *self.bounds)) / self.largest
            k = np.rint(np.minimum(errors, 1.0) * STEPS).astype(np.int64)
        return np.array([(STEPS * k).sum(), (k * (STEPS - k)).sum()])

    def figures(self, exact: Counts, source: WordSource) -> dict[str, Figure]:
        """Return what follows from the sums, once noise is on them; no error is negative."""
        means = self.statistic.noise.release(exact, source) * (1 / (STEPS**2 * self.rows))
        first = float(np.clip(means[0], 0, 1))
        square = float(np.clip(means[0] - means[1], first**2, 1))  # never below the square of the mean
        reach = self._reach(square, self._deviation * math.sqrt(2))
        mse = Figure(self.largest**2 * square, self.largest**2 * reach / 2)
        mae_reach = self._reach(first, self._deviation, min(square + reach, 1.0))
        mae = Figure(self.largest * first, self.largest * mae_reach / 2)
        return {"mse": mse, "rmse": rmse_of(mse), "mae": mae}

    @property
    def _deviation(self) -> float:
        """Of the noise in a mean whose values lie between 0 and 1."""
        return math.sqrt(self.statistic.noise.variance()) / STEPS**2 / self.rows

    def _reach(self, share: float, noise: float, square: float = 1.0) -> float:
        """Return how far the mean of values in [0, 1] may lie from an estimate of it: 95 %, at the worst variance.

        The variance is not known. At a mean p it is at most p − p², and s − p² for a mean square of s at most. So
        the limits are those p for which (p − share)² = z²(noise² + variance(p)/rows), as in Wilson's interval.
        """
        z2 = _REACH**2
        reaches = []
        for slope, rest in ((1.0, 0.0), (0.0, square)):
            a, b = 1 + z2 / self.rows, share + slope * z2 / self.rows / 2
            root = math.sqrt(max(b**2 - a * (share**2 - z2 * (noise**2 + rest / self.rows)), 0.0))
            reaches.append(max((b + root) / a - share, share - (b - root) / a))
        return min(*reaches, max(share, 1 - share))

    # ---- before anything is paid ------------------------------------------------------------------------------

    def expected(self) -> dict[str, float]:
        """Return the ± that noise gives each figure.

        Examples
        --------
        >>> plan = ScorePlan.of(1000, Fraction(1), (0.0, 10.0))
        >>> {name: round(error, 3) for name, error in plan.expected().items()}
        {'mse': 0.2, 'mae': 0.014}
        """
        noise = self.largest * self._deviation
        return {"mse": self.largest * noise * math.sqrt(2), "mae": noise}

    def describe(self) -> str:
        """Return which errors it can show, for people: noise hides those of less than twice its own size."""
        noise = self.expected()
        least = number(math.sqrt(2 * noise["mse"]), 3)
        shown = (
            f"the {METRICS['rmse']} if it is {least} or more, {METRICS['mae']} with ± {number(noise['mae'], 2)}"
        )
        return f"A score of {self._ask} shows {shown}."

    @property
    def _ask(self) -> str:
        return f"{self.rows:,} rows for ε = {float(self.epsilon):g}"
