"""Two outputs, far apart, with odds that make the label unbiased."""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from typing import ClassVar

import numpy as np

from labeldp.channels import Promise, TableChannel
from labeldp.channels.proof import WORDS, exp_lower
from labeldp.mechanisms.base import Mechanism, channel_field
from labeldp.mechanisms.interval import UnitNoise
from labeldp.mechanisms.registry import register


@register("two-point")
@dataclass(frozen=True, slots=True, kw_only=True)
class TwoPoint(Mechanism):
    """Release one of two values, one beyond each bound.

    The label is rounded at random to one of the bounds, which is then answered truly with odds e^ε. The values are
    (e^ε + 1)/(e^ε − 1) half-ranges from the middle, which makes the label unbiased. Often the best mechanism below
    ε ≈ 0.9.

    Parameters
    ----------
    bounds : (lo, hi)
        Public bounds; labels outside are clipped. Never read them off the data.
    epsilon : float
        Privacy budget, 0.001 to 20.

    Examples
    --------
    >>> import labeldp as ldp
    >>> mech = ldp.TwoPoint(bounds=(0, 5), epsilon=1.0)
    >>> mech.mean([1.0]).round(6).tolist()
    [1.0]

    References
    ----------
    Duchi, Jordan and Wainwright, "Minimax optimal procedures for locally private estimation".
    """

    in_auto: ClassVar[bool] = True
    bounds: tuple[float, float]
    epsilon: float
    channel: TableChannel = channel_field()

    @classmethod
    def unit_noise(cls, epsilon: float, **_: object) -> UnitNoise:
        """Return ((e^ε + 1)/(e^ε − 1))²/4 − q."""
        return lambda q: 1 / math.tanh(epsilon / 2) ** 2 / 4 - q

    def _build(self) -> TableChannel:
        low, high = self.bounds
        promise = Promise.of(self.epsilon)
        lie = -(-WORDS // (1 + exp_lower(promise.epsilon)))  # rounded up: towards privacy
        truth = WORDS - lie
        reach = float(Fraction(lie, truth - lie)) * (high - low)
        values = np.array([low - reach, high + reach])
        counts = [[truth, lie], [lie, truth]]
        return TableChannel.from_counts(low, high, values, counts, promise)
