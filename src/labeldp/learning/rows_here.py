"""Rows of a fit that are in memory: what X and y must be, and the scale on which their labels are learnt.

Labels are learnt in units of their bounds, with a transform before if one is asked for. Predictions for the same
public rows show, at no cost, whether a model is weak.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray
from scipy import sparse
from sklearn.utils import column_or_1d

from labeldp._values import Array, Bounds, Index, Sums, parse_choice
from labeldp.accounts.numbers import number, percent
from labeldp.errors import LabelError, ParameterError, Setting
from labeldp.exact.word_sources import WordSource
from labeldp.learning.features import PIECE, FeatureTable
from labeldp.learning.fit_plan import UNIT, Pair, Step, from_units, unit_labels
from labeldp.learning.label_rounds import Round, RowPart, draw_part
from labeldp.learning.sums import CELLS, Stage
from labeldp.release.curator import count

TRANSFORMS = ("log", "sqrt")

_MIDDLE, _TERMS = math.sqrt(0.5), 12
"""The middle of mantissas from 0.5 to 1; terms of the series around it, of which the next is below 1e-18."""

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

    def add_up(self, stage: Stage) -> Sums:
        """Return a stage's exact sums."""
        return stage.totals(self.labels)

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


@dataclass(frozen=True, slots=True)
class LabelScale:
    """What a fit works with in place of labels: their transform, if any, in bounds of its own.

    Attributes
    ----------
    bounds : (lo, hi)
        Of the label.
    transform : {None, "log", "sqrt"}

    Examples
    --------
    >>> scale = LabelScale.parse((1.0, 100.0), "log")
    >>> scale.units(np.array([0.5, 1.0, 10.0, 100.0])).round(9).tolist()
    [0.0, 0.0, 0.5, 1.0]
    >>> scale.means(np.array([0.0, np.log(10.0)]), variance=0.5).round(3).tolist()    # of log-normal labels
    [1.284, 12.84]
    """

    bounds: Pair
    transform: str | None = None

    @classmethod
    def parse(cls, bounds: Pair, transform: Any) -> Self:
        """Return the scale, or refuse bounds that the transform cannot take."""
        if transform is None:
            return cls(bounds)
        name = parse_choice(transform, "transform", TRANSFORMS)
        if bounds[0] < 0 or (name == "log" and bounds[0] == 0):
            least = "above 0: the smallest label that matters" if name == "log" else "of 0 or more"
            raise ParameterError(
                Setting("transform", name), " needs a lower bound ", least, f", got {bounds[0]:g}"
            )
        scale = cls(bounds, name)
        Bounds(scale.inner)  # which must be far enough apart
        return scale

    @property
    def inner(self) -> Pair:
        """The bounds of transformed labels."""
        low, high = self._apply(np.array(self.bounds)).tolist()
        return low, high

    @np.errstate(all="ignore")  # a warning that depends on labels would leak them
    def apply(self, labels: Array) -> Array:
        """Return labels, clipped to their bounds, transformed."""
        return self._apply(np.clip(labels, *self.bounds))

    def units(self, labels: Array) -> Array:
        """Return labels, clipped and transformed, as units of the bounds."""
        return unit_labels(self.apply(labels), self.inner)

    def means(self, values: Array, variance: float) -> Array:
        """Return the means, inside the bounds, of labels whose transforms have these means and this variance.

        exp(m + s²/2) for "log", where transforms are normal; m² + s² for "sqrt", whatever they are.
        """
        if self.transform is None:
            return values
        with np.errstate(over="ignore"):
            shift = variance / 2 if self.transform == "log" else variance
            means = np.exp(values + shift) if self.transform == "log" else values**2 + shift
        return np.clip(means, *self.bounds)

    def from_units(self, units: Array, variance: float) -> Array:
        """Return predictions, and their mean squared error, in units of the bounds as predictions of labels."""
        low, high = self.inner
        return self.means(from_units(units, (low, high)), variance * (high - low) ** 2)

    def invert(self, values: Array, more: float = 0.0) -> Array:
        """Return what has these transforms, in the same order, enlarged by a small part and inside the bounds."""
        if self.transform is None:
            return values
        return np.clip(self.means(values, 0.0) * (1 + more), *self.bounds)

    def _apply(self, values: Array) -> Array:
        if self.transform == "log":
            return _log(values)
        return np.sqrt(values) if self.transform == "sqrt" else values


def _log(values: Array) -> Array:
    """Return natural logarithms by the same steps for all values: a library's time may depend on them."""
    mantissa, exponent = np.frexp(values)
    ratio = (mantissa - _MIDDLE) / (mantissa + _MIDDLE)
    series = np.zeros_like(ratio)
    for k in reversed(range(_TERMS)):
        series = series * ratio**2 + 1 / (2 * k + 1)
    return np.asarray(exponent * math.log(2) + math.log(_MIDDLE) + 2 * ratio * series)


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
