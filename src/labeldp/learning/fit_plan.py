"""How a fit is planned: ε split between noisy sums and labels by what is public, and mechanisms for each round.

All that learns works on labels in units of their bounds, on [0, 1], so no result depends on the label's unit.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np

from labeldp._values import EPSILON_RANGE, Array, Bounds, Epsilon, Sums
from labeldp.accounts.statistic import Statistic
from labeldp.errors import ParameterError, PrivacyProofError, Setting
from labeldp.exact.word_sources import WordSource
from labeldp.mechanisms.base import Mechanism, variance_line
from labeldp.mechanisms.histogram import Histogram
from labeldp.mechanisms.interval import UnitNoise
from labeldp.mechanisms.registry import auto_classes, choose_mechanism, mechanism_class
from labeldp.release.plan import Plan, Request

Pair = tuple[float, float]

UNIT = Bounds((0.0, 1.0))
"""The bounds of labels in their units."""

UnitDesign = Callable[[Histogram, float], Mechanism]
"""Makes an unbiased mechanism on [0, 1] for a prior there and ε."""

_FEWEST_FOR_LABELS, _LABELS_GROW, _MOST_FOR_LABELS = 400, 0.55, 0.9
"""Noise of sums falls with rows · ε, that of labels with its root: from so many rows · ε² on labels get a part of
ε that grows by so much with each power of ten, up to the most. Found on the choosing half of
`benchmarks.accuracy`."""

_LEAST_FOR_LABELS = 0.01
"""The part for labels where they add next to nothing, and must be released all the same."""

_WORTH_LABELS = 1000
"""From so many rows · ε² on labels are released also where nobody asks for them."""


ROUNDS = (0.2, 0.3, 0.5)
"""Parts of the rows in each round: the last and best intervals serve half of them."""

FEWEST = 200
"""With fewer rows all are released at once."""


@dataclass(frozen=True, slots=True, kw_only=True)
class FitRequest(Request):
    """The parameters of a fit, checked before any label is seen.

    ``mechanism`` is a name or a `UnitDesign`; ``rounds`` are those of
    `LabelReleaseRegressor`; ``labels`` says whether every label must be released: else they are
    where that pays.
    """

    mechanism: Any = "auto"
    rounds: Any = "auto"
    labels: bool = True

    def _delta(self) -> float:
        """Refuse mechanisms that a model cannot learn from; no δ is spent."""
        name = self.mechanism
        if len(self.bounds) != 1:
            raise ParameterError("a model has one label column, and one pair of bounds (lo, hi)")
        if not (isinstance(name, str) or callable(name)):
            raise ParameterError(
                "mechanism must be a name, or a function (prior, epsilon) that returns a mechanism on [0, 1]: "
                "each round has its own interval and budget, so a mechanism built beforehand does not fit"
            )
        kind = mechanism_class(name) if isinstance(name, str) and name != "auto" else Mechanism
        if kind.needs_delta:
            raise ParameterError(
                Setting("mechanism", name),
                " needs delta, and a row's label is released with pure epsilon here; try privatize",
            )
        if not kind.unbiased:
            raise ParameterError(
                Setting("mechanism", name), " has no unbiased label to learn from; use it through privatize"
            )
        return 0.0

    def plan(self, rows: int, *, grouped: bool = True) -> Plan:
        """Return the plan for this many rows; under local trust there is no part for sums.

        Parameters
        ----------
        rows : int
        grouped : bool
            Whether sums over groups can be had, and guesses for all rows; else the mean is the only sum.
        """
        if self.trust == "local":
            return Plan(self, rows, self.share)
        total, least = self.epsilon, EPSILON_RANGE[0]
        share = _label_share(rows * total**2, always=self.labels)
        if not grouped:
            share = 1 - min(0.5, max(0.05, 100 / (rows * total)))
        one_by_one = min(max(share * total, least), total - least) if share else 0.0
        if share and one_by_one < least:
            raise ParameterError(
                Setting("epsilon", total), f" is too small to be split; give at least {2 * least}"
            )
        for_labels = Fraction(f"{one_by_one:.4g}")
        return Plan(self, rows, for_labels, for_sums=self.share - for_labels)

    def round_sizes(self, rows: int) -> tuple[float, ...]:
        """Return the parts of the rows for each round, none of which may be without a row."""
        return _round_sizes(self.rounds, rows)

    def design(self, prior: Histogram | None, column: int, epsilon: Epsilon, rows: int) -> Mechanism:
        """Return the mechanism for a round's labels in their interval, which is [0, 1]."""
        if isinstance(self.mechanism, str):
            return choose_mechanism(self.mechanism, prior, bounds=UNIT, epsilon=epsilon, clips=False)
        mechanism = self.mechanism(prior, epsilon)
        _refuse_unfit(mechanism, epsilon)
        return mechanism  # type: ignore[no-any-return]

    def unit_noise(self, epsilon: Epsilon) -> UnitNoise:
        """Return the noise of the mechanisms that will be used, by which intervals are sized.

        A mechanism that was asked for is built once for it, before anything is spent.
        """
        if self.mechanism == "auto":
            noises = [cls.unit_noise(epsilon) for cls in auto_classes()]
            return lambda q: np.min([np.broadcast_to(noise(q), np.shape(q)) for noise in noises], axis=0)
        trial = self.design(Histogram(UNIT, [1.0]), 0, epsilon, 1)
        return type(trial).unit_noise(epsilon) if isinstance(self.mechanism, str) else variance_line(trial)


def _refuse_unfit(mechanism: object, epsilon: float) -> None:
    if not isinstance(mechanism, Mechanism):
        raise ParameterError(f"the mechanism function returned a {type(mechanism).__name__}, not a Mechanism")
    if mechanism.delta or mechanism.epsilon > epsilon:
        raise ParameterError(
            f"the mechanism spends {mechanism.epsilon:.6g}, {mechanism.delta:.3g}; wanted {epsilon:.6g}, 0"
        )
    points = np.linspace(0.0, 1.0, 9)
    if not np.allclose(mechanism.debias(mechanism.mean(points)), points, atol=1e-3):
        raise ParameterError("the mechanism must be unbiased on [0, 1]")


def _label_share(power: float, *, always: bool) -> float:
    if not always and power < _WORTH_LABELS:
        return 0.0
    wish = _LABELS_GROW * math.log10(power / _FEWEST_FOR_LABELS)
    return min(max(wish, _LEAST_FOR_LABELS), _MOST_FOR_LABELS)


def round_cuts(parts: Sequence[float]) -> Array:
    """Return where rounds begin and end, from 0 to 1: what is not a number if the parts have no finite sum."""
    with np.errstate(over="ignore", invalid="ignore"):
        total = np.cumsum([0.0, *parts])
        return np.asarray(total / total[-1])


def _round_sizes(rounds: Any, rows: int) -> tuple[float, ...]:
    parts = _round_parts(rounds, rows)
    if not (np.diff(np.rint(round_cuts(parts) * rows)) >= 1).all():
        raise ParameterError(
            f"rounds={rounds!r} must give at least one row of {rows:,} to each round: their sum must be finite, "
            "and none of them too small a part of it; give fewer or more even parts"
        )
    return parts


def _round_parts(rounds: Any, rows: int) -> tuple[float, ...]:
    if isinstance(rounds, str) and rounds == "auto":
        return ROUNDS if rows >= FEWEST else (1.0,)
    if isinstance(rounds, int | np.integer) and not isinstance(rounds, bool) and 1 <= rounds <= 10:
        return tuple(float(k + 1) for k in range(int(rounds)))
    try:
        parts = () if isinstance(rounds, str | bytes | bool) else tuple(float(part) for part in rounds)
    except (TypeError, ValueError):
        parts = ()
    if not 1 <= len(parts) <= 10 or min(parts) <= 0 or not np.isfinite(parts).all():
        raise ParameterError('rounds must be "auto", an integer from 1 to 10, or positive parts of the rows')
    return parts


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
class LabelSummary:
    """What is known of the labels before they are released one by one.

    Attributes
    ----------
    low, high : float
        The range to which they are clipped, inside the bounds.
    variance : float
        Of labels, a guess.
    residual : float
        In files of 0.2.0, the mean square of labels around the first predictions; not measured any more, and 0.
    sums : int
        How many noisy sums there are.
    """

    low: float
    high: float
    variance: float
    residual: float = 0.0
    sums: int = 0

    @property
    def width(self) -> float:
        """The range's width."""
        return self.high - self.low

    @property
    def middle(self) -> float:
        """What labels are measured from where they are summed."""
        return (self.low + self.high) / 2

    def in_bounds(self, bounds: Pair) -> LabelSummary:
        """Return knowledge of labels in units of the bounds as knowledge of the labels themselves."""
        low, high = from_units(np.array([self.low, self.high]), bounds).tolist()
        square = (bounds[1] - bounds[0]) ** 2
        return LabelSummary(low, high, self.variance * square, self.residual * square, self.sums)

    def clip(self, values: Array) -> Array:
        """Return values inside the range."""
        return np.asarray(np.clip(values, self.low, self.high))


def in_units(values: Array, bounds: Pair) -> Array:
    """Return values in units of the bounds; those outside of the bounds lie outside of [0, 1].

    Examples
    --------
    >>> in_units(np.array([1000.0, 2500.0]), (1000.0, 2000.0))
    array([0. , 1.5])
    """
    low, high = bounds
    return np.asarray((values - low) / (high - low))


@np.errstate(all="ignore")  # a warning that depends on labels would leak them
def unit_labels(labels: Array, bounds: Pair) -> Array:
    """Return labels, clipped to their bounds, in units of these: from 0 to 1."""
    return in_units(np.clip(labels, *bounds), bounds)


def from_units(values: Array | float, bounds: Pair) -> Array:
    """Return what `in_units` was given, in the same order; from 0 to 1 it lies inside the bounds, and ends there.

    Examples
    --------
    >>> from_units(np.array([0.0, 0.25, 1.0]), (0.1, 0.3)).tolist()
    [0.1, 0.15, 0.3]
    """
    low, high = bounds
    units = np.asarray(values, dtype=np.float64)
    result = low + (high - low) * units  # 1 may miss the upper bound by a rounding error
    beyond = np.where(units > 1, np.maximum(result, high), high)
    return np.where(units < 1, np.minimum(result, high), beyond)
