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

from labeldp.datasets import Dataset
from labeldp.paper.columns import COLUMNS, NO_PRIVACY, Cell
from labeldp.paper.labels import Labels, constant, experiment, labels_for, regressor
from labeldp.paper.protocol import Protocol, split
from labeldp.paper.store import Result

__all__ = ["cores", "features", "fit", "labels", "pool", "use"]

_given: dict[str, tuple[Dataset, Protocol]] = {}


def cores() -> int:
    """Return how many cores this process may use: in a container or under `taskset`, fewer than there are."""
    return int(joblib.cpu_count())


def use(data: Dataset, protocol: Protocol) -> None:
    """Set what the fits of this process are about; if it has a parent, end with it, even if that was killed."""
    _given["table"] = data, protocol
    parent = parent_process()
    if parent is not None:
        Thread(target=_end_with, args=(parent,), daemon=True).start()


def _end_with(parent: Any) -> None:
    parent.join()
    os._exit(1)


class Inline(Executor):
    """Does what is submitted at once, in this process."""

    def submit(self, function: Callable[..., Any], /, *args: Any, **kwargs: Any) -> Future[Any]:
        """Call a function and return what it returned, as a future."""
        future: Future[Any] = Future()
        future.set_result(function(*args, **kwargs))
        return future


@contextmanager
def pool(data: Dataset, protocol: Protocol, workers: int) -> Iterator[Executor]:
    """Give something to submit work to: ``workers`` processes, or this one."""
    if workers < 2:
        use(data, protocol)
        yield Inline()
        return
    found = ProcessPoolExecutor(workers, get_context("spawn"), use, (data, protocol))
    try:
        yield found
    finally:
        found.shutdown(cancel_futures=True)


def labels(cell: Cell) -> Labels:
    """Return the labels that a network is trained on, of the training rows of a trial."""
    data, protocol = _given["table"]
    train, _ = split(len(data.y), protocol.dataset, cell.trial)
    column = COLUMNS.get(cell.column, NO_PRIVACY)
    with threadpool_limits(1):
        return labels_for(column, data.y[train], data.bounds, protocol.dataset, cell, protocol.batch)


def fit(cell: Cell) -> Result:
    """Fit on the training rows of a trial, and return the error on its test rows."""
    data, protocol = _given["table"]
    train, test = split(len(data.y), protocol.dataset, cell.trial)
    column, y = COLUMNS[cell.column], data.y[train]
    detail = column.key
    if column.kind == "constant":
        mean, cost = constant(y, data.bounds, protocol.dataset, cell)
        predicted = np.full(len(test), mean)
    else:
        X = features(data, train)
        with experiment(), threadpool_limits(1):
            model = regressor(column, data.bounds, protocol.dataset, cell).fit(X[train], y)
            predicted = model.predict(X[test])
        cost = model.ledger_.total
        detail = ", ".join(f"{charge.what} {charge.budget.epsilon:.4g}" for charge in model.ledger_.charges)
    error = float(np.mean((predicted - data.y[test]) ** 2))
    return Result(
        data.name, cell.trial, column.key, cell.epsilon, error, column.private, cost.epsilon, cost.delta, detail
    )


def features(data: Dataset, train: NDArray[np.int64]) -> NDArray[np.float64]:
    """Return numeric features; a category becomes the logarithm of how often its value occurs in training."""
    if data.ids is None:
        return data.X
    columns = [
        np.log1p(np.bincount(data.ids[train, k], minlength=size)[data.ids[:, k]])
        for k, size in enumerate(data.sizes)
    ]
    return np.column_stack([np.log1p(np.maximum(data.X, 0.0)), *columns])
