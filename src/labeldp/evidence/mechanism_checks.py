"""The checks of `check_mechanism`: what a mechanism releases, how it handles labels, and what it is."""

from __future__ import annotations

import copy
import dataclasses
import math
import pickle
import warnings
from collections.abc import Callable
from inspect import getattr_static
from typing import Any

import numpy as np
from scipy import stats

from labeldp._values import Array, Bounds, as_fraction
from labeldp.accounts.reading import load_mechanism
from labeldp.errors import (
    CardError,
    ConformanceError,
    LabelDPError,
    NotUnbiasedError,
)
from labeldp.evidence.privacy_audit import audit
from labeldp.exact.word_sources import simulation_words
from labeldp.mechanisms.base import Mechanism
from labeldp.mechanisms.registry import registered_class

ALPHA = 1e-9
"""Each statistical check fails a right mechanism this often at most; there are fewer than 200; seeds are fixed."""

INHERITED = (
    *("randomize", "randomize_checked", "verify", "mean", "variance", "bias", "debias", "unbiased_variance"),
    *("density", "parameters", "as_data", "to_json", "origin", "with_origin"),
)
"""What `Mechanism` does for everybody: clip, check and shape labels, draw words, state proofs and write cards."""


def require(holds: object, message: str) -> None:
    """Raise with the message unless it holds."""
    if not bool(holds):
        raise ConformanceError(message)


@dataclasses.dataclass(frozen=True, slots=True)
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

    def at(self, *shares: float) -> Array:
        """Return the labels at some shares of the range."""
        return np.asarray(self.low + (self.high - self.low) * np.array(shares))

    @property
    def few(self) -> Array:
        """Four labels, one of them off any grid."""
        return self.at(0.0, 0.5, 1 / math.pi, 1.0)

    @property
    def many(self) -> Array:
        """About a hundred labels: evenly spaced, anywhere, next to the ends, and next to zero."""
        anywhere = self.at(*np.linspace(0, 1, 48), *np.random.default_rng(1).random(48))
        odd = [math.nextafter(self.low, math.inf), math.nextafter(self.high, -math.inf), 5e-324, -0.0]
        return np.asarray(np.clip(np.concatenate([anywhere, odd]), self.low, self.high))

    @property
    def outside(self) -> dict[float, Array]:
        """Labels beyond each end."""
        return {
            self.low: np.append(self.at(-1, -10, -1e6), -1e300),
            self.high: np.append(self.at(2, 11, 1e6), 1e300),
        }

    def draw(self, labels: Any, seed: int = 1, mechanism: Mechanism | None = None) -> Array:
        """Return outputs for labels, under the words of a seed."""
        return (mechanism or self.mechanism).randomize(labels, random_state=simulation_words(seed))


CHECKS: dict[str, Callable[[Case], None]] = {}
"""All checks by name, in their order."""


def check(function: Callable[[Case], None]) -> Callable[[Case], None]:
    """Add a check, under the name of its function."""
    CHECKS[function.__name__.replace("_", " ")] = function
    return function


@check
def inherited(case: Case) -> None:
    """Require that the class has what `Mechanism` has, and answers only which counts."""
    cls = type(case.mechanism)
    for name in INHERITED:
        require(
            getattr_static(cls, name) is getattr_static(Mechanism, name),
            f"inherited: {cls.__name__}.{name} is not that of Mechanism: leave it out, and say all in _build",
        )


@check
def proof(case: Case) -> None:
    """Require that the proof shows what the mechanism says."""
    mechanism = case.mechanism
    proven = mechanism.verify()
    require(
        as_fraction(proven.epsilon) <= as_fraction(mechanism.epsilon) or proven.epsilon <= mechanism.epsilon,
        f"proof: verify() proves only ε = {proven.epsilon:.9g}, and the mechanism says {mechanism.epsilon:.9g}: "
        "build the channel with Promise.of(self.epsilon)",
    )
    delta = float(getattr(mechanism, "delta", 0.0))
    require(
        proven.delta <= delta,
        f"proof: verify() needs δ = {proven.delta:.3g}, and the mechanism says {delta:.3g}: give it a field delta",
    )


@check
def distribution(case: Case) -> None:
    """Require outputs as the counts say: at four labels closely, at more, and outside, roughly.

    Labels that are passed one by one too: a sampler may treat them otherwise.
    """
    rest = [*case.many[::4], *(y[0] for y in case.outside.values())]
    sizes = [*((label, case.samples) for label in case.few), *((y, max(case.samples // 25, 400)) for y in rest)]
    for seed, (label, size) in enumerate(sizes):
        _require_fit(case, label, case.draw(np.full(size, label), seed))
    source, label = simulation_words(70), case.few[2]
    alone = [case.mechanism.randomize([label], random_state=source)[0] for _ in range(400)]
    _require_fit(case, label, np.array(alone), ", for a label alone")


def _require_fit(case: Case, label: float, z: Array, way: str = "") -> None:
    points, counts = np.unique(z, return_counts=True)
    steps = np.concatenate([np.nextafter(points, -np.inf), points])  # below each output, and at it
    shares = np.concatenate([np.cumsum(counts) - counts, np.cumsum(counts)]) / z.size
    gap = np.abs(shares - case.mechanism.channel.cumulative(label, steps)).max()
    # Massart: a right distribution passes a gap of g with probability 2 exp(−2 n g²) at most.
    require(
        gap <= math.sqrt(math.log(2 / ALPHA) / (2 * z.size)),
        f"distribution: outputs are up to {gap:.2g} of probability away from what the channel's counts give{way}"
        ": randomize must draw from the channel that verify() proves, and cumulative() must describe it",
    )


@check
def moments(case: Case) -> None:
    """Require that mean, variance and debiasing are those of the outputs."""
    mechanism = case.mechanism
    for seed, label in enumerate(case.few.tolist()):
        z = case.draw(np.full(case.samples, label), 10 + seed)
        variance, mean = float(mechanism.variance([label])[0]), float(mechanism.mean([label])[0])
        for what, values, expected in (("mean", z, mean), ("variance", (z - mean) ** 2, variance)):
            message = f"moments: {what}() is not the {what} of what is released: derive it from the same counts"
            _require_mean(values, expected, message)
        try:
            unbiased = mechanism.debias(z)
        except NotUnbiasedError:
            continue
        message = "debias() does not average to the label: raise NotUnbiasedError where no map is unbiased"
        _require_mean(unbiased, label, f"moments: {message}")


def _require_mean(values: Array, expected: float, message: str) -> None:
    """Compare a mean with what it should be, by its own standard error."""
    off = abs(float(values.mean()) - expected)
    rounding = 1e-9 * (abs(expected) + float(np.abs(values).max()))
    error = float(values.std()) / math.sqrt(values.size)
    require(off <= stats.norm.isf(ALPHA / 2) * error + rounding, f"{message} (off by {off:.3g})")


@check
def random_words(case: Case) -> None:
    """Require that a channel draws from the words that it is given, and treats all types of numbers alike."""
    labels = np.rint(np.clip(np.tile(case.many, 20), -2048, 2048))
    one, again, other = (case.draw(labels.copy(), seed) for seed in (1, 1, 2))
    require(
        np.array_equal(one, again) and not np.array_equal(one, other),
        "random words: outputs must follow from the words of the source that is passed, and from nothing else",
    )
    for kind in (np.float64, np.float32, np.float16, np.int64):
        typed = labels.astype(kind)
        require(
            case.draw(typed).tobytes() == one.tobytes(),
            f"random words: labels as {kind.__name__} gave other bits than as float64 under the same words",
        )
        require(np.array_equal(typed, labels), "random words: the channel changed the labels that it was given")


@check
def clipping(case: Case) -> None:
    """Require that a label outside is treated as the end is, or as all outside are, in silence."""
    for outside in case.outside.values():
        with warnings.catch_warnings(record=True) as warned:
            warnings.simplefilter("always")
            try:
                outputs = [case.draw(np.full(100, far)) for far in outside]
            except Exception:
                raise ConformanceError(
                    "clipping: a label outside the range must be clipped in silence: an error would leak it"
                ) from None
        require(not warned, "clipping: a label outside the range led to a warning, which leaks it: silence it")
        require(
            all(np.isfinite(z).all() for z in outputs),
            "clipping: a label outside the range led to an output that is not finite",
        )
        require(
            all(np.array_equal(z, outputs[0]) for z in outputs),
            "clipping: under the same words, labels that lie differently far outside gave different outputs: "
            "treat all of them as the end of the range",
        )


@check
def audit_outputs(case: Case) -> None:
    """Require that an audit detects nothing; labels outside take part if they are treated in their own way."""
    labels = case.at(0.0, 0.20, 0.21, 1.0).tolist()
    for end, outside in case.outside.items():
        one, other = (case.draw(np.full(2000, y)) for y in (end, outside[0]))
        if not np.array_equal(one, other):
            labels.append(float(outside[0]))
    source = simulation_words(20)
    ask = {"labels": labels, "samples": case.samples, "confidence": 1 - ALPHA, "random_state": source}
    result = audit(case.mechanism, **ask)
    lenses = dict.fromkeys(each.lens for each in result.tested if each.epsilon > case.mechanism.epsilon)
    require(
        not result.detected,
        f"audit outputs: they distinguish labels by ε ≥ {result.epsilon:.4g}, and {case.mechanism.epsilon:.4g} is "
        f"claimed, seen in their {', '.join(lenses)}: release numbers computed from the cell's index alone",
    )


@check
def card(case: Case) -> None:
    """Require that the card, and copies, give the mechanism back, and a changed card nothing."""
    mechanism = case.mechanism
    require(_is_registered(mechanism), 'card: the class is not registered: put @register("its-own-name") above it')
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
    require(loaded.to_json() == text, "card: a loaded mechanism writes another card")
    twins = {
        "what its card loads": loaded,
        "a pickled copy": pickle.loads(pickle.dumps(mechanism)),  # noqa: S301
        "a deep copy": copy.deepcopy(mechanism),
    }
    for what, twin in twins.items():
        require(twin == mechanism, f"card: {what} is not equal: parameters() must hold all that _build needs")
        own, other = (case.draw(np.tile(case.few, 50), mechanism=one) for one in (mechanism, twin))
        require(np.array_equal(own, other), f"card: {what} releases something else under the same words")
    try:
        load_mechanism(text.replace('"epsilon":', '"epsilon":1', 1))
    except CardError:
        return
    raise ConformanceError("card: a changed card was loaded: leave to_json and load_mechanism as they are")


def _is_registered(mechanism: Mechanism) -> bool:
    try:
        return registered_class(getattr(mechanism, "name", None)) is type(mechanism)
    except CardError:
        return False


@check
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
