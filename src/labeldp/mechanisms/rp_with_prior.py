"""RPWithPrior: the paper's mechanism, a likelier window of half-width ζ around the label."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, ClassVar, Literal, Self

import numpy as np

from labeldp._values import Array, Interval
from labeldp.exact.proof import Promise
from labeldp.exact.window import WindowChannel
from labeldp.mechanisms.base import Mechanism, channel_field
from labeldp.mechanisms.histogram import Histogram
from labeldp.mechanisms.interval import ClippingRisks, UnitNoise, optimal_interval
from labeldp.mechanisms.registry import register


@register("rp")
@dataclass(frozen=True, slots=True, kw_only=True)
class RPWithPrior(Mechanism):
    """Response privacy with a prior (Algorithm 2 of the paper).

    `RPWithPrior.design` chooses interval and ζ together, for the least error of the unbiased label under a prior;
    or, for a given ``zeta``, the paper's interval, which answers most labels from their neighbourhood
    (Algorithm 1).

    With I = [A1, A2] and γ = 2ζ + e^(−ε)(A2 − A1), the released value has density 1/γ within ζ of the
    label and e^(−ε)/γ elsewhere in [A1 − ζ, A2 + ζ]. Here that density lives on more than 2^32 cells
    with exact integer counts; see ``docs/proofs/rp_with_prior.md``.

    Parameters
    ----------
    interval : (A1, A2)
        Where labels are distinguished. It must not be read off the labels themselves.
    zeta : float
        Half the width of the likelier window.
    epsilon : float
        Privacy budget, 0.001 to 20.
    outside : {"project", "uniform"}
        Labels outside the interval are moved to its nearer end (the default, which keeps `debias`
        unbiased for the clipped label), or answered uniformly at random.

    Examples
    --------
    >>> import labeldp as ldp
    >>> mech = ldp.RPWithPrior(interval=(0.5, 3.5), zeta=0.7, epsilon=1.0)
    >>> z = mech.randomize([0.2, 1.7, 9.0])
    >>> 0.999 <= mech.verify().epsilon <= 1.0
    True
    >>> ldp.RPWithPrior.design(ldp.Histogram([0, 1, 2, 10], [1, 8, 1]), epsilon=1.0, zeta=0.5).interval
    (1.0, 2.0)

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
        bounds: Interval,
        epsilon: float,
        *,
        prior: Histogram | None = None,
        zeta: float | None = None,
        **options: Any,
    ) -> Self:
        """Return the mechanism on an interval, with the best ζ for labels under a prior, or anywhere in it."""
        if zeta is None:
            q = 1 / 12 if prior is None else ClippingRisks(prior).mean_square(bounds)
            _, best = window_noise(epsilon, np.array([q]))
            zeta = float(best[0]) * (bounds[1] - bounds[0])
        return cls(interval=bounds, zeta=zeta, epsilon=epsilon, **options)

    @classmethod
    def unit_noise(cls, epsilon: float, **_: object) -> UnitNoise:
        """Return the least variance over all ζ."""
        return lambda q: window_noise(epsilon, np.asarray(q))[0]

    @classmethod
    def _interval(cls, risks: ClippingRisks, epsilon: float, rows: int | None, **options: Any) -> Interval:
        """Return the paper's interval where ζ is given (Algorithm 1), else the best for the unbiased label."""
        if options.get("zeta") is not None:
            return optimal_interval(risks.prior, epsilon=epsilon, zeta=options["zeta"])
        return risks.best_interval(cls.unit_noise(epsilon), rows)

    def _build(self) -> WindowChannel:
        promise, spread = Promise.of(self.epsilon), self.outside == "uniform"
        return WindowChannel.for_zeta(*self.interval, self.zeta, promise, spread_outside=spread)


def window_noise(epsilon: float, q: Array) -> tuple[Array, Array]:
    """Return the least variance of the unbiased label on an interval of width 1, and the ζ that gives it.

    With ζ = r, ρ = 2r(1 − e^(−ε))/(2r + e^(−ε)) and L = 1 + 2r it is
    [ρr²/3 + (1 − ρ)L²/12]/ρ² + q(1 − ρ)/ρ, where q = E[(p − m)²] ≤ 1/4.
    """
    r = np.geomspace(0.01, 30.0, 600) * math.exp(-epsilon / 2)
    length = 1 + 2 * r
    rho = 2 * r * -math.expm1(-epsilon) / (2 * r + math.exp(-epsilon))
    window = rho * r**2 / 3
    background = (1 - rho) * length**2 / 12
    level = (window + background) / rho**2
    slope = (1 - rho) / rho
    grid = np.linspace(0.0, 0.25, 129)
    variances = level[None, :] + slope[None, :] * grid[:, None]
    at = np.argmin(variances, axis=1)
    nearest = at[np.rint(q * 512).astype(np.int64)]
    return level[nearest] + slope[nearest] * q, r[nearest]
