"""Mechanisms as published. **NOT PRIVATE**: raw labels decide what is released.

Kept apart from everything else, for one purpose: to show where the published figures come from. The code's slips
are repeated on purpose: the histogram is of all raw labels and the last batch's noisy ones; masses stand where
densities belong; Algorithm 1 gets ε1 instead of ε2; and ζ shrinks while the interval is narrower than 2ζ.
"""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

import labeldp as ldp
from labeldp.exact.word_sources import WordSource
from reproduction.published import parameters

Array = NDArray[np.float64]
_SENSITIVITY = {"crime": 1.0, "housing": 4.85, "criteo": 400.0}
"""Housing's was read off the data: its labels span 0.15 to 5."""


def leaking_interval(
    y: Array,
    dataset: str,
    epsilon: float,
    batch: int,
    source: WordSource,
    *,
    zeta_factor: float = 1.0,
    sigma_factor: float = 1.0,
) -> tuple[tuple[float, float], float, float]:
    """Return the interval, ζ and ε2 that the published code would use. The interval leaks raw labels.

    The noisy labels of the last ``batch`` are kept; all others are replaced by raw ones. The factors are
    multiples of the published ζ and of the published bin width.
    """
    shares = parameters(dataset, epsilon)
    if shares is None:
        raise ldp.errors.ParameterError(f"the paper has no parameters for {dataset} at epsilon={epsilon:g}")
    share, zeta = shares[0], shares[1] * zeta_factor
    reach = _SENSITIVITY[dataset]
    last = y[-(y.size % batch or batch) :]
    noisy = ldp.Laplace(bounds=(0.0, reach), epsilon=share).randomize(last, random_state=source)
    seen = np.maximum(np.concatenate([y, noisy]), 0.0)
    if dataset == "crime":
        seen = np.minimum(seen, 1.0)
    mean, spread = float(seen.mean()), sigma_factor * float(seen.std(ddof=1))
    first = int(np.floor((seen.min() - mean) / spread))
    end = int(np.ceil((seen.max() - mean) / spread))
    nodes = mean + spread * np.arange(first, end + 1)
    nodes[0], nodes[-1] = seen.min(), seen.max()
    masses = np.histogram(seen, bins=nodes)[0] / seen.size
    prior = ldp.Histogram(nodes, masses * np.diff(nodes))  # the code takes masses for densities
    interval = ldp.optimal_interval(prior, epsilon=share, zeta=zeta)
    while interval[1] - interval[0] < 2 * zeta:
        zeta = (interval[1] - interval[0]) / 2
        interval = ldp.optimal_interval(prior, epsilon=share, zeta=zeta)
    return interval, zeta, epsilon - share


def leaking_labels(
    y: Array, dataset: str, epsilon: float, batch: int, source: WordSource, **factors: float
) -> tuple[Array, str]:
    """Return labels as the published code would randomise them, NOT PRIVATE, and how."""
    interval, zeta, rest = leaking_interval(y, dataset, epsilon, batch, source, **factors)
    mechanism = ldp.RPWithPrior(interval=interval, zeta=zeta, epsilon=rest)
    detail = f"NOT PRIVATE: rp on ({interval[0]:.4g}, {interval[1]:.4g}), zeta {zeta:.4g}"
    return mechanism.randomize(y, random_state=source), detail


def classical_sigma(dataset: str, bounds: tuple[float, float], epsilon: float, delta: float) -> float:
    """Return σ of the classical formula, Δ√(2 ln(1.25/δ))/ε, with the published sensitivity Δ."""
    reach = _SENSITIVITY.get(dataset, bounds[1] - bounds[0])
    return reach * math.sqrt(2 * math.log(1.25 / delta)) / epsilon


Design = Callable[[Array, str, tuple[float, float], float], tuple[Array, ldp.mechanisms.Mechanism]]
"""Labels, data set, bounds and ε, to labels and a mechanism for them."""


def _leaking_bins(
    y: Array, dataset: str, bounds: tuple[float, float], epsilon: float
) -> tuple[Array, ldp.mechanisms.Mechanism]:
    """Return rounded labels, and RR-on-Bins for their own histogram."""
    low, high = bounds
    step = 1.0 if dataset == "criteo" else 0.01
    steps = math.ceil((high - low) / step)
    nodes = low + step * (np.arange(steps + 2) - 0.5)
    rounded = low + step * np.rint((np.clip(y, low, high) - low) / step)
    prior = ldp.Histogram(nodes, np.histogram(rounded, bins=nodes)[0])
    return rounded, ldp.RROnBins.design(prior, epsilon)


def _leaking_table(
    y: Array, dataset: str, bounds: tuple[float, float], epsilon: float
) -> tuple[Array, ldp.mechanisms.Mechanism]:
    """Return the labels, and the optimal table of five rows and five outputs for their own histogram."""
    counts = np.histogram(np.clip(y, *bounds), bins=400, range=bounds)[0]
    return y, ldp.Unbiased.design(ldp.Histogram.from_counts(counts, bounds), epsilon, size=5)


DESIGNS: dict[str, Design] = {"rr-on-bins-published": _leaking_bins, "unbiased-published": _leaking_table}
"""Designs for the histogram of the very labels that are randomised, by the key of their column."""
