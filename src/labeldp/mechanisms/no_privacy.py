"""ε = +∞, the last row of the paper's tables: the identity, only ever asked for by name."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from labeldp.exact.proof import Promise, Proof
from labeldp.exact.word_sources import WordSource
from labeldp.mechanisms.base import Mechanism, channel_field
from labeldp.mechanisms.registry import register


@dataclass(frozen=True, slots=True)
class IdentityChannel:
    """Every label is released as it is."""

    low: ClassVar[float] = -math.inf
    high: ClassVar[float] = math.inf

    @property
    def promise(self) -> Promise | None:
        """Nothing is promised."""
        return None

    def as_data(self) -> dict[str, Any]:
        """Return what a card says of it."""
        return {"kind": "identity"}

    def sample(self, labels: NDArray[Any], source: WordSource, out: NDArray[np.float64]) -> None:
        """Copy ``labels`` into ``out``."""
        out[...] = labels

    def verify(self) -> Proof:
        """Return an infinite ε."""
        return Proof(math.inf, 0.0, None, "NOT PRIVATE: every label is released as it is")

    def mean(self, labels: NDArray[Any]) -> NDArray[np.float64]:
        """Return the labels."""
        return labels.astype(np.float64)

    def variance(self, labels: NDArray[Any]) -> NDArray[np.float64]:
        """Return zeros."""
        return np.zeros(labels.shape)

    def slope(self) -> float:
        """Return 1."""
        return 1.0

    def debias(self, outputs: NDArray[np.float64]) -> NDArray[np.float64]:
        """Return ``outputs``."""
        return outputs.copy()

    def nearest_output(self, values: NDArray[np.float64]) -> NDArray[np.float64]:
        """Return ``values``: any number is an output."""
        return values.copy()

    def cumulative(self, label: float, points: NDArray[np.float64]) -> NDArray[np.float64]:
        """Return 1 from the label on, else 0."""
        return (points >= label).astype(np.float64)


@register("no-privacy")
@dataclass(frozen=True, slots=True, kw_only=True)
class NoPrivacy(Mechanism):
    """Release labels as they are. **Not private**; for the non-private end of a comparison.

    Examples
    --------
    >>> import labeldp as ldp
    >>> ldp.mechanisms.NoPrivacy().verify().checked
    'NOT PRIVATE: every label is released as it is'
    """

    private: ClassVar[bool] = False
    epsilon: ClassVar[float] = math.inf  # type: ignore[misc]
    channel: IdentityChannel = channel_field()

    def _build(self) -> IdentityChannel:
        return IdentityChannel()
