"""Laplace noise, exact: two-sided geometric noise on a grid that contains both bounds."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from typing import Self

from labeldp._validation import as_bounds, as_epsilon
from labeldp.card_format import register
from labeldp.channels import ShiftChannel
from labeldp.channels.proof import exp_lower
from labeldp.histogram import Histogram
from labeldp.mechanisms.additive import SCALE, periodic_channel
from labeldp.mechanisms.base import Mechanism, channel_field
from labeldp.mechanisms.clipping import best_interval

__all__ = ["Laplace"]


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
    >>> mech = Laplace(bounds=(0, 5), epsilon=1.0)
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
    def design(cls, prior: Histogram, epsilon: float, *, rows: int | None = None) -> Self:
        """Return the mechanism on the bounds that are best for an unbiased label under a prior.

        Parameters
        ----------
        prior : Histogram
            Public or privately estimated.
        epsilon : float
        rows : int, optional
            How many labels a learner will see; by default the error of a single label counts.
        """
        epsilon = as_epsilon(epsilon)
        bounds, _ = best_interval(prior, lambda _: 2 / epsilon**2, rows)
        return cls(bounds=bounds, epsilon=epsilon)

    def _build(self) -> ShiftChannel:
        self._set(bounds=as_bounds(self.bounds), epsilon=as_epsilon(self.epsilon))
        return periodic_channel(*self.bounds, self.epsilon, _period)


def _period(steps: int, epsilon: Fraction) -> list[int]:
    growth = exp_lower(epsilon / steps)
    weights = [SCALE]
    for _ in range(steps - 1):
        weights.append(weights[-1] * growth.denominator // growth.numerator)
    return weights
