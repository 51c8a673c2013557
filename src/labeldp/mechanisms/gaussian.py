"""Gaussian noise with an exact δ, calibrated on the very counts that are sampled."""

from __future__ import annotations

import math
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, field
from fractions import Fraction
from typing import ClassVar

import numpy as np

from labeldp.errors import ParameterError, PrivacyProofError, Setting
from labeldp.exact.proof import Promise, exp_lower
from labeldp.exact.shift import ShiftChannel
from labeldp.mechanisms.base import Mechanism, channel_field
from labeldp.mechanisms.interval import UnitNoise
from labeldp.mechanisms.laplace import SCALE, counts_from_weights
from labeldp.mechanisms.registry import register

SMALLEST_DELTA = 1e-10
"""Below, a 64-bit word cannot show δ to 0.1 %."""

SMALLEST_SIGMA = 0.01
"""Standard deviation, in label ranges, below which no supported budget is met."""

LARGEST_SIGMA = 6500.0
"""Standard deviation, in label ranges, above which no table is large enough."""

TABLE = 1 << 15
STEPS = 1 << 8
TAIL = 9.2
"""Deviations until a cell has less than one of 2^64 words."""


@register("gaussian")
@dataclass(frozen=True, slots=True, kw_only=True)
class Gaussian(Mechanism):
    """Add Gaussian noise; the guarantee is (ε, δ), weaker than that of all other mechanisms here.

    Parameters
    ----------
    bounds : (lo, hi)
        Public bounds; labels outside are clipped. Never read them off the data.
    epsilon : float
        Privacy budget, 0.001 to 20.
    delta : float
        The probability with which ε may fail, 1e-10 or more. Keep it well below 1/n.
    sigma : float, optional
        Standard deviation of the noise. By default the smallest that can be proven. A larger one is
        proven with a smaller δ; a smaller one is refused.

    Examples
    --------
    >>> import labeldp as ldp
    >>> mech = ldp.Gaussian(bounds=(0, 5), epsilon=1.0, delta=1e-5)
    >>> proof = mech.verify()
    >>> 0.999e-5 <= proof.delta <= 1e-5
    True

    References
    ----------
    Balle and Wang, "Improving the Gaussian mechanism for differential privacy: analytical calibration
    and optimal denoising".
    """

    needs_delta: ClassVar[bool] = True
    bounds: tuple[float, float]
    epsilon: float
    delta: float = field()  # required, unlike the δ = 0 of others
    sigma: float | None = None
    channel: ShiftChannel = channel_field()

    @classmethod
    def unit_noise(cls, epsilon: float, *, delta: float = 0.0, **_: object) -> UnitNoise:
        """Return the variance of the noise, nearly: the same for all labels."""
        variance = analytic_sigma(epsilon, _provable(delta)) ** 2
        return lambda _: variance

    def _build(self) -> ShiftChannel:
        (low, high), epsilon, delta = self.bounds, self.epsilon, _provable(self.delta)
        if self.sigma is not None:
            if not SMALLEST_SIGMA <= self.sigma / (high - low) <= LARGEST_SIGMA:
                raise ParameterError(
                    Setting("sigma"),
                    f" must lie between {SMALLEST_SIGMA} and {LARGEST_SIGMA} label ranges, got {self.sigma}",
                )
            return self._with_sigma(self.sigma)
        for slack in (2e-5, 1e-4, 4e-4, 9e-4):  # counts are integers: the proof may miss δ by little
            with suppress(PrivacyProofError):
                return self._with_sigma(_calibrate(epsilon, delta * (1 - slack)) * (high - low))
        raise ParameterError(
            Setting("delta", delta),
            " is too small to be proven with 64-bit words at ",
            Setting("epsilon", epsilon),
            ": raise the one, or lower the other",
        )

    def _with_sigma(self, sigma: float) -> ShiftChannel:
        low, high = self.bounds
        steps = _steps(sigma / (high - low))
        in_steps = Fraction(sigma / (high - low)) * steps
        counts = counts_from_weights(_weights(in_steps))
        promise, rule = Promise.of(self.epsilon, self.delta), {"rule": "gaussian", "sigma": in_steps}
        channel = ShiftChannel.from_counts(low, high, steps, len(counts) // 2, counts, promise, rule)
        object.__setattr__(self, "sigma", sigma)  # so that a card makes the same counts on any machine
        return channel


def _provable(delta: float) -> float:
    """Return a δ that a proof in 64-bit words can reach."""
    if not delta >= SMALLEST_DELTA:
        raise ParameterError(
            Setting("delta", delta),
            f" is too small for this mechanism, which needs at least {SMALLEST_DELTA}; for ",
            Setting("delta", 0),
            " use Laplace, Staircase or RPWithPrior",
        )
    return delta


def analytic_sigma(epsilon: float, delta: float) -> float:
    """Return the least σ, in units of the sensitivity, of continuous Gaussian noise.

    Solves δ = Φ(1/2σ − εσ) − e^ε Φ(−1/2σ − εσ).

    Examples
    --------
    >>> round(analytic_sigma(1.0, 1e-5), 4)
    3.7306
    """
    from scipy.special import log_ndtr  # noqa: PLC0415 (slow to import)

    def excess(sigma: float) -> float:
        log_first = float(log_ndtr(1 / (2 * sigma) - epsilon * sigma))
        log_second = float(log_ndtr(-1 / (2 * sigma) - epsilon * sigma)) + epsilon
        return math.exp(log_first) * -math.expm1(log_second - log_first) - delta

    return _bisect(excess, 1e-3, 1e7)


def _bisect(excess: Callable[[float], float], low: float, high: float) -> float:
    """Return where a decreasing function crosses zero, from above."""
    for _ in range(200):
        middle = math.sqrt(low * high)
        if middle in (low, high):
            break
        low, high = (middle, high) if excess(middle) > 0 else (low, middle)
    return high


def _steps(sigma: float) -> int:
    """Return grid steps a label range, for σ in units of it."""
    return max(1, min(STEPS, int(TABLE / (2 * TAIL * sigma))))


def _weights(sigma: Fraction) -> list[int]:
    """Return e^(−j²/2σ²) for j = −reach … reach, in fixed point, by recurrence."""
    step = exp_lower(1 / (2 * sigma * sigma))  # w(j+1)/w(j) = step^−(2j+1)
    ratio, shrink = (SCALE // power for power in (step, step * step))
    weights = [SCALE]
    for _ in range(math.ceil(TAIL * sigma)):
        weights.append(weights[-1] * ratio // SCALE)
        ratio = ratio * shrink // SCALE
    return [*weights[:0:-1], *weights]


def _calibrate(epsilon: float, delta: float) -> float:
    """Return the least σ, in label ranges, for which noise on the grid satisfies (ε, δ)."""
    rough = analytic_sigma(epsilon, delta)
    steps = _steps(rough)
    reach = math.ceil(TAIL * rough * steps)
    noise = np.arange(-reach, reach + steps + 1, dtype=np.float64)

    def excess(sigma: float) -> float:  # for a shift over the whole range; verify() checks every shift
        twice = 2 * (sigma * steps) ** 2
        log_weight, log_shifted = -(noise**2) / twice, -((noise - steps) ** 2) / twice
        log_total = math.log(np.exp(log_weight).sum())
        gap = np.exp(log_weight - log_total) - np.exp(log_shifted - log_total + epsilon)
        return float(gap[gap > 0].sum()) - delta

    return _bisect(excess, rough * 0.5, rough * 2.0)
