"""What private labels of a mechanism carry, by its counts, for labels that are public."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from labeldp._arrays import Array
from labeldp.errors import NotUnbiasedError
from labeldp.mechanisms import Mechanism, mechanism_class
from labeldp.mechanisms.interval import noise_weight
from labeldp.randomness import resolve_source
from labeldp.release.arrays import private_prior
from labeldp.release.plan import Request

_DRAWS = 3
"""Priors to average over."""


@dataclass(frozen=True, slots=True)
class LabelNoise:
    """What private labels of one mechanism carry, exactly, by its counts.

    Attributes
    ----------
    one : float
        Typical error of one private label.
    mean : float
        Typical error of the mean of all of them.
    risk : float
        Bias² + variance · d/n: what a learner on these rows suffers.
    unbiased : bool
        Whether a label is, on average, the true one, as far as that was not clipped.
    one_spread, mean_spread : float
        By how much the first two vary with the luck of a private prior; 0 where there is none, and they are exact.

    Examples
    --------
    >>> import labeldp as ldp, numpy as np
    >>> from labeldp.comparison import mechanism_noise
    >>> noise = mechanism_noise(ldp.TwoPoint(bounds=(0, 5), epsilon=1.0), np.linspace(0, 5, 100))
    >>> noise.unbiased, noise.mean < noise.one / 9
    (True, True)
    """

    one: float
    mean: float
    risk: float
    unbiased: bool
    one_spread: float = 0.0
    mean_spread: float = 0.0


def label_noise(
    name: str, labels: Array, bounds: tuple[float, float], epsilon: float, delta: float = 0.0
) -> LabelNoise:
    """Return what private labels carry, were these randomised as `privatize` does it.

    Where a prior is needed it takes its part of ε and has its noise, so this averages over a few of them.

    Parameters
    ----------
    name : str
        A mechanism, as `privatize` knows it.
    labels : array
        Labels that anyone may see: the result follows from them exactly.
    bounds : (lo, hi)
        Public bounds of the label.
    epsilon, delta : float
        The budget; δ for "gaussian" only.

    Returns
    -------
    LabelNoise

    Examples
    --------
    >>> import numpy as np
    >>> from labeldp.comparison import label_noise
    >>> even = np.linspace(0, 5, 2000)
    >>> plain, window = (label_noise(name, even, (0, 5), 1.0) for name in ("laplace", "rp"))
    >>> bool(7.0 < plain.one < 7.2 and window.one < plain.one)
    True
    """
    needs_delta = name != "auto" and mechanism_class(name).needs_delta
    request = Request(epsilon=epsilon, bounds=bounds, mechanism=name, delta=delta if needs_delta else 0.0)
    plan = request.plan(labels.size)
    source = resolve_source(None)
    draws = [
        mechanism_noise(plan.mechanism_for(private_prior(plan, labels, source)), labels)
        for _ in range(_DRAWS if plan.for_prior else 1)
    ]
    ones, means = [draw.one for draw in draws], [draw.mean for draw in draws]
    return LabelNoise(
        one=math.sqrt(np.mean(np.square(ones))),
        mean=math.sqrt(np.mean(np.square(means))),
        risk=float(np.mean([draw.risk for draw in draws])),
        unbiased=all(draw.unbiased for draw in draws),
        one_spread=float(np.std(ones, ddof=1)) if len(draws) > 1 else 0.0,
        mean_spread=float(np.std(means, ddof=1)) if len(draws) > 1 else 0.0,
    )


def mechanism_noise(mechanism: Mechanism, labels: Array) -> LabelNoise:
    """Return what these labels carry once a mechanism has randomised them, unbiased where it allows that.

    Parameters
    ----------
    mechanism : Mechanism
        What randomises them.
    labels : array
        Labels that anyone may see: the result follows from them exactly.

    Returns
    -------
    LabelNoise

    Examples
    --------
    >>> import labeldp as ldp, numpy as np
    >>> from labeldp.comparison import mechanism_noise
    >>> labels = np.linspace(0, 5, 100)
    >>> noise = mechanism_noise(ldp.Laplace(bounds=(0, 5), epsilon=1.0), labels)
    >>> round(noise.one, 2), round(noise.mean, 3)           # √2 · 5, and a tenth of it
    (7.07, 0.707)
    """
    unbiased = True
    try:
        bias, variance = mechanism.debias(mechanism.mean(labels)) - labels, mechanism.unbiased_variance(labels)
    except NotUnbiasedError:
        bias, variance, unbiased = mechanism.bias(labels), mechanism.variance(labels), False
    noise = float(variance.mean())
    squared_bias = float(np.mean(bias**2))
    return LabelNoise(
        one=math.sqrt(squared_bias + noise),
        mean=math.sqrt(float(bias.mean()) ** 2 + noise / labels.size),
        risk=squared_bias + noise_weight(labels.size) * noise,
        unbiased=unbiased,
    )
