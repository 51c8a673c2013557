"""What needs no JAX, in processes of its own: private labels, the library's regressors, the private constant."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from concurrent.futures import Executor, Future, ProcessPoolExecutor
from contextlib import contextmanager
from multiprocessing import get_context, parent_process
from threading import Thread
from typing import Any

import joblib
import numpy as np
from numpy.typing import NDArray
from threadpoolctl import threadpool_limits

from reproduction.categories import categories_of
from reproduction.columns import COLUMNS, Cell
from reproduction.datasets.dataset import Dataset
from reproduction.labels import Labels, experiment, labels_for, private_mean, regressor
from reproduction.protocol import Protocol, split
from reproduction.store import Result

_table: tuple[Dataset, Protocol]
"""What the work of this process is about: sent once, not with every cell."""


def cores() -> int:
    """Return how many cores this process may use: in a container or under `taskset`, fewer than there are."""
    return int(joblib.cpu_count())


def _start(data: Dataset, protocol: Protocol) -> None:
    """Set the table of this process; a worker also ends with its parent, even if that was killed."""
    global _table  # noqa: PLW0603, a worker has one table for life
    _table = data, protocol
    parent = parent_process()
    if parent is not None:
        Thread(target=_end_with, args=(parent,), daemon=True).start()


def _end_with(parent: Any) -> None:
    parent.join()
    os._exit(1)


class _Inline(Executor):
    """Does what is submitted at once, in this process."""

    def submit(self, function: Callable[..., Any], /, *args: Any, **kwargs: Any) -> Future[Any]:
        future: Future[Any] = Future()
        future.set_result(function(*args, **kwargs))
        return future


@contextmanager
def pool(data: Dataset, protocol: Protocol, workers: int) -> Iterator[Executor]:
    """Give something to submit work to: ``workers`` processes, or this one."""
    if workers < 2:
        _start(data, protocol)
        yield _Inline()
        return
    processes = ProcessPoolExecutor(workers, get_context("spawn"), _start, (data, protocol))
    try:
        yield processes
    finally:
        processes.shutdown(cancel_futures=True)


def make_labels(cell: Cell) -> Labels:
    """Return the labels that a network is trained on, of the training rows of a trial."""
    data, protocol = _table
    train, _ = split(len(data.y), protocol.dataset, cell.trial)
    with threadpool_limits(1):
        return labels_for(cell, data.y[train], data.bounds, protocol.dataset, protocol.batch)


def fit(cell: Cell) -> Result:
    """Fit a regressor or a constant on the training rows of a trial; return its error on the test rows."""
    data, protocol = _table
    train, test = split(len(data.y), protocol.dataset, cell.trial)
    column, y = COLUMNS[cell.column], data.y[train]
    predicted: Any
    if column.kind == "constant":
        predicted, cost = private_mean(cell, y, data.bounds, protocol.dataset)
        detail = column.key
    else:
        X = _features(data, train)
        with experiment(), threadpool_limits(1):
            model = regressor(cell, data.bounds, protocol.dataset).fit(X[train], y)
            predicted = model.predict(X[test])
        cost = model.ledger_.total
        detail = ", ".join(f"{charge.description} {charge.budget.epsilon:.4g}" for charge in model.ledger_.charges)
    error = float(np.mean((predicted - data.y[test]) ** 2))
    costs = cost.epsilon, 0.0
    return Result(data.name, cell.trial, column.key, cell.epsilon, error, column.private, *costs, detail)


def _features(data: Dataset, train: NDArray[np.int64]) -> NDArray[np.float64]:
    """Return numeric features; a category becomes the logarithm of how often its value occurs in training."""
    ids, sizes = categories_of(data)
    if not sizes:
        return data.X
    counts = [np.bincount(ids[train, k], minlength=size)[ids[:, k]] for k, size in enumerate(sizes)]
    return np.log1p(np.column_stack([np.maximum(data.X, 0.0), *counts]))
