"""The parameters of a fit, its plan, its rounds of labels and the mechanism of each round.

`labeldp.learning.epsilon_split` says how ε is split.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np

from labeldp._values import EPSILON_RANGE, Array, Epsilon, parse_integer
from labeldp.errors import ParameterError, Setting
from labeldp.learning.epsilon_split import share_for_labels
from labeldp.learning.label_units import UNIT
from labeldp.mechanisms.base import Mechanism
from labeldp.mechanisms.histogram import Histogram
from labeldp.mechanisms.interval import UnitNoise, auto_classes, choose_mechanism
from labeldp.mechanisms.registry import mechanism_class
from labeldp.release.plan import Plan, Request

ROUNDS = (0.2, 0.3, 0.5)
"""Parts of the rows in each round: the last and best intervals serve half of them."""

FEWEST = 200
"""With fewer rows all are released at once."""

MOST_ROUNDS = 10


@dataclass(frozen=True, slots=True, kw_only=True)
class FitRequest(Request):
    """The parameters of a fit, checked before any label is seen.

    ``rounds`` are those of `LabelReleaseRegressor`; ``labels`` says whether every label must be released: else
    they are where that pays; ``transform`` names a function of labels to learn instead.
    """

    rounds: Any = "auto"
    labels: bool = True
    transform: Any = None

    @property
    def charge_note(self) -> str:
        """What a charge says of labels that are transformed."""
        return "" if self.transform is None else f" ({self.transform})"

    def _delta(self) -> float:
        """Refuse mechanisms that a model cannot learn from; no δ is spent."""
        if len(self.bounds) != 1:
            raise ParameterError(
                Setting("bounds"),
                " must be one pair (lo, hi): fit a model for each label column, or privatize them",
            )
        if self.mechanism == "auto":
            return 0.0
        kind, named = mechanism_class(self.mechanism), Setting("mechanism", self.mechanism)
        if kind.needs_delta:
            raise ParameterError(named, " needs delta, and labels are released with pure epsilon here")
        if not kind.unbiased:
            raise ParameterError(named, " has no unbiased label to learn from; use it through privatize")
        return 0.0

    def plan(self, rows: int) -> Plan:
        """Return the plan for this many rows; under local trust there is no part for sums."""
        if self.trust == "local":
            return Plan(self, rows, self.share)
        total, least = self.epsilon, EPSILON_RANGE[0]
        share = share_for_labels(rows, total, required=self.labels)
        one_by_one = min(max(share * total, least), total - least) if share else 0.0
        if share and one_by_one < least:
            raise ParameterError(
                Setting("epsilon", total), f" is too small to be split; give at least {2 * least}"
            )
        for_labels = Fraction(f"{one_by_one:.4g}")
        return Plan(self, rows, for_labels, for_sums=self.share - for_labels)

    def round_ends(self, rows: int) -> Array:
        """Return where rounds begin and end among the rows, from 0 to 1; each has a row at least."""
        if self.rounds == "auto":
            parts: Sequence[float] = ROUNDS if rows >= FEWEST else (1.0,)
        else:
            parts = range(1, 1 + parse_integer(self.rounds, "rounds", most=MOST_ROUNDS))
            if rows < sum(parts):
                raise ParameterError(Setting("rounds", self.rounds), f" needs {sum(parts)} rows, got {rows}")
        total = np.cumsum([0.0, *parts])
        return np.asarray(total / total[-1])

    def design(self, prior: Histogram | None, column: int, epsilon: Epsilon, rows: int) -> Mechanism:
        """Return the mechanism for a round's labels in their interval, which is [0, 1]."""
        return choose_mechanism(str(self.mechanism), prior, bounds=UNIT, epsilon=epsilon, clips=False)

    def unit_noise(self, epsilon: Epsilon) -> UnitNoise:
        """Return the noise of the mechanisms that will be used, by which intervals are sized.

        A mechanism that was asked for is built once for it, before anything is spent.
        """
        if self.mechanism != "auto":
            return type(self.design(Histogram(UNIT, [1.0]), 0, epsilon, 1)).unit_noise(epsilon)
        noises = [cls.unit_noise(epsilon) for cls in auto_classes()]
        return lambda q: np.min([np.broadcast_to(noise(q), np.shape(q)) for noise in noises], axis=0)
