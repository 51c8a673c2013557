"""Priors without a curator, from labels that were randomised one by one.

The square wave is `RPWithPrior` with the ζ that distinguishes distributions best. Its reports are counted, and the
labels' histogram that explains the counts is found by smoothed expectation maximisation. The paper's Algorithm 3
takes the histogram of Laplace-randomised labels as it is.
"""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np

from labeldp._values import Array, Interval, float_below
from labeldp.accounts.statistic import Origin
from labeldp.errors import ParameterError, Setting
from labeldp.exact.sampling import pieces
from labeldp.mechanisms.histogram import Histogram
from labeldp.mechanisms.laplace import Laplace
from labeldp.mechanisms.rp_with_prior import RPWithPrior
from labeldp.release.deconvolution import label_likelihood, smoothed_em
from labeldp.release.label_access import LabelAccess
from labeldp.release.queries import Cells

MAX_LOCAL_BINS = 64
"""Bins of the prior; it has √n of them if that is fewer."""

MAX_BINS = 1 << 20
"""Bins of Algorithm 3: more would fill the memory."""


def algorithm_3(access: LabelAccess, epsilon: Fraction, bounds: Interval, sigma: float | None = None) -> Histogram:
    """Return the histogram of Laplace-randomised labels: the paper's Algorithm 3, one draw a label.

    Nodes are μ + kσ between the smallest and the largest randomised label, and those two. The paper's
    α is a mass; a `Histogram` divides it by the width, as its Lemma 3.5 needs.
    """
    mechanism = Laplace(bounds=bounds, epsilon=float_below(epsilon))
    reports = np.concatenate(list(access.report(mechanism)))
    middle = float(reports.mean())
    width = _deviation(reports, middle) if sigma is None else sigma
    low, high = float(reports.min()), float(reports.max())
    if not width > 0 or low == high:  # a single label, say
        reach = (bounds[1] - bounds[0]) / 2
        return Histogram([low - reach, low + reach], [1.0], Origin(reports=mechanism))
    if (high - low) / width > MAX_BINS:
        raise ParameterError(Setting("sigma", sigma), f" makes more than {MAX_BINS} bins: give a larger one")
    first = math.floor((low - middle) / width)
    last = math.ceil((high - middle) / width) - 1
    inner = middle + width * np.arange(first + 1, last + 1)
    inner = inner[(inner > low) & (inner < high)]
    nodes = np.concatenate([[low], inner, [high]])
    return Histogram(nodes, np.histogram(reports, bins=nodes)[0], Origin(reports=mechanism))


def _deviation(values: Array, mean: float) -> float:
    """Return the standard deviation, without a copy of all values."""
    squares = (float(np.sum((values[piece] - mean) ** 2)) for piece in pieces(values.size))
    return math.sqrt(sum(squares) / values.size)


def square_wave(epsilon: float, bounds: Interval) -> RPWithPrior:
    """Return the square-wave mechanism: RPWithPrior with ζ chosen to distinguish distributions.

    References
    ----------
    Li, Wang, Lopuhaä-Zwakenberg, Li and Škoric, "Estimating numerical distributions under local
    differential privacy".
    """
    low, high = bounds
    e = math.exp(epsilon)
    top = epsilon * e - math.expm1(epsilon)  # b = (εe^ε − e^ε + 1) / (2e^ε(e^ε − 1 − ε))
    bottom = math.expm1(epsilon) - epsilon
    return RPWithPrior(interval=bounds, zeta=top / (2 * e * bottom) * (high - low), epsilon=epsilon)


def square_wave_histogram(access: LabelAccess, epsilon: Fraction, bounds: Interval) -> Histogram:
    """Return the histogram of labels under which the counts of their square-wave reports are likely."""
    mechanism = square_wave(float_below(epsilon), bounds)
    bins = int(np.clip(round(math.sqrt(access.rows)), 8, MAX_LOCAL_BINS))
    reach = mechanism.zeta * 1.001
    edges = np.linspace(bounds[0] - reach, bounds[1] + reach, 4 * bins + 1)
    cells = Cells((float(edges[0]), float(edges[-1])), 4 * bins)
    counts = np.sum([cells.answer(reports) for reports in access.report(mechanism)], axis=0)
    nodes = np.linspace(*mechanism.interval, bins + 1)
    likelihood = label_likelihood(mechanism.channel, nodes, edges[1:-1])
    masses = smoothed_em(likelihood, counts / counts.sum())
    return Histogram(nodes, masses, Origin(reports=mechanism))
