"""Whole pipelines as functions of their data set, as users run them; and some with a violation.

The two data sets differ in one label, extreme, in an extreme row. ``python -m benchmarks.audit --part pipelines``
and ``--part broken`` audit them.
"""

from __future__ import annotations

import math
import time
import warnings
from collections.abc import Callable
from concurrent.futures import ProcessPoolExecutor
from functools import partial
from multiprocessing import get_context
from typing import Any
from unittest import mock

import numpy as np
from rich.console import Console

import labeldp as ldp
from benchmarks.report import Sheet
from labeldp.release.label_access import LabelAccess

BOUNDS = (0.0, 5.0)
ROWS = 40
Pipelines = dict[str, tuple[Callable[..., Any], int, int]]
"""A function of labels and a ledger; rows; runs for each data set."""


def number(value: float | None) -> str:
    return "none" if value is None or math.isinf(value) else f"{value:.4g}"


def neighbours(rows: int) -> tuple[np.ndarray, np.ndarray]:
    """Two data sets whose first label is at one end of the bounds, and at the other."""
    one, other = np.full(rows, 0.5), np.full(rows, 0.5)
    one[0], other[0] = BOUNDS
    return one, other


def table(rows: int) -> np.ndarray:
    """Features whose first row is far from all others."""
    X = np.random.default_rng(0).normal(size=(rows, 2))
    X[0] = 9.0
    return X


def released(y: np.ndarray, mechanism: str, epsilon: float, ledger: ldp.Ledger | None = None) -> list[float]:
    ledger = ldp.Ledger() if ledger is None else ledger
    release = ldp.privatize(y, epsilon=epsilon, bounds=BOUNDS, mechanism=mechanism, ledger=ledger)
    edges = getattr(release.mechanism, "interval", None) or getattr(release.mechanism, "bounds", BOUNDS)
    return [release.labels[0], release.labels[1:].mean(), *edges]


def fitted(y: np.ndarray, name: str, epsilon: float, ledger: ldp.Ledger | None = None) -> np.ndarray:
    ledger = ldp.Ledger() if ledger is None else ledger
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        model = getattr(ldp, name)(epsilon=epsilon, bounds=BOUNDS, ledger=ledger)
        return model.fit(table(len(y)), y).predict(table(len(y))[:2])


def raw_prior(y: np.ndarray, ledger: ldp.Ledger | None = None) -> list[float]:
    """The published mistake, for comparison: a prior of raw labels, which no ledger shows."""
    counts, edges = np.histogram(y, bins=25, range=BOUNDS)
    release = ldp.privatize(
        y,
        epsilon=1.0,
        bounds=BOUNDS,
        mechanism="rp",
        prior=ldp.Histogram(edges, counts / counts.sum()),
        ledger=ldp.Ledger() if ledger is None else ledger,
    )
    return [release.labels[0], release.labels[1:].mean(), *release.mechanism.interval]


def raw_prior_in_a_fit(y: np.ndarray, ledger: ldp.Ledger | None = None) -> list[float]:
    """`LabelReleaseRegressor` whose window is as wide as raw labels are spread; the release tells how loud."""
    wide = 0.2 + float(np.std(y)) / (BOUNDS[1] - BOUNDS[0])

    class Own(ldp.RPWithPrior):
        @classmethod
        def for_bounds(cls, bounds: Any, epsilon: float, **_: Any) -> Any:
            return ldp.RPWithPrior(interval=bounds, zeta=wide, epsilon=epsilon)

    ledger = ldp.Ledger() if ledger is None else ledger
    with mock.patch.dict("labeldp.mechanisms.registry.REGISTRY", own=Own):
        model = ldp.LabelReleaseRegressor(epsilon=1.0, bounds=BOUNDS, mechanism="own", ledger=ledger)
        model.fit(table(len(y)), y)
    return [*model.predict(table(len(y))[:2]), float(model.release_.terms.mechanisms[0].variance(0.0))]


def raw_sums_in_a_fit(y: np.ndarray, ledger: ldp.Ledger | None = None) -> np.ndarray:
    """`ModelReleaseRegressor` whose sums get no noise."""

    def raw(access: LabelAccess, public_map: Any, noise: Any, exact: Any) -> Any:
        return exact

    with mock.patch.object(LabelAccess, "_draw", raw):
        return fitted(y, "ModelReleaseRegressor", 1.0, ledger)


def spends(y: np.ndarray, name: str, times: float, ledger: ldp.Ledger | None = None) -> np.ndarray:
    """A fit for several times the ε that it is held to."""
    if ledger is not None:
        return fitted(y, name, 1.0, ledger)
    return fitted(y, name, times)


PIPELINES: Pipelines = {
    "privatize, two-point": (partial(released, mechanism="two-point", epsilon=1.0), 200, 10_000),
    "privatize, RPWithPrior": (partial(released, mechanism="rp", epsilon=1.0), 200, 600),
    "privatize, auto": (partial(released, mechanism="auto", epsilon=1.0), 200, 300),
    "LabelReleaseRegressor": (partial(fitted, name="LabelReleaseRegressor", epsilon=1.0), ROWS, 600),
    "ModelReleaseRegressor": (partial(fitted, name="ModelReleaseRegressor", epsilon=1.0), ROWS, 500),
}

BROKEN: Pipelines = {
    "privatize, prior of raw labels": (raw_prior, 200, 300),
    "LabelReleaseRegressor, mechanism designed for raw labels": (raw_prior_in_a_fit, 3, 150),
    "ModelReleaseRegressor, raw sums": (raw_sums_in_a_fit, 3, 150),
    "LabelReleaseRegressor, spends 12": (partial(spends, name="LabelReleaseRegressor", times=12.0), 3, 300),
    "ModelReleaseRegressor, spends 8": (partial(spends, name="ModelReleaseRegressor", times=8.0), 3, 300),
}


def pipelines(which: str, listed: Pipelines, part: float, workers: int, console: Console) -> Sheet:
    columns = ["pipeline", "rows", "runs each", "ledger's ε", "measured ≥", "detectable", "verdict", "min"]
    sheet = Sheet(f"Whole pipelines {which}, one extreme label in an extreme row", columns)
    with ProcessPoolExecutor(workers, get_context("spawn")) as pool:
        for name, (pipeline, rows, runs) in listed.items():
            ledger, samples = ldp.Ledger(), max(60, int(runs * part))
            pipeline(neighbours(rows)[0], ledger=ledger)
            started = time.perf_counter()
            found = ldp.audit_pipeline(
                pipeline,
                neighbours=neighbours(rows),
                samples=samples,
                confidence=1 - 1e-7,
                epsilon=ledger.total.epsilon,
                executor=pool,
            )
            minutes = (time.perf_counter() - started) / 60
            sheet.rows.append(
                [
                    name,
                    str(rows),
                    f"{samples:,}",
                    number(ledger.total.epsilon),
                    number(found.epsilon),
                    number(found.detectable),
                    found.verdict,
                    f"{minutes:.1f}",
                ]
            )
            console.print(" · ".join(sheet.rows[-1]))
    return sheet
