"""The parameters of a fit, its plan, its rounds of labels and the mechanism of each round.

Learners work on labels in unit scale: 0 is the lower bound, 1 the upper, so no result depends on the label's unit.
`labeldp.learning.epsilon_split` splits ε.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, NamedTuple, Self

import numpy as np

from labeldp._values import EPSILON_RANGE, Array, Bounds, Epsilon, Interval, parse_choice, parse_integer
from labeldp.errors import ParameterError, Setting
from labeldp.learning.epsilon_split import share_for_labels
from labeldp.mechanisms.base import Mechanism, require_pure
from labeldp.mechanisms.histogram import Histogram
from labeldp.mechanisms.interval import UnitNoise, auto_classes, choose_mechanism
from labeldp.mechanisms.registry import mechanism_class
from labeldp.release.plan import Plan, Request

UNIT = Bounds((0.0, 1.0))
"""The bounds of labels in unit scale."""

TRANSFORMS = ("log", "sqrt")


class Limits(NamedTuple):
    """The range to which labels are clipped."""

    low: float
    high: float

    @property
    def width(self) -> float:
        """The upper limit minus the lower."""
        return self.high - self.low

    @property
    def middle(self) -> float:
        """The midpoint, which is subtracted from labels before they are summed."""
        return (self.low + self.high) / 2


@dataclass(frozen=True, slots=True)
class LabelSummary:
    """The range and variance of the labels, as estimated before labels are released one by one.

    Attributes
    ----------
    low, high : float
        The range to which labels are clipped, inside the bounds.
    variance : float
        An estimate of the variance of labels.
    sums : int
        The number of noisy sums.
    """

    low: float
    high: float
    variance: float
    sums: int = 0

    @property
    def limits(self) -> Limits:
        """The range."""
        return Limits(self.low, self.high)

    @property
    def width(self) -> float:
        """The range's width."""
        return self.limits.width

    @property
    def middle(self) -> float:
        """The middle of the range."""
        return self.limits.middle

    def in_bounds(self, bounds: Interval) -> LabelSummary:
        """Convert from unit scale to the label's scale."""
        low, high = from_units(np.array([self.low, self.high]), bounds).tolist()
        square = (bounds[1] - bounds[0]) ** 2
        return LabelSummary(low, high, self.variance * square, self.sums)

    def clip(self, values: Array) -> Array:
        """Clip values to the range."""
        return np.clip(values, self.low, self.high)


FREE_SUMMARY = LabelSummary(*UNIT, variance=1 / 20)
"""The range and variance of labels in unit scale where nothing was measured: all that the bounds tell."""


@np.errstate(all="ignore")  # a warning that depends on labels would leak them
def unit_labels(labels: Array, bounds: Interval) -> Array:
    """Clip labels to their bounds and convert them to unit scale, from 0 to 1."""
    low, high = bounds
    return (np.clip(labels, low, high) - low) / (high - low)


def from_units(values: Array | float, bounds: Interval) -> Array:
    """Convert values from unit scale to the label's scale; order is kept, and 0 and 1 become the bounds exactly.

    Examples
    --------
    >>> from_units(np.array([0.0, 0.25, 1.0]), (0.1, 0.3)).tolist()
    [0.1, 0.15, 0.3]
    """
    low, high = bounds
    units = np.asarray(values, dtype=np.float64)
    result = low + (high - low) * units  # 1 may miss the upper bound by a rounding error
    from_one_up = np.where(units > 1, np.maximum(result, high), high)
    return np.where(units < 1, np.minimum(result, high), from_one_up)


@dataclass(frozen=True, slots=True)
class LabelScale:
    """The scale on which a model is fitted: that of the label, or of its transform.

    Attributes
    ----------
    bounds : (lo, hi)
        The label's bounds.
    transform : {None, "log", "sqrt"}

    Examples
    --------
    >>> scale = LabelScale.parse((1.0, 100.0), "log")
    >>> scale.units(np.array([0.5, 1.0, 10.0, 100.0])).round(9).tolist()
    [0.0, 0.0, 0.5, 1.0]
    >>> scale.means(np.array([0.0, np.log(10.0)]), variance=0.5).round(3).tolist()    # of log-normal labels
    [1.284, 12.84]
    """

    bounds: Interval
    transform: str | None = None

    @classmethod
    def parse(cls, bounds: Interval, transform: Any) -> Self:
        """Return the scale; raise if the transform is not defined on the bounds."""
        if transform is None:
            return cls(bounds)
        name = parse_choice(transform, "label_transform", TRANSFORMS)
        if bounds[0] < 0 or (name == "log" and bounds[0] == 0):
            condition, example = ("above 0", abs(bounds[1]) / 100) if name == "log" else ("of 0 or more", 0)
            raise ParameterError(
                Setting("label_transform", name),
                f" needs a lower bound {condition}, got {bounds[0]:g}: give the smallest label that matters, such "
                f"as {example:g}; labels below it count as that",
            )
        scale = cls(bounds, name)
        Bounds(scale.inner)  # which must be far enough apart
        return scale

    @property
    def inner(self) -> Interval:
        """The bounds of transformed labels."""
        low, high = self._apply(np.array(self.bounds)).tolist()
        return low, high

    @np.errstate(all="ignore")  # a warning that depends on labels would leak them
    def apply(self, labels: Array) -> Array:
        """Clip labels to their bounds, and transform them."""
        return self._apply(np.clip(labels, *self.bounds))

    def units(self, labels: Array) -> Array:
        """Clip and transform labels, and convert them to unit scale."""
        return unit_labels(self.apply(labels), self.inner)

    def means(self, values: Array, variance: float) -> Array:
        """Return the means of labels, clipped to the bounds, from the means and the variance of their transforms.

        For "log" it is exp(m + s²/2), exact for normal transforms; for "sqrt" it is m² + s², always exact.
        """
        if self.transform is None:
            return values
        with np.errstate(over="ignore"):
            shift = variance / 2 if self.transform == "log" else variance
            means = np.exp(values + shift) if self.transform == "log" else values**2 + shift
        return np.clip(means, *self.bounds)

    def from_units(self, units: Array, variance: float) -> Array:
        """Convert predictions, and the variance of their errors, from unit scale to predictions of labels."""
        low, high = self.inner
        return self.means(from_units(units, (low, high)), variance * (high - low) ** 2)

    def invert(self, values: Array, margin: float = 0.0) -> Array:
        """Apply the inverse transform, scale by 1 + margin, and clip to the bounds."""
        if self.transform is None:
            return values
        return np.clip(self.means(values, 0.0) * (1 + margin), *self.bounds)

    def _apply(self, values: Array) -> Array:
        if self.transform == "log":
            return np.log(values)
        return np.sqrt(values) if self.transform == "sqrt" else values


ROUNDS = (0.2, 0.3, 0.5)
"""Fractions of the rows in each round: half of them are in the last, whose intervals are the best."""

FEWEST = 200
"""With fewer rows, all labels are released in one round."""

MOST_ROUNDS = 10
"""The largest number of rounds: each of them fits a model."""


@dataclass(frozen=True, slots=True, kw_only=True)
class FitRequest(Request):
    """The parameters of a fit, checked before any label is read.

    Attributes
    ----------
    rounds : int or "auto"
        As in `LabelReleaseRegressor`.
    labels : bool
        Release every label; if False, only where it improves the model.
    label_transform : {None, "log", "sqrt"}
        Fit the model to this function of the label.
    """

    rounds: Any = "auto"
    labels: bool = True
    label_transform: Any = None

    @property
    def charge_note(self) -> str:
        """The name of the transform in brackets, for the text of a charge; empty without one."""
        return "" if self.label_transform is None else f" ({self.label_transform})"

    def _refuse_mechanism(self) -> None:
        """Refuse a mechanism whose output no model can learn from, and one without pure ε."""
        if self.mechanism == "auto":
            return
        kind = mechanism_class(self.mechanism)
        require_pure(kind)
        if not kind.unbiased:
            raise ParameterError(
                Setting("mechanism", self.mechanism),
                " has no unbiased label to learn from; use it through privatize",
            )

    def plan(self, rows: int) -> Plan:
        """Return the plan for this many rows; under local trust, all of ε is for labels."""
        if self.trust == "local":
            return Plan(self, rows, self.epsilon.exact)
        total, smallest = self.epsilon, EPSILON_RANGE[0]
        share = share_for_labels(rows, total, required=self.labels)
        one_by_one = min(max(share * total, smallest), total - smallest) if share else 0.0
        if share and one_by_one < smallest:
            raise ParameterError(
                Setting("epsilon", total), f" is too small to be split; give at least {2 * smallest}"
            )
        for_labels = Fraction(f"{one_by_one:.4g}")
        return Plan(self, rows, for_labels, for_sums=self.epsilon.exact - for_labels)

    def round_ends(self, rows: int) -> Array:
        """Return the boundaries of rounds as fractions of the rows, from 0 to 1; no round is empty."""
        if self.rounds == "auto":
            sizes: Sequence[float] = ROUNDS if rows >= FEWEST else (1.0,)
        else:
            sizes = range(1, 1 + parse_integer(self.rounds, "rounds", high=MOST_ROUNDS))
            if rows < sum(sizes):
                raise ParameterError(Setting("rounds", self.rounds), f" needs {sum(sizes)} rows, got {rows}")
        total = np.cumsum([0.0, *sizes])
        return np.asarray(total / total[-1])

    def design(self, prior: Histogram | None, epsilon: Epsilon, rows: int) -> Mechanism:
        """Return the mechanism for a round's labels, with [0, 1] as their interval."""
        return choose_mechanism(str(self.mechanism), prior, bounds=UNIT, epsilon=epsilon, clips=False)

    def unit_noise(self, epsilon: Epsilon) -> UnitNoise:
        """Return the noise variance of the mechanisms that will be used; the widths of intervals depend on it.

        A mechanism that was named by the user is built here once, before any charge.
        """
        if self.mechanism != "auto":
            return type(self.design(Histogram(UNIT, [1.0]), epsilon, 1)).unit_noise(epsilon)
        noises = [cls.unit_noise(epsilon) for cls in auto_classes()]
        return lambda q: np.min([np.broadcast_to(noise(q), np.shape(q)) for noise in noises], axis=0)
