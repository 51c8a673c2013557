"""What to expect of private labels, from the card alone: noise and bias at a label, and on average."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from labeldp.errors import NotUnbiasedError
from labeldp.histogram import Histogram
from labeldp.mechanisms.base import Mechanism

__all__ = ["Expected", "domain_of", "noise_and_bias"]

Array = NDArray[np.float64]


def domain_of(mechanism: Mechanism) -> tuple[float, float] | None:
    """Return where labels are told apart; those outside are clipped. None where all are."""
    low, high = getattr(mechanism.channel, "low", None), getattr(mechanism.channel, "high", None)
    return None if low is None or high is None else (float(low), float(high))


def noise_and_bias(mechanism: Mechanism, labels: Array) -> tuple[Array, Array, bool]:
    """Return standard deviation and bias for each label, and whether they are of the unbiased label.

    Without an unbiased label they are of the released value. A bias below a millionth of the noise counts as none.
    """
    mean, deviation = mechanism.mean(labels), np.sqrt(mechanism.variance(labels))
    try:
        deviation, mean, unbiased = deviation / abs(mechanism.channel.slope()), mechanism.debias(mean), True
    except NotUnbiasedError:
        unbiased = False
    bias = mean - labels
    dust = np.abs(bias) < np.maximum(1e-6 * deviation, 1e-9 * np.abs(labels))
    return deviation, np.where(dust, 0.0, bias), unbiased


@dataclass(frozen=True, slots=True)
class Expected:
    """Errors on average over labels, by what is known of them.

    Attributes
    ----------
    noise : float
        Root mean square of the noise in one label.
    bias : float
        Mean of the bias, which no averaging removes.
    wobble : float
        Standard deviation of the bias between labels, which averages out.
    spread : float
        Standard deviation of the labels themselves.
    unbiased : bool
        Whether this is about the unbiased label, or the released value.
    by_prior : bool
        Whether a prior says where labels are; else they are taken to lie anywhere in the bounds.
    """

    noise: float
    bias: float
    wobble: float
    spread: float
    unbiased: bool
    by_prior: bool

    @classmethod
    def of(cls, mechanism: Mechanism, prior: Histogram | None, bounds: tuple[float, float]) -> Expected:
        """Return the expectation under a prior, or evenly over the bounds."""
        known = Histogram(bounds, [1.0]) if prior is None else prior
        points = np.unique(np.concatenate([np.linspace(*known.bounds, 513), known.nodes]))
        mass = np.diff(known.cumulative(points))
        labels = (points[:-1] + points[1:]) / 2
        deviation, bias, unbiased = noise_and_bias(mechanism, labels)
        mean = float(mass @ bias)
        return cls(
            noise=math.sqrt(float(mass @ deviation**2)),
            bias=mean,
            wobble=math.sqrt(float(mass @ (bias - mean) ** 2)),
            spread=math.sqrt(known.variance),
            unbiased=unbiased,
            by_prior=prior is not None,
        )

    def of_mean(self, many: Array | float) -> Array:
        """Return the typical error of the mean of this many private labels, against their true mean."""
        return np.asarray(np.sqrt(self.bias**2 + (self.noise**2 + self.wobble**2) / np.asarray(many)))

    def by_chance(self, many: Array | float) -> Array:
        """Return how far the mean of this many true labels is off by chance, with no privacy at all."""
        return np.asarray(self.spread / np.sqrt(np.asarray(many)))
