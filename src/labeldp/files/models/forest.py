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

from labeldp.errors import CardError

__all__ = ["Forest"]

Array = NDArray[np.float64]

FIELDS = {
    "value": "value",
    "feature": "feature_idx",
    "threshold": "num_threshold",
    "left": "left",
    "right": "right",
    "leaf": "is_leaf",
}
"""What is kept of a node, and what scikit-learn calls it."""


@dataclass(frozen=True, slots=True, eq=False)
class Forest:
    """The trees of a fitted `HistGradientBoostingRegressor` without categories.

    Attributes
    ----------
    baseline : float
    features : int
        How many columns the inputs have.
    trees : tuple
        scikit-learn's own predictors, of nodes that were checked.
    """

    baseline: float
    features: int
    trees: tuple[Any, ...]

    @classmethod
    def of(cls, booster: Any) -> Forest:
        """Return the trees of a fitted booster."""
        trees = tuple(each for (each,) in booster._predictors)
        return cls(float(booster._baseline_prediction.reshape(-1)[0]), int(booster.n_features_in_), trees)

    def predict(self, X: Array) -> Array:
        """Return predictions, the same to the last bit as those of the booster."""
        inputs = np.ascontiguousarray(X, dtype=np.float64)
        if inputs.ndim != 2 or inputs.shape[1] != self.features:
            raise CardError(f"the model's trees need {self.features} columns, got shape {inputs.shape}")
        no_categories = np.zeros((0, 8), dtype=np.uint32)
        nowhere = np.zeros(self.features, dtype=np.uint32)
        result = np.zeros(len(inputs))
        result += self.baseline
        for tree in self.trees:
            result += tree.predict(inputs, no_categories, nowhere, _threads())
        return result

    def as_arrays(self) -> dict[str, NDArray[Any]]:
        """Return all of it as arrays of numbers."""
        nodes = np.concatenate([tree.nodes for tree in self.trees])
        arrays = {name: np.ascontiguousarray(nodes[theirs]) for name, theirs in FIELDS.items()}
        sizes = np.array([len(tree.nodes) for tree in self.trees], dtype=np.int64)
        return {**arrays, "sizes": sizes, "baseline": np.array(self.baseline), "features": np.array(self.features)}

    @classmethod
    def from_arrays(cls, arrays: Mapping[str, NDArray[Any]]) -> Forest:
        """Return the trees from what `as_arrays` gave.

        Raises
        ------
        CardError
            If a node leads out of its tree or back, asks for a column that there is not, or is not finite.
        """
        sizes = arrays["sizes"].astype(np.int64)
        features = int(arrays["features"])
        plain = {name: np.asarray(arrays[name]) for name in FIELDS}
        total = plain["value"].size
        fits = all(each.shape == (total,) and each.dtype.kind in "fiub" for each in plain.values())
        if not fits or sizes.ndim != 1 or (sizes < 1).any() or int(sizes.sum()) != total or features < 1:
            raise CardError("the model's trees are damaged: their sizes do not fit")
        _refuse_stray(plain, sizes, features)
        return cls(float(arrays["baseline"]), features, tuple(_trees(plain, sizes)))


def _refuse_stray(plain: Mapping[str, NDArray[Any]], sizes: NDArray[np.int64], features: int) -> None:
    place = np.concatenate([np.arange(size) for size in sizes]) if sizes.size else np.zeros(0)
    size = np.repeat(sizes, sizes)
    inner = plain["leaf"] == 0
    ahead = np.ones(place.size, dtype=bool)
    for side in ("left", "right"):
        ahead &= (plain[side] > place) & (plain[side] < size)
    known = (plain["feature"] >= 0) & (plain["feature"] < features) & ~np.isnan(plain["threshold"])
    if not np.isfinite(plain["value"]).all() or not (ahead & known)[inner].all():
        raise CardError("the model's trees are damaged: a node leads nowhere")


def _trees(plain: Mapping[str, NDArray[Any]], sizes: NDArray[np.int64]) -> list[Any]:
    from sklearn.ensemble._hist_gradient_boosting.common import PREDICTOR_RECORD_DTYPE  # noqa: PLC0415
    from sklearn.ensemble._hist_gradient_boosting.predictor import TreePredictor  # noqa: PLC0415

    nodes = np.zeros(int(sizes.sum()), dtype=PREDICTOR_RECORD_DTYPE)
    for name, theirs in FIELDS.items():
        nodes[theirs] = plain[name]
    none = np.zeros((0, 8), dtype=np.uint32)
    return [TreePredictor(part, none, none) for part in np.split(nodes, np.cumsum(sizes)[:-1])]


def _threads() -> int:
    from sklearn.utils._openmp_helpers import _openmp_effective_n_threads  # noqa: PLC0415

    return int(_openmp_effective_n_threads())
