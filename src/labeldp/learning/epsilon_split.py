"""The split of the ε of a fit: between labels and measurements of all rows, and among the measurements.

``docs/method.md`` has a table of them. Each share is of the ε that remains at that step, and a cap limits it in
rows · ε. With few rows · ε, the range, the spread and the third stage are skipped; with very few, all ε is spent
on the mean of the labels. The product rows · ε decides because a noisy count of all rows has a relative error of
about 1/(rows · ε).
"""

from __future__ import annotations

import math
from fractions import Fraction
from typing import NamedTuple

from labeldp.release.label_access import LabelAccess


class Share(NamedTuple):
    """A share of the remaining ε: ``fraction`` of it, but rows · ε is at most ``max_rows_epsilon``."""

    fraction: float
    max_rows_epsilon: float = math.inf

    def of(self, access: LabelAccess) -> Fraction:
        """Return this share of the ε that is left for measurements of all rows, without spending it."""
        epsilon = min(self.fraction * float(access.remaining), self.max_rows_epsilon / access.rows)
        return min(Fraction(f"{epsilon:.4g}"), access.remaining)


BOUNDS_SUSPECTED = Share(0.12, 16)
"""Pays for the test whether bounds are far too wide, where rows · ε is too small to look for a range."""

BOUNDS_TESTED = Share(0.05, 40)
"""Pays for that test elsewhere."""

RANGE_WIDTH = Share(0.2, 200)
"""Pays for the width of the range."""

RANGE_POSITION = Share(0.25, 100)
"""Pays for the position of the range."""

SPREAD = Share(0.1, 160)
"""Pays for counts that measure the spread of residuals."""

OUTLIERS = Share(0.2, 400)
"""Pays for counting again where some residuals seem to be far from all others, which noise may feign."""

THREE_STAGES = (Share(0.2), Share(0.375))
"""Shares of the first two stages where length scales of columns are learnt; the third gets the rest."""

TWO_STAGES = 0.3
"""Of two stages, the least fraction of ε for the first."""

TWO_STAGES_MOST = 0.4
"""Of two stages, the largest fraction of ε for the first."""

TWO_STAGES_WORTH = 50
"""Between these fractions, the first stage gets the ε for which rows · ε is this number."""

FEWEST_FOR_GROUPS = 60
"""The least rows · ε for sums by group."""

FEWEST_FOR_RANGE = 200
"""The least rows · ε for a search for the range."""

FEWEST_FOR_SPREAD = 500
"""The least rows · ε for counts that measure the spread."""

FEWEST_FOR_LENGTHS = 1000
"""The least rows · ε for a third stage, from which length scales of columns are learnt."""

LABELS_FROM = 400
"""The rows · ε² from which labels get a share of ε that grows."""

LABELS_GROWTH = 0.55
"""The growth of that share with log10(rows · ε²): more rows reduce the noise of sums faster than that of labels,
as 1/(rows · ε) and as 1/√(rows · ε²)."""

LEAST_FOR_LABELS = 0.01
"""The smallest share of ε for labels."""

MOST_FOR_LABELS = 0.9
"""The largest share of ε for labels."""

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


def stage_shares(rows_epsilon: float, *, with_length_scales: bool) -> tuple[Share, ...]:
    """Return the shares of all stages of sums but the last, which gets the rest."""
    if with_length_scales:
        return THREE_STAGES
    fraction = min(TWO_STAGES_MOST, TWO_STAGES_WORTH / rows_epsilon)
    return (Share(max(TWO_STAGES, fraction)),)


def prefers_labels(labels_share: float, stage: int, explained: float) -> bool:
    """Return whether labels get the rest of ε after a stage.

    Parameters
    ----------
    labels_share : float
        The share of ε for labels; 0 if they cannot get more.
    stage : int
    explained : float
        The share of the variance of labels that sums explain.
    """
    return labels_share >= MOSTLY_LABELS and explained < ENOUGH_EXPLAINED[stage]
