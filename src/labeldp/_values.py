"""Arguments as values that cannot be wrong: parsed once, where they come in, and trusted from there on.

A public function makes an `Epsilon`, `Bounds`, `Labels` of its arguments, or raises `ParameterError` or
`LabelError`; functions inside take these types and check nothing again. To parse a parsed value is to return it.
No message here ever contains a label.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from decimal import Decimal
from fractions import Fraction
from numbers import Integral, Real
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from labeldp.errors import DataError, LabelError, ParameterError, Setting, describe

Array = NDArray[np.float64]
Small = NDArray[np.float32]
Index = NDArray[np.int64]
Counts = NDArray[np.int64]
Sums = NDArray[np.int64]
Words = NDArray[np.uint64]
Mask = NDArray[np.bool_]
Numbers = NDArray[Any]
"""Labels as they come: any type of real numbers."""
Interval = tuple[float, float]
Data = dict[str, Any]
"""Named values: a JSON object, or arguments of a function."""

EPSILON_RANGE = (0.001, 20.0)
"""The budgets that every mechanism supports, with a proof within 0.1 % of ε."""

_LARGEST_FLOAT = float(np.finfo(np.float64).max)


# ---- ε, δ, bounds and counts ----------------------------------------------------------------------------------


class Epsilon(float):
    """A usable ε, from 0.001 to 20.

    Examples
    --------
    >>> Epsilon(np.float32(0.5)), Epsilon(1).exact
    (0.5, Fraction(1, 1))
    """

    __slots__ = ()

    def __new__(cls, value: object, name: str = "epsilon") -> Self:
        if isinstance(value, cls):
            return value
        epsilon = parse_number(value, name)
        low, high = EPSILON_RANGE
        if epsilon <= 0:
            raise ParameterError(Setting(name), f" must be positive, got {epsilon}")
        if not low <= epsilon <= high:
            raise ParameterError(
                Setting(name),
                f" must lie between {low:g} and {high:g}, got {epsilon:g}: a smaller one cannot be proven "
                "closely, and a larger one protects nobody",
            )
        return super().__new__(cls, epsilon)

    @property
    def exact(self) -> Fraction:
        """The decimal that the user wrote."""
        return as_fraction(self)


class Delta(float):
    """A usable δ, in [0, 1)."""

    __slots__ = ()

    def __new__(cls, value: object, name: str = "delta") -> Self:
        delta = parse_number(value, name)
        if not 0 <= delta < 1:
            raise ParameterError(Setting(name), f" must lie in [0, 1), got {delta}")
        return super().__new__(cls, delta)


class Bounds(tuple[float, float]):
    """(lo, hi) as floats with enough floats between them to distinguish labels.

    Parameters
    ----------
    value : pair of numbers
        Public bounds.
    name : str
        What messages call it.

    Examples
    --------
    >>> Bounds([0, 5])
    (0.0, 5.0)
    >>> Bounds((5, 0), "interval")
    Traceback (most recent call last):
    ...
    labeldp.errors.ParameterError: interval must be two finite numbers, the smaller first, got 5 and 0
    """

    __slots__ = ()
    _min_floats = 2.0**10

    def __new__(cls, value: Any, name: str = "bounds") -> Self:
        return value if isinstance(value, cls) else super().__new__(cls, cls._parse(value, name))

    @classmethod
    def _parse(cls, value: Any, name: str) -> Interval:
        try:
            first, second = value
        except (TypeError, ValueError):
            raise ParameterError(
                Setting(name),
                " must be a pair (lo, hi) that is known without looking at the labels; bounds read "
                "off the data would reveal its extremes",
            ) from None
        low = parse_number(first, name)
        high = parse_number(second, name)
        if not -math.inf < low < high < math.inf:
            raise ParameterError(
                Setting(name), f" must be two finite numbers, the smaller first, got {low:.15g} and {high:.15g}"
            )
        min_width = max(1e-140, cls._min_floats * math.ulp(max(abs(low), abs(high))))
        if not min_width <= high - low < 1e140:
            raise ParameterError(
                Setting(name),
                f" must be between {min_width:g} and 1e140 wide there, got ({low}, {high}): change the unit, or "
                "subtract a public offset from labels and bounds",
            )
        return low, high


class LabelBounds(Bounds):
    """Bounds of a release, with so many floats between them that a design may use any part of them.

    Where it will clip follows from labels, so whether it can is checked before.
    """

    __slots__ = ()
    _min_floats = 2.0**34


# ---- labels -------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True, repr=False, eq=False)
class Labels:
    """Finite real numbers in an array of any shape; its text form shows none of them.

    `Labels.parse` checks, once; the constructor is for values computed from checked labels.
    """

    values: NDArray[Any]

    @classmethod
    def parse(cls, labels: Any, *, allow_empty: bool = False) -> Labels:
        """Return labels, checked to be finite real numbers; there may be none where that is said.

        Whether a label is missing or not finite is public; nothing else about it is. No message quotes
        a label, and the check reads every one of them whatever it finds.
        """
        return labels if isinstance(labels, cls) else cls(_finite(labels, allow_empty))

    def __repr__(self) -> str:
        return f"<{self.values.size:,} labels>"


def _finite(labels: Any, allow_empty: bool) -> NDArray[Any]:
    if isinstance(labels, np.ma.MaskedArray):
        if np.ma.getmaskarray(labels).any():
            raise LabelError("some labels are masked: drop those rows or fill them first")
        labels = labels.data
    array = _converted(labels)
    if allow_empty and array is not None and array.size == 0:
        return np.zeros(0)
    if array is None or array.dtype.kind not in "fiu":
        # raised out here, where no original error, which may quote a label, is attached
        raise LabelError(
            "labels must be real numbers or booleans; some are missing, text, dates or something else: convert "
            "the column to numbers first, and text of yes and no to booleans, as in y == 'yes'"
        )
    if array.dtype.itemsize > 8:
        raise LabelError(f"labels of type {array.dtype} are not supported: convert them to float64")
    if array.size == 0:
        raise LabelError("there are no labels: give at least one")
    if array.dtype.kind == "f":
        bad = array.size - int(np.count_nonzero(np.isfinite(array)))
        if bad:
            raise LabelError(
                f"{bad} of {array.size} labels are NaN or infinite: drop those rows or fill them first"
            )
    return array


def _converted(labels: Any) -> NDArray[Any] | None:
    """Return labels as an array of numbers, or None."""
    try:
        try:
            array = np.asarray(labels)
        except OverflowError:  # an integer beyond floats among floats
            array = np.asarray(labels, dtype=object)
        if array.dtype == bool or (array.size and all(isinstance(item, bool) for item in array.flat)):
            return array.astype(np.uint8)  # 0 and 1
        if array.dtype != object:
            return array
        if not all(map(_is_real, array.flat)):
            return None
        return np.array([_as_float(item) for item in array.flat]).reshape(array.shape)
    except Exception:  # an array-like may raise anything
        return None


def _is_real(item: Any) -> bool:
    return isinstance(item, Real | Decimal) and not isinstance(item, bool | np.bool_ | np.timedelta64)


def _as_float(item: Any) -> float:
    """Return the nearest float; for finite numbers beyond floats the last one, since an error would leak that."""
    try:
        number = float(item)
    except OverflowError:
        number = math.inf if item > 0 else -math.inf
    if math.isinf(number) and item != number:
        return math.copysign(_LARGEST_FLOAT, number)
    return number


# ---- other arguments ----------------------------------------------------------------------------------


def parse_number(value: object, name: str) -> float:
    """Return a real number as a float; text, booleans and NaN are refused."""
    if isinstance(value, bool | np.bool_ | np.timedelta64) or not isinstance(value, Real):
        raise ParameterError(Setting(name), f" must be a number, got {type(value).__name__}")
    try:
        number = float(value)
    except (OverflowError, TypeError):
        raise ParameterError(Setting(name), " must be a number that fits a float") from None
    if math.isnan(number):
        raise ParameterError(Setting(name), " must be a number, got NaN")
    return number


def parse_positive(value: object, name: str) -> float:
    """Return a positive finite number."""
    number = parse_number(value, name)
    if not 0 < number < math.inf:
        raise ParameterError(Setting(name), f" must be positive and finite, got {number}")
    return number


def parse_integer(value: object, name: str, low: int = 1, high: float = math.inf) -> int:
    """Return an integer between two others; booleans are none."""
    if isinstance(value, bool) or not isinstance(value, Integral) or not low <= int(value) <= high:
        limits = f"{low} or more" if high == math.inf else f"from {low} to {high:,}"
        raise ParameterError(Setting(name), f" must be an integer, {limits}, got {describe(value)}")
    return int(value)


def parse_choice(value: object, name: str, choices: Sequence[str]) -> str:
    """Return one of ``choices``."""
    if not isinstance(value, str) or value not in choices:
        names = " or ".join(f'"{choice}"' for choice in choices)
        raise ParameterError(Setting(name), f" must be {names}, got {describe(value)}")
    return value


def parse_numbers(values: object, name: str) -> NDArray[np.float64]:
    """Return a copy of a list of finite real numbers."""
    try:
        array = np.asarray(values)
        if array.dtype.kind not in "fiuO":
            raise TypeError
        numbers = array.astype(np.float64)
    except (TypeError, ValueError, OverflowError):
        raise ParameterError(Setting(name), " must be numbers") from None
    if numbers.ndim != 1 or not np.isfinite(numbers).all():
        raise ParameterError(Setting(name), " must be a list of finite numbers")
    return numbers


def refuse_other_order(rows: Any, values: Any, name: str = "y", rows_name: str = "X") -> None:
    """Refuse values of rows whose pandas index is that of the rows in another order, before the charge.

    Examples
    --------
    >>> import pandas as pd
    >>> rows = pd.DataFrame({"a": [1, 2]}, index=["ann", "bo"])
    >>> refuse_other_order(rows, pd.Series([5, 7], index=["ann", "bo"]))
    >>> refuse_other_order(rows, pd.Series([7, 5], index=["bo", "ann"]))    # doctest: +ELLIPSIS
    Traceback (most recent call last):
    ...
    labeldp.errors.DataError: X and y have the same index in another order...
    """
    first: Any = getattr(rows, "index", None)
    second: Any = getattr(values, "index", None)
    if not (hasattr(first, "equals") and hasattr(second, "equals")) or first.equals(second):
        return
    comparable = len(first) == len(second) and first.nlevels == second.nlevels and first.is_unique
    if comparable and second.is_unique and first.isin(second).all():
        raise DataError(
            f"{rows_name} and {name} have the same index in another order, so that rows would get values of "
            f"others: give {name}.loc[{rows_name}.index], or {name}.to_numpy() if they belong together as they are"
        )


# ---- amounts, exact and for people -------------------------------------------------------------------


def as_fraction(value: float) -> Fraction:
    """Return the decimal that the user wrote, exactly: 0.1 is 1/10, not the nearest binary."""
    return Fraction(repr(float(value)))


def float_below(value: Fraction) -> float:
    """Return the largest float that, written out as a decimal, is at most ``value``.

    Examples
    --------
    >>> float_below(Fraction(2, 3)), float_below(Fraction(1, 10))
    (0.6666666666666666, 0.1)
    """
    number = float(value)
    while as_fraction(number) > value:
        number = math.nextafter(number, -math.inf)
    return number
