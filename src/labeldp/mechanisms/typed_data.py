"""JSON data as values, and values as JSON data, by type hints.

`read` turns data into values, `plain` turns values into data. Type hints state the accepted data; all else is
refused. A schema is a ``TypedDict`` or a dataclass; its leaves are text, numbers, booleans and exact fractions,
with limits as in ``Annotated[int, between(1, 9)]``. A class may bring its own ``from_data`` and ``as_data``.
"""

from __future__ import annotations

import dataclasses
import json
import math
import re
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from fractions import Fraction
from functools import lru_cache
from types import NoneType, UnionType
from typing import (
    Annotated,
    Any,
    Literal,
    NamedTuple,
    NotRequired,
    Union,
    get_args,
    get_origin,
    get_type_hints,
    is_typeddict,
)

import numpy as np

from labeldp._values import Data
from labeldp.errors import CardError, LabelDPError, PrivacyProofError


class Limit(NamedTuple):
    """A condition on a value beside its type, its text for messages, and whether it is one on the data before."""

    holds: Callable[[Any], bool]
    text: str
    is_first: bool = False


def between(low: float, high: float = math.inf) -> Limit:
    """Return a limit of numbers, both ends included."""
    text = f"at least {low}" if math.isinf(high) else f"from {low} to {high}"
    return Limit(lambda number: bool(low <= number <= high), text)


def at_most(length: int) -> Limit:
    """Return a limit of the length of a list."""
    return Limit(
        lambda items: isinstance(items, list | dict) and len(items) <= length, f"a list of at most {length}", True
    )


def matching(pattern: str, text: str) -> Limit:
    """Return a pattern that all of a text must match."""
    return Limit(lambda value: re.fullmatch(pattern, value, re.ASCII) is not None, text)


LARGEST_INTEGER = 1 << 53
"""Many languages read the numbers of JSON as doubles, which are exact up to here."""
Natural = Annotated[int, between(0, LARGEST_INTEGER)]
Positive = Annotated[int, between(1, LARGEST_INTEGER)]
Hash = Annotated[str, matching("[0-9a-f]{64}", "a SHA-256 hash of 64 hexadecimal digits")]

LONGEST_AMOUNT = 400
"""Characters of a fraction in a file: every float has fewer, and so has the δ of several rows of a person."""

LARGEST = 1.7e308
"""Numbers are smaller, so that integers among them fit a float."""

_FRACTION = re.compile(r"[0-9]+(/[1-9][0-9]*)?", re.ASCII)


def read(hint: Any, data: Any, where: str = "the card") -> Any:
    """Return data as a value of a type.

    Parameters
    ----------
    hint : type or type hint
    data : pure data
        As `json.loads` returns it.
    where : str
        What messages call it.

    Raises
    ------
    CardError
        If it is not of this type, or lacks a field, or has one too many; the message names the path to it.

    Examples
    --------
    >>> from labeldp.mechanisms.typed_data import Positive, read
    >>> read(dict[str, Positive], {"rows": 3})
    {'rows': 3}
    >>> read(list[Positive], [3, True], "rows")
    Traceback (most recent call last):
    ...
    labeldp.errors.CardError: rows[1] must be an integer
    """
    kind = get_origin(hint) or hint
    if form := _FORMS.get(kind):
        return form(get_args(hint), data, where)
    if make := READERS.get(kind, getattr(kind, "from_data", None)):
        return _construct(make, where, data)
    if is_typeddict(kind):
        return _fields(kind, data, where)
    return _instance(kind, data, where) if dataclasses.is_dataclass(kind) else _leaf(kind, data, where)


def plain(value: Any) -> Any:
    """Return a value as JSON data: what `read` makes the value from.

    Examples
    --------
    >>> plain({"scale": Fraction(1, 3), "bounds": (0.0, 1.0)})
    {'scale': '1/3', 'bounds': [0.0, 1.0]}
    """
    if hasattr(value, "as_data"):
        return value.as_data()
    if isinstance(value, np.ndarray):
        return value.tolist()
    if isinstance(value, list | tuple):
        return [plain(item) for item in value]
    if isinstance(value, dict):
        return {key: plain(item) for key, item in value.items()}
    if dataclasses.is_dataclass(value):
        kind: Any = type(value)
        hints, free = _schema(kind)
        fields = {name: getattr(value, name) for name in hints} | getattr(value, "derived", {})
        return {name: plain(item) for name, item in fields.items() if item is not None or name not in free}
    return str(value) if isinstance(value, Fraction) else value


canonical = json.JSONEncoder(sort_keys=True, separators=(",", ":"), allow_nan=False).encode
"""Data as canonical JSON: sorted keys, no blanks, ASCII."""


def optional() -> Any:
    """Return a dataclass field that may be missing, and is left out where it is None."""
    return dataclasses.field(default=None, metadata={"optional": True})


def parse_fraction(text: Any) -> Fraction:
    """Return the fraction of a text in lowest terms. `Fraction` alone would take 1e999999999, and all memory."""
    if isinstance(text, str) and len(text) <= LONGEST_AMOUNT and _FRACTION.fullmatch(text):
        value = Fraction(text)
        if str(value) == text:
            return value
    raise CardError(f'must be a fraction in lowest terms, such as "1/20", of at most {LONGEST_AMOUNT} characters')


@contextmanager
def refuse_other_errors(name: str) -> Iterator[None]:
    """Turn whatever the data of a stranger raises, and no schema has refused, into a refusal.

    Parameters
    ----------
    name : str
        The data's name in the message.
    """
    try:
        yield
    except (LabelDPError, MemoryError):
        raise
    except Exception as error:
        raise CardError(f"{name} is not valid: {type(error).__name__} while it was read") from None


READERS: dict[Any, Callable[[Any], Any]] = {Fraction: parse_fraction}
"""How values are made from data whose class cannot do it alone."""


# ---- how each kind of type is read ----------------------------------------------------------------


def _refusal(where: str, expected: str) -> CardError:
    return CardError(f"{where} must be {expected}")


def _annotated(arguments: tuple[Any, ...], data: Any, where: str) -> Any:
    hint, *limits = arguments
    for limit in limits:
        if limit.is_first and not limit.holds(data):
            raise _refusal(where, limit.text)
    value = read(hint, data, where)
    for limit in limits:
        if not limit.is_first and not limit.holds(value):
            raise _refusal(where, limit.text)
    return value


def _one_of(arguments: tuple[Any, ...], data: Any, where: str) -> Any:
    """Return data as the first of several types that it is of."""
    *alternatives, last = [argument for argument in arguments if argument is not NoneType]
    if data is None and NoneType in arguments:
        return None
    for hint in alternatives:
        with suppress(CardError):
            return read(hint, data, where)
    return read(last, data, where)


def _literal(arguments: tuple[Any, ...], data: Any, where: str) -> Any:
    if not isinstance(data, str) or data not in arguments:
        raise _refusal(where, " or ".join(map(repr, arguments)))
    return data


def _list(arguments: tuple[Any, ...], data: Any, where: str) -> list[Any]:
    """Return the items of a list: any number of one type, or one of each type."""
    if not isinstance(data, list):
        raise _refusal(where, "a list")
    hints = arguments[:1] * len(data) if arguments[1:] in ((), (...,)) else arguments
    if len(hints) != len(data):
        raise _refusal(where, f"a list of {len(hints)}")
    return [read(hints[k], item, f"{where}[{k}]") for k, item in enumerate(data)]


def _mapping(arguments: tuple[Any, ...], data: Any, where: str) -> dict[Any, Any]:
    if not isinstance(data, dict):
        raise _refusal(where, "an object")
    name, hint = arguments
    return {
        read(name, key, f"a field of {where}"): read(hint, value, f"{where}.{key[:60]}")
        for key, value in data.items()
    }


_FORMS: dict[Any, Callable[[tuple[Any, ...], Any, str], Any]] = {
    Any: lambda _, data, where: data,
    Annotated: _annotated,
    Union: _one_of,
    UnionType: _one_of,
    Literal: _literal,
    list: _list,
    tuple: lambda *arguments: tuple(_list(*arguments)),
    dict: _mapping,
}


@lru_cache(maxsize=256)
def _schema(kind: Any) -> tuple[Data, frozenset[str]]:
    """Return the fields of a typed dictionary or of a dataclass with their types, and which may be missing.

    Fields with the metadata ``{"data": False}`` are left out. A field that may be missing is never None.
    """
    hints = get_type_hints(kind, include_extras=True)
    if dataclasses.is_dataclass(kind):
        fields = [field for field in dataclasses.fields(kind) if field.metadata.get("data", True)]
        hints = {field.name: hints[field.name] for field in fields}
        free = frozenset(field.name for field in fields if field.metadata.get("optional"))
    else:
        free = frozenset(name for name, hint in hints.items() if get_origin(hint) is NotRequired)
    return hints | {name: (*get_args(hints[name]), Any)[0] for name in free}, free


def _fields(kind: Any, data: Any, where: str) -> Data:
    """Return the fields of an object, if it has all of them and no others."""
    hints, free = _schema(kind)
    if not isinstance(data, dict):
        raise _refusal(where, "an object")
    if missing := sorted(hints.keys() - free - data.keys()):
        raise CardError(f"{where} lacks the field {missing[0]}")
    if unknown := sorted(data.keys() - hints.keys()):
        raise CardError(f"{where} has an unknown field, {unknown[0][:60]!r}")
    prefix = "" if where == "the card" else f"{where}."
    return {name: read(hint, data[name], f"{prefix}{name}") for name, hint in hints.items() if name in data}


def _instance(kind: Any, data: Any, where: str) -> Any:
    """Return an instance of a dataclass; the data must agree with its derived fields."""
    if not isinstance(data, dict):
        raise _refusal(where, "an object")
    derived = getattr(kind, "DERIVED", ())
    fields = _fields(kind, {name: item for name, item in data.items() if name not in derived}, where)
    if derived:
        kind.refuse_unknown(data)
    value = _construct(kind, where, **fields)
    expected = plain(_construct(lambda: value.derived, where)) if derived else {}
    for name in derived:
        if canonical(expected[name]) != canonical(data.get(name)):
            raise CardError(f"{where} is not valid: its {name} is {expected[name]}, and not the stated one")
    return value


def _construct(make: Callable[..., Any], where: str, *data: Any, **fields: Any) -> Any:
    """Return the object that a class makes of data; a refusal names the path to the data."""
    try:
        return make(*data, **fields)
    except LabelDPError as error:
        kind = type(error) if isinstance(error, CardError | PrivacyProofError) else CardError
        raise kind(f"{where}: ", error) from None


_LEAVES: dict[Any, tuple[tuple[type, ...], str]] = {
    str: ((str,), "text"),
    bool: ((bool,), "a boolean"),
    int: ((int,), "an integer"),
    float: ((int, float), "a number"),
}


def _leaf(kind: Any, data: Any, where: str) -> Any:
    types, name = _LEAVES[kind]
    if type(data) not in types or (kind is float and not abs(data) < LARGEST):
        raise _refusal(where, name)
    if kind is str and not _is_unicode(data):
        raise _refusal(where, "valid Unicode text")
    return kind(data)


def _is_unicode(text: str) -> bool:
    """Return whether text has no half of a surrogate pair: no file and no terminal takes one."""
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True
