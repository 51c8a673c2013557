"""A small synthetic data set, and tables on it that take seconds."""

import math
from dataclasses import replace

import numpy as np

from reproduction.categories import CategoricalDataset
from reproduction.columns import choose_columns
from reproduction.datasets.dataset import Dataset
from reproduction.protocol import protocol_for
from reproduction.run import Table


def small(rows=90, *, categories=False, name="housing"):
    """Return synthetic data with Housing's name and bounds, so that the paper's parameters apply."""
    rng = np.random.default_rng(rows)
    X = rng.normal(size=(rows, 5))
    y = np.clip(2.0 + X[:, 0] - 0.5 * X[:, 1] + 0.2 * rng.normal(size=rows), 0.15, 5.0)
    basics = name, X, y, (0.0, 5.0001), tuple("abcde")
    if not categories:
        return Dataset(*basics)
    ids = np.column_stack([rng.integers(0, 4, rows), rng.integers(0, 7, rows)]).astype(np.int32)
    return CategoricalDataset(*basics, ids=ids, categories=("a", "b"), sizes=(4, 7))


def quick(source="text", *, optimiser="adam", epochs=4, **changes):
    """Return the paper's protocol with few epochs, small batches and a small network."""
    found = replace(protocol_for("housing", source, epochs=epochs), batch=16, hidden=(8, 6), **changes)
    return found if optimiser == "adam" else replace(found, optimiser="rmsprop", schedule="cosine")


def tiny(columns=("laplace", "rp", "constant"), *, budgets=(1.0, 8.0, math.inf), trials=2, **changes):
    """Return a table that takes a second."""
    options = {"data": small(), "protocol": quick(), "networks_at_once": 2, **changes}
    chosen = choose_columns(columns, include_non_private=True)
    return Table(columns=chosen, budgets=budgets, trials=trials, **options)
