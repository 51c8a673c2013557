"""Channels: a public grid of output cells, and how many of the 2^64 words lead to each.

Sampling, the exact proof, moments, debiasing and plotting all read the same integers. A mechanism is
only the answer to "which counts?".
"""

from __future__ import annotations

from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from labeldp.exact.proof import Promise, Proof
from labeldp.exact.word_sources import WordSource


class Channel(Protocol):
    """What every channel can do; labels are finite 1-D arrays."""

    @property
    def low(self) -> float:
        """The lower end of the range in which labels are distinguished."""

    @property
    def high(self) -> float:
        """The upper end of that range."""

    @property
    def promise(self) -> Promise | None:
        """The (ε, δ) that the counts are held to; None if there is no privacy."""

    def as_data(self) -> dict[str, Any]:
        """Return all that `sample` and `verify` use as pure data, for a card."""

    def sample(self, labels: NDArray[Any], source: WordSource, out: NDArray[np.float64]) -> None:
        """Randomise ``labels`` into ``out``."""

    def verify(self) -> Proof:
        """Prove the promise from the integers that `sample` uses, or raise."""

    def mean(self, labels: NDArray[Any]) -> NDArray[np.float64]:
        """Return the mean of the released value for each label."""

    def variance(self, labels: NDArray[Any]) -> NDArray[np.float64]:
        """Return the variance of the released value for each label."""

    def slope(self) -> float:
        """Return dE[z|y]/dy where it is the same for all labels in the domain, or raise."""

    def debias(self, outputs: NDArray[np.float64]) -> NDArray[np.float64]:
        """Return unbiased labels, or raise."""

    def nearest_output(self, values: NDArray[np.float64]) -> NDArray[np.float64]:
        """Return the output nearest to each value; of infinite values, the first or the last output."""

    def cumulative(self, label: float, points: NDArray[np.float64]) -> NDArray[np.float64]:
        """Return P(z ≤ point | label)."""
