"""What is spent before labels are drawn: the budget's split, and a private mean and prior from sums."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from fractions import Fraction

import numpy as np
from numpy.typing import NDArray
from scipy.stats import beta

from labeldp._validation import EPSILON_RANGE
from labeldp.errors import ParameterError
from labeldp.estimators.bayes import explained_risk
from labeldp.estimators.learner import Knowledge
from labeldp.ledger import Budget
from labeldp.mechanisms import Mechanism
from labeldp.mechanisms.base import fingerprint
from labeldp.noise import DiscreteLaplace
from labeldp.randomness import WordSource
from labeldp.release.terms import join_fingerprints

__all__ = ["LabelBudget", "LabelSums", "count_between", "first_knowledge", "knowledge_of", "private_mean"]

Array = NDArray[np.float64]

GRID = 1 << 20
"""A label range has this many steps where labels are summed as integers."""

_CELLS = 64
_EDGES = np.linspace(0.0, 1.0, _CELLS + 1)
_COUNTED = 800
"""A prior is counted if rows · its ε is at least this: else its bins would be noise."""


@dataclass(frozen=True, slots=True)
class LabelBudget:
    """How ε is split, by what is public: the mean, the prior, and what is left for labels."""

    mean: Fraction
    prior: Fraction
    labels: Fraction

    @classmethod
    def plan(cls, epsilon: Fraction, rows: int, spectrum: Array, trust: str) -> LabelBudget:
        """Return the split of least expected risk, for labels of a usual spread in their range.

        The mean must be good enough that nothing is worse than the private constant; a coarse prior is
        worth a twentieth where it is not all noise, and is not made elsewhere.
        """
        if trust == "local":
            return cls(Fraction(0), Fraction(0), epsilon)
        total = float(epsilon)
        prior = total / 20 if total / 20 * rows >= _COUNTED else 0.0
        best = (math.inf, 0.0)
        for share in (0.02, 0.03, 0.05, 0.08, 0.12, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9, 0.97):
            left = total * (1 - share) - prior
            if left < EPSILON_RANGE[0]:
                continue
            noise = (0.52 / math.tanh(left / 2)) ** 2 / 4
            risk = 2 / (rows * share * total) ** 2 + explained_risk(spectrum, 0.02, (noise + 0.02) / rows)
            best = min(best, (risk, share))
        if best[1] == 0:
            raise ParameterError(f"epsilon={total} is too small to be split; give at least 0.002")
        mean, before = Fraction(f"{best[1] * total:.4g}"), Fraction(f"{prior:.4g}")
        return cls(mean, before, epsilon - mean - before)

    def mean_noise(self) -> DiscreteLaplace:
        """Return the noise of the sum behind the mean: one label moves it by at most `GRID` steps."""
        return DiscreteLaplace.calibrated(sensitivity=GRID, epsilon=self.mean)

    def prior_noise(self) -> DiscreteLaplace:
        """Return the noise of the prior's counts: one label moves two of them by one."""
        return DiscreteLaplace.calibrated(sensitivity=2, epsilon=self.prior)

    def mechanisms(self, used: Sequence[Mechanism]) -> dict[str, str]:
        """Return what each part was spent on, for the ledger; labels on a mechanism a round."""
        prints = [fingerprint(mechanism.channel) for mechanism in used]
        found = {"labels": join_fingerprints(prints)}
        if self.mean:
            found["mean"] = str(self.mean_noise())
        if self.prior:
            found["prior"] = str(self.prior_noise())
        return found

    def parts(self) -> dict[str, Budget]:
        """Return what is paid for."""
        named = {"labels": self.labels, "mean": self.mean, "prior": self.prior}
        return {what: Budget(epsilon) for what, epsilon in named.items() if epsilon}


@dataclass(frozen=True, slots=True)
class LabelSums:
    """What mean and prior are made from: exact sums over labels, before any noise; sums of parts add up.

    Attributes
    ----------
    rows : int
    total : array of one integer
        Of the labels' places in the bounds, on a public grid of integers: one label moves it by at most `GRID`.
    counts : array of integers
        How many labels lie in each of the prior's bins. These are never Python integers, whose time depends on
        their size.
    """

    rows: int
    total: NDArray[np.int64]
    counts: NDArray[np.int64]

    @classmethod
    @np.errstate(all="ignore")  # a warning that depends on labels would tell
    def of(cls, labels: Array, bounds: tuple[float, float]) -> LabelSums:
        """Return the sums over some labels."""
        low, high = bounds
        places = (np.clip(labels, low, high) - low) / (high - low)
        return cls(labels.size, _steps(labels, bounds), count_between(places, _EDGES))

    def __add__(self, other: LabelSums) -> LabelSums:
        return LabelSums(self.rows + other.rows, self.total + other.total, self.counts + other.counts)

    def __repr__(self) -> str:
        return f"<{self.rows:,} labels, summed>"


@np.errstate(all="ignore")
def _steps(labels: Array, bounds: tuple[float, float]) -> NDArray[np.int64]:
    low, high = bounds
    steps = np.rint((np.clip(labels, low, high) - low) / (high - low) * GRID).astype(np.int64)
    return np.asarray(steps.sum(keepdims=True))


def private_mean(
    labels: Array, bounds: tuple[float, float], noise: DiscreteLaplace, source: WordSource
) -> tuple[float, float]:
    """Return the labels' mean with noise, and the noise's variance."""
    return _noisy_mean(_steps(labels, bounds), labels.size, bounds, noise, source)


def _noisy_mean(
    steps: NDArray[np.int64], rows: int, bounds: tuple[float, float], noise: DiscreteLaplace, source: WordSource
) -> tuple[float, float]:
    """Return the mean from a sum of integers, so that it and its noise are exact."""
    low, high = bounds
    total = int(noise.release(steps, source)[0])
    unit = (high - low) / GRID / rows
    return float(np.clip(low + total * unit, low, high)), noise.variance() * unit**2


def count_between(values: Array, edges: Array) -> NDArray[np.int64]:
    """Return how many values lie in each bin, ends included, by comparisons that take the same time for all."""
    above = np.zeros(edges.size, dtype=np.int64)
    above[0] = values.size
    for k, edge in enumerate(edges[1:-1], start=1):
        np.sum(values >= edge, dtype=np.int64, out=above[k : k + 1], keepdims=True)
    return above[:-1] - above[1:]


def first_knowledge(
    labels: Array, bounds: tuple[float, float], budget: LabelBudget, source: WordSource
) -> tuple[Knowledge, Array, Array]:
    """Return mean and variance as privately known, and a prior: values and masses."""
    return knowledge_of(lambda: LabelSums.of(labels, bounds), bounds, budget, source)


def knowledge_of(
    sums: Callable[[], LabelSums], bounds: tuple[float, float], budget: LabelBudget, source: WordSource
) -> tuple[Knowledge, Array, Array]:
    """Return what is known once sums, which are asked for only if they are paid for, have got their noise."""
    low, high = bounds
    width = high - low
    values = low + width * (np.arange(_CELLS) + 0.5) / _CELLS
    values[0], values[-1] = low, high
    if not budget.mean:  # nobody may look: all labels are equally likely, and their spread a guess
        flat = np.full(_CELLS, 1 / _CELLS)
        return Knowledge(low, high, (low + high) / 2, width**2 / 12, width**2 / 20, counted=False), values, flat
    found = sums()
    mean, mean_variance = _noisy_mean(found.total, found.rows, bounds, budget.mean_noise(), source)
    if budget.prior:
        noisy = budget.prior_noise().release(found.counts, source).astype(np.float64)
        if found.rows * float(budget.prior) < 8000:
            noisy = np.convolve(np.pad(noisy, 1, mode="edge"), [0.25, 0.5, 0.25], mode="valid")
        masses = np.maximum(noisy, 0.0) + 1e-12
    else:  # too few labels for a histogram: a bump of usual width around the mean
        middle = float(np.clip((mean - low) / width, 0.05, 0.95))
        sharp = 1 / 0.22 - 1
        masses = np.diff(beta.cdf(_EDGES, middle * sharp, (1 - middle) * sharp))
    masses /= masses.sum()
    variance = float(masses @ (values - masses @ values) ** 2)
    return Knowledge(low, high, mean, mean_variance, variance, counted=bool(budget.prior)), values, masses
