"""`check_mechanism`: for mechanisms what scikit-learn's `check_estimator` is for estimators."""

from __future__ import annotations

import dataclasses
import math
import warnings
from contextlib import suppress
from inspect import getattr_static

import numpy as np

from labeldp._values import Array, Numbers
from labeldp.accounts.card import load_mechanism
from labeldp.errors import ConformanceError, LabelDPError, NotUnbiasedError
from labeldp.evidence.privacy_audit import audit
from labeldp.exact.word_sources import simulation_words
from labeldp.mechanisms.base import Mechanism
from labeldp.mechanisms.registry import REGISTRY

ALPHA = 1e-9
"""Probability of a false alarm of each statistical check; there are fewer than 200, with fixed seeds."""

INHERITED = (
    *("randomize", "randomize_checked", "verify", "mean", "variance", "bias", "debias", "unbiased_variance"),
    *("parameters", "as_data", "to_json", "__reduce__", "origin", "with_origin"),
)
"""Methods of `Mechanism` that clip, check and shape labels, draw words, state proofs and write cards."""


def require(condition: object, message: str) -> None:
    """Raise with the message unless the condition is met."""
    if not condition:
        raise ConformanceError(message)


@dataclasses.dataclass(frozen=True, slots=True)
class Case:
    """A mechanism under check, and the number of outputs for statistics."""

    mechanism: Mechanism
    samples: int

    def at(self, *shares: float) -> Array:
        """Return the labels at some shares of the range."""
        low, high = self.mechanism.domain
        return low + (high - low) * np.array(shares)

    @property
    def main_labels(self) -> Array:
        """Four labels, one of them off any grid."""
        return self.at(0.0, 0.5, 1 / math.pi, 1.0)

    @property
    def all_labels(self) -> Array:
        """A hundred labels or so: evenly spaced, at random, next to the ends, and next to zero."""
        low, high = self.mechanism.domain
        labels = self.at(*np.linspace(0, 1, 48), *np.random.default_rng(1).random(48))
        extremes = [math.nextafter(low, math.inf), math.nextafter(high, -math.inf), 5e-324, -0.0]
        return np.asarray(np.clip([*labels, *extremes], low, high))

    @property
    def outside(self) -> list[Array]:
        """Labels beyond each end."""
        below = np.append(self.at(-1, -10, -1e6), -1e300)
        above = np.append(self.at(2, 11, 1e6), 1e300)
        return [below, above]

    def draw(self, labels: Numbers, seed: int = 1) -> Array:
        """Return outputs for labels, under the words of a seed."""
        return self.mechanism.randomize(labels, random_state=simulation_words(seed))


def inherited(case: Case) -> None:
    """Require that the class has what `Mechanism` has, and answers only which counts."""
    cls = type(case.mechanism)
    overridden = [name for name in INHERITED if getattr_static(cls, name) is not getattr_static(Mechanism, name)]
    require(
        not overridden,
        f"{cls.__name__}.{', '.join(overridden)} is not that of Mechanism: leave it out, and say all in _build",
    )


def proof(case: Case) -> None:
    """Require that the proof shows the ε and δ of the mechanism."""
    mechanism, proven = case.mechanism, case.mechanism.verify()
    require(
        proven.epsilon <= mechanism.epsilon and proven.delta <= mechanism.delta,
        f"verify() proves only ε = {proven.epsilon:.9g} and δ = {proven.delta:.3g}, and the mechanism says "
        f"{mechanism.epsilon:.9g} and {mechanism.delta:.3g}: build the channel with Promise.of(self.epsilon)",
    )


def distribution(case: Case) -> None:
    """Require outputs as the counts say: at four labels closely, at more, and outside, roughly.

    Labels that are passed one by one too: a sampler may treat them otherwise.
    """
    sizes = [(label, case.samples) for label in case.main_labels]
    further = [*case.all_labels[::4], *(labels[0] for labels in case.outside)]
    sizes += [(label, max(case.samples // 25, 400)) for label in further]
    for seed, (label, size) in enumerate(sizes):
        _require_fit(case, label, case.draw(np.full(size, label), seed))
    source = simulation_words(70)
    label = case.main_labels[2]
    single = [case.mechanism.randomize([label], random_state=source)[0] for _ in range(400)]
    _require_fit(case, label, np.array(single), ", for a label alone")


def _require_fit(case: Case, label: float, z: Array, note: str = "") -> None:
    points, counts = np.unique(z, return_counts=True)
    cumulative = case.mechanism.channel.cumulative
    up_to = np.cumsum(counts)
    gap = np.abs(up_to / z.size - cumulative(label, points)).max()
    expected_below = cumulative(label, np.nextafter(points, -np.inf))
    gap_below = np.abs((up_to - counts) / z.size - expected_below).max()
    gap = max(gap, gap_below)
    # Massart: a right distribution passes a gap of g with probability 2 exp(−2 n g²) at most.
    require(
        gap <= math.sqrt(math.log(2 / ALPHA) / (2 * z.size)),
        f"outputs are up to {gap:.2g} of probability away from the channel's counts{note}"
        ": randomize must draw from the channel that verify() proves, and cumulative() must describe it",
    )


def moments(case: Case) -> None:
    """Require that mean, variance and debiasing are those of the outputs."""
    mechanism = case.mechanism
    for seed, label in enumerate(case.main_labels.tolist()):
        z = case.draw(np.full(case.samples, label), 10 + seed)
        mean = float(mechanism.mean([label])[0])
        variance = float(mechanism.variance([label])[0])
        advice = "of released values: derive it from the same counts"
        _require_mean(z, mean, f"mean() is not the mean {advice}")
        _require_mean((z - mean) ** 2, variance, f"variance() is not the variance {advice}")
        with suppress(NotUnbiasedError):
            advice = "raise NotUnbiasedError where no map is unbiased"
            _require_mean(mechanism.debias(z), label, f"debias() does not average to the label: {advice}")


def _require_mean(values: Array, expected: float, message: str) -> None:
    """Compare a mean with its expected value, by its standard error."""
    from scipy import special  # noqa: PLC0415 (slow to import)

    off = abs(float(values.mean()) - expected)
    rounding = 1e-9 * (abs(expected) + float(np.abs(values).max()))
    error = float(values.std()) / math.sqrt(values.size)
    largest = -special.ndtri(ALPHA / 2) * error + rounding
    require(off <= largest, f"{message} (off by {off:.3g})")


def random_words(case: Case) -> None:
    """Require that a channel draws from the words that it is given, and treats all types of numbers alike."""
    labels = np.rint(np.clip(np.tile(case.all_labels, 20), -2048, 2048))
    expected = case.draw(labels.copy())
    is_repeatable = np.array_equal(expected, case.draw(labels.copy()))
    is_fresh = not np.array_equal(expected, case.draw(labels.copy(), seed=2))
    require(
        is_repeatable and is_fresh,
        "outputs must follow from the words of the source that is passed, and from nothing else",
    )
    for kind in (np.float64, np.float32, np.float16, np.int64):
        typed = labels.astype(kind)
        is_same = case.draw(typed).tobytes() == expected.tobytes()
        require(is_same, f"labels as {kind.__name__} gave other bits than as float64 under the same words")
        require(np.array_equal(typed, labels), "the channel changed the labels that it was given")


def clipping(case: Case) -> None:
    """Require that a label outside is treated as the end is, or as all outside are, in silence."""
    for outside in case.outside:
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("error")
                outputs = [case.draw(np.full(100, label)) for label in outside]
        except Exception:
            raise ConformanceError(
                "a label outside the range must be clipped in silence: an error or a warning would leak it"
            ) from None
        require(
            all(np.isfinite(z).all() and np.array_equal(z, outputs[0]) for z in outputs),
            "under the same words, labels that lie differently far outside gave different outputs, or some that "
            "are not finite: treat all of them as the end of the range",
        )


def audit_outputs(case: Case) -> None:
    """Require that an audit detects nothing; labels outside take part if they are treated in their own way."""
    labels = case.at(0.0, 0.20, 0.21, 1.0).tolist()
    for end, outside in zip(case.mechanism.domain, case.outside, strict=True):
        if not np.array_equal(case.draw(np.full(2000, end)), case.draw(np.full(2000, outside[0]))):
            labels.append(float(outside[0]))
    source = simulation_words(20)
    confidence = 1 - ALPHA
    result = audit(case.mechanism, labels=labels, samples=case.samples, confidence=confidence, random_state=source)
    require(
        not result.detected,
        f"they distinguish labels by ε ≥ {result.epsilon:.4g}, and {case.mechanism.epsilon:.4g} is claimed, seen "
        f"in their {result.worst.lens}: release numbers computed from the cell's index alone",
    )


def card(case: Case) -> None:
    """Require that the card gives the mechanism back, as it releases."""
    mechanism = case.mechanism
    require(
        REGISTRY.get(getattr(mechanism, "name", "")) is type(mechanism),
        'the class is not registered: put @register("its-own-name") above it',
    )
    require(
        dataclasses.is_dataclass(mechanism.channel),
        f"{type(mechanism.channel).__name__} is no dataclass: make it a frozen one whose fields are all that "
        "sample and verify read",
    )
    text = mechanism.to_json()
    advice = "parameters() must hold all that _build needs"
    try:
        loaded = load_mechanism(text)
    except LabelDPError as error:
        raise ConformanceError(f"its own card does not load ({error}): {advice}") from error
    labels = np.tile(case.main_labels, 50)
    is_same = np.array_equal(Case(loaded, case.samples).draw(labels), case.draw(labels))
    is_equal = loaded == mechanism and loaded.to_json() == text
    require(is_equal and is_same, f"it loads another mechanism: {advice}")


CHECKS = {
    check.__name__.replace("_", " "): check
    for check in (inherited, proof, distribution, moments, random_words, clipping, audit_outputs, card)
}
"""All checks by name, in their order."""


def check_mechanism(mechanism: Mechanism, *, samples: int = 100_000) -> tuple[str, ...]:
    """Check that a mechanism follows the protocol, and return the names of the checks that passed.

    That its methods are inherited, the proof, the distribution against the channel's counts, moments, the source
    of words, labels outside the range, an audit of sizes and of last bits, and the card.

    Parameters
    ----------
    mechanism : Mechanism
        Private, and built; its class must be registered, so that cards can name it.
    samples : int
        Outputs for each label in the statistical checks. 100,000 find noise that is 3 % too small.

    Raises
    ------
    ConformanceError
        At the first check that fails; the message has the expected result and a remedy.

    Examples
    --------
    >>> import labeldp as ldp
    >>> from labeldp.evidence import check_mechanism
    >>> passed = check_mechanism(ldp.TwoPoint(bounds=(0, 5), epsilon=1.0), samples=10_000)
    >>> passed[:3]
    ('inherited', 'proof', 'distribution')
    """
    if not isinstance(mechanism, Mechanism):
        raise ConformanceError("check_mechanism takes an instance of a subclass of labeldp.mechanisms.Mechanism")
    case = Case(mechanism, samples)
    for name, run in CHECKS.items():
        try:
            run(case)
        except ConformanceError as error:
            raise ConformanceError(f"{name}: {error}") from error.__cause__
        except Exception as error:
            raise ConformanceError(f"{name}: {type(error).__name__} was raised where nothing should be") from error
    return tuple(CHECKS)
