"""RPWithPrior: the paper's mechanism, a likelier window of half-width ζ around the label."""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, ClassVar, Literal, Self

import numpy as np
from numpy.typing import NDArray

from labeldp._validation import as_bounds, as_choice, as_epsilon, as_positive
from labeldp.card_format import register
from labeldp.channels import Promise, WindowChannel
from labeldp.channels.proof import WORDS, exp_lower
from labeldp.errors import ParameterError
from labeldp.histogram import Histogram
from labeldp.mechanisms.base import Mechanism, channel_field
from labeldp.mechanisms.clipping import UnitNoise, mean_square
from labeldp.mechanisms.interval import optimal_interval

__all__ = ["RPWithPrior", "window_noise"]

FEWEST = 1 << 12
"""A window, and its way across the range, have at least this many cells, so that ζ and ε are met."""


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

    needs_prior: ClassVar[bool] = True
    in_auto: ClassVar[bool] = True
    interval: tuple[float, float]
    zeta: float
    epsilon: float
    outside: Literal["project", "uniform"] = "project"
    channel: WindowChannel = channel_field()

    @classmethod
    def for_bounds(
        cls,
        bounds: tuple[float, float],
        epsilon: float,
        *,
        prior: Histogram | None = None,
        zeta: float | None = None,
        **options: Any,
    ) -> Self:
        """Return the mechanism on an interval, with the best ζ for labels under a prior, or anywhere in it."""
        if zeta is None:
            q = 1 / 12 if prior is None else mean_square(prior, bounds)
            zeta = float(window_noise(as_epsilon(epsilon), np.array([q]))[1][0]) * (bounds[1] - bounds[0])
        return cls(interval=bounds, zeta=zeta, epsilon=epsilon, **options)

    @classmethod
    def unit_noise(cls, epsilon: float, **_: object) -> UnitNoise:
        """Return the least variance over all ζ."""
        return lambda q: window_noise(epsilon, np.asarray(q))[0]

    @classmethod
    def design(
        cls,
        prior: Histogram,
        epsilon: float,
        *,
        rows: int | None = None,
        zeta: float | None = None,
        **options: Any,
    ) -> Self:
        """Return the mechanism with the best interval, and the best ζ, under a prior.

        Parameters
        ----------
        prior : Histogram
            Public or privately estimated.
        epsilon : float
        rows : int, optional
            How many labels a learner will see: the more, the less noise matters and the less is clipped.
            By default the error of a single label counts.
        zeta : float, optional
            If given, the interval is the paper's: it maximises the probability of answering from the
            label's neighbourhood (Algorithm 1). Else interval and ζ are chosen together for the least
            error of the unbiased label.
        **options
            ``outside``.

        Examples
        --------
        >>> prior = Histogram([0, 1, 2, 10], [1, 8, 1])
        >>> RPWithPrior.design(prior, epsilon=1.0, zeta=0.5).interval
        (1.0, 2.0)
        """
        if zeta is None:
            return cls._with_best_bounds(prior, epsilon, rows, **options)
        interval = optimal_interval(prior, epsilon=as_epsilon(epsilon), zeta=zeta)
        return cls(interval=interval, zeta=zeta, epsilon=epsilon, **options)

    def _build(self) -> WindowChannel:
        low, high = as_bounds(self.interval, "interval")
        zeta = as_positive(self.zeta, "zeta")
        epsilon = as_epsilon(self.epsilon)
        as_choice(self.outside, "outside", ("project", "uniform"))
        self._set(interval=(low, high), zeta=zeta, epsilon=epsilon)
        promise = Promise.of(epsilon)
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


def window_noise(epsilon: float, q: NDArray[np.float64]) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Return the least variance of the unbiased label on an interval of width 1, and the ζ that gives it.

    With ζ = r, ρ = 2r(1 − e^(−ε))/(2r + e^(−ε)) and L = 1 + 2r it is
    [ρr²/3 + (1 − ρ)L²/12]/ρ² + q(1 − ρ)/ρ, where q = E[(p − m)²] ≤ 1/4.
    """
    r = np.geomspace(0.01, 30.0, 600) * math.exp(-epsilon / 2)
    rho = 2 * r * -math.expm1(-epsilon) / (2 * r + math.exp(-epsilon))
    level = (rho * r**2 / 3 + (1 - rho) * (1 + 2 * r) ** 2 / 12) / rho**2
    slope = (1 - rho) / rho
    grid = np.linspace(0.0, 0.25, 129)
    at = np.argmin(level[None, :] + slope[None, :] * grid[:, None], axis=1)
    nearest = at[np.rint(q * 512).astype(np.int64)]
    return level[nearest] + slope[nearest] * q, r[nearest]


def _counts(width: float, zeta: float, promise: Promise) -> tuple[int, int, int, int]:
    """Return cells, window, background and extra whose ratio is just below e^ε.

    The background is a power of two, so that a background cell is a shift of the word. With g of its words
    and c = ⌊(e^ε − 1)g⌋, a window of m cells that moves by m/(2ζ/width) cells uses up all words if
    m(c + g(1 + width/2ζ)) = 2^64. The number of cells follows, and extra is what is left for each.
    """
    gain = exp_lower(promise.epsilon) - 1
    part = zeta / width
    if not 2.0**-60 < part < 2.0**60:
        raise _no_window(width, zeta, promise, small=part < 1)
    ratio = Fraction(2 * part)
    share, rest = ratio / (1 + ratio), 1 / (1 + ratio)  # the window's part of the range, and its way
    least_bits = max(1, math.ceil(14 - math.log2(gain)))
    # 2^32 cells, or more where the window or its way across the range would be only a few cells.
    fewest = min(share * min(gain, Fraction(1)), rest)
    wish = min(50, max(32, math.ceil(20 - math.log2(fewest))))
    bits = max(least_bits, math.floor(64 - wish - math.log2(1 + share * gain)))
    background = 1 << bits
    most = math.floor(gain * background)
    ideal = WORDS / (most + background * (1 + 1 / ratio))
    if share * gain < 1:  # round the window; a cell more or less matters little to ε
        window = round(ideal)
        cells = -((window * most - WORDS) >> bits)
    else:  # a window cell outweighs all background: round the cells
        window = math.ceil(ideal)
        cells = window + round(window / ratio)
        cells += max(0, -((window * most + cells * background - WORDS) >> bits))
    if min(gain, Fraction(1)) * window < FEWEST or cells - window < FEWEST:
        raise _no_window(width, zeta, promise, small=part < 1)
    return cells, window, background, -(-(WORDS - cells * background) // window)


def _no_window(width: float, zeta: float, promise: Promise, *, small: bool) -> ParameterError:
    return ParameterError(
        f"zeta={zeta} is too {'small' if small else 'large'} for an interval {width} wide at "
        f"epsilon={float(promise.epsilon)}: give one closer to the width of the interval"
    )
