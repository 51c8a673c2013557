"""What is no network: the library's regressors and the private constant. Runs in processes of its own; no JAX."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray
from threadpoolctl import threadpool_limits

from labeldp.datasets import Dataset
from labeldp.paper.columns import COLUMNS, Cell, constant, experiment, regressor
from labeldp.paper.protocol import Protocol, split
from labeldp.paper.store import Result

__all__ = ["features", "fit", "use"]

_given: dict[str, tuple[Dataset, Protocol]] = {}


def use(data: Dataset, protocol: Protocol) -> None:
    """Set what the fits of this process are about."""
    _given["table"] = data, protocol


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
