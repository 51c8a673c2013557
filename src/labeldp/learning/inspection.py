"""Permutation importance of the columns of a private model, from predictions for public rows, at no cost in ε."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping

import numpy as np
from scipy import sparse

from labeldp._values import Array, parse_integer
from labeldp.errors import ParameterError


def importances(
    predict: Callable[[Array], Array], X: Array, columns: Mapping[str, slice], repeats: int
) -> dict[str, float]:
    """Return the change of predictions if the rows of a column are shuffled, the most important column first.

    ``columns`` are the numbers that each column of a table became.
    """
    if sparse.issparse(X):
        raise ParameterError("importances need rows that are not sparse: pass X.toarray()")
    rng, before = np.random.default_rng(0), predict(X)  # public: rows and predictions are
    squares = dict.fromkeys(columns, 0.0)
    for _ in range(parse_integer(repeats, "repeats", high=1000)):
        order = rng.permutation(len(X))
        for name, numbers in columns.items():
            shuffled = X.copy()
            shuffled[:, numbers] = X[order, numbers]
            squares[name] += float(np.mean((predict(shuffled) - before) ** 2)) / repeats
    changes = {name: math.sqrt(square) for name, square in squares.items()}
    return dict(sorted(changes.items(), key=lambda item: -item[1]))
