"""RR-on-Bins: the best mechanism for the error of a single label, at the price of bias."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar, Literal, Self

import numpy as np
from numpy.typing import NDArray

from labeldp._validation import as_bounds, as_epsilon, as_numbers
from labeldp.channels import Promise, WindowChannel
from labeldp.channels.proof import WORDS, exp_lower
from labeldp.channels.sampling import Domain
from labeldp.errors import ParameterError
from labeldp.histogram import Histogram
from labeldp.mechanisms.base import Mechanism, channel_field, register
from labeldp.mechanisms.partition import optimal_partition

__all__ = ["RROnBins"]

MOST_PIECES = 1 << 20
MOST_VALUES = 2048


@register("rr-on-bins")
@dataclass(frozen=True, slots=True, kw_only=True)
class RROnBins(Mechanism):
    """Answer with the own bin's output with odds e^ε, else with another bin's, at random.

    Parameters
    ----------
    edges : d + 1 increasing floats
        Public bin edges; labels outside are clipped to the first and last.
    outputs : d floats
        What is released for each bin.
    epsilon : float
        Privacy budget, 0.001 to 20.

    Examples
    --------
    >>> mech = RROnBins(edges=[0, 1, 5], outputs=[0.8, 2.1], epsilon=1.0)
    >>> set(mech.randomize([0.5, 4.0])) <= {0.8, 2.1}
    True

    References
    ----------
    Ghazi, Kamath, Kumar, Leeman, Manurangsi, Varadarajan and Zhang, "Regression with label
    differential privacy".
    """

    unbiased: ClassVar[bool] = False
    needs_prior: ClassVar[bool] = True
    edges: tuple[float, ...]
    outputs: tuple[float, ...]
    epsilon: float
    channel: WindowChannel = channel_field()

    @classmethod
    def for_bounds(
        cls, bounds: tuple[float, float], epsilon: float, *, prior: Histogram | None = None, **options: Any
    ) -> Self:
        """Return the best bins for a prior within the bounds, or for labels anywhere in them."""
        flat = Histogram.from_counts(np.ones(256), bounds)
        return cls.design(flat if prior is None else prior.restricted(*bounds), epsilon, **options)

    @classmethod
    def design(
        cls,
        prior: Histogram,
        epsilon: float,
        *,
        loss: Literal["squared", "absolute"] = "squared",
        rows: int | None = None,
        **_: Any,
    ) -> Self:
        """Return the bins and outputs of least expected loss under a prior, exactly.

        Parameters
        ----------
        prior : Histogram
            Public or privately estimated; its bins count as their centres, at most 2048.
        epsilon : float
        loss : {"squared", "absolute"}
        rows : int, optional
            Changes nothing.
        """
        epsilon = as_epsilon(epsilon)
        if loss not in ("squared", "absolute"):
            raise ParameterError(f'loss must be "squared" or "absolute", got {loss!r}')
        prior = Histogram.checked(prior).coarsened(MOST_VALUES)
        used = np.flatnonzero(prior.masses)
        best = optimal_partition(prior.centers[used], prior.masses[used], epsilon, loss)
        # Between the last label of one bin and the first of the next, cut half way.
        first = used[best.starts[1:]]
        last = used[best.starts[1:] - 1]
        cuts = (prior.nodes[last + 1] + prior.nodes[first]) / 2
        edges = (prior.bounds[0], *cuts.tolist(), prior.bounds[1])
        return cls(edges=edges, outputs=tuple(best.outputs.tolist()), epsilon=epsilon)

    def _build(self) -> WindowChannel:
        edges, outputs = as_numbers(self.edges, "edges"), as_numbers(self.outputs, "outputs")
        count = outputs.size
        if edges.size != count + 1 or count < 1:
            raise ParameterError(f"{count} outputs need {count + 1} edges, got {edges.size}")
        if not (np.diff(edges) > 0).all():
            raise ParameterError("edges must increase")
        low, high = as_bounds((edges[0], edges[-1]), "edges")
        self._set(edges=tuple(edges.tolist()), outputs=tuple(outputs.tolist()))
        self._set(epsilon=as_epsilon(self.epsilon))
        promise = Promise.of(self.epsilon)
        other = -(-WORDS // (exp_lower(promise.epsilon) + count - 1))  # up: towards privacy
        bins, cuts = _pieces(edges)
        return WindowChannel(
            low=low,
            high=high,
            cells=count,
            window=1,
            background=other if count > 1 else WORDS // 2,
            extra=WORDS - count * other if count > 1 else WORDS // 2,
            promise=promise,
            bins=bins,
            cuts=cuts,
            values=outputs,
        )


def _pieces(edges: NDArray[np.float64]) -> tuple[NDArray[np.int64], NDArray[np.float64]]:
    """Return equally wide pieces with at most one inner edge each: a look-up instead of a search."""
    inner, low, high = edges[1:-1], float(edges[0]), float(edges[-1])

    def pieces(
        size: int,
    ) -> NDArray[np.int64]:  # the very function that looks labels up: it grows with the label, so edges are exact
        return Domain(low, high, size).piece(inner, np.empty(inner.size)).copy()

    size = 256
    while np.unique(pieces(size)).size < inner.size:
        size *= 2
        if size > MOST_PIECES:
            raise ParameterError(
                "two edges are closer than a millionth of the range: merge those bins, or transform "
                "the labels first (say, to their logarithm)"
            )
    piece = pieces(size)
    cuts = np.full(size, np.inf)
    cuts[piece] = edges[1:-1]
    return np.searchsorted(piece, np.arange(size)).astype(np.int64), cuts
