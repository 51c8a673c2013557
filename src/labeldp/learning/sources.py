"""Source columns: the columns of a table before categories became columns of 0 and 1.

A source is a quantity, which is one column of numbers, or a category, which is several: a column of 0 and 1 for
each of its levels. Features take quantities first, then levels. All levels of a category share one length scale
and one strength, so that a category counts as one column, whatever its number of levels.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.sparse import issparse

from labeldp._values import Array, Index, Mask

MAX_LEVELS = 200
"""The largest number of columns of all categories together. Beyond it, levels with the fewest rows have no column
of their own: they share the prediction of a row without a level."""

_SAMPLE_ROWS = 10_000
"""The largest number of rows, evenly spaced, by which categories of an array are recognised."""

_OVERLAPS_BY_CHANCE = 10.0
"""Columns of 0 and 1 that are never 1 in the same row are one category if each row has a 1, or if so many rows
with two of them would be expected of independent columns: the probability of none is e⁻¹⁰."""


@dataclass(frozen=True, slots=True)
class SourceColumns:
    """The columns of a table in the order of features.

    Attributes
    ----------
    quantities : array of int
        Positions of quantities among the columns of numbers.
    levels : array of int
        Positions of columns of categories that features take, from common levels to rare ones.
    category : array of int
        The category of each of these columns: 0, 1, …

    Examples
    --------
    >>> X = np.column_stack([np.arange(6.0), np.tile(np.eye(3), (2, 1))])
    >>> sources = SourceColumns.find(X)
    >>> sources.quantities.tolist(), sources.levels.tolist(), sources.category.tolist()
    ([0], [1, 2, 3], [0, 0, 0])
    """

    quantities: Index
    levels: Index
    category: Index

    @classmethod
    def find(cls, X: Any, categories: Sequence[slice] = ()) -> SourceColumns:
        """Return the sources of public rows.

        Parameters
        ----------
        X : array or sparse table, rows × columns
            A sparse table has quantities only.
        categories : sequence of slice
            Columns of X that are known to belong to one category each. Others are found.
        """
        if issparse(X):
            return cls.all_quantities(X.shape[1])
        step = max(1, len(X) // _SAMPLE_ROWS)
        sample = X[::step]
        is_quantity = np.ones(X.shape[1], dtype=np.bool_)
        runs = [np.arange(X.shape[1])[columns] for columns in categories]
        for run in runs:
            is_quantity[run] = False
        runs += _disjoint_runs(sample, is_quantity)
        if not runs:
            return cls.all_quantities(X.shape[1])
        levels = np.concatenate(runs)
        is_quantity[levels] = False
        common = np.argsort(-sample[:, levels].var(axis=0), kind="stable")[:MAX_LEVELS]
        owner = np.repeat(np.arange(len(runs)), [run.size for run in runs])[common]
        return cls(np.flatnonzero(is_quantity), levels[common], np.unique(owner, return_inverse=True)[1])

    @classmethod
    def all_quantities(cls, columns: int) -> SourceColumns:
        """Return the sources of columns that are quantities."""
        return cls(np.arange(columns), np.zeros(0, np.int64), np.zeros(0, np.int64))

    def select_quantities(self, X: Any) -> Any:
        """Return the quantities of rows; the rows themselves if there is nothing else."""
        return X[:, self.quantities] if self.levels.size or self.quantities.size < X.shape[1] else X

    def level_scales(self, levels: Array) -> Array:
        """Return the divisors of levels with which the variances of each category add up to 1.

        Weights of all levels of a category have the same prior variance: rare levels are shrunk to the mean.
        """
        variances = np.bincount(self.category, levels.var(axis=0))
        return np.sqrt(np.where(variances > 0, variances, 1.0))[self.category]


def _disjoint_runs(sample: Array, is_candidate: Mask) -> list[Index]:
    """Return runs of neighbouring columns of 0 and 1 that are one category each."""
    is_binary = is_candidate & ((sample == 0) | (sample == 1)).all(axis=0)
    runs = []
    for run in _runs_without_overlap(sample, np.flatnonzero(is_binary)):
        shares = sample[:, run].mean(axis=0)
        overlaps = len(sample) * (shares.sum() ** 2 - shares @ shares) / 2
        if len(run) > 1 and (shares.sum() > 1 - 0.5 / len(sample) or overlaps >= _OVERLAPS_BY_CHANCE):
            runs.append(np.array(run))
    return runs


def _runs_without_overlap(sample: Array, binary: Index) -> Iterable[list[int]]:
    """Yield the longest runs of neighbouring columns, from the first one on, that are never 1 in the same row."""
    run: list[int] = []
    occupied = np.zeros(len(sample), dtype=np.bool_)
    for column in binary.tolist():
        ones = sample[:, column] == 1
        if run and (column > run[-1] + 1 or (ones & occupied).any()):
            yield run
            run, occupied = [], np.zeros_like(occupied)
        run.append(column)
        occupied |= ones
    if run:
        yield run
