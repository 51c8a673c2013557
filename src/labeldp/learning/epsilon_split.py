"""The split of the ε of a fit: between labels and statistics, and among the statistics.

::

    ε ─┬─ labels, released one by one                     1 to 90 %, by rows · ε²: `share_for_labels`
       │                                                  and what sums leave: `prefers_labels`
       └─ statistics of all rows                          the rest: `SumBudget`
          ├─ are the bounds far too wide?                  5 %, and worth 40 rows · ε at most
          ├─ if they are: the width of the range          20 %, 200
          ├─              the position of the range       25 %, 100
          ├─ stage 1: sums of labels by group             20 %
          ├─ spread of labels around the model            10 %, 80
          ├─ stage 2: sums of residuals by new groups     37.5 %
          ├─ spread again                                 10 %, 80
          └─ stage 3: sums of residuals by new groups     all that is left

Each percentage is of the ε that remains at that step; the number after it caps the step at that many rows · ε.
With few rows · ε, the range, the spread and the second stage are skipped; with very few, all ε is spent on the
mean of the labels. The product rows · ε decides because a noisy count of all rows has a relative error of about
1/(rows · ε).
"""

from __future__ import annotations

import math
from fractions import Fraction
from typing import NamedTuple

from labeldp._values import Sums
from labeldp.accounts.statistic import Statistic
from labeldp.errors import PrivacyProofError
from labeldp.exact.word_sources import WordSource


class Share(NamedTuple):
    """A share of the remaining ε: ``fraction`` of it, but at most the ε for which rows · ε is ``most``."""

    fraction: float
    most: float = math.inf


BOUNDS_SUSPECTED = Share(0.12, 16)
BOUNDS_TESTED = Share(0.05, 40)
RANGE_WIDTH = Share(0.2, 200)
RANGE_POSITION = Share(0.25, 100)
SPREAD = Share(0.1, 80)
"""Shares for statistics other than sums. Both ``BOUNDS_`` shares pay for the test whether the bounds are far too
wide: the first where rows · ε is too small to look for a range, the second elsewhere."""

THREE_STAGES = (Share(0.2), Share(0.375))
"""Shares of the first two stages where length scales of columns are learnt; the third gets the rest."""

TWO_STAGES = 0.3
"""Of two stages, the least fraction of ε for the first."""

TWO_STAGES_MOST = 0.4
"""Of two stages, the largest fraction of ε for the first."""

TWO_STAGES_WORTH = 50
"""Between these fractions, the first stage gets the ε for which rows · ε is this number."""

FEWEST_FOR_GROUPS = 60
FEWEST_FOR_RANGE = 200
FEWEST_FOR_SPREAD = 500
FEWEST_FOR_LENGTHS = 1000
"""The least rows · ε for sums by group, for a search for the range, for counts that measure the spread, and for a
third stage, from which length scales of columns are learnt."""

LABELS_FROM, LABELS_GROWTH = 400, 0.55
LEAST_FOR_LABELS, MOST_FOR_LABELS = 0.01, 0.9
"""The labels' share of ε is ``LABELS_GROWTH`` · log10(rows · ε² / ``LABELS_FROM``), clipped to
[``LEAST_FOR_LABELS``, ``MOST_FOR_LABELS``]. It grows because more rows reduce the noise of sums faster than that
of labels: as 1/(rows · ε) and as 1/√(rows · ε²)."""

ENOUGH_EXPLAINED = (0.15, 0.5)
"""Of three stages, after the first and after the second: if the model explains less of the variance of labels than
this, no more sums are released, and labels get the rest of ε. Sums over groups show little of an interaction;
labels show it."""

MOSTLY_LABELS = 0.5
"""Sums are cut short only if labels have at least this share of ε; else labels are too noisy to replace them."""

LABELS_WORTH = 1000
"""The least rows · ε² at which labels are released even if they were not asked for, because the model improves."""


def share_for_labels(rows: int, epsilon: float, *, required: bool) -> float:
    """Return the share of ε for labels that are released one by one.

    Parameters
    ----------
    rows : int
    epsilon : float
    required : bool
        Whether labels must be released; else the share is 0 where sums alone are better.
    """
    power = rows * epsilon**2
    if not required and power < LABELS_WORTH:
        return 0.0
    share = LABELS_GROWTH * math.log10(power / LABELS_FROM)
    return min(max(share, LEAST_FOR_LABELS), MOST_FOR_LABELS)


class SumBudget:
    """The remaining ε for statistics of all rows, and the statistics that were released so far.

    The ε of a statistic may depend on noisy values that were released before. The sum never exceeds the budget,
    because `release` refuses to spend more than is left.

    Parameters
    ----------
    epsilon : Fraction
    rows : int
    labels_share : float
        The share of all ε that is planned for labels; 0 if they cannot get more.
    """

    def __init__(self, epsilon: Fraction, rows: int, labels_share: float = 0.0) -> None:
        self.left = epsilon
        self.rows = rows
        self.labels_share = labels_share
        self.noise: list[Statistic] = []

    @property
    def rows_epsilon(self) -> float:
        """Rows times the remaining ε."""
        return self.rows * float(self.left)

    def part(self, fraction: float, most: float = math.inf) -> Fraction:
        """Return a part of the remaining ε by the rule of `Share`, without spending it."""
        epsilon = min(fraction * float(self.left), most / self.rows)
        return min(Fraction(f"{epsilon:.4g}"), self.left)

    def stage_shares(self, *, with_length_scales: bool) -> tuple[Share, ...]:
        """Return the shares of all stages of sums but the last, which gets the rest."""
        if with_length_scales:
            return THREE_STAGES
        fraction = min(TWO_STAGES_MOST, TWO_STAGES_WORTH / self.rows_epsilon)
        return (Share(max(TWO_STAGES, fraction)),)

    def prefers_labels(self, stage: int, explained: float) -> bool:
        """Return whether labels get what is left after a stage, by the share of variance that sums explain."""
        return self.labels_share >= MOSTLY_LABELS and explained < ENOUGH_EXPLAINED[stage]

    def release(
        self, exact: Sums, epsilon: Fraction, source: WordSource, *, kind: str, what: str, steps: int = 1
    ) -> Sums:
        """Spend ε, and return the integers with noise; `RULES` has their sensitivity to one label."""
        if not 0 < epsilon <= self.left:
            raise PrivacyProofError(f"{what}: more than is left would be spent, so nothing was released")
        statistic = Statistic(what, kind, exact.size, steps, epsilon)
        self.left -= epsilon
        self.noise.append(statistic)
        return statistic.noise.release(exact, source)
