"""Rows of a fit that are in memory, what X and y must be, and whether a fitted model is weak.

Predictions for the same public rows show weakness at no cost.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse
from sklearn.utils import column_or_1d

from labeldp._values import Array, Index, Sums
from labeldp.accounts.numbers import number, percent
from labeldp.errors import LabelError, ParameterError
from labeldp.exact.word_sources import WordSource
from labeldp.learning.feature_table import FeatureTable
from labeldp.learning.features import PIECE
from labeldp.learning.label_queries import Query
from labeldp.learning.label_range import CELLS
from labeldp.learning.label_rounds import Round, RowPart, draw_part
from labeldp.learning.label_units import UNIT, Pair
from labeldp.learning.threads import Step
from labeldp.release.curator import count

_NEAR, _CLOSE, _NEARLY_ALL = 0.01, 0.5, 0.95
"""A prediction lies at a bound within this part of the bounds, and of the spread; the share that is too much."""

_FLAT = 0.05
"""A model counts as constant if its predictions vary by less than this part of the spread around them."""

_MOST_ROWS = 2_000
"""Rows at most that are looked at for it."""


@dataclass(frozen=True, slots=True, repr=False)
class RowsHere:
    """Rows whose labels are in memory, in units of their bounds. Their text form shows no label."""

    table: FeatureTable
    labels: Array
    source: WordSource
    announce: Step

    @property
    def count(self) -> int:
        """How many rows there are."""
        return int(self.labels.size)

    def counts(self) -> Sums:
        """Return how many labels lie in each cell of the bounds."""
        return count(self.labels, UNIT, CELLS)

    def add_up(self, query: Query) -> Sums:
        """Return the exact answer of a query."""
        return query.answer(self.labels)

    def draw(self, plan: Round, table: FeatureTable) -> RowPart | None:
        """Randomise the round's labels."""
        order = np.random.default_rng(0).permutation(self.count)  # public: which row in which round
        start, end = np.rint(np.array(plan.share) * self.count).astype(np.int64)
        rows = np.sort(order[start:end])
        if not rows.size:
            return None
        return draw_part(rows, self.labels[rows], plan.ensemble.predict(table, rows), plan, self.source)


def refuse_single_column(X: Any) -> None:
    """Refuse what is no table by its shape: scikit-learn would print it, and it may be y in the place of X."""
    dimensions = X.ndim if hasattr(X, "ndim") else np.asarray(X).ndim
    if dimensions < 2:
        raise ParameterError(
            f"Expected 2D array, got {dimensions}D array instead: X is the table of features, rows × columns, and "
            "comes before y. Reshape your data with reshape(-1, 1) if it is a single feature, or with "
            "reshape(1, -1) if it is a single row"
        )


def single_column(labels: NDArray[Any]) -> Array:
    """Return labels, one for each row, or refuse another shape."""
    if labels.ndim != 1 and (labels.ndim != 2 or labels.shape[1] != 1):
        raise LabelError(
            f"y must be one column of labels, got the shape {labels.shape}: fit a model for each column, with a "
            "part of epsilon each, as costs add up; or privatize all columns at once, and fit any learner to that"
        )
    column: Array = column_or_1d(labels, warn=True).astype(np.float64)
    return column


def row_digests(X: Any) -> NDArray[np.uint64]:
    """Return 64 bits for each row of checked public features, equal for equal rows, dense or sparse."""
    odd = np.random.default_rng(0).integers(0, 1 << 63, X.shape[1], dtype=np.uint64) * np.uint64(2) + np.uint64(1)
    return np.concatenate([_mixed(X[start : start + PIECE]) @ odd for start in range(0, X.shape[0], PIECE)])


def _mixed(X: Any) -> Any:
    """Return numbers' bits, the high ones in the low ones too; 0 for 0, as sparse tables leave it out."""
    if sparse.issparse(X):
        return sparse.csr_array((_mixed(X.data), X.indices, X.indptr), shape=X.shape)
    bits = np.ascontiguousarray(X + 0.0).view(np.uint64)
    return bits ^ (bits >> np.uint64(32))


def sample_rows(rows: int) -> Index:
    """Return some rows, evenly spread, that stand for all of a table."""
    return np.unique(np.linspace(0, rows - 1, min(rows, _MOST_ROWS)).astype(np.int64))


def describe_weakness(units: Array, spread: float, bounds: Pair) -> str | None:
    """Return what is wrong with a model by its own predictions; None if nothing is.

    Parameters
    ----------
    units : array
        Predictions in units of the bounds.
    spread : float
        The private estimate of labels' variance around them, in the same units; 0 if there is none.
    bounds : (lo, hi)

    Examples
    --------
    >>> print(describe_weakness(np.full(100, 0.999), 0.01, (0.0, 5.0)))
    100 % of the fitted values lie at the bound 5: check that labels and bounds are in the same unit, or ...
    """
    near = min(_NEAR, _CLOSE * math.sqrt(spread)) if spread else _NEAR  # in wide bounds all is near the bounds
    for bound, distance in zip(bounds, (units, 1 - units), strict=True):
        share = float(np.mean(distance < near))
        if share > _NEARLY_ALL:
            return (
                f"{percent(share)} of the fitted values lie at the bound {number(bound)}: check that labels and "
                "bounds are in the same unit, or give bounds closer to the labels"
            )
    if np.std(units) < _FLAT * math.sqrt(spread):
        return (
            "the model predicts nearly the same for all rows, the private mean: rows and epsilon do not show what "
            "features explain; give more rows, a larger epsilon, tighter bounds or other features"
        )
    return None
