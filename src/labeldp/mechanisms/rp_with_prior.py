"""RPWithPrior: the paper's mechanism, a likelier window of half-width ζ around the label."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Literal

from labeldp._checks import as_bounds, as_epsilon, as_fraction, as_positive
from labeldp.cards import register
from labeldp.channels import Promise, WindowChannel
from labeldp.channels.proof import WORDS, exp_lower
from labeldp.errors import ParameterError
from labeldp.mechanisms.base import Mechanism, channel_field

__all__ = ["RPWithPrior"]

FEWEST = 1 << 10
"""A window, and its way across the range, must be this many cells, so that ζ is met to 0.1 %."""


@register("rp")
@dataclass(frozen=True, slots=True, kw_only=True)
class RPWithPrior(Mechanism):
    """Response privacy with a prior (Algorithm 2 of the paper).

    With I = [A1, A2] and γ = 2ζ + e^(−ε)(A2 − A1), the released value has density 1/γ within ζ of the
    label and e^(−ε)/γ elsewhere in [A1 − ζ, A2 + ζ]. Here that density lives on more than 2^32 cells
    with exact integer counts; see ``docs/proofs/rp_with_prior.md``.

    Parameters
    ----------
    interval : (A1, A2)
        Where labels are told apart. It must not be read off the labels themselves.
    zeta : float
        Half the width of the likelier window.
    epsilon : float
        Privacy budget, 0.001 to 20.
    outside : {"project", "uniform"}
        Labels outside the interval are moved to its nearer end (the default, which keeps `debias`
        unbiased for the clipped label), or answered uniformly at random.

    Examples
    --------
    >>> mech = RPWithPrior(interval=(0.5, 3.5), zeta=0.7, epsilon=1.0)
    >>> z = mech.randomize([0.2, 1.7, 9.0])
    >>> 0.999 <= mech.verify().epsilon <= 1.0
    True

    References
    ----------
    Liu and Huang, "RPWithPrior: Label Differential Privacy in Regression", Lemma 3.3 and Remark 3.4.
    """

    interval: tuple[float, float]
    zeta: float
    epsilon: float
    outside: Literal["project", "uniform"] = "project"
    channel: WindowChannel = channel_field()

    def _build(self) -> WindowChannel:
        low, high = as_bounds(self.interval, "interval")
        zeta = as_positive(self.zeta, "zeta")
        epsilon = as_epsilon(self.epsilon)
        if self.outside not in ("project", "uniform"):
            raise ParameterError(f'outside must be "project" or "uniform", got {self.outside!r}')
        self._set(interval=(low, high), zeta=zeta, epsilon=epsilon)
        promise = Promise(as_fraction(epsilon))
        cells, window, background, extra = _counts(high - low, zeta, promise)
        return WindowChannel(
            low=low,
            high=high,
            cells=cells,
            window=window,
            background=background,
            extra=extra,
            promise=promise,
            spread_outside=self.outside == "uniform",
        )


def _counts(width: float, zeta: float, promise: Promise) -> tuple[int, int, int, int]:
    """Return cells, window, background and extra whose ratio is just below e^ε.

    The background is a power of two, so that a background cell is a shift of the word. With b such
    bits, extra = ⌊(e^ε − 1)2^b⌋ loses less than 2^(−14) of ε; the number of cells then follows from
    cells · 2^b + window · extra ≥ 2^64.
    """
    ratio = 2 * (zeta / width)
    share, rest = ratio / (1 + ratio), 1 / (1 + ratio)  # the window's part of the range, and its way
    gain = exp_lower(promise.epsilon) - 1
    background_share = 1 / (1 + share * float(gain))
    least_bits = max(1, math.ceil(14 - math.log2(gain)))
    # 2^32 cells, or more where the window or its way across the range would be only a few cells.
    wish = max(32, math.ceil(20 - math.log2(max(min(share, rest), 2.0**-44))))
    bits = max(least_bits, math.floor(64 - wish + math.log2(background_share)))
    extra = math.floor(gain * (1 << bits))
    window = max(1, round(share * background_share * 2.0 ** (64 - bits)))
    cells = -((window * extra - WORDS) >> bits)
    if min(window, cells - window) < FEWEST:
        raise ParameterError(
            f"zeta={zeta} is too {'small' if window < FEWEST else 'large'} for an interval {width} wide at "
            f"epsilon={float(promise.epsilon)}: give one closer to the width of the interval"
        )
    return cells, window, 1 << bits, extra
