"""The integer sums behind a score: what one label can move them by together, and the noise for that.

A row's error and its label each become an integer from 0 to `STEPS`: k for |prediction − label|, m for the label's
place in the bounds. Sums of STEPS·k and k·(STEPS − k) move by no more together than the first of them alone, so a
mean absolute error comes with the squared one at no more noise for the sums; see docs/proofs/scores.md.
"""

from __future__ import annotations

import math
from collections.abc import Collection
from dataclasses import dataclass
from fractions import Fraction

import numpy as np

from labeldp._values import Array, Counts
from labeldp.accounts.budget import Budget, Charge, new_charge
from labeldp.accounts.numbers import number
from labeldp.accounts.scores import METRICS, Figure
from labeldp.accounts.statistic import Statistic
from labeldp.errors import ParameterError
from labeldp.exact.integers import DiscreteLaplace
from labeldp.exact.word_sources import WordSource
from labeldp.learning.quality import as_metrics, rmse_of

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
    metrics : frozenset of str
    """

    rows: int
    epsilon: Fraction
    bounds: tuple[float, float]
    largest: float
    metrics: frozenset[str]

    @classmethod
    def of(
        cls,
        rows: int,
        epsilon: Fraction,
        bounds: tuple[float, float],
        metrics: Collection[str] | str,
        largest: float | None = None,
    ) -> ScorePlan:
        """Return the plan, or refuse one that would say nothing."""
        if rows > MOST_ROWS:
            raise ParameterError(
                f"a score takes at most {MOST_ROWS:,} rows, got {rows:,}: give a random part of them"
            )
        width = bounds[1] - bounds[0]
        plan = cls(rows, epsilon, bounds, width if largest is None else largest, as_metrics(metrics))
        plan._refuse_if_empty()
        return plan

    @property
    def width(self) -> float:
        """The width of the bounds."""
        return self.bounds[1] - self.bounds[0]

    @property
    def squares(self) -> bool:
        """Whether squared errors are needed."""
        return self.metrics != {"mae"}

    @property
    def blocks(self) -> int:
        """How many kinds of sums there are, those of errors and those of labels."""
        return 1 + ("r2" in self.metrics)

    @property
    def noise(self) -> DiscreteLaplace:
        """The noise of each sum: a block moves by at most STEPS² with one label, whatever is in it."""
        return self.statistic.noise

    @property
    def statistic(self) -> Statistic:
        """What is released, for a card."""
        size = 1 + ("mae" in self.metrics and self.squares) + 2 * (self.blocks - 1)
        return Statistic("sums of errors", "score", size, self.blocks * STEPS**2, self.epsilon, "score")

    def charge(self, rows_per_person: int) -> Charge:
        """Return what the score costs, for a ledger."""
        people = {"rows_per_person": rows_per_person}
        return new_charge("score", Budget(self.epsilon), purpose="score", mechanism=str(self.statistic), **people)

    def sums(self, predicted: Array, labels: Array) -> Counts:
        """Return the exact sums; predictions and labels outside the bounds count as the bounds."""
        with np.errstate(all="ignore"):  # a warning that depends on labels would leak them
            clipped = np.clip(labels, *self.bounds)
            k = _steps(np.abs(np.clip(predicted, *self.bounds) - clipped) / self.largest)
            terms = [k * k] if "mae" not in self.metrics else [STEPS * k, k * (STEPS - k)][: 1 + self.squares]
            if "r2" in self.metrics:
                m = _steps((clipped - self.bounds[0]) / self.width)
                terms += [STEPS * m, m * (STEPS - m)]
        return np.array([term.sum() for term in terms])

    def figures(self, exact: Counts, source: WordSource) -> dict[str, Figure]:
        """Return what follows from the sums, once noise is on them; no error is negative."""
        unit = 1 / (STEPS**2 * self.rows)
        means = self.noise.release(exact, source) * unit
        result: dict[str, Figure] = {}
        first, square = float(np.clip(means[0], 0, 1)), 1.0
        if self.squares:
            share = first
            if "mae" in self.metrics:  # a mean square is never below the square of the mean
                share = float(np.clip(means[0] - means[1], first**2, 1))
            reach = self._reach(share, self._deviation * self._both)
            result["mse"] = Figure(self.largest**2 * share, self.largest**2 * reach / 2)
            result["rmse"] = rmse_of(result["mse"])
            square = min(share + reach, 1.0)
        if "mae" in self.metrics:
            reach = self._reach(first, self._deviation, square)
            result["mae"] = Figure(self.largest * first, self.largest * reach / 2)
        if "r2" in self.metrics:
            result["r2"] = self._r2(result["mse"], float(means[-2]), float(means[-1]))
        return result

    @property
    def _deviation(self) -> float:
        """Of the noise in a mean whose values lie between 0 and 1."""
        return math.sqrt(self.noise.variance()) / STEPS**2 / self.rows

    @property
    def _both(self) -> float:
        """How much noisier squared errors are, where they are the difference of two sums."""
        return math.sqrt(2) if "mae" in self.metrics else 1.0

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

    def _r2(self, mse: Figure, p: float, q: float) -> Figure:
        """Return 1 − mse/variance; p and q are means of label and label·(1 − label) in units of the bounds.

        Limits are those of the error over the opposite ones of the variance, as chance may move both together.
        """
        v = self._deviation**2
        error, more = mse.value / self.width**2, 2 * mse.standard_error / self.width**2
        variance = min(p * (1 - p) + v - q, 0.25)
        reach = self._reach(max(variance, 0.0), math.sqrt(v * (1 + (1 - 2 * p) ** 2)))
        if variance <= reach:
            return Figure(math.nan, math.inf)
        rest = error / variance
        low, high = max(error - more, 0.0) / (variance + reach), (error + more) / (variance - reach)
        return Figure(1 - rest, max(high - rest, rest - low) / 2)

    # ---- before anything is paid ------------------------------------------------------------------------------

    def expected(self) -> dict[str, float]:
        """Return the ± that noise gives each figure; that of R² is for labels spread evenly over the bounds.

        Examples
        --------
        >>> plan = ScorePlan.of(1000, Fraction(1), (0.0, 10.0), ["mse", "mae", "r2"])
        >>> {name: round(error, 3) for name, error in plan.expected().items()}
        {'mse': 0.4, 'mae': 0.028, 'r2': 0.059}
        """
        result = {}
        if self.squares:
            result["mse"] = self.largest**2 * self._deviation * self._both
        if "mae" in self.metrics:
            result["mae"] = self.largest * self._deviation
        if "r2" in self.metrics:
            result["r2"] = 12 * self._deviation * math.hypot((self.largest / self.width) ** 2 * self._both, 1.0)
        return result

    def describe(self) -> str:
        """Return which errors it can show, for people: noise hides those of less than twice its own size."""
        noise = self.expected()
        squares = noise.pop("mse", None)
        parts = [f"{METRICS[name]} with ± {number(error, 2)}" for name, error in noise.items()]
        if squares is not None:
            parts.insert(0, f"the typical error (RMSE) if it is {number(math.sqrt(2 * squares), 3)} or more")
        return f"A score of {self._ask} shows {', '.join(parts)}."

    @property
    def _ask(self) -> str:
        return f"{self.rows:,} rows for ε = {float(self.epsilon):g}"

    @property
    def _noise(self) -> str:
        return ", ".join(f"{METRICS[name]} ± {number(error, 2)}" for name, error in self.expected().items())

    def _refuse_if_empty(self) -> None:
        """Refuse a score whose noise would hide even the errors of guessing the middle for labels spread evenly.

        One error that is not hidden is enough: the other then has a limit.
        """
        sizes = {"mse": self.width**2 / 12, "mae": self.width / 4, "r2": 1.0}
        hidden = {name: 2 * error / sizes[name] for name, error in self.expected().items()}
        short = 1.01 * max(hidden.pop("r2", 0.0), min(hidden.values()))
        if short < 1.01:
            return
        raise ParameterError(
            f"a score of {self._ask} would say nothing: its noise is {self._noise}; give ε = "
            f"{number(short * float(self.epsilon), 3)} or more, {math.ceil(self.rows * short):,} rows or more, or "
            "tighter bounds; the mean absolute error alone needs the least"
        )


def _steps(shares: Array) -> Counts:
    """Return shares of the largest as integers up to `STEPS`."""
    return np.asarray(np.rint(np.minimum(shares, 1.0) * STEPS).astype(np.int64))
