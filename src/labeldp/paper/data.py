"""The paper's data sets, as its protocols want them."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from labeldp import datasets
from labeldp.datasets import Dataset
from labeldp.errors import ParameterError
from labeldp.paper.protocol import DATASETS, Source, seed_of

__all__ = ["load", "subsample"]


def load(name: str, source: Source = "text", *, twin: int | None = None, rows: int | None = None) -> Dataset:
    """Return a data set of the paper.

    Parameters
    ----------
    name : {"crime", "housing", "criteo"}
    source : {"text", "code"}
        Criteo by the text has the rows with a sale and no outcome among its features; by the code it has what the
        paper used. Crime is the same for both: see its notes.
    twin : int, optional
        Criteo only: make a log of this many lines and use it instead of the real one.
    rows : int, optional
        Use this many rows, drawn at random.
    """
    if name not in DATASETS:
        raise ParameterError(f"the paper's data sets are {', '.join(DATASETS)}, got {name!r}")
    if name == "crime":
        data = datasets.load_crime(missing="columns")
    elif name == "housing":
        data = datasets.load_housing()
    elif twin is None:
        data = datasets.load_criteo(protocol=source)
    else:
        made = datasets.load_criteo(datasets.make_criteo_like(twin), protocol=source)
        note = f"A made twin of Criteo's log, {twin:,} lines: its errors say nothing about the real one."
        data = replace(made, name="criteo twin", notes=(note, *made.notes))
    return data if rows is None else subsample(data, rows)


def subsample(data: Dataset, rows: int) -> Dataset:
    """Return some rows of a data set, the same ones each time."""
    if not 10 <= rows <= len(data.y):
        raise ParameterError(f"rows must be from 10 to {len(data.y)}, got {rows}")
    some = np.random.default_rng(seed_of(data.name, "rows")).permutation(len(data.y))[:rows]
    ids = None if data.ids is None else data.ids[some]
    note = f"{rows:,} of {len(data.y):,} rows, drawn at random."
    return replace(
        data, name=f"{data.name}, {rows} rows", X=data.X[some], y=data.y[some], ids=ids, notes=(note, *data.notes)
    )
