"""Where an audit's outputs come from: a function of labels, or a whole pipeline as a function of its data set."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from concurrent.futures import Executor
from dataclasses import dataclass, field
from typing import Any, Protocol

import numpy as np
from numpy.typing import ArrayLike, NDArray

from labeldp.errors import ParameterError
from labeldp.mechanisms.base import Mechanism
from labeldp.randomness import WordSource

__all__ = ["Labels", "Pipeline", "Release", "Sampler"]


class Sampler(Protocol):
    """Whatever can be asked for outputs, case by case."""

    @property
    def names(self) -> tuple[str, ...]:
        """What to call the cases."""

    def draw(self, case: int, size: int) -> NDArray[Any]:
        """Return fresh outputs, ``size`` × columns."""


@dataclass(frozen=True, slots=True)
class Release:
    """A mechanism as a function, with its source of words."""

    mechanism: Mechanism
    source: WordSource

    def __call__(self, labels: NDArray[np.float64]) -> NDArray[np.float64]:
        """Return private labels."""
        return self.mechanism.randomize(labels, random_state=self.source)


@dataclass(frozen=True, slots=True)
class Labels:
    """A function of labels; a case is a label."""

    function: Callable[[NDArray[np.float64]], ArrayLike]
    labels: tuple[float, ...]

    @property
    def names(self) -> tuple[str, ...]:
        """The labels."""
        return tuple(f"{label:.6g}" for label in self.labels)

    def draw(self, case: int, size: int) -> NDArray[Any]:
        """Return fresh outputs, ``size`` × columns."""
        outputs = _as_floats(self.function(np.full(size, self.labels[case])))
        if outputs.shape != (size,):
            raise ParameterError(
                f"the function must return one output for each label: {size}, not {outputs.shape}"
            )
        return outputs[:, None]


@dataclass(frozen=True, slots=True)
class Pipeline:
    """A function of a data set; a case is a data set."""

    function: Callable[[NDArray[np.float64]], ArrayLike]
    sides: tuple[NDArray[np.float64], NDArray[np.float64]]
    executor: Executor | None
    names: tuple[str, ...] = ("one data set", "the other")
    width: list[int] = field(default_factory=list)

    def draw(self, case: int, size: int) -> NDArray[Any]:
        """Return fresh outputs, ``size`` × columns."""
        calls = itertools.repeat(self.sides[case], size)
        answers = self.executor.map(self.function, calls) if self.executor else map(self.function, calls)
        rows = [np.atleast_1d(_as_floats(answer)).reshape(-1) for answer in answers]
        widths = {row.size for row in rows} | set(self.width)
        if len(widths) != 1:
            raise ParameterError("the function must return as many numbers each time")
        self.width[:] = widths
        return np.stack(rows)


def _as_floats(values: ArrayLike) -> NDArray[Any]:
    array = np.asarray(values)
    if array.dtype in (np.float32, np.float64):
        return array
    try:
        return array.astype(np.float64)
    except (TypeError, ValueError):
        raise ParameterError("outputs must be numbers: encode anything else as one") from None
