"""What needs no JAX, in processes of its own: private labels, the library's regressors, the private constant."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Executor, Future, ProcessPoolExecutor
from contextlib import contextmanager
from functools import partial
from multiprocessing import get_context, parent_process
from threading import Thread
from typing import Any

import joblib
import numpy as np
from numpy.typing import NDArray
from threadpoolctl import threadpool_limits

from labeldp.app.cli.own_mechanisms import import_modules
from reproduction.categories import categories_of
from reproduction.columns import Cell, find_column
from reproduction.datasets.dataset import Dataset
from reproduction.labels import Labels, TrainingRows, experiment, labels_for, private_mean, regressor
from reproduction.protocol import Protocol, split
from reproduction.store import Result

_table: tuple[Dataset, Protocol]
"""What the work of this process is about: sent once, not with every cell."""


def cores() -> int:
    """Return how many cores this process may use: in a container or under `taskset`, fewer than there are."""
    return int(joblib.cpu_count())


def _start(data: Dataset, protocol: Protocol, modules: Sequence[str] = ()) -> None:
    """Set the table of this process; a worker also ends with its parent, even if that was killed."""
    global _table  # noqa: PLW0603, a worker has one table for life
    _table = data, protocol
    import_modules(modules)
    parent = parent_process()
    if parent is not None:
        Thread(target=_end_with, args=(parent,), daemon=True).start()


def _end_with(parent: Any) -> None:
    parent.join()
    os._exit(1)


class _Later(Future[Any]):
    """Does its work when its result is asked for, so that each result can be kept before the next."""

    def __init__(self, work: Callable[[], Any]) -> None:
        super().__init__()
        self._work = work

    def result(self, timeout: float | None = None) -> Any:
        return self._work()


class _Inline(Executor):
    """Does what is submitted in this process."""

    def submit(self, function: Callable[..., Any], /, *args: Any, **kwargs: Any) -> Future[Any]:
        return _Later(partial(function, *args, **kwargs))


@contextmanager
def pool(data: Dataset, protocol: Protocol, workers: int, modules: Sequence[str] = ()) -> Iterator[Executor]:
    """Give something to submit work to: ``workers`` processes that import the modules, or this one."""
    if workers < 2:
        _start(data, protocol)
        yield _Inline()
        return
    processes = ProcessPoolExecutor(workers, get_context("spawn"), _start, (data, protocol, modules))
    try:
        yield processes
    finally:
        processes.shutdown(cancel_futures=True)


def make_labels(cell: Cell) -> Labels:
    """Return the labels that a network is trained on, of the training rows of a trial."""
    train, _ = _split(cell)
    with threadpool_limits(1):
        return labels_for(cell, _training_rows(train))


def fit(cell: Cell) -> Result:
    """Fit a regressor or a constant on the training rows of a trial; return its error on the test rows."""
    data, _ = _table
    train, test = _split(cell)
    column, rows = find_column(cell.column), _training_rows(train)
    predicted: Any
    if column.kind == "constant":
        predicted, cost = private_mean(cell, rows)
        detail = column.key
    else:
        with experiment(), threadpool_limits(1):
            model = regressor(cell, rows).fit(rows.X, rows.y)
            predicted = model.predict(_features(data, train)[test])
        cost = model.ledger_.total
        detail = ", ".join(f"{charge.description} {charge.budget.epsilon:.4g}" for charge in model.ledger_.charges)
    error = float(np.mean((predicted - data.y[test]) ** 2))
    costs = cost.epsilon, 0.0
    return Result(data.name, cell.trial, column.key, cell.epsilon, error, column.private, *costs, detail)


def _split(cell: Cell) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    data, protocol = _table
    return split(len(data.y), protocol.dataset, cell.trial)


def _training_rows(train: NDArray[np.int64]) -> TrainingRows:
    """Return the training rows alone: no release sees another one."""
    data, protocol = _table
    X = _features(data, train)[train]
    return TrainingRows(X, data.y[train], data.bounds, protocol.dataset, protocol.batch)


def _features(data: Dataset, train: NDArray[np.int64]) -> NDArray[np.float64]:
    """Return numeric features; a category becomes the logarithm of how often its value occurs in training."""
    ids, sizes = categories_of(data)
    if not sizes:
        return data.X
    counts = [np.bincount(ids[train, k], minlength=size)[ids[:, k]] for k, size in enumerate(sizes)]
    return np.log1p(np.column_stack([np.maximum(data.X, 0.0), *counts]))
