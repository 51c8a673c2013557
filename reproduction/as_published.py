"""RPWithPrior as the published code has it. **NOT PRIVATE**: raw labels decide what is released.

Kept apart from everything else, for one purpose: to show where the published figures come from. The code's slips
are repeated on purpose: the histogram is of all raw labels and the last batch's noisy ones; masses stand where
densities belong; Algorithm 1 gets ε1 instead of ε2; and ζ shrinks while the interval is narrower than 2ζ.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

import labeldp as ldp
from labeldp.exact.word_sources import WordSource
from reproduction.published import parameters

Array = NDArray[np.float64]
_SENSITIVITY = {"crime": 1.0, "housing": 4.85, "criteo": 400.0}
"""Housing's was read off the data: its labels span 0.15 to 5."""


def leaking_interval(
    y: Array, dataset: str, epsilon: float, batch: int, source: WordSource
) -> tuple[tuple[float, float], float, float]:
    """Return the interval, ζ and ε2 that the published code would use. The interval leaks raw labels.

    The noisy labels of the last ``batch`` are kept; all others are replaced by raw ones.
    """
    shares = parameters(dataset, epsilon)
    if shares is None:
        raise ldp.errors.ParameterError(f"the paper has no parameters for {dataset} at epsilon={epsilon:g}")
    share, zeta = shares
    reach = _SENSITIVITY[dataset]
    last = y[-(y.size % batch or batch) :]
    noisy = ldp.Laplace(bounds=(0.0, reach), epsilon=share).randomize(last, random_state=source)
    seen = np.maximum(np.concatenate([y, noisy]), 0.0)
    if dataset == "crime":
        seen = np.minimum(seen, 1.0)
    mean, spread = float(seen.mean()), float(seen.std(ddof=1))
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


def leaking_labels(y: Array, dataset: str, epsilon: float, batch: int, source: WordSource) -> tuple[Array, str]:
    """Return labels as the published code would randomise them, NOT PRIVATE, and how."""
    interval, zeta, rest = leaking_interval(y, dataset, epsilon, batch, source)
    mechanism = ldp.RPWithPrior(interval=interval, zeta=zeta, epsilon=rest)
    detail = f"NOT PRIVATE: rp on ({interval[0]:.4g}, {interval[1]:.4g}), zeta {zeta:.4g}"
    return mechanism.randomize(y, random_state=source), detail
