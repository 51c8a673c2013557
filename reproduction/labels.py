"""The labels that each column's network is trained on, and what they cost."""

from __future__ import annotations

import math
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from fractions import Fraction
from functools import cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

import labeldp as ldp
from labeldp.errors import WeakModelWarning
from labeldp.exact.integers import DiscreteLaplace
from labeldp.exact.word_sources import SeededWords
from labeldp.mechanisms import Mechanism, mechanism_class
from reproduction import as_published
from reproduction.columns import NO_PRIVACY, NOT_PRIVATE, Cell, Column, find_column
from reproduction.protocol import seed_of
from reproduction.published import parameters

DELTA = 1e-4
"""The paper's δ for Gaussian noise. It exceeds 1/n on two of the three data sets."""

Array = NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class TrainingRows:
    """The rows that labels are released for.

    Attributes
    ----------
    X : array, rows × columns
        Public features, categories among them as numbers.
    y : array
        Private labels.
    bounds : (float, float)
    dataset : str
        The data set's name in the paper.
    batch : int
        Rows of a batch: the published code keeps the noisy labels of the last one.
    """

    X: Array = field(repr=False)
    y: Array = field(repr=False)
    bounds: tuple[float, float]
    dataset: str
    batch: int = 256


@dataclass(frozen=True, slots=True)
class Labels:
    """Labels to train on, and what they cost."""

    values: Array
    epsilon: float
    delta: float
    detail: str


def labels_for(cell: Cell, rows: TrainingRows) -> Labels:
    """Return the labels that a cell's network is trained on, repeatably.

    Noise comes from a seed: this is an experiment, not a release.
    """
    column = find_column(cell.column)
    if column is NO_PRIVACY:
        return Labels(rows.y.astype(np.float64), math.inf, 0.0, NOT_PRIVATE)
    base = column.key.split("*")[0]
    with experiment():
        if not column.private:
            return _leaking(base, column, cell, rows)
        release = _RELEASES.get(base, _by_mechanism)
        return release(column, cell, rows)


def _by_mechanism(column: Column, cell: Cell, rows: TrainingRows) -> Labels:
    """Return labels by the mechanism that is registered under the column's name, unbiased if it can."""
    cls, source = mechanism_class(column.key), _words(column, cell, rows)
    if cls.needs_prior:
        purpose = "training" if cls.unbiased else "values"
        release = _privatized(cell, rows, source, mechanism=column.key, purpose=purpose)
        return Labels(release.labels, release.cost.epsilon, 0.0, _detail(release.mechanism))
    mechanism = _without_prior(column.key, rows.bounds, cell.epsilon)
    values = mechanism.randomize(rows.y, random_state=source)
    values = mechanism.debias(values) if cls.unbiased else values
    return Labels(values, mechanism.epsilon, mechanism.delta, _detail(mechanism))


def _algorithm_4(column: Column, cell: Cell, rows: TrainingRows) -> Labels:
    """Return the values of Algorithm 4; where the paper has no parameters, for half of ε and 0.4 label ranges."""
    low, high = rows.bounds
    share, zeta = parameters(rows.dataset, cell.epsilon) or (cell.epsilon / 2, 0.4 * (high - low))
    options: dict[str, Any] = {
        "mechanism": "rp",
        "purpose": "values",
        "trust": "local",
        "method": "laplace",
        "epsilon_prior": share,
        "zeta": zeta * column.zeta_factor,
    }
    release = _privatized(cell, rows, _words(column, cell, rows), **options)
    if column.sigma_factor != 1.0:  # the same noise again, in other bins
        sigma = float(np.median(np.diff(release.prior.nodes))) * column.sigma_factor
        release = _privatized(cell, rows, _words(column, cell, rows), **options, sigma=sigma)
    return Labels(release.labels, release.cost.epsilon, 0.0, _detail(release.mechanism))


def _curators_prior(column: Column, cell: Cell, rows: TrainingRows) -> Labels:
    """Return values of RPWithPrior under a curator's prior, as drawn or unbiased."""
    purpose = "training" if column.key == "rp-debiased" else "values"
    release = _privatized(cell, rows, _words(column, cell, rows), mechanism="rp", purpose=purpose)
    return Labels(release.labels, release.cost.epsilon, 0.0, _detail(release.mechanism))


def _with_x(column: Column, cell: Cell, rows: TrainingRows) -> Labels:
    """Return labels for training that know the public features."""
    release = _privatized(cell, rows, _words(column, cell, rows), X=rows.X)
    return Labels(release.labels, release.cost.epsilon, 0.0, "posterior means")


def _without_x(column: Column, cell: Cell, rows: TrainingRows) -> Labels:
    """Return labels for training by the mechanism that the library chooses; too few are the private mean."""
    release = _privatized(cell, rows, _words(column, cell, rows))
    detail = "private mean" if release.model is not None else _detail(release.mechanism)
    return Labels(release.labels, release.cost.epsilon, 0.0, detail)


_RELEASES: dict[str, Callable[[Column, Cell, TrainingRows], Labels]] = {
    "algorithm-4": _algorithm_4,
    "rp": _curators_prior,
    "rp-debiased": _curators_prior,
    "labels-without-x": _without_x,
    "labels-with-x": _with_x,
}
"""Releases of columns that are not a mechanism by its name."""


def _leaking(base: str, column: Column, cell: Cell, rows: TrainingRows) -> Labels:
    """Return labels as published, NOT PRIVATE."""
    source = _words(column, cell, rows)
    if base == "as-published":
        factors = {"zeta_factor": column.zeta_factor, "sigma_factor": column.sigma_factor}
        values, detail = as_published.leaking_labels(
            rows.y, rows.dataset, cell.epsilon, rows.batch, source, **factors
        )
    elif base == "gaussian-published":
        seed = seed_of(rows.dataset, cell.trial, base, cell.epsilon)
        sigma = as_published.classical_sigma(rows.dataset, rows.bounds, cell.epsilon, DELTA)
        values = rows.y + np.random.default_rng(seed).normal(0.0, sigma, rows.y.size)
        detail = f"{NOT_PRIVATE}: sigma {sigma:.4g}"
    else:
        design = as_published.DESIGNS[base]
        labels, mechanism = design(rows.y, rows.dataset, rows.bounds, cell.epsilon)
        values = mechanism.randomize(labels, random_state=source)
        detail = f"{NOT_PRIVATE}: {_detail(mechanism)}"
    return Labels(values, math.inf, 0.0, detail)


def _privatized(cell: Cell, rows: TrainingRows, source: SeededWords, **options: Any) -> Any:
    """Return a release whose ledger allows ε and no more."""
    ledger = ldp.Ledger(limit=ldp.Budget(cell.epsilon))
    basics: dict[str, Any] = {
        "epsilon": cell.epsilon,
        "bounds": rows.bounds,
        "ledger": ledger,
        "random_state": source,
    }
    return ldp.privatize(rows.y, **basics, **options)


@cache
def _without_prior(name: str, bounds: tuple[float, float], epsilon: float) -> Mechanism:
    """Return a mechanism that needs no prior; it is the same in every trial, so it is built once."""
    cls = mechanism_class(name)
    options: dict[str, Any] = {"delta": DELTA} if cls.needs_delta else {}
    return cls.for_bounds(bounds, epsilon, **options)


def private_mean(cell: Cell, rows: TrainingRows) -> tuple[float, ldp.Budget]:
    """Return the curator's private mean, with all of ε, and what it cost.

    Labels are rounded to a public grid of 2^20 steps, so their sum is an integer and its noise is exact.
    """
    low, high = rows.bounds
    steps = 1 << 20
    ledger = ldp.Ledger(limit=ldp.Budget(cell.epsilon))
    ledger.charge("mean", epsilon=cell.epsilon)
    positions = (np.clip(rows.y, low, high) - low) / (high - low) * steps
    total = int(np.rint(positions).astype(np.int64).sum())
    noise = DiscreteLaplace.calibrated(sensitivity=steps, epsilon=Fraction(repr(cell.epsilon)))
    with experiment():
        words = _words(find_column("constant"), cell, rows)
    noisy = int(noise.release(np.array([total]), words)[0])
    mean = low + (high - low) * noisy / steps / rows.y.size
    return float(np.clip(mean, low, high)), ledger.total


def regressor(cell: Cell, rows: TrainingRows) -> Any:
    """Return one of the library's regressors, with repeatable noise and a ledger that allows ε and no more."""
    seed = seed_of(rows.dataset, cell.trial, cell.column, cell.epsilon)
    ledger = ldp.Ledger(limit=ldp.Budget(cell.epsilon))
    kind: Any = ldp.LabelReleaseRegressor if cell.column == "labels-regressor" else ldp.ModelReleaseRegressor
    return kind(epsilon=cell.epsilon, bounds=rows.bounds, ledger=ledger, random_state=seed)


def _detail(mechanism: Any) -> str:
    if isinstance(mechanism, ldp.RPWithPrior):
        low, high = mechanism.interval
        return f"rp on ({low:.4g}, {high:.4g}), zeta {mechanism.zeta:.4g}, epsilon {mechanism.epsilon:.4g}"
    return f"{mechanism.name}, epsilon {mechanism.epsilon:.4g}"


@contextmanager
def experiment() -> Iterator[None]:
    """Silence warnings about seeds and small budgets: this is an experiment, and its notes say so."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ldp.InsecureRandomnessWarning)
        warnings.simplefilter("ignore", WeakModelWarning)
        yield


def _words(column: Column, cell: Cell, rows: TrainingRows) -> SeededWords:
    """Return random words that follow from names and numbers alone; call it within `experiment`."""
    name = column.release or column.key
    return SeededWords(seed_of(rows.dataset, cell.trial, name, cell.epsilon))
