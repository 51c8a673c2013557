"""What a mechanism releases: proof, distribution, moments, the channel's own draws, an audit."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
from scipy import stats

from labeldp._validation import as_fraction
from labeldp.audit.run import audit
from labeldp.errors import NotUnbiasedError
from labeldp.randomness.word_sources import simulation_words
from labeldp.testing.case import ALPHA, Array, Case, require

__all__ = ["audit_outputs", "distribution", "moments", "proof", "same_words"]

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
