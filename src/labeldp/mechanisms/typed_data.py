"""JSON data as values, and values as JSON data, by type hints.

`read` turns data into values, `plain` turns values into data. Type hints say what is accepted; the rest is
refused. A schema is a ``TypedDict`` or a dataclass; its leaves are text, numbers, booleans and exact fractions,
with limits as in ``Annotated[int, between(1, 9)]``. A class may bring its own ``from_data`` and ``as_data``.
"""

from __future__ import annotations

import dataclasses
import json
import math
import re
from collections.abc import Callable
from contextlib import suppress
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
    """What a value must satisfy beside its type, and how a message says so."""

    holds: Callable[[Any], bool]
    text: str


def between(low: float, high: float = math.inf) -> Limit:
    """Return a limit of numbers, both ends included."""
    text = f"at least {low}" if math.isinf(high) else f"from {low} to {high}"
    return Limit(lambda number: bool(low <= number <= high), text)


def at_most(length: int) -> Limit:
    """Return a limit of the length of a list."""
    return Limit(lambda items: len(items) <= length, f"a list of at most {length}")


def like(pattern: str, text: str) -> Limit:
    """Return a pattern that all of a text must match."""
    return Limit(lambda value: re.fullmatch(pattern, value, re.ASCII) is not None, text)


Natural = Annotated[int, between(0, (1 << 63) - 1)]
Positive = Annotated[int, between(1, (1 << 63) - 1)]
Hash = Annotated[str, like("[0-9a-f]{64}", "a SHA-256 hash of 64 hexadecimal digits")]

READERS: dict[Any, Callable[[Any], Any]] = {}
"""How values are made from data whose class cannot do it alone."""

LONGEST_AMOUNT = 400
"""Characters of a fraction in a file: every float has fewer, and so has the δ of several rows of a person."""

_FRACTION = re.compile(r"[0-9]+(/[0-9]+)?", re.ASCII)


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
        return _construct(lambda: make(data), where)
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
        shown = {name: getattr(value, name) for name in hints}
        stated = {name: plain(item) for name, item in shown.items() if item is not None or name not in free}
        return stated | _derived(value)
    return str(value) if isinstance(value, Fraction) else value


canonical = json.JSONEncoder(sort_keys=True, separators=(",", ":"), allow_nan=False).encode
"""Data as canonical JSON: sorted keys, no blanks, ASCII."""


def optional() -> Any:
    """Return a dataclass field that may be missing, and is left out where it is None."""
    return dataclasses.field(default=None, metadata={"optional": True})


def parse_fraction(text: Any) -> Fraction:
    """Return what `str` of a fraction gave. `Fraction` itself would take 1e999999999, and all memory with it."""
    if not isinstance(text, str) or len(text) > LONGEST_AMOUNT or not _FRACTION.fullmatch(text):
        raise CardError(f'must be a fraction in text, such as "1/20", of at most {LONGEST_AMOUNT} characters')
    try:
        return Fraction(text)
    except ZeroDivisionError:
        raise CardError("must be a fraction, and not over 0") from None


# ---- how each kind of type is read ----------------------------------------------------------------


def _require(holds: bool, where: str, what: str) -> None:
    if not holds:
        raise CardError(f"{where} must be {what}")


def _annotated(arguments: tuple[Any, ...], data: Any, where: str) -> Any:
    value = read(arguments[0], data, where)
    for limit in arguments[1:]:
        _require(limit.holds(value), where, limit.text)
    return value


def _one_of(arguments: tuple[Any, ...], data: Any, where: str) -> Any:
    """Return data as the first of several types that it is of."""
    if data is None and NoneType in arguments:
        return None
    *others, last = [argument for argument in arguments if argument is not NoneType]
    for hint in others:
        with suppress(CardError):
            return read(hint, data, where)
    return read(last, data, where)


def _literal(arguments: tuple[Any, ...], data: Any, where: str) -> Any:
    known = any(type(data) is type(option) and data == option for option in arguments)
    _require(known, where, " or ".join(map(repr, arguments)))
    return data


def _list(arguments: tuple[Any, ...], data: Any, where: str) -> list[Any]:
    _require(isinstance(data, list), where, "a list")
    return [read(arguments[0], item, f"{where}[{k}]") for k, item in enumerate(data)]


def _tuple(arguments: tuple[Any, ...], data: Any, where: str) -> tuple[Any, ...]:
    if arguments[-1] is Ellipsis:
        return tuple(_list(arguments, data, where))
    _require(isinstance(data, list) and len(data) == len(arguments), where, f"a list of {len(arguments)}")
    pairs = enumerate(zip(arguments, data, strict=True))
    return tuple(read(hint, item, f"{where}[{k}]") for k, (hint, item) in pairs)


def _mapping(arguments: tuple[Any, ...], data: Any, where: str) -> dict[Any, Any]:
    _require(isinstance(data, dict), where, "an object")
    names = [read(arguments[0], key, f"a field of {where}") for key in data]
    values = [read(arguments[1], value, f"{where}.{key[:60]}") for key, value in data.items()]
    return dict(zip(names, values, strict=True))


_FORMS: dict[Any, Callable[[tuple[Any, ...], Any, str], Any]] = {
    Any: lambda _, data, where: data,
    Annotated: _annotated,
    Union: _one_of,
    UnionType: _one_of,
    Literal: _literal,
    list: _list,
    tuple: _tuple,
    dict: _mapping,
}


@lru_cache(maxsize=256)
def _schema(kind: Any) -> tuple[dict[str, Any], frozenset[str]]:
    """Return the fields of a typed dictionary or of a dataclass with their types, and which may be missing.

    Fields that do not count when instances are compared are not data.
    """
    hints = get_type_hints(kind, include_extras=True)
    if dataclasses.is_dataclass(kind):
        fields = [field for field in dataclasses.fields(kind) if field.compare]
        free = frozenset(field.name for field in fields if field.metadata.get("optional"))
        return {field.name: hints[field.name] for field in fields}, free
    free = frozenset(name for name, hint in hints.items() if get_origin(hint) is NotRequired)
    return {name: get_args(hint)[0] if name in free else hint for name, hint in hints.items()}, free


def _fields(kind: Any, data: Any, where: str, derived: tuple[str, ...] = ()) -> Data:
    """Return the fields of an object, if it has all of them and no others; derived ones are not read."""
    hints, free = _schema(kind)
    _require(isinstance(data, dict), where, "an object")
    for name in sorted({*hints, *derived} - free - data.keys()):
        raise CardError(f"{where} lacks the field {name}")
    for name in sorted(data.keys() - {*hints, *derived}):
        raise CardError(f"{where} has an unknown field, {name[:60]!r}")
    for name in sorted(name for name in free & data.keys() if data[name] is None):
        raise CardError(f"{where} must leave out the field {name}, or say something in it")
    prefix = "" if where == "the card" else f"{where}."
    return {name: read(hint, data[name], f"{prefix}{name}") for name, hint in hints.items() if name in data}


def _derived(value: Any) -> Data:
    """Return what follows from a value's fields and is written beside them."""
    return {name: plain(item) for name, item in getattr(value, "derived", {}).items()}


def _instance(kind: Any, data: Any, where: str) -> Any:
    """Return an instance of a dataclass; what follows from its fields must be what the data says."""
    if isinstance(data, dict) and hasattr(kind, "refuse_unknown"):
        kind.refuse_unknown(data)
    fields = _fields(kind, data, where, getattr(kind, "DERIVED", ()))
    value = _construct(lambda: kind(**fields), where)
    for name, expected in _construct(lambda: _derived(value), where).items():
        if canonical(expected) != canonical(data[name]):
            raise CardError(f"{where} does not hold: its {name} is {expected}, and not what is stated")
    return value


def _construct(make: Callable[[], Any], where: str) -> Any:
    """Return what a class makes of data; what it refuses is refused with the path to it."""
    try:
        return make()
    except LabelDPError as error:
        kind = type(error) if isinstance(error, CardError | PrivacyProofError) else CardError
        raise kind(f"{where}: {error}") from None


_LEAVES: dict[Any, tuple[Callable[[Any], bool], str]] = {
    str: (lambda data: isinstance(data, str), "text"),
    bool: (lambda data: isinstance(data, bool), "a boolean"),
    int: (lambda data: type(data) is int, "an integer"),
    float: (lambda data: type(data) in (int, float) and abs(data) < 1e308 * 1.7, "a number"),
}


def _leaf(kind: Any, data: Any, where: str) -> Any:
    if kind is Fraction:
        return _construct(lambda: parse_fraction(data), where)
    test, name = _LEAVES[kind]
    _require(test(data), where, name)
    return float(data) if kind is float else data
