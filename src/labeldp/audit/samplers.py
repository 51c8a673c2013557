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


class Sampler(Protocol):
    """Draws outputs, case by case."""

    @property
    def names(self) -> tuple[str, ...]:
        """What to call the cases."""

    def draw(self, case: int, size: int) -> NDArray[Any]:
        """Return fresh outputs, ``size`` × columns."""


@dataclass(frozen=True, slots=True)
class LabelSampler:
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
class PipelineSampler:
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


_LARGEST_INTEGER = 1 << 53
"""Integers up to this one have a float of their own each."""


def _as_floats(values: ArrayLike) -> NDArray[Any]:
    """Return outputs as floats that differ wherever the outputs do, or refuse: a conversion could hide a leak."""
    try:
        array = np.asarray(values)
    except (TypeError, ValueError):
        raise ParameterError("outputs must be a number, or an array or list of numbers") from None
    if array.dtype.kind not in "biuf" or array.dtype.itemsize > 8:
        raise ParameterError(
            f"outputs must be booleans, integers or floats of at most 64 bits, not {array.dtype}: a "
            "conversion could hide what they tell; encode them as such numbers"
        )
    _refuse_if_rounded(values)
    if array.dtype.kind != "f":
        return array.astype(np.float64)
    return array.astype(np.float64 if array.dtype.itemsize == 8 else np.float32, copy=False)


def _refuse_if_rounded(values: Any) -> None:
    """Refuse what becomes a float and loses something: large integers, alone or among floats, and masks."""
    if isinstance(values, list | tuple):
        for value in values:
            _refuse_if_rounded(value)
        return
    if isinstance(values, np.ma.MaskedArray):
        raise ParameterError("outputs must not be masked: return the mask as numbers of its own")
    array = np.asarray(values)
    if array.dtype.kind in "iu" and ((array > _LARGEST_INTEGER) | (array < -_LARGEST_INTEGER)).any():
        raise ParameterError(
            "outputs are integers above 2^53, and floats cannot tell them apart: return them in two parts"
        )
