"""Mechanisms by name, which of them to take, and their channels, built once for equal parameters."""

from __future__ import annotations

import dataclasses
import math
import sys
from collections.abc import Callable
from contextlib import suppress
from functools import cache, lru_cache
from importlib.metadata import entry_points
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any, TypeVar, get_type_hints

from labeldp._values import as_fraction
from labeldp.errors import (
    CardError,
    ParameterError,
    PrivacyProofError,
    Setting,
    UncheckableError,
    describe,
)
from labeldp.exact.channel import Channel
from labeldp.exact.proof import Promise, channel_digest
from labeldp.mechanisms.histogram import Histogram
from labeldp.mechanisms.interval import expected_risk

if TYPE_CHECKING:
    from labeldp.mechanisms.base import Mechanism

REGISTRY: dict[str, Any] = {}
"""The classes of mechanisms, by their names."""

T = TypeVar("T", bound=type)


def register(name: str) -> Callable[[T], T]:
    """Make a mechanism known under a name, wherever mechanisms are named and on cards: a class decorator.

    Parameters
    ----------
    name : str
        Not taken by another mechanism.

    Returns
    -------
    function
        It takes the class and returns it.

    Raises
    ------
    CardError
        If another class has the name.

    Examples
    --------
    Tell one of the bounds, and the wrong one with odds e^(−ε).

    >>> from dataclasses import dataclass
    >>> from labeldp.mechanisms import WORDS, Mechanism, Promise, TableChannel, channel_field, exp_lower, register
    >>> @register("coin-flip")
    ... @dataclass(frozen=True, slots=True, kw_only=True)
    ... class CoinFlip(Mechanism):
    ...     bounds: tuple[float, float]
    ...     epsilon: float
    ...     channel: TableChannel = channel_field()
    ...     def _build(self):
    ...         low, high = self.bounds
    ...         promise = Promise.of(self.epsilon)
    ...         lie = -(-WORDS // (1 + exp_lower(promise.epsilon)))         # rounded towards privacy
    ...         counts = [[WORDS - lie, lie], [lie, WORDS - lie]]
    ...         reach = lie / (WORDS - 2 * lie) * (high - low)              # so far out that the mean is the label
    ...         return TableChannel.from_counts(low, high, [low - reach, high + reach], counts, promise)
    >>> import labeldp as ldp
    >>> release = ldp.privatize([0.2, 3.1, 4.9], epsilon=1.0, bounds=(0, 5), mechanism="coin-flip")
    >>> len(set(release.labels)) <= 2, release.cost
    (True, Budget(epsilon=1.0))
    """

    def enter(cls: T) -> T:
        old = REGISTRY.get(name, cls)
        if (old.__module__, old.__qualname__) != (cls.__module__, cls.__qualname__):
            raise CardError(f"a mechanism named {name!r} is registered already")
        setattr(cls, "name", name)  # noqa: B010 (T has no such attribute for mypy)
        REGISTRY[name] = cls
        return cls

    return enter


def registered_class(name: object) -> Any:
    """Return the class that a card names; nothing is imported for it."""
    if not isinstance(name, str) or name not in REGISTRY:
        raise (UncheckableError if isinstance(name, str) else CardError)(
            f"the card names an unknown mechanism, {str(name)[:60]!r}, which cannot be checked here. If you trust "
            "a module that brings it, import that first: ",
            Setting("modules", "MODULE"),
            f"; known are: {', '.join(sorted(REGISTRY))}",
        )
    return REGISTRY[name]


def mechanism_names() -> list[str]:
    """Return the names under which labels can be released, those of your own mechanisms included.

    Returns
    -------
    list of str

    Examples
    --------
    >>> from labeldp.mechanisms import mechanism_names
    >>> names = mechanism_names()
    >>> {"gaussian", "laplace", "rp", "rr-on-bins", "staircase", "two-point", "unbiased"} <= set(names)
    True
    """
    return [name for name, cls in sorted(REGISTRY.items()) if cls.private]


def mechanism_class(name: object) -> type[Mechanism]:
    """Return the mechanism registered under a name, by this library or by an installed package.

    A package names the modules that register mechanisms in its entry points, group ``labeldp.mechanisms``; they
    are imported when a name is not known otherwise.

    Parameters
    ----------
    name : str
        As in ``privatize(mechanism=name)``.

    Returns
    -------
    class derived from Mechanism

    Raises
    ------
    ParameterError
        If there is none, or it does not protect labels.

    Examples
    --------
    >>> from labeldp.mechanisms import mechanism_class
    >>> mechanism_class("laplace").__name__
    'Laplace'
    """
    if isinstance(name, str) and name not in mechanism_names():
        for entry in entry_points(group="labeldp.mechanisms"):
            entry.load()
    if not isinstance(name, str) or name not in mechanism_names():
        raise ParameterError(
            Setting("mechanism"),
            f" must be one of auto, {', '.join(mechanism_names())}, or a mechanism instance, got {describe(name)}",
        )
    cls: type[Mechanism] = REGISTRY[name]
    return cls


def auto_classes() -> list[type[Mechanism]]:
    """Return the mechanisms among which ``mechanism="auto"`` chooses."""
    return [cls for _, cls in sorted(REGISTRY.items()) if cls.private and cls.in_auto]


def choose_mechanism(
    name: str,
    prior: Histogram | None,
    *,
    bounds: tuple[float, float],
    epsilon: float,
    rows: int | None = 1,
    clips: bool = True,
    **options: Any,
) -> Mechanism:
    """Return the mechanism called ``name``, designed for a prior; for "auto" the one of least expected risk.

    Arguments are parsed. Unless it ``clips``, it is for labels anywhere in the bounds, which somebody else has
    chosen.
    """

    def design(cls: type[Mechanism]) -> Mechanism:
        if prior is None:
            return cls.for_bounds(bounds, epsilon, **options)
        if not clips:
            return cls.for_bounds(bounds, epsilon, prior=prior, **options)
        return cls._design(prior, epsilon, rows, **options).with_origin(prior.origin)

    if name != "auto":
        chosen = design(mechanism_class(name))
    else:
        candidates: list[Mechanism] = []
        for cls in auto_classes():
            with suppress(ParameterError):  # a linear programme may find no table; the others always exist
                candidates.append(design(cls))
        known = (Histogram(bounds, [1.0]), None) if prior is None else (prior, rows if clips else None)
        chosen = min(candidates, key=lambda mechanism: expected_risk(mechanism, *known))
    if as_fraction(chosen.epsilon) > as_fraction(epsilon) or chosen.delta > options.get("delta", 0.0):
        raise PrivacyProofError(
            f"{type(chosen).__name__} costs more than what was asked for: ε = {chosen.epsilon:g}"
        )
    return chosen


# ---- parameters and channels -------------------------------------------------------------------------


@cache
def parameter_types(cls: type[Mechanism]) -> dict[str, Any]:
    """Return the type that each parameter is declared as; None where that cannot be told."""
    module: dict[str, Any] = dict(vars(sys.modules.get(cls.__module__, object)))
    types: dict[str, Any] = {}
    for field in dataclasses.fields(cls):  # type: ignore[arg-type]
        if field.init:
            hint = SimpleNamespace(__annotations__={"type": field.type})
            types[field.name] = None
            with suppress(NameError):
                types[field.name] = get_type_hints(hint, module)["type"]
    return types


def build_channel(cls: type[Mechanism], values: tuple[Any, ...]) -> tuple[dict[str, Any], Channel]:
    """Return the parameters, completed, and their channel: built and proven, or kept from the last time.

    One that was changed in memory since it was proven is not used again, but built and proven anew.
    """
    key = repr(values)  # 1, 1.0 and True are equal, and so are 0.0 and -0.0
    parameters, channel, digest = _build_once(cls, values, key)
    if channel_digest(channel) != digest:
        _build_once.cache_clear()
        parameters, channel, _ = _build_once(cls, values, key)
    return parameters, channel


@lru_cache(maxsize=16)
def _build_once(cls: type[Mechanism], values: tuple[Any, ...], _: str) -> tuple[dict[str, Any], Channel, str]:
    unproven: Mechanism = object.__new__(cls)
    names = parameter_types(cls)
    for name, value in zip(names, values, strict=True):
        object.__setattr__(unproven, name, value)
    channel = unproven._build()
    if not _covers(unproven, channel.promise):  # by its parameters as they are now: building may complete them
        raise PrivacyProofError("the channel promises less privacy than the mechanism")
    return {name: getattr(unproven, name) for name in names}, channel, channel_digest(channel)


def _covers(mechanism: Mechanism, promise: Promise | None) -> bool:
    """Whether ε and δ of a mechanism, which a ledger is charged with, are all that its channel spends."""
    if promise is None or math.isinf(mechanism.epsilon):
        return promise is None and math.isinf(mechanism.epsilon)
    return promise.epsilon <= as_fraction(mechanism.epsilon) and promise.delta <= as_fraction(mechanism.delta)
