"""Labels released in rounds: later rows over a narrow interval around what earlier rows predict.

Noise falls with the square of the interval's width, so a prediction made from earlier private labels, and
free to use, buys accuracy. Each row is released once, in one round.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from labeldp._arrays import Array
from labeldp.errors import ParameterError
from labeldp.estimators.bayes import explained_risk
from labeldp.histogram import Histogram
from labeldp.mechanisms import Mechanism, RPWithPrior, TwoPoint, mechanism_class
from labeldp.mechanisms.interval import expected_risk
from labeldp.mechanisms.rp_with_prior import window_noise

_BIAS = 0.5
"""How much of the variance that clipping hides is lost to a learner; the rest its slope brings back."""

_LOWER = (0.0, 0.005, 0.02, 0.05, 0.1, 0.15, 0.2, 0.3, 0.4, 0.5)
_UPPER = (0.5, 0.6, 0.7, 0.8, 0.85, 0.9, 0.95, 0.98, 0.995, 1.0)
_UNIT_BINS = 64


@dataclass(frozen=True, slots=True)
class Situation:
    """What is known, publicly or privately, when a round is designed.

    Attributes
    ----------
    spectrum : array
        Eigenvalues of the public features.
    signal : float
        Guessed variance that the features explain.
    rest : float
        Variance that they do not.
    rows : int
    epsilon : float
    """

    spectrum: Array
    signal: float
    rest: float
    rows: int
    epsilon: float


@dataclass(frozen=True, slots=True)
class Interval:
    """Where labels, minus their prediction, are distinguished in a round.

    The unbiased label of the clipped residual c is mapped to shift + slope · c, the best straight line for
    the residual itself under what is known of it: that takes out most of the bias of clipping.
    """

    low: float
    high: float
    shift: float
    slope: float
    hidden: float
    """Variance of the residual around that line: what clipping hides."""
    unit_prior: Histogram
    risk: float


def design_interval(values: Array, masses: Array, situation: Situation) -> Interval:
    """Return the interval of least expected risk of a learner.

    Parameters
    ----------
    values, masses : arrays
        What is known of the residuals: increasing values and their probabilities.
    situation : Situation
    """
    total = np.cumsum(masses)
    lows = np.unique([values[0], *[_quantile(values, total, p) for p in _LOWER[1:]]])
    highs = np.unique([values[-1], *[_quantile(values, total, p) for p in _UPPER[:-1]]])
    span, nodes = values[-1] - values[0], np.linspace(0.0, 1.0, _UNIT_BINS + 1)
    mean = float(masses @ values)
    strength = float(situation.spectrum.sum()) * situation.signal
    best: Interval | None = None
    two_point = 1 / np.tanh(situation.epsilon / 2) ** 2 / 4
    for low in lows:
        for high in highs:
            if high - low < 1e-6 * span:
                continue
            clipped = np.clip(values, low, high)
            middle = float(masses @ clipped)
            variance = float(masses @ (clipped - middle) ** 2)
            if variance < 1e-12 * span**2:
                continue
            slope = float(masses @ ((values - mean) * (clipped - middle))) / variance
            shift = mean - slope * middle
            hidden = float(masses @ (values - shift - slope * clipped) ** 2)
            unit = (clipped - low) / (high - low)
            q = np.array([float(masses @ (unit - 0.5) ** 2)])
            noise = min(float(window_noise(situation.epsilon, q)[0][0]), two_point - float(q[0]))
            level = (noise * (slope * (high - low)) ** 2 + situation.rest) / situation.rows
            lost = explained_risk(situation.spectrum, situation.signal, level)
            learnt = 1 - lost / strength if strength > 0 else 1.0
            risk = lost + _BIAS * hidden * learnt
            if best is None or risk < best.risk:
                place = np.minimum((unit * _UNIT_BINS).astype(np.int64), _UNIT_BINS - 1)
                prior = Histogram(nodes, np.bincount(place, masses, _UNIT_BINS))
                best = Interval(float(low), float(high), shift, slope, hidden, prior, risk)
    if best is None:
        raise ParameterError("the bounds leave no interval in which labels can be distinguished")
    return best


def _quantile(values: Array, total: Array, p: float) -> float:
    return float(values[min(int(np.searchsorted(total, p)), values.size - 1)])


UnitDesign = Callable[[Histogram, float], Mechanism]
"""Makes an unbiased mechanism on [0, 1] for a prior there and ε."""


def best_unit_mechanism(prior: Histogram, epsilon: float) -> Mechanism:
    """Return the window or the two points, whichever has less variance under a prior.

    The table of `Unbiased` has a little less still, but earns nothing here that shows (`benchmarks/ablation.md`).
    """
    candidates = [kind.for_bounds((0.0, 1.0), epsilon, prior=prior) for kind in (RPWithPrior, TwoPoint)]
    return min(candidates, key=lambda mechanism: expected_risk(mechanism, prior))


def unit_design(mechanism: str | UnitDesign, epsilon: float) -> UnitDesign:
    """Return what makes the mechanism of each round, tried once on a flat prior before anything is spent."""
    if mechanism == "auto":
        design: UnitDesign = best_unit_mechanism
    elif isinstance(mechanism, str):
        kind = mechanism_class(mechanism)
        if kind.needs_delta:
            raise ParameterError(
                f'mechanism="{mechanism}" needs delta, and a row\'s label is released with pure epsilon here; try '
                "privatize"
            )
        if not kind.unbiased:
            raise ParameterError(
                f'mechanism="{mechanism}" has no unbiased label to learn from; use it through privatize'
            )

        def design(prior: Histogram, epsilon: float) -> Mechanism:
            return kind.for_bounds((0.0, 1.0), epsilon, prior=prior)

    elif callable(mechanism):
        design = mechanism
    else:
        raise ParameterError(
            "mechanism must be a name, or a function (prior, epsilon) that returns a mechanism on [0, 1]: each "
            "round has its own interval and budget, so a mechanism built beforehand does not fit"
        )

    def verified_design(prior: Histogram, epsilon: float) -> Mechanism:
        result = design(prior, epsilon)
        _refuse_unfit(result, epsilon)
        return result

    verified_design(Histogram((0.0, 1.0), [1.0]), epsilon)
    return verified_design


def _refuse_unfit(mechanism: object, epsilon: float) -> None:
    if not isinstance(mechanism, Mechanism):
        raise ParameterError(f"the mechanism function returned a {type(mechanism).__name__}, not a Mechanism")
    proof = mechanism.verify()
    if proof.delta or proof.epsilon > epsilon:
        raise ParameterError(
            f"the mechanism keeps {proof.epsilon:.6g}, {proof.delta:.3g}; wanted {epsilon:.6g}, 0"
        )
    points = np.linspace(0.0, 1.0, 9)
    if not np.allclose(mechanism.debias(mechanism.mean(points)), points, atol=1e-3):
        raise ParameterError("the mechanism must be unbiased on [0, 1]")


ROUNDS = (0.2, 0.3, 0.5)
"""Parts of the rows in each round: the last and best intervals serve half of them."""

FEWEST = 200
"""With fewer rows all are released at once."""


def round_cuts(parts: Sequence[float]) -> Array:
    """Return where rounds begin and end, from 0 to 1: what is not a number if the parts have no finite sum."""
    with np.errstate(over="ignore", invalid="ignore"):
        total = np.cumsum([0.0, *parts])
        return np.asarray(total / total[-1])


def round_sizes(rounds: Any, rows: int) -> tuple[float, ...]:
    """Return the parts of the rows for each round, none of which may be without a row."""
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
