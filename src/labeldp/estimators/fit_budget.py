"""How a fit splits ε, by what is public: a range, sums, the spread of residuals, and labels."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction

from labeldp._validation import EPSILON_RANGE
from labeldp.channels.proof import fingerprint
from labeldp.errors import ParameterError
from labeldp.ledger import Budget, Charge, Purpose, new_charge
from labeldp.mechanisms import Mechanism
from labeldp.noise import DiscreteLaplace
from labeldp.release.terms import join_fingerprints

__all__ = ["STEPS", "FitBudget", "sum_noise"]

STEPS = 1 << 16
"""Labels are integers from 0 to this where they are summed."""

_FEWEST_FOR_LABELS, _LABELS_GROW, _MOST_FOR_LABELS = 400, 0.55, 0.9
"""Noise of sums falls with rows · ε, that of labels with its root: from so many rows · ε² on labels get a part of
ε that grows by so much with each power of ten, up to the most. Found on the choosing half of
`benchmarks.accuracy`."""

_LEAST_FOR_LABELS = 0.03
"""The part for labels where they tell next to nothing, and must be released all the same."""

_WORTH_LABELS = 1000
"""From so many rows · ε² on labels are released also where nobody asks for them."""

_RANGE = (0.05, 120, 40)
_SPREAD = (0.02, 100, 20)
"""The most of ε for the range and for the spread; how much ε times rows is enough; and with less there is none."""

_TWO_STAGES = 60
"""From this many rows · ε on, sums have two stages: a rougher first model could not tell residuals."""


@dataclass(frozen=True, slots=True)
class FitBudget:
    """Parts of ε. Those that are 0 are not spent; with one stage of sums, it is ``rough``."""

    rows: int
    range: Fraction = Fraction(0)
    rough: Fraction = Fraction(0)
    spread: Fraction = Fraction(0)
    fine: Fraction = Fraction(0)
    labels: Fraction = Fraction(0)

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
        range, spread = (_small(total, rows, limits) for limits in (_RANGE, _SPREAD))
        spread = spread if grouped else 0.0
        left = total - range - spread
        share = (
            _label_share(rows * total**2, always=labels)
            if grouped
            else 1 - min(0.5, max(0.05, 20 / (rows * total)))
        )
        one_by_one = min(max(share * left, least), left - least) if share else 0.0
        if one_by_one < least and share:
            raise ParameterError(f"epsilon={total} is too small to be split; give at least {2 * least}")
        fractions = [Fraction(f"{part:.4g}") for part in (range, spread, one_by_one)]
        sums = epsilon - sum(fractions)
        rough = sums
        if grouped and rows * float(sums) >= _TWO_STAGES:
            rough = Fraction(f"{_first_part(rows, float(sums)) * float(sums):.4g}")
        return cls(rows, fractions[0], rough, fractions[1], sums - rough, fractions[2])

    def charges(self, rows_per_person: int) -> list[Charge]:
        """Return what is to be paid."""
        return [
            new_charge(what, Budget(epsilon), purpose=purpose, rows_per_person=rows_per_person)
            for what, purpose, epsilon in self._parts()
        ]

    def _parts(self) -> list[tuple[str, Purpose, Fraction]]:
        parts: list[tuple[str, Purpose, Fraction]] = [
            ("labels", "labels", self.labels),
            ("range", "prior", self.range),
            ("rough sums" if self.fine else "sums", "sums", self.rough),
            ("spread", "prior", self.spread),
            ("sums", "sums", self.fine),
        ]
        return [part for part in parts if part[2]]

    def descriptions(self, mechanisms: Sequence[Mechanism], range_noise: str) -> list[str]:
        """Return what each charge was spent on, for the ledger; labels on a mechanism a round."""
        labels = join_fingerprints([fingerprint(mechanism.channel) for mechanism in mechanisms])
        named = {"labels": labels, "range": range_noise}
        return [named.get(what) or str(sum_noise(epsilon)) for what, _, epsilon in self._parts()]


def sum_noise(epsilon: Fraction) -> DiscreteLaplace:
    """Return the noise of a sum of labels as integers: one label moves one sum, by at most `STEPS`."""
    return DiscreteLaplace.calibrated(sensitivity=STEPS, epsilon=epsilon)


def _small(epsilon: float, rows: int, limits: tuple[float, float, float]) -> float:
    part, enough, least = limits
    wish = min(part * epsilon, enough / rows)
    return wish if rows * wish >= least and wish >= EPSILON_RANGE[0] else 0.0


def _label_share(power: float, *, always: bool) -> float:
    if not always and power < _WORTH_LABELS:
        return 0.0
    wish = _LABELS_GROW * math.log10(power / _FEWEST_FOR_LABELS)
    return min(max(wish, _LEAST_FOR_LABELS), _MOST_FOR_LABELS)


def _first_part(rows: int, epsilon: float) -> float:
    """Return the rough model's part: more where it would be worth less than 50 rows without noise."""
    return min(0.4, max(0.3, 50 / (rows * epsilon)))
