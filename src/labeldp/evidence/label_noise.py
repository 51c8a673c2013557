"""What private labels of a mechanism carry, by its counts, for labels that are public."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Self

import numpy as np

from labeldp._values import Array, Interval
from labeldp.accounts.accuracy import noise_and_bias
from labeldp.accounts.numbers import number
from labeldp.errors import ParameterError, Setting
from labeldp.exact.word_sources import resolve_source
from labeldp.mechanisms.histogram import Histogram
from labeldp.mechanisms.registry import mechanism_class
from labeldp.release.plan import Request

_DRAWS = 3
"""Priors to average over."""


class Estimate(float):
    """A figure, and its standard error where it has one.

    Examples
    --------
    >>> print(Estimate(15943.2, 103.7), Estimate(0.51234, 0.0021), Estimate(851.3, 0.0024), sep="; ")
    15,900 ± 100; 0.512 ± 0.0021; 851
    """

    __slots__ = ("spread",)
    spread: float

    def __new__(cls, value: float, spread: float = 0.0) -> Self:
        """Return the figure."""
        self = super().__new__(cls, value)
        self.spread = spread
        return self

    def __str__(self) -> str:
        shows = self.spread > 1e-4 * abs(self)  # in three digits
        return number(self, 3) + (f" ± {number(self.spread, 2)}" if shows else "")


@dataclass(frozen=True, slots=True)
class LabelNoise:
    """What private labels of one mechanism carry, exactly, by its counts.

    Attributes
    ----------
    error : Estimate
        Typical error of one private label; it varies with the luck of a private prior, and is exact without one.
    unbiased : bool
        Whether a label is, on average, the true one, as far as that was not clipped.
    """

    error: Estimate
    unbiased: bool


def label_noise(name: str, labels: Array, bounds: Interval, epsilon: float, delta: float = 0.0) -> LabelNoise:
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
    >>> from labeldp.evidence.label_noise import label_noise
    >>> even = np.linspace(0, 5, 2000)
    >>> plain, window = (label_noise(name, even, (0, 5), 1.0) for name in ("laplace", "rp"))
    >>> bool(7.0 < plain.error < 7.2 and window.error < plain.error)
    True
    """
    needs_delta = name != "auto" and mechanism_class(name).needs_delta
    request = Request(epsilon=epsilon, bounds=bounds, mechanism=name, delta=delta if needs_delta else 0.0)
    plan, source = request.plan(labels.size), resolve_source(None)
    priors: list[Histogram | None] = [None]
    if plan.for_prior:
        priors = [request.estimate_prior(labels, plan.for_prior, source) for _ in range(_DRAWS)]
    try:
        draws = [noise_and_bias(plan.mechanism_for(prior), labels) for prior in priors]
    except TypeError as error:  # of its constructor
        why = f": {name} has settings without a default: give them one, or define for_bounds"
        raise ParameterError(Setting("mechanisms"), why) from error
    squares = [np.mean(deviation**2 + bias**2) for deviation, bias, _ in draws]
    spread = float(np.std(np.sqrt(squares), ddof=1)) if len(draws) > 1 else 0.0
    return LabelNoise(Estimate(math.sqrt(np.mean(squares)), spread), all(unbiased for *_, unbiased in draws))
