"""Matrix products whose bits for a row do not depend on the rows beside it.

BLAS adds in an order that depends on the shape of its matrices. Where the group or the prediction of a row must be
the same on one machine and on a cluster, products are made of integers, or added in a fixed order.
"""

from __future__ import annotations

import numpy as np

from labeldp._values import Array, Small

_TILE = 256
"""Rows that are multiplied at once: they fit into a processor's cache."""

_VALUE_LIMIT, _VALUE_STEPS = 32, 2.0**16
"""Values are clipped to ± the limit and rounded to so many steps a unit."""

_WEIGHT_BITS = 31
"""Weights are rounded so that those of a column add up to about 2³¹ steps."""


def exact_product(weights: Array, values: Array | Small) -> Array:
    """Return weightsᵀ @ values, columns × rows, from rounded weights and values.

    All partial sums are integers below 2⁵³, so they are exact in any order.
    """
    total = np.abs(weights).sum(axis=0)
    step = 2.0 ** (np.frexp(total)[1] - float(_WEIGHT_BITS))[:, None]
    integer_weights = np.rint(weights.T / step)
    result = np.empty((weights.shape[1], values.shape[1]))
    for start in range(0, values.shape[1], _TILE):
        tile = slice(start, start + _TILE)
        clipped = np.clip(values[:, tile], -_VALUE_LIMIT, _VALUE_LIMIT, dtype=np.float64)
        result[:, tile] = integer_weights @ np.rint(clipped * _VALUE_STEPS)
    return np.asarray(result * (step / _VALUE_STEPS))


def ordered_product(weights: Array, values: Array) -> Array:
    """Return weightsᵀ @ values, columns × rows, added in the order of columns."""
    result = np.zeros((weights.shape[1], values.shape[1]))
    for start in range(0, values.shape[1], _TILE):
        tile = slice(start, start + _TILE)
        for weight, value in zip(weights, values[:, tile], strict=True):
            result[:, tile] += weight[:, None] * value
    return result


def fill_product(weights: Array, values: Small, result: Small, *, exact: bool) -> None:
    """Write weightsᵀ @ values into ``result``, columns × rows; by BLAS unless it must be exact."""
    if exact:
        result[:] = exact_product(weights, values)
    else:
        np.matmul(weights.T.astype(np.float32), values, out=result)
