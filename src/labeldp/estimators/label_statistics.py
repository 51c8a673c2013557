"""What is spent before labels are randomised: the split of the budget, and a private mean and prior."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from fractions import Fraction

import numpy as np
from numpy.typing import NDArray

from labeldp._validation import EPSILON_RANGE
from labeldp.channels.proof import fingerprint
from labeldp.errors import ParameterError
from labeldp.estimators.bayes import explained_risk
from labeldp.estimators.learner import Knowledge
from labeldp.ledger import Budget, Charge, Purpose, new_charge
from labeldp.mechanisms import Mechanism
from labeldp.priors.curator import count, count_noise, grid_sum, mean_noise, noisy_counts, noisy_mean
from labeldp.randomness import WordSource
from labeldp.release.terms import join_fingerprints

__all__ = ["LabelBudget", "LabelSums", "knowledge_of"]

Array = NDArray[np.float64]

_CELLS = 64
_COUNTABLE = 800
"""A prior is counted if rows · its ε is at least this: else its bins would be noise."""


@dataclass(frozen=True, slots=True)
class LabelBudget:
    """How ε is split, by what is public: the mean, the prior, and what is left for labels."""

    mean: Fraction
    prior: Fraction
    labels: Fraction

    @classmethod
    def plan(cls, epsilon: Fraction, rows: int, spectrum: Array, trust: str) -> LabelBudget:
        """Return the split of least expected risk, for labels of a typical spread in their range.

        The mean must be good enough that nothing is worse than the private constant; a coarse prior is
        worth a twentieth where it is not all noise, and is left out elsewhere.
        """
        if trust == "local":
            return cls(Fraction(0), Fraction(0), epsilon)
        total = float(epsilon)
        prior = total / 20 if total / 20 * rows >= _COUNTABLE else 0.0
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
        mean, counts = Fraction(f"{best[1] * total:.4g}"), Fraction(f"{prior:.4g}")
        return cls(mean, counts, epsilon - mean - counts)

    def charges(self, rows_per_person: int) -> list[Charge]:
        """Return what is to be paid."""
        parts: list[tuple[Purpose, Fraction]] = [
            ("labels", self.labels),
            ("mean", self.mean),
            ("prior", self.prior),
        ]
        return [
            new_charge(purpose, Budget(epsilon), purpose=purpose, rows_per_person=rows_per_person)
            for purpose, epsilon in parts
            if epsilon
        ]

    def descriptions(self, mechanisms: Sequence[Mechanism]) -> list[str]:
        """Return what each charge was spent on, for the ledger; labels on a mechanism a round."""
        prints = [fingerprint(mechanism.channel) for mechanism in mechanisms]
        texts = [join_fingerprints(prints)]
        if self.mean:
            texts.append(str(mean_noise(self.mean)))
        if self.prior:
            texts.append(str(count_noise(self.prior)))
        return texts


@dataclass(frozen=True, slots=True)
class LabelSums:
    """What mean and prior are made from: exact sums over labels, before any noise; sums of parts add up.

    Attributes
    ----------
    rows : int
    total : array of one integer
        Of the labels' places in the bounds, by `grid_sum`.
    counts : array of integers
        How many labels lie in each of the prior's bins.
    """

    rows: int
    total: NDArray[np.int64]
    counts: NDArray[np.int64]

    @classmethod
    def of(cls, labels: Array, bounds: tuple[float, float]) -> LabelSums:
        """Return the sums over some labels."""
        return cls(labels.size, grid_sum(labels, bounds), count(labels, bounds, _CELLS))

    def __add__(self, other: LabelSums) -> LabelSums:
        return LabelSums(self.rows + other.rows, self.total + other.total, self.counts + other.counts)

    def __repr__(self) -> str:
        return f"<{self.rows:,} labels, summed>"


def knowledge_of(
    sums: Callable[[], LabelSums], bounds: tuple[float, float], budget: LabelBudget, source: WordSource
) -> tuple[Knowledge, Array, Array]:
    """Return what is known from noisy sums; sums are computed only if they were paid for."""
    low, high = bounds
    width = high - low
    values = low + width * (np.arange(_CELLS) + 0.5) / _CELLS
    values[0], values[-1] = low, high
    if not budget.mean:  # local trust: all labels are equally likely, and their spread a guess
        flat = np.full(_CELLS, 1 / _CELLS)
        return Knowledge(low, high, (low + high) / 2, width**2 / 12, width**2 / 20, counted=False), values, flat
    exact = sums()
    mean, mean_variance = noisy_mean(exact.total, exact.rows, bounds, budget.mean, source)
    mean = float(np.clip(mean, low, high))
    if budget.prior:
        noisy = noisy_counts(exact.counts, budget.prior, source)
        if exact.rows * float(budget.prior) < 8000:
            noisy = np.convolve(np.pad(noisy, 1, mode="edge"), [0.25, 0.5, 0.25], mode="valid")
        masses = np.maximum(noisy, 0.0) + 1e-12
    else:  # too few labels for a histogram: a bump of typical width around the mean
        from scipy.stats import beta  # noqa: PLC0415 (slow to import)

        middle = float(np.clip((mean - low) / width, 0.05, 0.95))
        sharp = 1 / 0.22 - 1
        masses = np.diff(beta.cdf(np.linspace(0.0, 1.0, _CELLS + 1), middle * sharp, (1 - middle) * sharp))
    masses /= masses.sum()
    variance = float(masses @ (values - masses @ values) ** 2)
    return Knowledge(low, high, mean, mean_variance, variance, counted=bool(budget.prior)), values, masses
