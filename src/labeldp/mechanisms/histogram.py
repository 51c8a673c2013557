"""`Histogram`: a prior of labels, public or privately estimated."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from labeldp._values import Array, Bounds, Interval, parse_numbers
from labeldp.errors import MissingExtraError, ParameterError, Setting, describe


def new_figure(**options: Any) -> Any:
    """Return a Matplotlib figure."""
    try:
        import matplotlib.figure  # noqa: PLC0415 (an extra)
    except ImportError:
        raise MissingExtraError('a plot needs Matplotlib: pip install "labeldp[plots]"') from None
    return matplotlib.figure.Figure(layout="constrained", **options)


def density_axes(xlabel: str) -> Any:
    """Return Matplotlib axes for densities."""
    axes = new_figure().subplots()
    axes.set(xlabel=xlabel, ylabel="density")
    return axes


@dataclass(frozen=True, slots=True, eq=False)
class Histogram:
    """A piecewise constant density: the prior as a value.

    Parameters
    ----------
    nodes : array-like of k + 1 floats
        Bin edges, increasing. Bins may differ in width.
    masses : array-like of k floats
        Weight of each bin, not negative; scaled to sum to 1. Empty bins are normal.
    origin : Origin, optional
        The source of an estimate and its charge; `estimate_prior` sets it. Without one the prior is taken to be
        public.

    Examples
    --------
    >>> import labeldp as ldp
    >>> prior = ldp.Histogram([0, 1, 3], [1, 3])
    >>> prior.masses.tolist(), prior.density.tolist()
    ([0.25, 0.75], [0.25, 0.375])
    >>> prior.mean
    1.625
    """

    nodes: Array
    masses: Array
    origin: Any = field(repr=False, metadata={"optional": True})

    def __init__(self, nodes: ArrayLike, masses: ArrayLike, origin: Any = None) -> None:
        edges, weights = parse_numbers(nodes, "nodes"), parse_numbers(masses, "masses")
        is_rising = edges.size > 1 and (edges[1:] > edges[:-1]).all()
        if not is_rising or edges[-1] / 2 - edges[0] / 2 > 1e300 or edges.size != weights.size + 1:
            raise ParameterError(
                Setting("nodes"), " must increase, be one more than masses, and span less than all floats"
            )
        if (weights < 0).any() or not weights.any():
            raise ParameterError(Setting("masses"), " must not be negative, nor all zero")
        self._fill(edges, weights, origin)

    def _fill(self, edges: Array, weights: Array, origin: Any) -> Histogram:
        with np.errstate(over="ignore"):
            done = abs(weights.sum() - 1) < 1e-12  # masses already: keep them to the bit
        if not done:
            weights = weights / weights.max()
            weights /= weights.sum()
        edges.flags.writeable = False
        weights.flags.writeable = False
        object.__setattr__(self, "nodes", edges)
        object.__setattr__(self, "masses", weights)
        object.__setattr__(self, "origin", origin)
        return self

    @classmethod
    def of(cls, nodes: Array, masses: Array, origin: Any = None) -> Histogram:
        """Return the histogram of arrays that were computed here, and that nobody else will change: unchecked."""
        return object.__new__(cls)._fill(nodes, masses, origin)

    @classmethod
    def from_counts(cls, counts: ArrayLike, bounds: Interval) -> Histogram:
        """Return a histogram of equally wide bins.

        Parameters
        ----------
        counts : array-like
            The number or share of labels in each bin, by public knowledge.
        bounds : (lo, hi)
            The left end of the first bin, and the right end of the last.

        Examples
        --------
        >>> import labeldp as ldp
        >>> ldp.Histogram.from_counts([2, 5, 3], (0, 60)).nodes.tolist()
        [0.0, 20.0, 40.0, 60.0]
        """
        low, high = Bounds(bounds)
        heights = np.asarray(counts, dtype=np.float64)
        return cls(np.linspace(low, high, heights.size + 1), heights)

    def paid_by(self, charge: Any, *, secure: bool) -> Histogram:
        """Return the same prior, which says what paid for it, and so does every mechanism designed with it.

        Parameters
        ----------
        charge : Charge
        secure : bool
            False if the noise came from a seed.
        """
        return Histogram.of(self.nodes, self.masses, replace(self.origin, charge=charge, secure=secure))

    @property
    def bounds(self) -> Interval:
        """The first and the last node."""
        return float(self.nodes[0]), float(self.nodes[-1])

    @property
    def widths(self) -> Array:
        """The width of each bin."""
        return np.diff(self.nodes)

    @property
    def centers(self) -> Array:
        """The middle of each bin."""
        return self.nodes[:-1] + self.widths / 2

    @property
    def density(self) -> Array:
        """The height of each bin, its mass over its width."""
        return self.masses / self.widths

    @property
    def mean(self) -> float:
        """The mean label."""
        return float(self.masses @ self.centers)

    @property
    def variance(self) -> float:
        """The variance of a label, with labels spread evenly inside bins."""
        spread = (self.centers - self.mean) ** 2 + self.widths**2 / 12
        return float(self.masses @ spread)

    def cumulative(self, points: ArrayLike) -> Array:
        """Return P(label ≤ point) for each point.

        Parameters
        ----------
        points : array-like
        """
        total = np.cumulative_sum(self.masses, include_initial=True)
        return np.asarray(np.interp(np.asarray(points), self.nodes, total / total[-1]))

    def restricted(self, low: float, high: float) -> Histogram:
        """Return the prior of labels clipped to [low, high]: what lies outside moves to the end bins.

        Parameters
        ----------
        low, high : float
        """
        if low <= self.nodes[0] and self.nodes[-1] <= high:
            return self
        if self.nodes[0] >= high or self.nodes[-1] <= low:
            raise ParameterError(
                "the ",
                Setting("prior"),
                f" lies on {self.bounds}, outside the bounds ({low}, {high}): one of them is wrong",
            )
        low, high = max(low, self.bounds[0]), min(high, self.bounds[1])
        inner = self.nodes[(self.nodes > low) & (self.nodes < high)]
        nodes = np.concatenate([[low], inner, [high]])
        total = self.cumulative(nodes)
        total[0], total[-1] = 0.0, 1.0
        return Histogram.of(nodes, np.diff(total), self.origin)

    def plot(self) -> Any:
        """Return a Matplotlib figure of the density; ``figure.savefig("prior.png")`` keeps it."""
        axes = density_axes("label")
        axes.stairs(self.density, self.nodes)
        return axes.figure

    @classmethod
    def parse(cls, prior: object) -> Histogram:
        """Return a prior that is a Histogram, or raise `ParameterError`."""
        if isinstance(prior, cls):
            return prior
        raise ParameterError(
            Setting("prior"),
            f" must be a Histogram: Histogram(nodes, masses), or one from estimate_prior, got {describe(prior)}",
        )

    def __eq__(self, value: object) -> bool:
        if not isinstance(value, Histogram):
            return NotImplemented
        return np.array_equal(self.nodes, value.nodes) and np.array_equal(self.masses, value.masses)

    def __hash__(self) -> int:
        return hash((self.nodes.tobytes(), self.masses.tobytes()))

    def __reduce__(self) -> tuple[Any, ...]:
        return Histogram, (self.nodes, self.masses, self.origin)
