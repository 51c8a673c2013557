"""Accuracy of private labels, from public terms alone: noise and bias at a label, and on average."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from labeldp._values import Array, Interval, Mask
from labeldp.accounts.numbers import number
from labeldp.errors import NotUnbiasedError
from labeldp.mechanisms.base import Mechanism
from labeldp.mechanisms.histogram import Histogram

DOUBT = 0.75
"""Relative uncertainty of the bias by clipping a tail that is known from a noisy prior only; measured by
``benchmarks/privatize.py``."""


def noise_and_bias(mechanism: Mechanism, labels: Array) -> tuple[Array, Array, bool]:
    """Return standard deviation and bias for each label, and whether they are of the unbiased label.

    Without an unbiased label they are of the released value. A bias below a millionth of the noise counts as none.
    """
    channel, unbiased = mechanism.channel, True
    mean, deviation = channel.mean(labels), np.sqrt(channel.variance(labels))
    try:
        deviation, mean = deviation / abs(channel.slope()), channel.debias(mean)
    except NotUnbiasedError:
        unbiased = False
    bias = mean - labels
    rounding = np.abs(bias) < np.maximum(1e-6 * deviation, 1e-9 * np.abs(labels))
    return deviation, np.where(rounding, 0.0, bias), unbiased


@dataclass(frozen=True, slots=True)
class Accuracy:
    """Errors on average over labels, by their prior.

    Attributes
    ----------
    noise : float
        Root mean square of the noise in one label.
    bias : float
        Mean of the bias, which no averaging removes; of an estimated prior a guess, wrong by about ``doubt``.
    bias_spread : float
        Standard deviation of the bias between labels, which averages out.
    doubt : float
        The possible error of the mean of the bias where the prior was estimated.
    label_spread : float
        Standard deviation of the labels themselves.
    unbiased : bool
        Whether this is about the unbiased label, or the released value.
    """

    noise: float
    bias: float
    bias_spread: float
    doubt: float
    label_spread: float
    unbiased: bool

    @classmethod
    def under(cls, mechanism: Mechanism, prior: Histogram | None, bounds: Interval) -> Accuracy:
        """Return the accuracy for labels that lie as the prior says, or without one evenly over the bounds.

        An estimated prior may be wrong about either tail.
        """
        distribution = Histogram(bounds, [1.0]) if prior is None else prior
        points = np.unique(np.concatenate([np.linspace(*distribution.bounds, 513), distribution.nodes]))
        mass = np.diff(distribution.cumulative(points))
        with np.errstate(all="ignore"):  # bounds on a card of others may be huge
            deviation, bias, unbiased = noise_and_bias(mechanism, (points[:-1] + points[1:]) / 2)
            mean = float(mass @ bias)
            sides = [float(mass @ np.maximum(side, 0.0)) for side in (bias, -bias)]
            return cls(
                noise=math.sqrt(float(mass @ deviation**2)),
                bias=mean,
                bias_spread=math.sqrt(float(mass @ (bias - mean) ** 2)),
                doubt=0.0 if distribution.origin is None else DOUBT * math.hypot(*sides),
                label_spread=math.sqrt(distribution.variance),
                unbiased=unbiased,
            )

    def error_of_mean(self, count: Array | float) -> Array:
        """Return the typical error of the mean of this many private labels, against their true mean."""
        averaged = (self.noise**2 + self.bias_spread**2) / np.asarray(count)
        return np.sqrt(self.floor**2 + averaged)

    @property
    def floor(self) -> float:
        """The part of the error of a mean that no averaging removes."""
        return math.hypot(self.bias, self.doubt)

    def describe_mean(self, rows: int) -> str:
        """Return the error of the mean of all private labels, and the part that no averaging removes."""
        sentence = (
            f"Privacy typically moves the mean of all {rows:,} by ±{number(float(self.error_of_mean(rows)))}"
        )
        if self.floor <= 1e-6 * self.label_spread:
            return f"{sentence}, and the mean of fewer rows by more."
        why = "clipping" if self.unbiased else "their bias"
        return f"{sentence}; of that, ±{number(self.floor)} stays however many rows there are, because of {why}."


def clipping_sentence(mechanism: Mechanism, prior: Histogram | None, bounds: Interval) -> str:
    """Return the places and the share of clipped labels, by the private prior; empty where only bounds clip."""
    low, high = mechanism.domain
    below, above, is_at_bound = 0.0, 1.0, False
    if prior is not None:
        below, above = prior.cumulative([low, high])
        narrow = prior.widths < 0.01 * (bounds[1] - bounds[0])
        is_at_bound = bool(np.any((narrow * prior.masses)[[0, -1]] > 0.9))
    unit = "Nearly all labels are at one of the bounds: check the unit, and the bounds. " if is_at_bound else ""
    if (low, high) == bounds:
        return unit
    share = "" if prior is None else f", about {100 * (below + 1 - above):.0f} % of them by the private prior"
    return (
        f"{unit}Labels below {number(low)} or above {number(high)} were clipped{share}: means of groups with very "
        "low or very high labels are pulled towards the middle, however many rows they have."
    )


def noise_sentence(rows: int, mechanism: Mechanism, prior: Histogram | None, bounds: Interval) -> str:
    """Return how large the noise is, by the private prior; the error of a mean includes that of clipping."""
    accuracy = Accuracy.under(mechanism, prior, bounds)
    noise = f"noise of about ±{number(accuracy.noise)}"
    if not accuracy.unbiased:
        return f"Released values are biased by design (see mechanism.bias), and each carries {noise}."
    mean = f", their mean ±{number(float(accuracy.error_of_mean(rows)))}" if rows else ""
    return f"One private label carries {noise}{mean}{', clipping included' if mean and accuracy.floor else ''}."


def rounding_step(mechanism: Mechanism) -> float | None:
    """Return the power of ten from 1/1000 to 1/100 of the least noise; None where no such step exists.

    Examples
    --------
    >>> import labeldp as ldp
    >>> rounding_step(ldp.Laplace(bounds=(0, 5), epsilon=1.0))
    0.01
    """
    channel = mechanism.channel
    return step_below(float(np.sqrt(channel.variance(np.linspace(channel.low, channel.high, 65)).min())))


def step_below(noise: float) -> float | None:
    """Return the power of ten from 1/1000 to 1/100 of a standard deviation; None where no such step exists."""
    if not 1e-12 < noise < 1e12:
        return None
    return float(f"1e{math.floor(math.log10(noise / 100))}")


def round_to(values: Array, step: float | None) -> Array:
    """Return values rounded to multiples of a power of ten; as they are without one."""
    return values if step is None else np.round(values, -round(math.log10(step)))


TOLERANCE = 1e-12
"""The error of a number in a sheet of Excel, as a share of the largest possible label."""


def is_possible(
    labels: Array,
    mechanism: Mechanism,
    *,
    debiased: bool,
    offset: Array | float = 0.0,
    scale: Array | float = 1.0,
    step: float | None = None,
) -> Mask:
    """Return for each label whether it is offset + scale · an output of the mechanism, up to rounding.

    Parameters
    ----------
    labels : array
    mechanism : Mechanism
    debiased : bool
        Whether outputs were debiased.
    offset, scale : floats or arrays
        The public map of each label; a scale is not negative.
    step : float, optional
        The power of ten to a multiple of which values were rounded.

    Examples
    --------
    >>> import numpy as np, labeldp as ldp
    >>> from labeldp.accounts.accuracy import is_possible
    >>> mechanism = ldp.TwoPoint(bounds=(0, 5), epsilon=1.0)
    >>> released = mechanism.randomize([1.0, 4.0])
    >>> is_possible(np.array([*released, 2.5, np.nan]), mechanism, debiased=False)
    array([ True,  True, False, False])
    """
    channel = mechanism.channel

    def forward(outputs: Array) -> Array:
        return channel.debias(outputs) if debiased else outputs

    at_zero, at_one = forward(np.array([0.0, 1.0]))
    with np.errstate(all="ignore"):
        unmapped = np.where(np.equal(scale, 0), at_zero, (labels - offset) / scale)
        nearest = offset + scale * forward(channel.nearest_output((unmapped - at_zero) / (at_one - at_zero)))
        nearest = round_to(nearest, step)
        extremes = channel.nearest_output(np.array([-np.inf, np.inf]))
        largest = np.abs(forward(extremes)).max()
        tolerance = TOLERANCE * (np.abs(offset) + np.abs(scale) * largest)
        return np.asarray(np.abs(labels - nearest) <= tolerance)
