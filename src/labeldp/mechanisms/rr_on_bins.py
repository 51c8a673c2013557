"""RR-on-Bins: the best mechanism for the error of a single label, at the price of bias."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar, NamedTuple, Self

import numpy as np

from labeldp._values import Array, Bounds, Index, Interval
from labeldp.errors import ParameterError, Setting
from labeldp.exact.proof import WORDS, Promise, exp_lower
from labeldp.exact.sampling import Domain
from labeldp.exact.window import WindowChannel
from labeldp.mechanisms.base import Mechanism, channel_field
from labeldp.mechanisms.histogram import Histogram
from labeldp.mechanisms.interval import ClippingRisks
from labeldp.mechanisms.registry import register

MOST_PIECES = 1 << 20
MOST_VALUES = 2048


@register("rr-on-bins")
@dataclass(frozen=True, slots=True, kw_only=True)
class RROnBins(Mechanism):
    """Answer with the output of the label's bin with odds e^ε, else with another bin's, at random.

    Parameters
    ----------
    edges : d + 1 increasing floats
        Public bin edges; labels outside are clipped to the first and last.
    outputs : d floats
        The released value of each bin.
    epsilon : float
        Privacy budget, 0.001 to 20.

    Examples
    --------
    >>> import labeldp as ldp
    >>> mech = ldp.RROnBins(edges=[0, 1, 5], outputs=[0.8, 2.1], epsilon=1.0)
    >>> set(mech.randomize([0.5, 4.0])) <= {0.8, 2.1}
    True

    References
    ----------
    Ghazi, Kamath, Kumar, Leeman, Manurangsi, Varadarajan and Zhang, "Regression with label
    differential privacy".
    """

    unbiased: ClassVar[bool] = False
    needs_prior: ClassVar[bool] = True
    in_channel: ClassVar[Mapping[str, str]] = {"outputs": "values"}
    edges: tuple[float, ...]
    outputs: tuple[float, ...]
    epsilon: float
    channel: WindowChannel = channel_field()

    @classmethod
    def for_bounds(
        cls, bounds: Interval, epsilon: float, *, prior: Histogram | None = None, **options: Any
    ) -> Self:
        """Return the bins and outputs of least expected squared error of a single label under a prior, exactly.

        Bins of the prior count as their centres, neighbours merged above 2048. Without a prior, labels are
        anywhere in the bounds.
        """
        if options:
            raise ParameterError(f"RROnBins has no option {next(iter(options))}")
        prior = Histogram.from_counts(np.ones(256), bounds) if prior is None else prior.restricted(*bounds)
        starts = np.arange(0, prior.masses.size, -(-prior.masses.size // MOST_VALUES))
        nodes = np.append(prior.nodes[starts], prior.nodes[-1])
        prior = Histogram.of(nodes, np.add.reduceat(prior.masses, starts))
        filled = np.flatnonzero(prior.masses)
        best = optimal_partition(prior.centers[filled], prior.masses[filled], epsilon)
        # Between the last label of one bin and the first of the next, cut half way.
        first, last = filled[best.starts[1:]], filled[best.starts[1:] - 1]
        cuts = (prior.nodes[last + 1] + prior.nodes[first]) / 2
        edges = (prior.bounds[0], *cuts.tolist(), prior.bounds[1])
        return cls(edges=edges, outputs=tuple(best.outputs.tolist()), epsilon=epsilon)

    @classmethod
    def _interval(cls, risks: ClippingRisks, epsilon: float, rows: int | None, **options: Any) -> Interval:
        """Return the whole range of the prior: nothing is clipped, for any number of rows."""
        return risks.prior.bounds

    def _build(self) -> WindowChannel:
        edges, outputs = np.array(self.edges), np.array(self.outputs)
        count = outputs.size
        if edges.size != count + 1 or count < 1 or not (np.diff(edges) > 0).all():
            raise ParameterError(Setting("edges"), f" must be {count + 1} increasing numbers for {count} outputs")
        low, high = Bounds((edges[0], edges[-1]), "edges")
        promise = Promise.of(self.epsilon)
        background = WORDS // 2
        if count > 1:
            background = -(-WORDS // (exp_lower(promise.epsilon) + count - 1))  # up: towards privacy
        extra = WORDS - count * background
        return WindowChannel(low, high, count, 1, background, extra, promise, _cuts(edges), outputs)


def _cuts(edges: Array) -> Array:
    """Return equally wide pieces with at most one inner edge each, that or ∞: a look-up instead of a search."""
    inner, size = edges[1:-1], 256
    while size <= MOST_PIECES:
        # The very function that looks labels up: it grows with the label, so edges are exact.
        piece = Domain(float(edges[0]), float(edges[-1]), size).piece(inner, np.empty(inner.size))
        if np.unique(piece).size == inner.size:
            cuts = np.full(size, np.inf)
            cuts[piece] = inner
            return cuts
        size *= 2
    raise ParameterError(
        "two ",
        Setting("edges"),
        " are closer than a millionth of the range: merge those bins, or transform the labels first (say, to "
        "their logarithm)",
    )


# ---- the exact programme: which labels share an output, and which output ---------------------------------


class Partition(NamedTuple):
    """Consecutive labels in bins: where each bin starts, its output, and the expected loss."""

    starts: Index
    outputs: Array
    loss: float


def optimal_partition(values: Array, masses: Array, epsilon: float) -> Partition:
    """Return the partition of least expected squared error of randomised response on bins.

    With g = e^ε − 1, a bin B with output v costs Σ_y p_y (v − y)² + g Σ_{y∈B} p_y (v − y)², and d bins
    together lose the sum of their costs over g + d. For each d a dynamic programme over all cuts finds
    the cheapest bins, in O(n²): no shortcut through monotone cuts, which do not hold here. A bin costs
    at least the loss of a constant, so d bins lose at least d/(g + d) of that: once this exceeds the best
    loss, no larger d can win.

    Parameters
    ----------
    values, masses : arrays
        Increasing labels, and their positive probabilities.
    """
    gain = math.expm1(epsilon)
    cost, output = _bin_costs(values, masses, gain)
    n = values.size
    constant = float(cost[0, n]) / (1 + gain)
    best, best_loss = 0, math.inf
    total = np.full(n + 1, np.inf)
    total[0] = 0.0
    came_from: list[Index] = []
    for d in range(1, n + 1):
        if d * constant / (gain + d) >= best_loss:
            break
        paths = total[:, None] + cost
        came_from.append(paths.argmin(axis=0))
        total = paths[came_from[-1], np.arange(n + 1)]
        if total[n] / (gain + d) < best_loss * (1 - 1e-12):  # of equals, the fewest bins
            best, best_loss = d, float(total[n]) / (gain + d)
    cuts = _trace_back(came_from[:best], n)
    starts, ends = cuts[:-1], cuts[1:]
    return Partition(starts, output[starts, ends], best_loss)


def _trace_back(came_from: list[Index], last: int) -> Index:
    """Return the cuts on the cheapest path to the last one."""
    cuts = [last]
    for previous in reversed(came_from):
        cuts.append(int(previous[cuts[-1]]))
    return np.array(cuts[::-1])


def _bin_costs(values: Array, masses: Array, gain: float) -> tuple[Array, Array]:
    """Return the cost of each bin i … j−1, and its output: the mean of all labels, inside g times heavier."""
    middle = float(masses @ values)
    centred = values - middle
    powers = masses * centred ** np.arange(3)[:, None]
    mass, first, second = np.cumulative_sum(powers, axis=1, include_initial=True)
    inside = first[None, :] - first[:, None]
    weight = 1 + gain * np.maximum(mass[None, :] - mass[:, None], 0.0)
    squares = second[None, :] - second[:, None]
    cost = second[-1] + gain * squares - (gain * inside) ** 2 / weight
    cost[np.tril_indices(len(cost))] = np.inf  # no bin is empty
    return cost, middle + gain * inside / weight
