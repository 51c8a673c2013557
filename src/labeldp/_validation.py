"""Checks of what users pass in. No message here ever contains a label."""

from __future__ import annotations

import difflib
import math
from collections.abc import Iterable
from decimal import MAX_EMAX, MIN_EMIN, ROUND_CEILING, Context, Decimal
from fractions import Fraction
from numbers import Number, Real
from typing import Any

import numpy as np
from numpy.typing import NDArray

from labeldp.errors import LabelError, ParameterError

EPSILON_RANGE = (0.001, 20.0)
"""The budgets that every mechanism supports, with a proof within 0.1 % of what was asked."""

METHODS = {"curator": ("adaptive", "counts"), "local": ("square-wave", "laplace")}
"""Who is trusted, and the ways to estimate a prior then."""

_CHUNK = 1 << 16
_LAST = float(np.finfo(np.float64).max)


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


def float_at_least(value: Fraction) -> float:
    """Return the smallest float that, written out as a decimal, is at least ``value``; infinite if there is none.

    Examples
    --------
    >>> float_at_least(Fraction(1, 3)), float_at_least(Fraction(1, 10))
    (0.33333333333333337, 0.1)
    """
    try:
        number = float(value)
    except OverflowError:
        return math.inf
    while number < math.inf and as_fraction(number) < value:
        number = math.nextafter(number, math.inf)
    return number


def rounded_up(amount: float | Fraction, digits: int = 6) -> str:
    """Return an amount of ε or δ for people: with a few digits, and never less than it is.

    Examples
    --------
    >>> rounded_up(1.0), rounded_up(1.0000049), rounded_up(Fraction(1, 3)), rounded_up(1e-7, 3), rounded_up(0.05)
    ('1', '1.00001', '0.333334', '1e-07', '0.05')
    """
    if amount == math.inf:
        return "inf"
    exact = amount if isinstance(amount, Fraction) else as_fraction(amount)
    up = Context(prec=digits, rounding=ROUND_CEILING, Emax=MAX_EMAX, Emin=MIN_EMIN)
    shown = float(up.divide(Decimal(exact.numerator), Decimal(exact.denominator)))
    return f"{shown or (5e-324 if exact else 0):.{digits}g}"


def describe(value: object) -> str:
    """Return a parameter for a message: a scalar as it is, of all else the type, since it may hold labels.

    Examples
    --------
    >>> describe("lokal"), describe(0), describe([61.5, 48.0])
    ("'lokal'", '0', 'list')
    """
    return repr(value) if value is None or isinstance(value, str | Number | np.bool_) else type(value).__name__


def as_number(value: object, name: str) -> float:
    """Return a real number as a float; text, booleans and NaN are refused."""
    if isinstance(value, bool | np.bool_ | np.timedelta64) or not isinstance(value, Real):
        raise ParameterError(f"{name} must be a number, got {type(value).__name__}")
    try:
        number = float(value)
    except (OverflowError, TypeError):
        raise ParameterError(f"{name} must be a number that fits a float") from None
    if math.isnan(number):
        raise ParameterError(f"{name} must be a number, got NaN")
    return number


def as_epsilon(value: object) -> float:
    """Return a usable ε, or raise `ParameterError`.

    Parameters
    ----------
    value : float
        From 0.001 to 20.

    Examples
    --------
    >>> from labeldp.mechanisms import as_epsilon
    >>> as_epsilon(1)
    1.0
    """
    epsilon = as_number(value, "epsilon")
    if epsilon == math.inf:
        raise ParameterError(
            "epsilon=inf is no privacy at all. If you mean to release the labels as they are, say so "
            "by name: labeldp.NoPrivacy()"
        )
    if epsilon <= 0:
        raise ParameterError(f"epsilon must be positive, got {epsilon}")
    low, high = EPSILON_RANGE
    if not low <= epsilon <= high:
        raise ParameterError(
            f"epsilon must lie between {low:g} and {high:g}, got {epsilon:g}: a smaller one cannot be proven "
            "closely, and a larger one protects nobody"
        )
    return epsilon


def as_delta(value: object, *, smallest: float) -> float:
    """Return a usable δ for a mechanism that needs at least ``smallest``."""
    delta = as_number(value, "delta")
    if not 0 <= delta < 1:
        raise ParameterError(f"delta must lie in [0, 1), got {delta}")
    if delta < smallest:
        raise ParameterError(
            f"delta={delta} is too small for this mechanism, which needs at least {smallest}; for "
            "delta=0 use Laplace, Staircase or RPWithPrior"
        )
    return delta


def as_positive(value: object, name: str) -> float:
    """Return a positive finite number, or raise `ParameterError`."""
    number = as_number(value, name)
    if not 0 < number < math.inf:
        raise ParameterError(f"{name} must be positive and finite, got {number}")
    return number


def as_choice(value: object, name: str, choices: tuple[str, ...]) -> None:
    """Refuse what is not one of ``choices``."""
    if not isinstance(value, str) or value not in choices:
        listed = " or ".join(f'"{choice}"' for choice in choices)
        raise ParameterError(f"{name} must be {listed}, got {describe(value)}")


def as_method(trust: object, method: object, default: str = "adaptive") -> str:
    """Return the way to estimate a prior: the one that is named, else ``default`` for a curator."""
    as_choice(trust, "trust", tuple(METHODS))
    choices = METHODS[str(trust)]
    if method is None:
        return default if trust == "curator" else choices[0]
    as_choice(method, f'with trust="{trust}" method', choices)
    return str(method)


def as_numbers(values: object, name: str) -> NDArray[np.float64]:
    """Return a copy of a list of finite real numbers, or raise `ParameterError`."""
    try:
        array = np.asarray(values)
        if array.dtype.kind not in "fiuO":
            raise TypeError
        numbers = array.astype(np.float64)
    except (TypeError, ValueError, OverflowError):
        raise ParameterError(f"{name} must be numbers") from None
    if numbers.ndim != 1 or not np.isfinite(numbers).all():
        raise ParameterError(f"{name} must be a list of finite numbers")
    return numbers


def as_bounds(value: Any, name: str = "bounds") -> tuple[float, float]:
    """Return (lo, hi) as floats with enough floats between them to distinguish labels.

    Parameters
    ----------
    value : pair of numbers
        Public bounds.
    name : str
        What messages call it.

    Raises
    ------
    ParameterError
        If it is not a pair of finite numbers with lo < hi.

    Examples
    --------
    >>> from labeldp.mechanisms import as_bounds
    >>> as_bounds([0, 5])
    (0.0, 5.0)
    >>> as_bounds((5, 0), "interval")
    Traceback (most recent call last):
    ...
    labeldp.errors.ParameterError: interval must satisfy lo < hi, got (5.0, 0.0)
    """
    try:
        first, second = value
    except (TypeError, ValueError):
        raise ParameterError(
            f"{name} must be a pair (lo, hi) that is known without looking at the labels; bounds read "
            "off the data would reveal its extremes"
        ) from None
    low, high = as_number(first, f"{name}[0]"), as_number(second, f"{name}[1]")
    if not (math.isfinite(low) and math.isfinite(high)):
        raise ParameterError(f"{name} must be finite, got ({low}, {high})")
    if low >= high:
        raise ParameterError(f"{name} must satisfy lo < hi, got ({low}, {high})")
    width = high - low
    if not 1e-140 < width < 1e140:
        raise ParameterError(f"{name} must be between 1e-140 and 1e140 wide, got {width}: change the unit")
    if width < 1024 * math.ulp(max(abs(low), abs(high))):
        raise ParameterError(
            f"{name}=({low}, {high}) are so close together, so far from zero, that float64 hardly "
            "tells labels between them apart: subtract a public offset from labels and bounds"
        )
    return low, high


def as_roomy_bounds(value: Any, name: str = "bounds") -> tuple[float, float]:
    """Return (lo, hi) with so many floats between them that a design may use any part of them.

    Where it will clip follows from labels, so whether it can is checked before.
    """
    low, high = as_bounds(value, name)
    if high - low < 2.0**34 * math.ulp(max(abs(low), abs(high))):
        raise ParameterError(
            f"{name}=({low}, {high}) are too close together for their size: subtract a public offset from labels "
            "and bounds"
        )
    return low, high


def as_labels(labels: Any, *, or_none: bool = False) -> NDArray[Any]:
    """Return labels as a real-valued array, checked to be finite; there may be none where that is said.

    Whether a label is missing or not finite is public; nothing else about it is. No message quotes
    a label, and the check reads every one of them whatever it finds.
    """
    if isinstance(labels, np.ma.MaskedArray):
        if np.ma.getmaskarray(labels).any():
            raise LabelError("some labels are masked: drop those rows or fill them first")
        labels = labels.data
    array = _converted(labels)
    if array is None:  # raised out here, where no original error, which may quote a label, is attached
        raise LabelError(
            "labels must be real numbers; some are missing, or text, or something else: convert the column first"
        )
    if or_none and array.size == 0:
        return np.zeros(0)
    if array.dtype.kind not in "fiu":
        what = {"U": "text", "S": "text", "b": "booleans", "c": "complex numbers"}
        raise LabelError(
            f"labels must be real numbers, got {what.get(array.dtype.kind, 'dates or something else')}: convert "
            "the column to numbers first"
        )
    if array.dtype.itemsize > 8:
        raise LabelError(f"labels of type {array.dtype} are not supported: convert them to float64")
    if array.size == 0:
        raise LabelError("there are no labels: give at least one")
    if array.dtype.kind == "f":
        flat = array.reshape(-1)
        pieces = (flat[start : start + _CHUNK] for start in range(0, flat.size, _CHUNK))
        bad = flat.size - sum(int(np.count_nonzero(np.isfinite(piece))) for piece in pieces)
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
        if array.dtype != object:
            return array
        for item in array.reshape(-1):
            if isinstance(item, bool | np.bool_ | np.timedelta64) or not isinstance(item, Real | Decimal):
                return None
        return np.array([_as_float(item) for item in array.reshape(-1)]).reshape(array.shape)
    except Exception:  # whatever an array-like may raise
        return None


def _as_float(item: Any) -> float:
    """Return the nearest float; for finite numbers beyond floats the last one, since an error would leak that."""
    try:
        number = float(item)
    except OverflowError:
        number = math.inf if item > 0 else -math.inf
    if math.isinf(number) and item != number:
        return math.copysign(_LAST, number)
    return number


def nearest(name: str, known: Iterable[str]) -> str | None:
    """Return the known name that a misspelt one may have meant, or None.

    It is never a number: in a text file without a header, names are the values of a row, its label among them.

    Examples
    --------
    >>> nearest("prise", ["area", "price"]), nearest("town", ["area", "price"]), nearest("2", ["25"])
    ('price', None, None)
    """
    return next(iter(difflib.get_close_matches(name, [each for each in known if not _is_number(each)], 1)), None)


def _is_number(text: str) -> bool:
    try:
        float(text)
    except ValueError:
        return False
    return True
