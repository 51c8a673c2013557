"""A model's numbers as arrays, and a model from such arrays: one table states each array's dtype, shape and range.

Boosted trees are arrays too. scikit-learn's compiled code follows the numbers in a tree without a check: with a
node that points outside its tree it would read foreign memory, with one that points back it would never end. So
neither is accepted here.
"""

from __future__ import annotations

import os
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from labeldp._values import Array
from labeldp.errors import CardError
from labeldp.learning.array_files import Arrays, ArraySpec, read_arrays
from labeldp.learning.bayes import BLOCKS, Posterior
from labeldp.learning.features import (
    ALL_PAIRS,
    FOURIER,
    FREQUENCIES,
    PAIRED,
    WAVES,
    WIDE,
    Narrowing,
    PublicFeatures,
    wave_count,
)
from labeldp.learning.fit_plan import LabelSummary
from labeldp.learning.learner import Ensemble

_MAX_TREES, _MAX_TREE = 1_000, 127
"""Trees of a model, and nodes of a tree; labeldp grows 250 trees of 61 nodes at most."""

_NUMBER, _NODES = ArraySpec("<f8"), ("nodes",)
_TINY = float(np.finfo(np.float64).smallest_subnormal)

MODEL_ARRAYS = {
    "public_center": ArraySpec("<f8", ("columns",)),
    "public_scale": ArraySpec("<f8", ("columns",), _TINY),
    "public_ranks": ArraySpec("<f8", ("quantiles", "columns")),
    "public_direction_ranks": ArraySpec("<f8", ("quantiles", "directions")),
    "public_directions": ArraySpec("<f8", ("columns", "directions")),
    "public_weights": ArraySpec("<f8", ("columns", "frequencies")),
    "public_phases": ArraySpec("<f8", ("frequencies",)),
    "public_waves": ArraySpec("<i8", (), 1, WAVES),
    "public_means": ArraySpec("<f8", ("features",)),
    "public_norms": ArraySpec("<f8", ("features",), _TINY),
    "public_block": ArraySpec("<i8", ("features",), 0, BLOCKS - 1),
    "public_turns": ArraySpec("<f8", ("columns", "turns")),
    "narrow_matrix": ArraySpec("<f8", ("numbers", "columns")),
    "narrow_shift": ArraySpec("<f8", ("columns",)),
    "linear_weights": ArraySpec("<f4", ("coefficients",)),
    "linear_mean": _NUMBER,
    "linear_explained": _NUMBER,
    "linear_rest": _NUMBER,
    "blend_weight": ArraySpec("<f8", (), 0, 1),
    "blend_rest": _NUMBER,
    "blend_error": _NUMBER,
    "known_low": _NUMBER,
    "known_high": _NUMBER,
    "known_variance": _NUMBER,
    "known_residual": _NUMBER,
    "known_sums": ArraySpec("<i8", (), 0),
    "trees_baseline": _NUMBER,
    "trees_features": ArraySpec("<i8", (), 1),
    "trees_sizes": ArraySpec("<i8", ("trees",), 1, _MAX_TREE),
    "trees_value": ArraySpec("<f8", _NODES),
    "trees_feature": ArraySpec("<i8", _NODES, 0),
    "trees_threshold": ArraySpec("<f8", _NODES, -np.inf, np.inf),  # a split off missing values has an infinite one
    "trees_left": ArraySpec("<u4", _NODES),
    "trees_right": ArraySpec("<u4", _NODES),
    "trees_leaf": ArraySpec("|u1", _NODES, 0, 1),
}
"""All arrays that a model can have: the part of the model, and the attribute of that part."""

_OPTIONAL = ("public_direction", "public_turns", "narrow_", "trees_")
"""Few columns are paired without directions and not narrowed; not every model has interactions, or trees."""

_SIZES = {
    "columns": (1, WIDE),
    "quantiles": (2, 255),
    "directions": (1, PAIRED),
    "frequencies": (1, FOURIER),
    "turns": (1, FREQUENCIES),
    "features": (1, 1 << 14),
    "coefficients": (2, 1 + (1 << 14)),
    "trees": (1, _MAX_TREES),
    "nodes": (1, _MAX_TREES * _MAX_TREE),
}

_FIELDS = {
    "value": "value",
    "feature": "feature_idx",
    "threshold": "num_threshold",
    "left": "left",
    "right": "right",
    "leaf": "is_leaf",
}
"""Arrays of a `Forest` that have an entry for each node, and what scikit-learn calls them."""


def _scikit_learn() -> tuple[Any, Any, int]:
    """Return what is private to scikit-learn: its predictor of one tree, the type of a node, and how many threads.

    Together with the two attributes that `Forest.of` reads, that is all; a test names the versions it is true of.
    """
    from sklearn.ensemble._hist_gradient_boosting.common import PREDICTOR_RECORD_DTYPE  # noqa: PLC0415
    from sklearn.ensemble._hist_gradient_boosting.predictor import TreePredictor  # noqa: PLC0415
    from sklearn.utils._openmp_helpers import _openmp_effective_n_threads  # noqa: PLC0415

    return TreePredictor, PREDICTOR_RECORD_DTYPE, int(_openmp_effective_n_threads())


@dataclass(frozen=True, eq=False)
class Forest:
    """The trees of a fitted `HistGradientBoostingRegressor` without categories, as the arrays of `MODEL_ARRAYS`.

    Attributes
    ----------
    baseline : float
    features : int
        How many columns the inputs have.
    sizes : array of int
        How many nodes each tree has; the arrays below have all nodes, tree by tree.
    value, feature, threshold, left, right, leaf : arrays
    """

    baseline: float
    features: int
    sizes: NDArray[np.int64]
    value: Array
    feature: NDArray[np.int64]
    threshold: Array
    left: NDArray[np.uint32]
    right: NDArray[np.uint32]
    leaf: NDArray[np.uint8]

    @classmethod
    def of(cls, booster: Any) -> Forest:
        """Return the trees of a fitted booster."""
        trees = [tree.nodes for (tree,) in booster._predictors]
        nodes = np.concatenate(trees)
        baseline = float(booster._baseline_prediction.reshape(-1)[0])
        arrays = {name: np.ascontiguousarray(nodes[theirs]) for name, theirs in _FIELDS.items()}
        return cls(baseline, int(booster.n_features_in_), np.array([len(tree) for tree in trees]), **arrays)

    def refuse_damaged(self) -> None:
        """Raise `CardError` if sizes do not add up, or a node leads out of its tree or back, or to no column."""
        sizes = self.sizes
        if int(sizes.sum()) != self.value.size:
            raise CardError("the model's trees are damaged: their sizes do not add up")
        node = np.arange(self.value.size) - np.repeat(np.cumsum(sizes) - sizes, sizes)
        ahead = [(side > node) & (side < np.repeat(sizes, sizes)) for side in (self.left, self.right)]
        if not (self.leaf.astype(bool) | (ahead[0] & ahead[1] & (self.feature < self.features))).all():
            raise CardError("the model's trees are damaged: a node leads nowhere")

    @cached_property
    def _nodes(self) -> list[NDArray[Any]]:
        """The nodes of each tree, in scikit-learn's own form."""
        nodes = np.zeros(self.value.size, dtype=_scikit_learn()[1])
        for name, theirs in _FIELDS.items():
            nodes[theirs] = getattr(self, name)
        return np.split(nodes, np.cumsum(self.sizes)[:-1])

    def predict(self, X: Array) -> Array:
        """Return predictions, the same to the last bit as those of the booster."""
        inputs = np.ascontiguousarray(X, dtype=np.float64)
        if inputs.ndim != 2 or inputs.shape[1] != self.features:
            raise CardError(f"the model's trees need {self.features} columns, got shape {inputs.shape}")
        predictor, _, threads = _scikit_learn()
        no_categories = np.zeros((0, 8), dtype=np.uint32)
        nowhere = np.zeros(self.features, dtype=np.uint32)
        result = np.full(len(inputs), self.baseline)
        for nodes in self._nodes:
            tree = predictor(nodes, no_categories, no_categories)
            result += tree.predict(inputs, no_categories, nowhere, threads)
        return result


def as_arrays(public: PublicFeatures, ensemble: Ensemble) -> Arrays:
    """Return all numbers of a model."""
    trees: Any = ensemble.trees
    parts = {
        "public": public,
        "narrow": public.narrowing,
        "linear": ensemble.linear,
        "blend": ensemble,
        "known": ensemble.knowledge,
        "trees": trees if trees is None or isinstance(trees, Forest) else Forest.of(trees),
    }
    arrays = {}
    for name, spec in MODEL_ARRAYS.items():
        part, _, attribute = name.partition("_")
        value = getattr(parts[part], attribute, None)
        if value is not None:
            arrays[name] = np.asarray(value, dtype=spec.dtype)
    return arrays


def read_model_arrays(path: str | os.PathLike[str], numbers: int) -> tuple[PublicFeatures, Ensemble]:
    """Return the feature maps and the ensemble of a model that takes so many numbers a row.

    Raises
    ------
    CardError
        If the arrays are not those of a model, or do not fit together.
    """
    arrays = read_arrays(path, MODEL_ARRAYS, {**_SIZES, "numbers": (numbers, numbers)}, optional=_OPTIONAL)
    parts: dict[str, dict[str, Any]] = {"narrow": {}, "trees": {}}
    for name, array in arrays.items():
        part, _, attribute = name.partition("_")
        parts.setdefault(part, {})[attribute] = array if array.ndim else array.item()
    narrowing = Narrowing(**parts["narrow"]) if parts["narrow"] else None
    maps = {"directions": None, "direction_ranks": None, **parts["public"]}
    public = PublicFeatures(**maps, narrowing=narrowing)
    linear, known = Posterior(**parts["linear"], likely=()), LabelSummary(**parts["known"])
    trees: Any = Forest(**parts["trees"]) if parts["trees"] else None
    if trees is not None:
        trees.refuse_damaged()
    columns = len(public.center)
    fits = (
        (narrowing is not None or columns == numbers)
        and public.waves == wave_count(columns)
        and (public.directions is not None) == (columns > ALL_PAIRS)
        and np.array_equal(public.block, np.repeat(np.arange(BLOCKS), public.block_sizes()))
        and linear.weights.size == public.size
        and (trees is None or trees.features == columns)
        and known.low < known.high
    )
    if not fits:
        raise CardError("the model's arrays do not fit together")
    return public, Ensemble(linear, trees, **parts["blend"], knowledge=known)
