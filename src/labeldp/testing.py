"""`check_mechanism`: does a mechanism keep the contract? For your own, as `check_estimator` is for estimators."""

from __future__ import annotations

import copy
import dataclasses
import math
import pickle
import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import stats

from labeldp import cards
from labeldp._checks import as_fraction
from labeldp.audit.run import audit, label_range
from labeldp.errors import (
    CardError,
    ConformanceError,
    InsecureRandomnessWarning,
    LabelDPError,
    LabelError,
    NotUnbiasedError,
)
from labeldp.mechanisms.base import Mechanism, load_mechanism
from labeldp.randomness import SeededWords

__all__ = ["check_mechanism"]

ALPHA = 1e-9
"""Each statistical check fails a right mechanism this often at most; there are fewer than 50; seeds are fixed."""

SECRET = 0.7315943127
"""A label that no message may contain."""


def check_mechanism(mechanism: Mechanism, *, samples: int = 100_000) -> tuple[str, ...]:
    """Check that a mechanism keeps the contract of this library, and return the names of the checks that passed.

    Proof, distribution against the channel's counts, moments, an audit of sizes and of last bits, bad input, the
    source of words, the card, copies, and that nothing about it can be changed.

    Parameters
    ----------
    mechanism : Mechanism
        Private, and built; its class must be registered, so that cards can name it.
    samples : int
        Outputs for each label in the statistical checks. 100,000 find noise that is 3 % too small.

    Raises
    ------
    ConformanceError
        At the first check that fails; the message says what was expected, and what to do.

    Examples
    --------
    >>> import labeldp as ldp
    >>> passed = check_mechanism(ldp.TwoPoint(bounds=(0, 5), epsilon=1.0), samples=10_000)
    >>> passed[:3]
    ('proof', 'distribution', 'moments')
    """
    if not isinstance(mechanism, Mechanism):
        raise ConformanceError(
            "this is no mechanism: derive its class from labeldp.Mechanism, and pass an instance"
        )
    _require(
        math.isfinite(mechanism.epsilon), "proof: ε is infinite, so nothing is protected, and nothing to check"
    )
    low, high = label_range(mechanism)
    labels = low + (high - low) * np.array([0.0, 0.5, 1 / math.pi, 1.0])
    for name, check in CHECKS.items():
        try:
            check(mechanism, labels, samples)
        except ConformanceError:
            raise
        except Exception as error:
            raise ConformanceError(f"{name}: {type(error).__name__} was raised where nothing should be") from error
    return tuple(CHECKS)


def _require(holds: object, message: str) -> None:
    if not bool(holds):
        raise ConformanceError(message)


def _words(seed: int) -> SeededWords:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", InsecureRandomnessWarning)
        return SeededWords(seed)


def _draw(mechanism: Mechanism, label: float, samples: int, seed: int = 1) -> NDArray[np.float64]:
    return mechanism.randomize(np.full(samples, label), random_state=_words(seed))


# ---- what it releases ----------------------------------------------------------------------------------------


def _proof(mechanism: Mechanism, labels: NDArray[np.float64], samples: int) -> None:
    proof = mechanism.verify()
    _require(
        as_fraction(proof.epsilon) <= as_fraction(mechanism.epsilon) or proof.epsilon <= mechanism.epsilon,
        f"proof: verify() proves only ε = {proof.epsilon:.9g}, and the mechanism says {mechanism.epsilon:.9g}: "
        "build the channel with Promise.of(self.epsilon)",
    )
    delta = float(getattr(mechanism, "delta", 0.0))
    _require(
        proof.delta <= delta,
        f"proof: verify() needs δ = {proof.delta:.3g}, and the mechanism says {delta:.3g}: give it a field delta",
    )


def _distribution(mechanism: Mechanism, labels: NDArray[np.float64], samples: int) -> None:
    for seed, label in enumerate(labels.tolist()):
        points, counts = np.unique(_draw(mechanism, label, samples, seed), return_counts=True)
        gap = np.abs(np.cumsum(counts) / samples - mechanism.channel.cumulative(label, points)).max()
        # Massart: a right distribution passes a gap of g with probability 2 exp(−2 n g²) at most.
        _require(
            gap <= math.sqrt(math.log(2 / ALPHA) / (2 * samples)),
            f"distribution: outputs are up to {gap:.2g} of probability away from what the channel's counts give: "
            "randomize must draw from the channel that verify() proves, and cumulative() must describe it",
        )


def _moments(mechanism: Mechanism, labels: NDArray[np.float64], samples: int) -> None:
    for seed, label in enumerate(labels.tolist()):
        z = _draw(mechanism, label, samples, 10 + seed)
        variance, mean = float(mechanism.variance([label])[0]), float(mechanism.mean([label])[0])
        _near(z, mean, "moments: mean() is not the mean of what is released: derive it from the same counts")
        _near(
            (z - mean) ** 2,
            variance,
            "moments: variance() is not the variance of what is released: derive it from the same counts",
        )
        try:
            unbiased = mechanism.debias(z)
        except NotUnbiasedError:
            continue
        _near(
            unbiased,
            label,
            "moments: debias() does not average to the label: raise NotUnbiasedError where no map is unbiased",
        )


def _near(values: NDArray[np.float64], expected: float, message: str) -> None:
    """Compare a mean with what it should be, by its own standard error."""
    off = abs(float(values.mean()) - expected)
    rounding = 1e-9 * (abs(expected) + float(np.abs(values).max()))
    error = float(values.std()) / math.sqrt(values.size)
    _require(off <= stats.norm.isf(ALPHA / 2) * error + rounding, f"{message} (off by {off:.3g})")


def _audit(mechanism: Mechanism, labels: NDArray[np.float64], samples: int) -> None:
    found = audit(mechanism, samples=samples, confidence=1 - ALPHA, random_state=_words(20))
    _require(
        not found.convicted,
        f"audit: outputs tell labels apart by ε ≥ {found.epsilon:.4g}, and {mechanism.epsilon:.4g} is claimed, "
        f"in their {found.worst.lens}: release numbers that are computed from the cell's index alone",
    )


# ---- what it takes -------------------------------------------------------------------------------------------


def _bad_input(mechanism: Mechanism, labels: NDArray[np.float64], samples: int) -> None:
    cases: dict[str, Any] = {
        "NaN": [SECRET, math.nan],
        "infinity": [SECRET, math.inf],
        "no label": [],
        "text": [str(SECRET), "many"],
        "a missing label": [SECRET, None],
    }
    for what, bad in cases.items():
        try:
            mechanism.randomize(bad)
        except LabelError as error:
            message = str(error)
        except Exception as error:
            raise ConformanceError(
                f"bad input: {what} must raise LabelError, not {type(error).__name__}: leave the checks to "
                "Mechanism.randomize"
            ) from None
        else:
            raise ConformanceError(f"bad input: {what} must raise LabelError, and was taken for a label")
        _require(str(SECRET)[:6] not in message, "bad input: an error message contains a label: never quote one")


def _clipping(mechanism: Mechanism, labels: NDArray[np.float64], samples: int) -> None:
    low, high = label_range(mechanism)
    for far in (low - 1e6 * (high - low), high + 1e6 * (high - low), -1e300, 1e300):
        with warnings.catch_warnings(record=True) as told:
            warnings.simplefilter("always")
            try:
                z = _draw(mechanism, far, 100)
            except Exception:
                raise ConformanceError(
                    "clipping: a label outside the range must be clipped in silence: an error tells"
                ) from None
        _require(np.isfinite(z).all(), "clipping: a label outside the range led to an output that is not finite")
        _require(not told, "clipping: a label outside the range led to a warning, which tells: silence it")


def _shapes(mechanism: Mechanism, labels: NDArray[np.float64], samples: int) -> None:
    block = np.tile(labels, (3, 2, 1))
    kept = block.copy()
    z = mechanism.randomize(block, random_state=_words(1))
    _require(z.shape == block.shape, "shapes: outputs must have the shape of the labels")
    _require(z.dtype == np.float64, "shapes: outputs must be float64")
    _require(np.array_equal(block, kept), "shapes: randomize changed the labels that it was given: copy first")
    listed = mechanism.randomize(block.tolist(), random_state=_words(1))
    _require(np.array_equal(z, listed), "shapes: a list and an array of the same labels must be treated alike")


def _randomness(mechanism: Mechanism, labels: NDArray[np.float64], samples: int) -> None:
    label = np.full(2000, labels[1])
    one, again, other = (mechanism.randomize(label.copy(), random_state=_words(seed)) for seed in (1, 1, 2))
    _require(
        np.array_equal(one, again),
        "randomness: the same words gave other outputs: draw from the source that is passed, and nothing else",
    )
    _require(
        not np.array_equal(one, other),
        "randomness: other words gave the same outputs: draw from the source that is passed",
    )
    _require(
        not np.array_equal(mechanism.randomize(label), mechanism.randomize(label)),
        "randomness: two releases are the same: without random_state, words must be fresh and secure",
    )
    with warnings.catch_warnings(record=True) as told:
        warnings.simplefilter("always")
        mechanism.randomize(label, random_state=1)
    _require(
        any(issubclass(w.category, InsecureRandomnessWarning) for w in told),
        "randomness: a seed must warn with InsecureRandomnessWarning: pass random_state on to resolve_source",
    )


# ---- what it is ----------------------------------------------------------------------------------------------


def _card(mechanism: Mechanism, labels: NDArray[np.float64], samples: int) -> None:
    name = getattr(mechanism, "name", None)
    _require(
        name in cards.known() and cards.registered(name) is type(mechanism),
        'card: the class is not registered: put @register("a-name-of-its-own") on top of it',
    )
    text = mechanism.to_json()
    try:
        loaded = load_mechanism(text)
    except LabelDPError as error:
        raise ConformanceError(
            f"card: its own card does not load ({error}): parameters() must hold all that _build needs"
        ) from error
    _require(loaded == mechanism, "card: what it loads is not equal: parameters() must hold all that _build needs")
    _require(loaded.to_json() == text, "card: a loaded mechanism writes another card")
    _same_outputs(mechanism, loaded, labels, "card: a loaded mechanism")
    try:
        load_mechanism(text.replace('"epsilon":', '"epsilon":1', 1))
    except CardError:
        return
    raise ConformanceError(
        "card: a card that was changed was loaded: leave to_json and load_mechanism as they are"
    )


def _copies(mechanism: Mechanism, labels: NDArray[np.float64], samples: int) -> None:
    makers: dict[str, Callable[[Mechanism], Mechanism]] = {
        "a pickled copy": lambda m: pickle.loads(pickle.dumps(m)),  # noqa: S301
        "a deep copy": copy.deepcopy,
    }
    for what, make in makers.items():
        twin = make(mechanism)
        _require(twin == mechanism, f"copies: {what} is not equal to the mechanism")
        _same_outputs(mechanism, twin, labels, f"copies: {what}")


def _same_outputs(one: Mechanism, other: Mechanism, labels: NDArray[np.float64], what: str) -> None:
    first, second = (m.randomize(np.tile(labels, 50), random_state=_words(3)) for m in (one, other))
    _require(np.array_equal(first, second), f"{what} releases something else under the same words")


def _frozen(mechanism: Mechanism, labels: NDArray[np.float64], samples: int) -> None:
    for owner in (mechanism, mechanism.channel):
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
            _require(
                not (isinstance(value, np.ndarray) and value.flags.writeable),
                f"frozen: the array {field.name} can be written to after the proof: keep a read-only copy",
            )


CHECKS: dict[str, Callable[[Mechanism, NDArray[np.float64], int], None]] = {
    "proof": _proof,
    "distribution": _distribution,
    "moments": _moments,
    "audit": _audit,
    "bad input": _bad_input,
    "clipping": _clipping,
    "randomness": _randomness,
    "shapes": _shapes,
    "card": _card,
    "copies": _copies,
    "frozen": _frozen,
}
