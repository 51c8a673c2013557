"""Laplace noise, exact: two-sided geometric noise on a grid that contains both bounds."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction

from labeldp.exact.proof import exp_lower
from labeldp.exact.shift import ShiftChannel
from labeldp.mechanisms.additive import SCALE, periodic_channel
from labeldp.mechanisms.base import Mechanism, channel_field
from labeldp.mechanisms.interval import UnitNoise
from labeldp.mechanisms.registry import register


@register("laplace")
@dataclass(frozen=True, slots=True, kw_only=True)
class Laplace(Mechanism):
    """Add Laplace noise of scale (hi − lo)/ε.

    Parameters
    ----------
    bounds : (lo, hi)
        Public bounds; labels outside are clipped. Never read them off the data.
    epsilon : float
        Privacy budget, 0.001 to 20.

    Examples
    --------
    >>> import labeldp as ldp
    >>> mech = ldp.Laplace(bounds=(0, 5), epsilon=1.0)
    >>> z = mech.randomize([0.2, 1.7, 9.0])
    >>> round(float(mech.variance([2.5])[0]), 1)    # 2 (5 / 1)^2
    50.0

    References
    ----------
    Dwork, McSherry, Nissim and Smith, "Calibrating noise to sensitivity in private data analysis".
    """

    bounds: tuple[float, float]
    epsilon: float
    channel: ShiftChannel = channel_field()

    @classmethod
    def unit_noise(cls, epsilon: float, **_: object) -> UnitNoise:
        """Return the variance of the noise, 2/ε²: the same for all labels."""
        return lambda _: 2 / epsilon**2

    def _build(self) -> ShiftChannel:
        return periodic_channel(*self.bounds, self.epsilon, _period, lambda _: {"rule": "laplace"})


def _period(steps: int, epsilon: Fraction) -> list[int]:
    growth = exp_lower(epsilon / steps)
    weights = [SCALE]
    for _ in range(steps - 1):
        weights.append(weights[-1] * growth.denominator // growth.numerator)
    return weights
