"""How a fit splits ε: between noisy sums and labels by what is public, and among sums as they come."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction

from labeldp._arrays import Sums
from labeldp._values import EPSILON_RANGE
from labeldp.channels.proof import fingerprint
from labeldp.errors import ParameterError, PrivacyProofError
from labeldp.ledger import Budget, Charge, Purpose, Statistic, new_charge
from labeldp.mechanisms import Mechanism
from labeldp.randomness import WordSource
from labeldp.release.terms import join_fingerprints

_FEWEST_FOR_LABELS, _LABELS_GROW, _MOST_FOR_LABELS = 400, 0.55, 0.9
"""Noise of sums falls with rows · ε, that of labels with its root: from so many rows · ε² on labels get a part of
ε that grows by so much with each power of ten, up to the most. Found on the choosing half of
`benchmarks.accuracy`."""

_LEAST_FOR_LABELS = 0.01
"""The part for labels where they tell next to nothing, and must be released all the same."""

_WORTH_LABELS = 1000
"""From so many rows · ε² on labels are released also where nobody asks for them."""


class SumBudget:
    """What is left of ε for statistics of all rows, each paid as it comes, and what was bought with it.

    How much the next one gets may depend on what the last one gave out: the parts add up to no more than there is.

    Parameters
    ----------
    epsilon : Fraction
    rows : int
    """

    def __init__(self, epsilon: Fraction, rows: int) -> None:
        self.left, self.rows = epsilon, rows
        self.noise: list[Statistic] = []

    @property
    def power(self) -> float:
        """What is left, times rows: a count of all rows has noise of about one over it."""
        return self.rows * float(self.left)

    def part(self, share: float, most: float) -> Fraction:
        """Return a share of what is left, or as much as is worth ``most`` rows; it is not taken yet."""
        wish = min(share * float(self.left), most / self.rows)
        return min(Fraction(f"{wish:.4g}"), self.left)

    def release(
        self, exact: Sums, epsilon: Fraction, source: WordSource, *, kind: str, what: str, steps: int = 1
    ) -> Sums:
        """Take a part, and return integers with noise for it; `RULES` say how far one label moves them."""
        if not 0 < epsilon <= self.left:
            raise PrivacyProofError(f"{what}: more than is left would be spent, so nothing was released")
        statistic = Statistic(what, kind, exact.size, steps, epsilon)
        self.left -= epsilon
        self.noise.append(statistic)
        return statistic.noise.release(exact, source)


@dataclass(frozen=True, slots=True)
class FitBudget:
    """Parts of ε; under local trust there is none for sums."""

    rows: int
    labels: Fraction
    sums: Fraction = Fraction(0)

    @classmethod
    def plan(cls, epsilon: Fraction, rows: int, *, labels: bool, grouped: bool = True) -> FitBudget:
        """Return the split, by ε and the number of rows alone.

        Parameters
        ----------
        epsilon : Fraction
        rows : int
        labels : bool
            Whether every label must be released; else they are where that pays.
        grouped : bool
            Whether sums over groups can be had, and guesses for all rows; else the mean is the only sum.
        """
        total, least = float(epsilon), EPSILON_RANGE[0]
        share = _label_share(rows * total**2, always=labels)
        if not grouped:
            share = 1 - min(0.5, max(0.05, 100 / (rows * total)))
        one_by_one = min(max(share * total, least), total - least) if share else 0.0
        if share and one_by_one < least:
            raise ParameterError(f"epsilon={total} is too small to be split; give at least {2 * least}")
        for_labels = Fraction(f"{one_by_one:.4g}")
        return cls(rows, for_labels, epsilon - for_labels)

    def charges(self, rows_per_person: int) -> list[Charge]:
        """Return what is to be paid."""
        parts: list[tuple[Purpose, Fraction]] = [("labels", self.labels), ("sums", self.sums)]
        return [
            new_charge(purpose, Budget(epsilon), purpose=purpose, rows_per_person=rows_per_person)
            for purpose, epsilon in parts
            if epsilon
        ]

    def descriptions(self, mechanisms: Sequence[Mechanism], noise: Sequence[Statistic]) -> list[str]:
        """Return what each charge was spent on, for the ledger; labels on a mechanism a round."""
        texts = []
        if self.labels:
            texts.append(join_fingerprints([fingerprint(mechanism.channel) for mechanism in mechanisms]))
        if self.sums:
            texts.append("; ".join(map(str, noise)))
        return texts


def _label_share(power: float, *, always: bool) -> float:
    if not always and power < _WORTH_LABELS:
        return 0.0
    wish = _LABELS_GROW * math.log10(power / _FEWEST_FOR_LABELS)
    return min(max(wish, _LEAST_FOR_LABELS), _MOST_FOR_LABELS)
