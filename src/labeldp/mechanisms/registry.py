"""Mechanisms by name."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, TypeVar

from labeldp.errors import CardError, ParameterError, Setting, UncheckableError, describe

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
            f"the card names an unknown mechanism, {str(name)[:60]!r}, which this version cannot verify. If you "
            "trust a module that brings it, import that first: ",
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
    return sorted(REGISTRY)


def mechanism_class(name: object) -> type[Mechanism]:
    """Return the mechanism registered under a name, by this library or by a module that was imported.

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
        If there is none.

    Examples
    --------
    >>> from labeldp.mechanisms import mechanism_class
    >>> mechanism_class("laplace").__name__
    'Laplace'
    """
    if not isinstance(name, str) or name not in REGISTRY:
        raise ParameterError(
            Setting("mechanism"),
            f" must be one of auto, {', '.join(mechanism_names())}, or of a module that is imported, got "
            f"{describe(name)}",
        )
    cls: type[Mechanism] = REGISTRY[name]
    return cls
