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

from labeldp._arrays import Array, Counts
from labeldp.errors import ParameterError
from labeldp.estimators.quality import as_metrics, rmse_of
from labeldp.ledger import Statistic
from labeldp.noise import DiscreteLaplace
from labeldp.randomness import WordSource
from labeldp.release.numbers import number
from labeldp.release.scores import METRICS, Figure

STEPS = 1 << 18
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
        The largest error that any label in the bounds could have; bounds' width if predictions lie in them.
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
        """What leaves, for a card."""
        size = 1 + ("mae" in self.metrics and self.squares) + 2 * (self.blocks - 1)
        return Statistic("sums of errors", "score", size, self.blocks * STEPS**2, self.epsilon, "score")

    def sums(self, predicted: Array, labels: Array) -> Counts:
        """Return the exact sums; labels outside the bounds count as the bounds."""
        low, high = self.bounds
        with np.errstate(all="ignore"):  # a warning that depends on labels would leak them
            clipped = np.clip(labels, low, high)
            k = np.rint(np.minimum(np.abs(predicted - clipped) / self.largest, 1.0) * STEPS).astype(np.int64)
            terms = [k * k] if "mae" not in self.metrics else [STEPS * k, k * (STEPS - k)][: 1 + self.squares]
            if "r2" in self.metrics:
                m = np.rint((clipped - low) / (high - low) * STEPS).astype(np.int64)
                terms += [STEPS * m, m * (STEPS - m)]
        return np.array([term.sum() for term in terms])

    def figures(self, exact: Counts, source: WordSource) -> dict[str, Figure]:
        """Return what follows from the sums, once noise is on them."""
        unit = 1 / (STEPS**2 * self.rows)
        means = self.noise.release(exact, source) * unit
        result: dict[str, Figure] = {}
        square = 1.0
        if self.squares:
            share = float(means[0])
            if "mae" in self.metrics:  # a mean square is never below the square of the mean
                share = max(float(means[0] - means[1]), max(share, 0.0) ** 2)
            result["mse"] = self._figure(share, self._deviation * self._both, self.largest**2)
            square = share + 2 * self._deviation * self._both
            result["rmse"] = rmse_of(result["mse"])
        if "mae" in self.metrics:
            result["mae"] = self._figure(float(means[0]), self._deviation, self.largest, square)
        if "r2" in self.metrics:
            result["r2"] = self._r2(result["mse"].value, float(means[-2]), float(means[-1]))
        return result

    @property
    def _deviation(self) -> float:
        """Of the noise in a mean whose values lie between 0 and 1."""
        return math.sqrt(self.noise.variance()) / STEPS**2 / self.rows

    @property
    def _both(self) -> float:
        """How much noisier squared errors are, where they are the difference of two sums."""
        return math.sqrt(2) if "mae" in self.metrics else 1.0

    def _figure(self, share: float, noise: float, most: float, square: float = 1.0) -> Figure:
        """Return a mean of values in [0, 1], in its unit; chance adds least where the mean of squares is known."""
        inside = min(max(share, 0.0), 1.0)
        chance = max(min(inside, square) - inside**2, 0.0) / self.rows
        return Figure(most * share, most * math.sqrt(noise**2 + chance))

    def _r2(self, mse: float, p: float, q: float) -> Figure:
        """Return 1 − mse/variance; p and q are means of label and label·(1 − label) in units of the bounds."""
        width, v = self.bounds[1] - self.bounds[0], self._deviation**2
        error, ratio = mse / width**2, (self.largest / width) ** 2
        variance = p * (1 - p) + v - q
        noise = math.sqrt(v * (1 + (1 - 2 * p) ** 2))
        if variance <= 2 * noise:
            return Figure(math.nan, math.inf)
        rest = error / variance
        own = ratio * self._deviation * self._both
        inside = min(max(error / ratio, 0.0), 1.0)
        spread = min(variance, 0.25)
        chance = ratio * math.sqrt(inside * (1 - inside) / self.rows) + abs(rest) * math.sqrt(spread / self.rows)
        return Figure(1 - rest, math.sqrt(own**2 + (rest * noise) ** 2 + chance**2) / variance)

    # ---- before anything is paid ------------------------------------------------------------------------------

    def expected(self) -> dict[str, float]:
        """Return the ± that noise gives each figure; that of R² is for labels spread evenly over the bounds.

        Examples
        --------
        >>> plan = ScorePlan.of(1000, Fraction(1), (0.0, 10.0), ["mse", "mae", "r2"])
        >>> {name: round(error, 3) for name, error in plan.expected().items()}
        {'mse': 0.4, 'mae': 0.028, 'r2': 0.059}
        """
        both, width = self._both, self.bounds[1] - self.bounds[0]
        result = {}
        if self.squares:
            result["mse"] = self.largest**2 * self._deviation * both
        if "mae" in self.metrics:
            result["mae"] = self.largest * self._deviation
        if "r2" in self.metrics:
            result["r2"] = 12 * self._deviation * math.hypot((self.largest / width) ** 2 * both, 1.0)
        return result

    def describe(self) -> str:
        """Return what ± is to be expected, for people."""
        expected = self.expected()
        parts = [f"{METRICS[name]} ± {number(error, 2)}" for name, error in expected.items()]
        says = (
            f"A score of {self.rows:,} rows for ε = {float(self.epsilon):g} will have noise of: {', '.join(parts)}"
        )
        if "mse" in expected:
            says += f" (an RMSE below {number(math.sqrt(2 * expected['mse']), 2)} is not told from 0)"
        if "r2" in expected:
            says += "; that of R² is more if labels spread less than evenly over the bounds"
        return f"{says}. {self.shared}".strip()

    @property
    def shared(self) -> str:
        """What several figures for one ε do to each ±, in words; empty if there is one."""
        if self.metrics <= {"mse", "rmse"} or not self.squares:
            return ""
        says = (
            "Several figures share one ε: the noise of the mean squared error is "
            f"{self.blocks * self._both:.3g} times what it would be alone"
        )
        return f"{says}, that of the mean absolute error {self.blocks}." if "mae" in self.metrics else f"{says}."

    def _refuse_if_empty(self) -> None:
        """Refuse a score whose noise would not tell even labels spread evenly over the bounds from none."""
        width, expected = self.bounds[1] - self.bounds[0], self.expected()
        sizes = {"mse": width**2 / 12, "mae": width / 4, "r2": 1.0}  # labels spread evenly, and the middle for all
        short = max(2 * error / sizes[name] for name, error in expected.items())
        if short < 1:
            return
        epsilon = float(self.epsilon) * short
        advice = [f"{math.ceil(self.rows * short * 1.01):,} rows or more", "tighter bounds"]
        if epsilon < 20:
            advice.insert(0, f"ε = {number(epsilon * 1.01, 3)} or more")
        if self.largest > 1.5 * width:
            advice.append("predictions clipped to the bounds, which these leave by far")
        if self.squares:
            advice.append("the mean absolute error alone (metrics: mae), which needs the least")
        noise = ", ".join(
            f"± {number(error, 2)} in the {METRICS[name]}, where guessing the middle of the bounds has about "
            f"{number(sizes[name], 2)}"
            for name, error in expected.items()
        )
        raise ParameterError(
            f"a score of {self.rows:,} rows for ε = {float(self.epsilon):g} would say nothing: its noise is "
            f"{noise}; give {', or '.join(advice)}"
        )
