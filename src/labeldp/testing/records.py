"""What a mechanism is: its card, its copies, and that nothing about it can be changed."""

from __future__ import annotations

import copy
import dataclasses
import pickle
from collections.abc import Callable
from typing import Any

import numpy as np

from labeldp.cards import load_mechanism
from labeldp.errors import CardError, ConformanceError, LabelDPError
from labeldp.mechanisms.base import Mechanism, registered_class
from labeldp.randomness.word_sources import simulation_words
from labeldp.testing.case import Case, require

__all__ = ["card", "copies", "frozen"]


def card(case: Case) -> None:
    """Require that the card gives the mechanism back, and a changed card nothing."""
    mechanism = case.mechanism
    require(
        _is_registered(mechanism),
        'card: the class is not registered: put @register("a-name-of-its-own") on top of it',
    )
    require(
        dataclasses.is_dataclass(mechanism.channel),
        f"card: {type(mechanism.channel).__name__} is no dataclass, and a card holds a hash of the channel's "
        "fields: make it a frozen dataclass whose fields are all that sample and verify read",
    )
    text = mechanism.to_json()
    try:
        loaded = load_mechanism(text)
    except LabelDPError as error:
        raise ConformanceError(
            f"card: its own card does not load ({error}): parameters() must hold all that _build needs"
        ) from error
    require(loaded == mechanism, "card: what it loads is not equal: parameters() must hold all that _build needs")
    require(loaded.to_json() == text, "card: a loaded mechanism writes another card")
    _same_outputs(case, loaded, "card: a loaded mechanism")
    try:
        load_mechanism(text.replace('"epsilon":', '"epsilon":1', 1))
    except CardError:
        return
    raise ConformanceError(
        "card: a card that was changed was loaded: leave to_json and load_mechanism as they are"
    )


def _is_registered(mechanism: Mechanism) -> bool:
    try:
        return registered_class(getattr(mechanism, "name", None)) is type(mechanism)
    except CardError:
        return False


def copies(case: Case) -> None:
    """Require that a copy releases the same."""
    makers: dict[str, Callable[[Mechanism], Mechanism]] = {
        "a pickled copy": lambda m: pickle.loads(pickle.dumps(m)),  # noqa: S301
        "a deep copy": copy.deepcopy,
    }
    for what, make in makers.items():
        twin = make(case.mechanism)
        require(twin == case.mechanism, f"copies: {what} is not equal to the mechanism")
        _same_outputs(case, twin, f"copies: {what}")


def _same_outputs(case: Case, other: Mechanism, what: str) -> None:
    labels = np.tile(case.few, 50)
    first, second = (m.randomize(labels, random_state=simulation_words(3)) for m in (case.mechanism, other))
    require(np.array_equal(first, second), f"{what} releases something else under the same words")


def frozen(case: Case) -> None:
    """Require that no field can be set, and no array written to."""
    for owner in (case.mechanism, case.mechanism.channel):
        for field in dataclasses.fields(owner):  # type: ignore[arg-type]
            value: Any = getattr(owner, field.name)
            try:
                setattr(owner, field.name, value)
            except (AttributeError, TypeError):
                pass
            else:
                raise ConformanceError(
                    f"frozen: {type(owner).__name__}.{field.name} can be set after the proof: use "
                    "@dataclass(frozen=True, slots=True, kw_only=True)"
                )
            require(
                not (isinstance(value, np.ndarray) and value.flags.writeable),
                f"frozen: the array {field.name} can be written to after the proof: keep a read-only copy",
            )
