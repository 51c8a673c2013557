"""What all checks share: the mechanism, labels to try it with, and words that can be repeated."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np

from labeldp._arrays import Array
from labeldp._values import Bounds
from labeldp.errors import ConformanceError
from labeldp.mechanisms.base import Mechanism
from labeldp.randomness.word_sources import simulation_words

ALPHA = 1e-9
"""Each statistical check fails a right mechanism this often at most; there are fewer than 200; seeds are fixed."""

PLACES = 97


def require(holds: object, message: str) -> None:
    """Raise with the message unless it holds."""
    if not bool(holds):
        raise ConformanceError(message)


@dataclass(frozen=True, slots=True)
class Case:
    """A mechanism under check, the range of its labels, and how many outputs statistics use."""

    mechanism: Mechanism
    low: float
    high: float
    samples: int

    @classmethod
    def of(cls, mechanism: Mechanism, bounds: Any, samples: int) -> Case:
        """Take the range of labels from the bounds, or else from the channel."""
        channel: Any = mechanism.channel
        if bounds is None and not (hasattr(channel, "low") and hasattr(channel, "high")):
            raise ConformanceError(
                f"{type(channel).__name__} does not say what its range of labels is: give it low and high, or "
                "call check_mechanism(mechanism, bounds=(lo, hi))"
            )
        return cls(mechanism, *Bounds((channel.low, channel.high) if bounds is None else bounds), samples)

    @property
    def width(self) -> float:
        """The length of the range."""
        return self.high - self.low

    @property
    def few(self) -> Array:
        """Four labels, one of them off any grid."""
        return np.asarray(self.low + self.width * np.array([0.0, 0.5, 1 / math.pi, 1.0]))

    @property
    def many(self) -> Array:
        """About a hundred labels: evenly spaced, anywhere, next to the ends, and next to zero."""
        anywhere = np.random.default_rng(1).random(PLACES // 2)
        odd = [math.nextafter(self.low, math.inf), math.nextafter(self.high, -math.inf), 5e-324, -0.0]
        spread = self.low + self.width * np.concatenate([np.linspace(0, 1, PLACES // 2), anywhere])
        return np.asarray(np.clip(np.concatenate([spread, odd]), self.low, self.high))

    @property
    def outside(self) -> dict[float, Array]:
        """Labels beyond each end."""
        far = np.array([1.0, 10.0, 1e6])
        return {
            self.low: np.append(self.low - self.width * far, -1e300),
            self.high: np.append(self.high + self.width * far, 1e300),
        }

    def draw(self, label: float, samples: int, seed: int = 1) -> Array:
        """Return outputs for one label."""
        return self.mechanism.randomize(np.full(samples, label), random_state=simulation_words(seed))

    def sample(self, labels: Any, seed: int) -> Array:
        """Return what the channel itself gives for labels, under the words of a seed."""
        flat = np.array(labels, dtype=np.float64).reshape(-1)
        out = np.full(flat.size, np.nan)
        with np.errstate(all="ignore"):
            self.mechanism.channel.sample(flat, simulation_words(seed), out)
        return out
