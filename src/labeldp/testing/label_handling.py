"""How a mechanism handles labels: bad input, labels outside the range, shapes, and the source of words."""

from __future__ import annotations

import math
import warnings
from typing import Any

import numpy as np

from labeldp.errors import ConformanceError, InsecureRandomnessWarning, LabelError
from labeldp.randomness.word_sources import simulation_words
from labeldp.testing.case import Array, Case, require

__all__ = ["bad_input", "clipping", "randomness", "shapes"]

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
