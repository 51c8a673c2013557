"""Estimating the prior privately, by a curator or from reports that were randomised one by one."""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray

from labeldp._validation import as_epsilon, as_fraction, as_labels, as_positive, as_roomy_bounds, float_below
from labeldp.channels.domain import pieces
from labeldp.errors import LabelError, ParameterError
from labeldp.histogram import Histogram
from labeldp.ledger import Ledger
from labeldp.ledger.repetition import warn_if_seen
from labeldp.mechanisms import Laplace, RPWithPrior
from labeldp.priors.curator import FINE, adaptive_histogram, bins_for, equal_histogram
from labeldp.priors.statistics import count
from labeldp.randomness import WordSource, resolve_source

__all__ = ["Reports", "estimate_prior", "square_wave"]

Trust = Literal["curator", "local"]
Method = Literal["counts", "adaptive", "square-wave", "laplace"]

METHODS = {"curator": ("counts", "adaptive"), "local": ("square-wave", "laplace")}
"""Ways to estimate a prior; the first is the default."""

_LOCAL_BINS = 64
_PLACES = 16
_MOST_BINS = 1 << 20
_ROUNDS = 2000


def estimate_prior(
    labels: ArrayLike,
    *,
    epsilon: float,
    bounds: Any = None,
    trust: Trust = "curator",
    method: Method | None = None,
    sigma: float | None = None,
    bins: int | None = None,
    ledger: Ledger | None = None,
    rows_per_person: int = 1,
    random_state: int | WordSource | None = None,
) -> Histogram:
    """Return a private histogram of the labels, for ε.

    Parameters
    ----------
    labels : array-like
        Private labels.
    epsilon : float
        What the histogram may cost.
    bounds : (lo, hi)
        Public bounds; labels outside are clipped.
    trust : {"curator", "local"}
        With a curator, counts get two-sided geometric noise. Without, every label is randomised on
        its own first, which needs far more labels for the same accuracy.
    method : str, optional
        For a curator ``"counts"`` in equally wide bins (the default), or ``"adaptive"``, which first looks
        where labels are and then counts in bins of about equal mass, for bounds that may be loose. Without
        one ``"square-wave"`` with smoothed expectation maximisation (the default), or ``"laplace"``, the
        paper's Algorithm 3 to the letter.
    sigma : float, optional
        Bin width of Algorithm 3; by default the standard deviation of the randomised labels.
    bins : int, optional
        For ``"counts"``: how many bins. By default it follows from the number of labels and ε;
        choose it by anything but the labels.
    ledger : Ledger, optional
        Is charged before any label is counted.
    rows_per_person : int
        How many rows one person may have; the ledger is charged for all of them.
    random_state : None, int or source of words
        Leave it out for a release.

    Examples
    --------
    >>> import numpy as np
    >>> prior = estimate_prior(np.full(10_000, 3.0), epsilon=0.5, bounds=(0, 5))
    >>> 2.9 < prior.mean < 3.1
    True
    """
    array = as_labels(labels)
    if array.ndim != 1 and array.shape[1:] != (1,):
        raise LabelError(f"a prior is of one label column, of shape (n,), got {array.shape}")
    array = array.reshape(-1)
    epsilon, bounds = as_epsilon(epsilon), as_roomy_bounds(bounds)
    check_method(trust, method)
    if sigma is not None:
        as_positive(sigma, "sigma")
    if bins is not None and not (isinstance(bins, int) and 1 <= bins <= 1 << 20):
        raise ParameterError(f"bins must be an integer from 1 to 2^20, got {bins!r}")
    source = resolve_source(random_state)
    if ledger is None:
        warn_if_seen(labels)
    else:
        ledger.charge(f"prior ({trust})", epsilon=epsilon, purpose="prior", rows_per_person=rows_per_person)
    exact = as_fraction(epsilon)
    return histogram_from(array, exact, bounds, source, trust=trust, method=method, sigma=sigma, bins=bins)


def check_method(trust: str, method: str | None) -> None:
    """Refuse what is not a way to estimate a prior."""
    if trust not in ("curator", "local"):
        raise ParameterError(f'trust must be "curator" or "local", got {trust!r}')
    if method is not None and method not in METHODS[trust]:
        choices = " or ".join(f'"{m}"' for m in METHODS[trust])
        raise ParameterError(f'with trust="{trust}" method must be {choices}, got {method!r}')


def histogram_from(
    labels: NDArray[Any],
    epsilon: Fraction,
    bounds: tuple[float, float],
    source: WordSource,
    *,
    trust: str,
    method: str | None = None,
    sigma: float | None = None,
    bins: int | None = None,
) -> Histogram:
    """Return the private histogram of checked, paid-for labels."""
    if method == "adaptive":
        return adaptive_histogram(count(labels, bounds, FINE), epsilon, bounds, source)
    if trust == "curator":
        wide = count(labels, bounds, bins or bins_for(labels.size, float(epsilon)))
        return equal_histogram(wide, epsilon, bounds, source)
    if method == "laplace":
        return _algorithm_3(labels, float_below(epsilon), bounds, sigma, source)
    reports = Reports(float_below(epsilon), bounds, labels.size)
    return reports.histogram(reports.count(reports.mechanism.randomize(labels, random_state=source)))


# ---- local reports --------------------------------------------------------------------------------


def _algorithm_3(
    labels: NDArray[Any],
    epsilon: float,
    bounds: tuple[float, float],
    sigma: float | None,
    source: WordSource,
) -> Histogram:
    """Return the histogram of Laplace-randomised labels: the paper's Algorithm 3, one draw a label.

    Nodes are μ + kσ between the smallest and the largest randomised label, and those two. The paper's
    α is a mass; a `Histogram` divides it by the width, as its Lemma 3.5 needs.
    """
    reports = Laplace(bounds=bounds, epsilon=epsilon).randomize(labels, random_state=source)
    middle = float(reports.mean())
    width = _deviation(reports, middle) if sigma is None else sigma
    low, high = float(reports.min()), float(reports.max())
    if not width > 0 or low == high:  # a single label, say
        reach = (bounds[1] - bounds[0]) / 2
        return Histogram([low - reach, low + reach], [1.0])
    if (high - low) / width > _MOST_BINS:
        raise ParameterError(f"sigma={sigma} makes more than {_MOST_BINS} bins: give a larger one")
    first = math.floor((low - middle) / width)
    last = math.ceil((high - middle) / width) - 1
    inner = middle + width * np.arange(first + 1, last + 1)
    inner = inner[(inner > low) & (inner < high)]
    nodes = np.concatenate([[low], inner, [high]])
    return Histogram(nodes, np.histogram(reports, bins=nodes)[0])


def _deviation(values: NDArray[np.float64], mean: float) -> float:
    """Return the standard deviation, without a copy of all values."""
    total = sum(float(np.sum((values[piece] - mean) ** 2)) for piece in pieces(values.size))
    return math.sqrt(total / values.size)


def square_wave(epsilon: float, bounds: tuple[float, float]) -> RPWithPrior:
    """Return the square-wave mechanism: RPWithPrior with ζ chosen to tell distributions apart.

    References
    ----------
    Li, Wang, Lopuhaä-Zwakenberg, Li and Škoric, "Estimating numerical distributions under local
    differential privacy".
    """
    low, high = bounds
    e = math.exp(epsilon)
    top = epsilon * e - math.expm1(epsilon)  # b = (εe^ε − e^ε + 1) / (2e^ε(e^ε − 1 − ε))
    rest = math.expm1(epsilon) - epsilon
    return RPWithPrior(interval=bounds, zeta=top / (2 * e * rest) * (high - low), epsilon=epsilon)


@dataclass(frozen=True, slots=True)
class Reports:
    """Counts of square-wave reports, and the histogram of labels that explains them.

    Parameters
    ----------
    epsilon : float
        What each report costs.
    bounds : (lo, hi)
    rows : int
        How many there will be; it is public.
    """

    epsilon: float
    bounds: tuple[float, float]
    rows: int

    @property
    def mechanism(self) -> RPWithPrior:
        """What each label is randomised with."""
        return square_wave(self.epsilon, self.bounds)

    @property
    def _bins(self) -> int:
        return int(np.clip(round(math.sqrt(self.rows)), 8, _LOCAL_BINS))

    def _edges(self) -> NDArray[np.float64]:
        low, high = self.bounds
        reach = self.mechanism.zeta * 1.001
        return np.linspace(low - reach, high + reach, 4 * self._bins + 1)

    def count(self, reports: NDArray[np.float64]) -> NDArray[np.int64]:
        """Return how many reports lie in each of the bins that `histogram` reads; counts of parts add up."""
        edges = self._edges()
        return count(reports, (float(edges[0]), float(edges[-1])), edges.size - 1)

    def histogram(self, counts: NDArray[np.int64]) -> Histogram:
        """Return the labels' histogram under which such counts are likely."""
        low, high = self.bounds
        bins, edges = self._bins, self._edges()
        channel = self.mechanism.channel
        # A bin's labels are anywhere in it: average the channel over several places.
        places = low + (high - low) * (np.arange(bins * _PLACES) + 0.5) / (bins * _PLACES)
        each = [np.diff(channel.cumulative(place, edges)) for place in places]
        likelihood = np.array(each).reshape(bins, _PLACES, -1).mean(axis=1).T
        masses = _smoothed_em(likelihood, counts / counts.sum())
        return Histogram(np.linspace(low, high, bins + 1), masses)


def _smoothed_em(likelihood: NDArray[np.float64], observed: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return the masses that explain the observed frequencies, smoothed after every step."""
    masses = np.full(likelihood.shape[1], 1 / likelihood.shape[1])
    for _ in range(_ROUNDS):
        expected = likelihood @ masses
        step = masses * (likelihood.T @ (observed / np.maximum(expected, 1e-300)))
        padded = np.concatenate([step[:1], step, step[-1:]])
        step = padded[:-2] + 2 * padded[1:-1] + padded[2:]
        step /= step.sum()
        if np.abs(step - masses).sum() < 1e-7:
            break
        masses = step
    return np.asarray(masses)
