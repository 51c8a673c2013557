"""Priors without a curator, from labels that were randomised one by one.

The square wave is `RPWithPrior` with the ζ that distinguishes distributions best. Its reports are counted, and the
labels' histogram that explains the counts is found by smoothed expectation maximisation. The paper's Algorithm 3
takes the histogram of Laplace-randomised labels as it is.
"""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np

from labeldp._values import Array, Counts, Interval, Numbers, float_below
from labeldp.accounts.statistic import Origin
from labeldp.errors import ParameterError, Setting
from labeldp.exact.sampling import pieces
from labeldp.exact.word_sources import WordSource
from labeldp.mechanisms.histogram import Histogram
from labeldp.mechanisms.laplace import Laplace
from labeldp.mechanisms.rp_with_prior import RPWithPrior
from labeldp.release.curator import count
from labeldp.release.deconvolution import label_likelihood, smoothed_em

MAX_LOCAL_BINS = 64
"""Bins of the prior; it has √n of them if that is fewer."""

MAX_BINS = 1 << 20
"""Bins of Algorithm 3: more would fill the memory."""


def algorithm_3(
    labels: Numbers, epsilon: Fraction, bounds: Interval, source: WordSource, sigma: float | None = None
) -> Histogram:
    """Return the histogram of Laplace-randomised labels: the paper's Algorithm 3, one draw a label.

    Nodes are μ + kσ between the smallest and the largest randomised label, and those two. The paper's
    α is a mass; a `Histogram` divides it by the width, as its Lemma 3.5 needs.
    """
    mechanism = Laplace(bounds=bounds, epsilon=float_below(epsilon))
    reports = mechanism.randomize(labels, random_state=source)
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


class SquareWaveCounts:
    """Counts of square-wave reports, and the histogram of labels that explains them.

    Parameters
    ----------
    epsilon : Fraction
        The cost of each report.
    bounds : (lo, hi)
    rows : int
        The number of reports; it is public.
    """

    def __init__(self, epsilon: Fraction, bounds: Interval, rows: int) -> None:
        self._mechanism = square_wave(float_below(epsilon), bounds)
        self._bins = int(np.clip(round(math.sqrt(rows)), 8, MAX_LOCAL_BINS))
        reach = self._mechanism.zeta * 1.001
        self._edges = np.linspace(bounds[0] - reach, bounds[1] + reach, 4 * self._bins + 1)

    def count(self, labels: Numbers, source: WordSource) -> Counts:
        """Return the number of reports of labels in each bin that `histogram` reads; counts of batches add up."""
        reports = self._mechanism.randomize(labels, random_state=source)
        first, last = float(self._edges[0]), float(self._edges[-1])
        return count(reports, (first, last), self._edges.size - 1)

    def histogram(self, counts: Counts) -> Histogram:
        """Return the labels' histogram under which such counts are likely."""
        nodes = np.linspace(*self._mechanism.interval, self._bins + 1)
        likelihood = label_likelihood(self._mechanism.channel, nodes, self._edges[1:-1])
        masses = smoothed_em(likelihood, counts / counts.sum())
        return Histogram(nodes, masses, Origin(reports=self._mechanism))
