"""Boosted trees as plain arrays: safe to open, because what a file says is checked before it is followed.

scikit-learn's compiled code follows the numbers in a tree without looking. A node that points outside its tree
would make it read foreign memory, one that points back would keep it for ever; so neither is accepted here.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from labeldp._array_files import ArraySpec
from labeldp._arrays import Array
from labeldp.errors import CardError

MAX_TREES, _MAX_NODES = 1_000, 127
"""Of a model, and of a tree; labeldp grows 250 trees of 61 nodes at most."""

MAX_NODES = MAX_TREES * _MAX_NODES

_FIELDS = {
    "value": "value",
    "feature": "feature_idx",
    "threshold": "num_threshold",
    "left": "left",
    "right": "right",
    "leaf": "is_leaf",
}
"""What is kept of a node, and what scikit-learn calls it."""

FOREST = {
    "baseline": ArraySpec("<f8"),
    "features": ArraySpec("<i8", (), 1),
    "sizes": ArraySpec("<i8", ("trees",), 1, _MAX_NODES),
    "value": ArraySpec("<f8", ("nodes",)),
    "feature": ArraySpec("<i8", ("nodes",), 0),
    "threshold": ArraySpec("<f8", ("nodes",), -np.inf, np.inf),  # a split off missing values has an infinite one
    "left": ArraySpec("<u4", ("nodes",)),
    "right": ArraySpec("<u4", ("nodes",)),
    "leaf": ArraySpec("|u1", ("nodes",), 0, 1),
}
"""The arrays of a forest."""


def _scikit_learn() -> tuple[Any, Any, int]:
    """Return what is private to scikit-learn: its predictor of one tree, the type of a node, and how many threads.

    Together with the two attributes that `Forest.of` reads, that is all; a test names the versions it is true of.
    """
    from sklearn.ensemble._hist_gradient_boosting.common import PREDICTOR_RECORD_DTYPE  # noqa: PLC0415
    from sklearn.ensemble._hist_gradient_boosting.predictor import TreePredictor  # noqa: PLC0415
    from sklearn.utils._openmp_helpers import _openmp_effective_n_threads  # noqa: PLC0415

    return TreePredictor, PREDICTOR_RECORD_DTYPE, int(_openmp_effective_n_threads())


@dataclass(frozen=True, slots=True, eq=False)
class Forest:
    """The trees of a fitted `HistGradientBoostingRegressor` without categories.

    Attributes
    ----------
    baseline : float
    features : int
        How many columns the inputs have.
    nodes : tuple of arrays
        The nodes of each tree, in scikit-learn's own form; they were checked.
    """

    baseline: float
    features: int
    nodes: tuple[NDArray[Any], ...]

    @classmethod
    def of(cls, booster: Any) -> Forest:
        """Return the trees of a fitted booster."""
        baseline = float(booster._baseline_prediction.reshape(-1)[0])
        return cls(baseline, int(booster.n_features_in_), tuple(tree.nodes for (tree,) in booster._predictors))

    def predict(self, X: Array) -> Array:
        """Return predictions, the same to the last bit as those of the booster."""
        inputs = np.ascontiguousarray(X, dtype=np.float64)
        if inputs.ndim != 2 or inputs.shape[1] != self.features:
            raise CardError(f"the model's trees need {self.features} columns, got shape {inputs.shape}")
        predictor, _, threads = _scikit_learn()
        no_categories = np.zeros((0, 8), dtype=np.uint32)
        nowhere = np.zeros(self.features, dtype=np.uint32)
        result = np.full(len(inputs), self.baseline)
        for nodes in self.nodes:
            tree = predictor(nodes, no_categories, no_categories)
            result += tree.predict(inputs, no_categories, nowhere, threads)
        return result

    def as_arrays(self) -> dict[str, NDArray[Any]]:
        """Return all of it as arrays of numbers."""
        nodes = np.concatenate(self.nodes)
        arrays = {name: np.ascontiguousarray(nodes[theirs]) for name, theirs in _FIELDS.items()}
        sizes = np.array([len(each) for each in self.nodes], dtype=np.int64)
        return {**arrays, "sizes": sizes, "baseline": np.array(self.baseline), "features": np.array(self.features)}

    @classmethod
    def from_arrays(cls, arrays: Mapping[str, NDArray[Any]]) -> Forest:
        """Return the trees from what `as_arrays` gave, each array as `FOREST` says.

        Raises
        ------
        CardError
            If the trees' sizes do not add up, or a node leads out of its tree or back, or asks for a column that
            does not exist.
        """
        sizes, features = arrays["sizes"], int(arrays["features"])
        if int(sizes.sum()) != arrays["value"].size:
            raise CardError("the model's trees are damaged: their sizes do not add up")
        start = np.repeat(np.cumsum(sizes) - sizes, sizes)
        node, size = np.arange(start.size) - start, np.repeat(sizes, sizes)
        ahead = [(arrays[side] > node) & (arrays[side] < size) for side in ("left", "right")]
        if not (arrays["leaf"].astype(bool) | (ahead[0] & ahead[1] & (arrays["feature"] < features))).all():
            raise CardError("the model's trees are damaged: a node leads nowhere")
        nodes = np.zeros(start.size, dtype=_scikit_learn()[1])
        for name, theirs in _FIELDS.items():
            nodes[theirs] = arrays[name]
        return cls(float(arrays["baseline"]), features, tuple(np.split(nodes, np.cumsum(sizes)[:-1])))
