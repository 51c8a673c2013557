"""How each column makes the labels that its network is trained on, and what that costs."""

from __future__ import annotations

import math
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from fractions import Fraction
from functools import cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

import labeldp as ldp
from labeldp.noise import DiscreteLaplace
from labeldp.paper.as_published import leaking_labels
from labeldp.paper.columns import NO_PRIVACY, NOT_PRIVATE, Cell, Column
from labeldp.paper.protocol import seed_of
from labeldp.paper.published import parameters
from labeldp.randomness import SeededWords

__all__ = ["Labels", "constant", "experiment", "labels_for", "regressor"]

DELTA = 1e-4
"""The paper's δ for Gaussian noise. It exceeds 1/n on two of the three data sets."""

Array = NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class Labels:
    """Labels to train on, and what they cost."""

    values: Array
    epsilon: float
    delta: float
    detail: str


def labels_for(
    column: Column, y: Array, bounds: tuple[float, float], dataset: str, cell: Cell, batch: int
) -> Labels:
    """Return the labels that a column's network is trained on, repeatably.

    Noise comes from a seed: this is an experiment, and no release.
    """
    if column.key == NO_PRIVACY.key:
        return Labels(ldp.NoPrivacy().randomize(y), math.inf, 0.0, NOT_PRIVATE)
    source = _words(dataset, cell.trial, column.release or column.key, cell.epsilon)
    if column.key == "as-published":
        values, detail = leaking_labels(y, dataset, cell.epsilon, batch, source)
        return Labels(values, math.inf, 0.0, detail)
    options = _OPTIONS.get(column.key) or {"mechanism": _additive(column.key, bounds, cell.epsilon)}
    if column.key == "rp-letter":
        share, zeta = _letter(dataset, cell.epsilon, bounds)
        options = {**options, "epsilon_prior": share, "zeta": zeta}
    limit = ldp.Budget(cell.epsilon, DELTA if column.key == "gaussian" else 0.0)
    release = ldp.privatize(
        y, epsilon=cell.epsilon, bounds=bounds, ledger=ldp.Ledger(limit=limit), random_state=source, **options
    )
    values = release.debiased if column.key == "rp-debiased" else release.labels
    return Labels(values, release.cost.epsilon, release.cost.delta, _detail(release.mechanism))


def constant(y: Array, bounds: tuple[float, float], dataset: str, cell: Cell) -> tuple[float, ldp.Budget]:
    """Return the curator's private mean, with all of ε, and what it cost.

    Labels are rounded to a public grid of 2^20 steps, so their sum is an integer and its noise is exact.
    """
    low, high = bounds
    steps = 1 << 20
    ledger = ldp.Ledger(limit=ldp.Budget(cell.epsilon))
    ledger.charge("mean", epsilon=cell.epsilon)
    total = int(np.rint((np.clip(y, low, high) - low) / (high - low) * steps).astype(np.int64).sum())
    noise = DiscreteLaplace.calibrated(sensitivity=steps, epsilon=Fraction(repr(cell.epsilon)))
    words = _words(dataset, cell.trial, "constant", cell.epsilon)
    noisy = int(noise.release(np.array([total]), words)[0])
    mean = low + (high - low) * noisy / steps / y.size
    return float(np.clip(mean, low, high)), ledger.total


def regressor(column: Column, bounds: tuple[float, float], dataset: str, cell: Cell) -> Any:
    """Return one of the library's regressors, with repeatable noise and a ledger that allows ε and no more."""
    make: Callable[..., Any] = {
        "labels-regressor": ldp.LabelReleaseRegressor,
        "model-regressor": ldp.ModelReleaseRegressor,
    }[column.key]
    seed = seed_of(dataset, cell.trial, column.key, cell.epsilon)
    limit = ldp.Ledger(limit=ldp.Budget(cell.epsilon))
    return make(epsilon=cell.epsilon, bounds=bounds, ledger=limit, random_state=seed)


_OPTIONS: dict[str, dict[str, Any]] = {
    "rr-on-bins": {"mechanism": "rr-on-bins"},
    "unbiased": {"mechanism": "unbiased"},
    "rp-letter": {"mechanism": "rp", "trust": "local", "method": "laplace"},
    "rp": {"mechanism": "rp"},
    "rp-debiased": {"mechanism": "rp"},
}


@cache
def _additive(key: str, bounds: tuple[float, float], epsilon: float) -> ldp.Mechanism:
    """Return noise that no prior shapes; it is the same in every trial, so it is built once."""
    if key == "gaussian":
        return ldp.Gaussian(bounds=bounds, epsilon=epsilon, delta=DELTA)
    if key == "staircase":
        return ldp.Staircase(bounds=bounds, epsilon=epsilon, minimise="squared")
    return ldp.Laplace(bounds=bounds, epsilon=epsilon)


def _letter(dataset: str, epsilon: float, bounds: tuple[float, float]) -> tuple[float, float]:
    """Return the paper's ε1 and ζ; where it has none, half of ε and 0.4 label ranges."""
    return parameters(dataset, epsilon) or (epsilon / 2, 0.4 * (bounds[1] - bounds[0]))


def _detail(mechanism: Any) -> str:
    if isinstance(mechanism, ldp.RPWithPrior):
        low, high = mechanism.interval
        return f"rp on ({low:.4g}, {high:.4g}), zeta {mechanism.zeta:.4g}, epsilon {mechanism.epsilon:.4g}"
    return f"{mechanism.name}, epsilon {mechanism.epsilon:.4g}"


@contextmanager
def experiment() -> Iterator[None]:
    """Allow seeds: this is an experiment, and says so in its notes."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ldp.InsecureRandomnessWarning)
        yield


def _words(*parts: object) -> SeededWords:
    with experiment():
        return SeededWords(seed_of(*parts))
