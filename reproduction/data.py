"""The paper's data sets, as its protocols want them."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np

from labeldp.errors import ParameterError
from reproduction import datasets
from reproduction.categories import CategoricalDataset
from reproduction.criteo import load_criteo, make_criteo_like
from reproduction.datasets.dataset import Dataset
from reproduction.protocol import DATASETS, Source, seed_of


def load(name: str, source: Source = "text", *, twin: int | None = None, rows: int | None = None) -> Dataset:
    """Return a data set of the paper, or ``rows`` of it, sampled at random.

    Criteo differs by protocol: see `load_criteo`.
    ``twin`` is the number of lines of a synthetic log, used instead of the real one. Crime is the same
    for both sources: see its notes.
    """
    if name not in (*DATASETS, "diabetes"):
        raise ParameterError(f"data sets are {', '.join(DATASETS)} and diabetes, got {name!r}")
    if twin is not None and name != "criteo":
        raise ParameterError("only criteo has a twin: leave out --twin")
    if name == "crime":
        data = datasets.load_crime(missing="columns")
    elif name == "housing":
        data = datasets.load_housing()
    elif name == "diabetes":
        data = datasets.load_diabetes()
    elif twin is None:
        data = load_criteo(protocol=source)
    else:
        data = load_criteo(make_criteo_like(twin), protocol=source)
        note = f"A synthetic twin of Criteo's log, {twin:,} lines: its errors say nothing about the real one."
        data = replace(data, name="criteo twin", notes=(note, *data.notes))
    return data if rows is None else subsample(data, rows)


def subsample(data: Dataset, rows: int) -> Dataset:
    """Return some rows of a data set, the same ones each time."""
    if not 10 <= rows <= len(data.y):
        raise ParameterError(f"rows must be from 10 to {len(data.y)}, got {rows}")
    some = np.random.default_rng(seed_of(data.name, "rows")).permutation(len(data.y))[:rows]
    changes: dict[str, Any] = {"X": data.X[some], "y": data.y[some]}
    if isinstance(data, CategoricalDataset):
        changes["ids"] = data.ids[some]
    note = f"{rows:,} of {len(data.y):,} rows, sampled at random."
    return replace(data, name=f"{data.name}, {rows} rows", notes=(note, *data.notes), **changes)
