"""Where the ε of a fit is split: between labels and sums, and between the statistics that sums are made of.

::

    ε ─┬─ labels, released one by one                     1 to 90 %, by rows · ε²: `share_for_labels`
       └─ statistics of all rows                          the rest: `SumBudget`
          ├─ are the bounds far too wide?                  5 %, and worth 40 rows · ε at most
          ├─ if they are: the width of the range          20 %, 200
          ├─              the position of the range       25 %, 100
          ├─ stage 1: sums of labels by group             20 %
          ├─ spread of labels around the model            10 %, 80
          ├─ stage 2: sums of residuals by new groups     37.5 %
          ├─ spread again                                 10 %, 80
          └─ stage 3: sums of residuals by new groups     all that is left

Each percentage is of what is left by then. With few rows · ε the range, the spread and the second stage are left
out, and with very few rows · ε all goes into the mean of all labels. A count of all rows has a relative noise of
about 1/(rows · ε), which is why this product decides.
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
    """A part of the ε that is left: a fraction of it, or as much as is worth so many rows · ε, if that is less."""

    fraction: float
    most: float = math.inf


BOUNDS_SUSPECTED = Share(0.12, 16)
BOUNDS_TESTED = Share(0.05, 40)
RANGE_WIDTH = Share(0.2, 200)
RANGE_POSITION = Share(0.25, 100)
SPREAD = Share(0.1, 80)
"""For statistics other than sums. The first is the test whether bounds are far too wide where no range can be
found."""

THREE_STAGES = (Share(0.2), Share(0.375))
"""For all stages but the last, where lengths of columns are learnt."""

TWO_STAGES, TWO_STAGES_MOST, TWO_STAGES_WORTH = 0.3, 0.4, 50
"""For the first of two stages: the first fraction, or up to the second if that is worth no more rows · ε than
this."""

FEWEST_FOR_GROUPS = 60
FEWEST_FOR_RANGE = 200
FEWEST_FOR_SPREAD = 500
FEWEST_FOR_LENGTHS = 1000
"""Rows · ε from which on there are sums by group, a search for the range, counts that measure the spread, and
three stages from which lengths of columns are learnt."""

LABELS_FROM, LABELS_GROWTH = 400, 0.55
LEAST_FOR_LABELS, MOST_FOR_LABELS = 0.01, 0.9
"""Noise of sums falls with rows · ε, that of labels with its root: from so many rows · ε² on labels get a share of
ε that grows by so much with each power of ten, between the least and the most. Found on the choosing half of
`benchmarks.accuracy`."""

LABELS_WORTH = 1000
"""Rows · ε² from which on labels are released also where nobody asks for them."""


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
    wish = LABELS_GROWTH * math.log10(power / LABELS_FROM)
    return min(max(wish, LEAST_FOR_LABELS), MOST_FOR_LABELS)


class SumBudget:
    """The ε that is left for statistics of all rows, and the statistics that were bought with the rest.

    How much the next one gets may depend on noisy values that were released before: the parts never add up to more
    than there is, because `release` refuses it.

    Parameters
    ----------
    epsilon : Fraction
    rows : int
    """

    def __init__(self, epsilon: Fraction, rows: int) -> None:
        self.left = epsilon
        self.rows = rows
        self.noise: list[Statistic] = []

    @property
    def rows_epsilon(self) -> float:
        """Rows · ε, of what is left."""
        return self.rows * float(self.left)

    def part(self, fraction: float, most: float = math.inf) -> Fraction:
        """Return a part of what is left, as `Share` says; it is not spent yet."""
        epsilon = min(fraction * float(self.left), most / self.rows)
        return min(Fraction(f"{epsilon:.4g}"), self.left)

    def stage_shares(self, *, with_lengths: bool) -> tuple[Share, ...]:
        """Return the shares of all stages of sums but the last, which gets what is left."""
        if with_lengths:
            return THREE_STAGES
        fraction = min(TWO_STAGES_MOST, TWO_STAGES_WORTH / self.rows_epsilon)
        return (Share(max(TWO_STAGES, fraction)),)

    def release(
        self, exact: Sums, epsilon: Fraction, source: WordSource, *, kind: str, what: str, steps: int = 1
    ) -> Sums:
        """Spend a part, and return integers with noise for it; `RULES` say how far one label moves them."""
        if not 0 < epsilon <= self.left:
            raise PrivacyProofError(f"{what}: more than is left would be spent, so nothing was released")
        statistic = Statistic(what, kind, exact.size, steps, epsilon)
        self.left -= epsilon
        self.noise.append(statistic)
        return statistic.noise.release(exact, source)
