"""The checks: what a mechanism releases, how it handles labels, and what it is."""

from __future__ import annotations

import copy
import dataclasses
import math
import pickle
import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
from scipy import stats

from labeldp._arrays import Array
from labeldp._values import as_fraction
from labeldp.audit.run import audit
from labeldp.cards import load_mechanism
from labeldp.errors import (
    CardError,
    ConformanceError,
    InsecureRandomnessWarning,
    LabelDPError,
    LabelError,
    NotUnbiasedError,
)
from labeldp.mechanisms.base import Mechanism
from labeldp.mechanisms.registry import registered_class
from labeldp.randomness.word_sources import simulation_words
from labeldp.testing.case import ALPHA, Case, require

SINGLE: dict[str, Callable[[float], Any]] = {
    "a number": float,
    "an array of no dimension": np.array,
    "a float32": lambda y: np.float32(np.clip(y, -3e38, 3e38)),
    "a list of one label": lambda y: [y],
    "an array of one label": lambda y: np.array([y]),
    "a column of one label": lambda y: np.array([[y]]),
}
"""Ways to pass one label."""

MANY: dict[str, Callable[[Array], Any]] = {
    "an array": lambda y: y,
    "an array longer than any piece": lambda y: np.resize(y, 70_001),
    "a column": lambda y: y[:, None],
    "every second of an array": lambda y: np.repeat(y, 2)[::2],
    "float32": lambda y: np.clip(y, -3e38, 3e38).astype(np.float32),
    "float16": lambda y: np.clip(y, -6e4, 6e4).astype(np.float16),
    "integers": lambda y: np.rint(np.clip(y, -(2.0**53), 2.0**53)).astype(np.int64),
    "a list": lambda y: y.tolist(),
    "Python objects": lambda y: y.astype(object),
}
"""Ways to pass many."""


def proof(case: Case) -> None:
    """Require that the proof keeps what the mechanism says."""
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


def distribution(case: Case) -> None:
    """Require outputs as the counts say: at four labels closely, at more, and outside, roughly.

    Labels that are passed one by one too: a sampler may treat them otherwise.
    """
    for seed, label in enumerate(case.few.tolist()):
        _fits(case, label, case.draw(label, case.samples, seed))
    rest = [*case.many[::4], *(y[0] for y in case.outside.values())]
    for seed, label in enumerate(rest):
        _fits(case, float(label), case.draw(float(label), max(case.samples // 25, 400), 30 + seed))
    source, label = simulation_words(70), float(case.few[2])
    for what, make in SINGLE.items():
        one = make(label)
        z = [float(np.ravel(case.mechanism.randomize(one, random_state=source))[0]) for _ in range(400)]
        _fits(case, float(np.ravel(one)[0]), np.array(z), f", for {what}")


def _fits(case: Case, label: float, z: Array, what: str = "") -> None:
    points, counts = np.unique(z, return_counts=True)
    gap = np.abs(np.cumsum(counts) / z.size - case.mechanism.channel.cumulative(label, points)).max()
    # Massart: a right distribution passes a gap of g with probability 2 exp(−2 n g²) at most.
    require(
        gap <= math.sqrt(math.log(2 / ALPHA) / (2 * z.size)),
        f"distribution: outputs are up to {gap:.2g} of probability away from what the channel's counts give{what}"
        ": randomize must draw from the channel that verify() proves, and cumulative() must describe it",
    )


def moments(case: Case) -> None:
    """Require that mean, variance and debiasing are those of the outputs."""
    mechanism = case.mechanism
    for seed, label in enumerate(case.few.tolist()):
        z = case.draw(label, case.samples, 10 + seed)
        variance, mean = float(mechanism.variance([label])[0]), float(mechanism.mean([label])[0])
        for what, values, expected in (("mean", z, mean), ("variance", (z - mean) ** 2, variance)):
            message = f"moments: {what}() is not the {what} of what is released: derive it from the same counts"
            _near(values, expected, message)
        try:
            unbiased = mechanism.debias(z)
        except NotUnbiasedError:
            continue
        _near(
            unbiased,
            label,
            "moments: debias() does not average to the label: raise NotUnbiasedError where no map is unbiased",
        )


def _near(values: Array, expected: float, message: str) -> None:
    """Compare a mean with what it should be, by its own standard error."""
    off = abs(float(values.mean()) - expected)
    rounding = 1e-9 * (abs(expected) + float(np.abs(values).max()))
    error = float(values.std()) / math.sqrt(values.size)
    require(off <= stats.norm.isf(ALPHA / 2) * error + rounding, f"{message} (off by {off:.3g})")


def same_words(case: Case) -> None:
    """Require that ``randomize`` gives the channel's own draws, bit for bit, however labels are passed."""
    for seed, (what, all_of) in enumerate(MANY.items()):
        _equal(case, all_of(case.many), what, seed)
    for label in case.many.tolist():
        for seed, (what, one) in enumerate(SINGLE.items()):
            _equal(case, one(label), what, seed)


def _equal(case: Case, labels: Any, what: str, seed: int) -> None:
    z = np.asarray(case.mechanism.randomize(labels, random_state=simulation_words(seed)), dtype=np.float64)
    require(
        z.tobytes() == case.sample(labels, seed).tobytes(),
        f"same words: for {what} randomize gives other bits than channel.sample does under the same words, and "
        "only that is proven: leave randomize to Mechanism; release numbers computed from the cell's index alone",
    )


def audit_outputs(case: Case) -> None:
    """Require that an audit finds no more than is claimed; labels outside take part if they have their own way."""
    labels = [case.low + case.width * place for place in (0.0, 0.20, 0.21, 1.0)]
    for end, outside in case.outside.items():
        if not np.array_equal(case.draw(end, 2000), case.draw(outside[0], 2000)):
            labels.append(float(outside[0]))
    result = audit(
        case.mechanism,
        labels=labels,
        samples=case.samples,
        confidence=1 - ALPHA,
        random_state=simulation_words(20),
    )
    lenses = dict.fromkeys(each.lens for each in result.tested if each.epsilon > case.mechanism.epsilon)
    require(
        not result.convicted,
        f"audit: outputs tell labels apart by ε ≥ {result.epsilon:.4g}, and {case.mechanism.epsilon:.4g} is "
        f"claimed, seen in their {', '.join(lenses)}: release numbers computed from the cell's index alone",
    )


SECRET = 0.7315943127
"""A label that no message may contain."""


def bad_input(case: Case) -> None:
    """Require that what is no label raises LabelError, and that the message quotes none."""
    cases: dict[str, Any] = {
        "NaN": [SECRET, math.nan],
        "infinity": [SECRET, math.inf],
        "no label": [],
        "text": [str(SECRET), "many"],
        "a missing label": [SECRET, None],
    }
    for what, bad in cases.items():
        try:
            case.mechanism.randomize(bad)
        except LabelError as error:
            message = str(error)
        except Exception as error:
            raise ConformanceError(
                f"bad input: {what} must raise LabelError, not {type(error).__name__}: leave the checks to "
                "Mechanism.randomize"
            ) from None
        else:
            raise ConformanceError(f"bad input: {what} must raise LabelError, and was accepted as a label")
        require(str(SECRET)[:6] not in message, "bad input: an error message contains a label: never quote one")


def clipping(case: Case) -> None:
    """Require that a label outside is treated as the end is, or as all outside are, in silence."""
    for end, outside in case.outside.items():
        outputs = [_in_silence(case, float(far)) for far in outside]
        require(
            all(np.isfinite(z).all() for z in outputs),
            "clipping: a label outside the range led to an output that is not finite",
        )
        require(
            all(np.array_equal(z, outputs[0]) for z in outputs),
            "clipping: under the same words, labels that lie differently far outside gave different outputs: "
            "treat all of them as the end of the range",
        )
        expected = [case.sample(np.full(100, y), 1) for y in (end, outside[0])]
        require(
            any(np.array_equal(outputs[0], z) for z in expected),
            "clipping: under the same words, a label outside the range gave other outputs than channel.sample "
            "does: leave randomize to Mechanism",
        )


def _in_silence(case: Case, far: float) -> Array:
    with warnings.catch_warnings(record=True) as warned:
        warnings.simplefilter("always")
        try:
            z = case.draw(far, 100)
        except Exception:
            raise ConformanceError(
                "clipping: a label outside the range must be clipped in silence: an error tells"
            ) from None
    require(not warned, "clipping: a label outside the range led to a warning, which tells: silence it")
    return z


def shapes(case: Case) -> None:
    """Require that outputs have the labels' shape, and that labels are left alone."""
    block = np.tile(case.few, (3, 2, 1))
    original = block.copy()
    z = case.mechanism.randomize(block, random_state=simulation_words(1))
    require(z.shape == block.shape, "shapes: outputs must have the shape of the labels")
    require(z.dtype == np.float64, "shapes: outputs must be float64")
    require(np.array_equal(block, original), "shapes: randomize changed the labels that it was given: copy first")
    listed = case.mechanism.randomize(block.tolist(), random_state=simulation_words(1))
    require(np.array_equal(z, listed), "shapes: a list and an array of the same labels must be treated alike")
    require(np.shape(case.mechanism.randomize(0.0)) == (), "shapes: a single label must give a single output")


def randomness(case: Case) -> None:
    """Require that words come from the source that is passed, and are fresh without one."""
    mechanism, label = case.mechanism, np.full(2000, case.few[1])
    one, again, other = (
        mechanism.randomize(label.copy(), random_state=simulation_words(seed)) for seed in (1, 1, 2)
    )
    require(
        np.array_equal(one, again),
        "randomness: the same words gave other outputs: draw from the source that is passed, and nothing else",
    )
    require(
        not np.array_equal(one, other),
        "randomness: other words gave the same outputs: draw from the source that is passed",
    )
    require(
        not np.array_equal(mechanism.randomize(label), mechanism.randomize(label)),
        "randomness: two releases are the same: without random_state, words must be fresh and secure",
    )
    with warnings.catch_warnings(record=True) as warned:
        warnings.simplefilter("always")
        mechanism.randomize(label, random_state=1)
    require(
        any(issubclass(w.category, InsecureRandomnessWarning) for w in warned),
        "randomness: a seed must warn with InsecureRandomnessWarning: pass random_state on to resolve_source",
    )


def card(case: Case) -> None:
    """Require that the card gives the mechanism back, and a changed card nothing."""
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
    require(loaded == mechanism, "card: what it loads is not equal: parameters() must hold all that _build needs")
    require(loaded.to_json() == text, "card: a loaded mechanism writes another card")
    _same_outputs(case, loaded, "card: a loaded mechanism")
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


def copies(case: Case) -> None:
    """Require that a copy releases the same."""
    own = case.mechanism
    twins = {"a pickled copy": pickle.loads(pickle.dumps(own)), "a deep copy": copy.deepcopy(own)}  # noqa: S301
    for what, twin in twins.items():
        require(twin == own, f"copies: {what} is not equal to the mechanism")
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
