"""The labels that each column's network is trained on, and what they cost."""

from __future__ import annotations

import math
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from fractions import Fraction
from functools import cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

import labeldp as ldp
from labeldp.exact.integers import DiscreteLaplace
from labeldp.exact.word_sources import SeededWords
from reproduction.as_published import leaking_labels
from reproduction.columns import COLUMNS, NO_PRIVACY, NOT_PRIVATE, Cell
from reproduction.protocol import seed_of
from reproduction.published import parameters

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


def labels_for(cell: Cell, y: Array, bounds: tuple[float, float], dataset: str, batch: int) -> Labels:
    """Return the labels that a cell's network is trained on, repeatably.

    Noise comes from a seed: this is an experiment, not a release.
    """
    key = cell.column
    if key == NO_PRIVACY.key:
        return Labels(y.astype(np.float64), math.inf, 0.0, NOT_PRIVATE)
    source = _words(dataset, cell.trial, COLUMNS[key].release or key, cell.epsilon)
    if key == "as-published":
        values, detail = leaking_labels(y, dataset, cell.epsilon, batch, source)
        return Labels(values, math.inf, 0.0, detail)
    options: dict[str, Any]
    if key == "rp-letter":  # where the paper has no parameters, half of ε and 0.4 label ranges
        share, zeta = parameters(dataset, cell.epsilon) or (cell.epsilon / 2, 0.4 * (bounds[1] - bounds[0]))
        local = {"trust": "local", "method": "laplace"}
        options = {"mechanism": "rp", "epsilon_prior": share, "zeta": zeta, **local}
    elif key in ("rp", "rp-debiased"):
        options = {"mechanism": "rp"}
    elif key in ("rr-on-bins", "unbiased"):
        options = {"mechanism": key}
    else:
        options = {"mechanism": _additive(key, bounds, cell.epsilon)}
    if key == "gaussian":
        gaussian = ldp.Gaussian(bounds=bounds, epsilon=cell.epsilon, delta=DELTA)
        return Labels(gaussian.randomize(y, random_state=source), cell.epsilon, DELTA, _detail(gaussian))
    limit = ldp.Budget(cell.epsilon)
    release = ldp.privatize(
        y,
        epsilon=cell.epsilon,
        bounds=bounds,
        purpose="training" if key == "rp-debiased" else "values",
        ledger=ldp.Ledger(limit=limit),
        random_state=source,
        **options,
    )
    return Labels(release.labels, release.cost.epsilon, 0.0, _detail(release.mechanism))


def private_mean(cell: Cell, y: Array, bounds: tuple[float, float], dataset: str) -> tuple[float, ldp.Budget]:
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


def regressor(cell: Cell, bounds: tuple[float, float], dataset: str) -> Any:
    """Return one of the library's regressors, with repeatable noise and a ledger that allows ε and no more."""
    seed = seed_of(dataset, cell.trial, cell.column, cell.epsilon)
    ledger = ldp.Ledger(limit=ldp.Budget(cell.epsilon))
    kind: Any = ldp.LabelReleaseRegressor if cell.column == "labels-regressor" else ldp.ModelReleaseRegressor
    return kind(epsilon=cell.epsilon, bounds=bounds, ledger=ledger, random_state=seed)


@cache
def _additive(key: str, bounds: tuple[float, float], epsilon: float) -> ldp.mechanisms.Mechanism:
    """Return noise that needs no prior; it is the same in every trial, so it is built once."""
    if key == "staircase":
        return ldp.Staircase(bounds=bounds, epsilon=epsilon, minimise="squared")
    return ldp.Laplace(bounds=bounds, epsilon=epsilon)


def _detail(mechanism: Any) -> str:
    if isinstance(mechanism, ldp.RPWithPrior):
        low, high = mechanism.interval
        return f"rp on ({low:.4g}, {high:.4g}), zeta {mechanism.zeta:.4g}, epsilon {mechanism.epsilon:.4g}"
    return f"{mechanism.name}, epsilon {mechanism.epsilon:.4g}"


@contextmanager
def experiment() -> Iterator[None]:
    """Silence the warning about seeds: this is an experiment, and its notes say so."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ldp.InsecureRandomnessWarning)
        yield


def _words(*parts: object) -> SeededWords:
    with experiment():
        return SeededWords(seed_of(*parts))
