"""A model's numbers as arrays, and a model from such arrays: one table states each array's dtype, shape and range.

Boosted trees are arrays too. scikit-learn's compiled code follows the numbers in a tree without a check: with a
node that points outside its tree it would read foreign memory, with one that points back it would never end. So
neither is accepted here.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from types import SimpleNamespace
from typing import Any

import numpy as np

from labeldp._atomic import StrPath
from labeldp._values import Array, Data, Index, Numbers
from labeldp.errors import CardError
from labeldp.learning.array_files import ArraySchema, parse_specs
from labeldp.learning.ensemble import Ensemble
from labeldp.learning.feature_maps import BLOCKS, FREQUENCIES, Projection
from labeldp.learning.features import ALL_PAIRS, FOURIER, PAIRED, WIDE, PublicFeatures, wave_count
from labeldp.learning.fit_plan import LabelSummary
from labeldp.learning.model_average import Posterior
from labeldp.learning.sources import MAX_LEVELS, SourceColumns

_MAX_TREES = 1_000
"""Trees of a model; labeldp grows 250 at most."""

_MAX_TREE = 127
"""Nodes of a tree; labeldp grows 61 at most."""

_TABLE = """
source_quantities       <i8  inputs                0
source_levels           <i8  levels                0
public_center           <f8  columns
public_scale            <f8  columns               positive
public_ranks            <f8  quantiles,columns
public_direction_ranks  <f8  quantiles,directions
public_directions       <f8  quantities,directions
public_weights          <f8  quantities,frequencies
public_phases           <f8  frequencies
public_means            <f8  features
public_norms            <f8  features              positive
public_turns            <f8  columns,turns
narrow_matrix           <f8  inputs,quantities
narrow_shift            <f8  quantities
linear_weights          <f4  coefficients
linear_mean             <f8  -
linear_signal_variance  <f8  -
linear_residual_variance <f8  -
blend_weight            <f8  -                     0  1
blend_rest              <f8  -
blend_error             <f8  -
known_low               <f8  -
known_high              <f8  -
known_variance          <f8  -
known_sums              <i8  -                     0
trees_baseline          <f8  -
trees_sizes             <i8  trees                 1  127
trees_value             <f8  nodes
trees_feature_idx       <i8  nodes                 0
trees_num_threshold     <f8  nodes                 -inf  inf
trees_left              <u4  nodes
trees_right             <u4  nodes
trees_is_leaf           |u1  nodes                 0  1
"""
"""All arrays that a model can have: the part of the model and the attribute of that part, dtype, dimensions, and
the least and the largest number; else any finite one. A split off missing values has an infinite threshold."""


MODEL_ARRAYS = parse_specs(_TABLE)

_OPTIONAL = ("public_direction", "public_turns", "narrow_", "trees_")
"""Few columns are paired without directions and not narrowed; not every model has interactions, or trees."""

_SCHEMA = ArraySchema(MODEL_ARRAYS, _OPTIONAL)

_SIZES = {
    "columns": (1, WIDE + MAX_LEVELS),
    "quantities": (0, WIDE),
    "levels": (0, MAX_LEVELS),
    "quantiles": (2, 255),
    "directions": (1, PAIRED),
    "frequencies": (1, FOURIER),
    "turns": (1, FREQUENCIES),
    "features": (1, 1 << 14),
    "coefficients": (2, 1 + (1 << 14)),
    "trees": (1, _MAX_TREES),
    "nodes": (1, _MAX_TREES * _MAX_TREE),
}

_FIELDS = ("value", "feature_idx", "num_threshold", "left", "right", "is_leaf")
"""Arrays of a `Forest` that have an entry for each node, as scikit-learn calls them."""


@dataclass(frozen=True, eq=False)
class Forest:
    """The trees of a fitted `HistGradientBoostingRegressor` without categories.

    Private names of scikit-learn are used here only: its predictor of one tree, the type of a node, and two
    attributes of a booster. A test names the versions that this is true of.

    Attributes
    ----------
    baseline : float
    features : int
        The number of columns of the inputs.
    sizes : array of int
        The number of nodes of each tree.
    nodes : structured array
        All nodes, tree by tree, in scikit-learn's own form.
    """

    baseline: float
    features: int
    sizes: Index
    nodes: Numbers

    @classmethod
    def of(cls, booster: Any) -> Forest:
        """Return the trees of a fitted booster, or of a model that was read."""
        if isinstance(booster, cls):
            return booster
        trees = [tree.nodes for (tree,) in booster._predictors]
        sizes = np.array([len(tree) for tree in trees])
        return cls(booster._baseline_prediction.item(), booster.n_features_in_, sizes, np.concatenate(trees))

    @classmethod
    def from_arrays(cls, *, baseline: float, features: int, sizes: Index, **fields: Any) -> Forest:
        """Return trees from what `arrays` returned, or refuse ones that would lead out of a tree, or back."""
        from sklearn.ensemble._hist_gradient_boosting.common import PREDICTOR_RECORD_DTYPE  # noqa: PLC0415

        count = int(sizes.sum())
        if count != fields["is_leaf"].size:
            raise CardError("the model's trees are damaged: their sizes do not add up")
        node = np.arange(count) - np.repeat(np.cumsum(sizes) - sizes, sizes)
        end = np.repeat(sizes, sizes)
        inside = (
            (node < fields["left"]) & (fields["left"] < end) & (node < fields["right"]) & (fields["right"] < end)
        )
        if not ((fields["is_leaf"] == 1) | (inside & (fields["feature_idx"] < features))).all():
            raise CardError("the model's trees are damaged: a node leads nowhere")
        nodes = np.zeros(count, dtype=PREDICTOR_RECORD_DTYPE)
        for name in _FIELDS:
            nodes[name] = fields[name]
        return cls(baseline, features, sizes, nodes)

    def arrays(self) -> SimpleNamespace:
        """Return all numbers of the trees, by the names of `MODEL_ARRAYS`."""
        fields = {name: self.nodes[name] for name in _FIELDS}
        return SimpleNamespace(baseline=self.baseline, sizes=self.sizes, **fields)

    def predict(self, X: Array) -> Array:
        """Return predictions, the same to the last bit as those of the booster."""
        from sklearn.ensemble._hist_gradient_boosting.predictor import TreePredictor  # noqa: PLC0415

        inputs = np.ascontiguousarray(X, dtype=np.float64)
        if inputs.shape[1:] != (self.features,):  # compiled code would read foreign memory
            raise CardError(f"the model's trees need {self.features} columns, got shape {inputs.shape}")
        no_categories = np.zeros((0, 8), dtype=np.uint32)
        nowhere = np.zeros(self.features, dtype=np.uint32)
        result = np.full(len(inputs), self.baseline)
        for nodes in np.split(self.nodes, np.cumsum(self.sizes)[:-1]):
            tree = TreePredictor(nodes, no_categories, no_categories)
            result += tree.predict(inputs, no_categories, nowhere, 1)
        return result


def save_model_arrays(path: StrPath, public: PublicFeatures, ensemble: Ensemble) -> None:
    """Write all numbers of a model."""
    objects = {
        "public": public,
        "source": public.sources,
        "narrow": public.narrowing,
        "linear": ensemble.linear,
        "blend": SimpleNamespace(weight=ensemble.weight, rest=ensemble.residual_variance, error=ensemble.error),
        "known": ensemble.label_summary,
        "trees": None if ensemble.trees is None else Forest.of(ensemble.trees).arrays(),
    }
    _SCHEMA.write(path, objects)


def read_model_arrays(path: StrPath, numbers: int) -> tuple[PublicFeatures, Ensemble]:
    """Return the feature maps and the ensemble of a model that takes so many numbers a row.

    Raises
    ------
    CardError
        If the arrays are not those of a model, or do not fit together.
    """
    objects = _SCHEMA.read(path, {**_SIZES, "inputs": (0, numbers)})
    source, trees = objects["source"], objects["trees"]
    sources = SourceColumns(**source, category=np.zeros_like(source["levels"]))
    if max(sources.quantities.max(initial=0), sources.levels.max(initial=0)) >= numbers:
        raise CardError("the model's arrays name columns that its inputs do not have")
    public = _public_features(sources, objects["narrow"], **objects["public"])
    linear, summary = Posterior(**objects["linear"], top_priors=()), LabelSummary(**objects["known"])
    if linear.weights.size != public.size:
        raise CardError("the model's arrays do not fit together")
    forest: Any = Forest.from_arrays(features=public.tree_columns, **trees) if trees else None
    blend = objects["blend"]
    return public, Ensemble(linear, forest, blend["weight"], blend["rest"], blend["error"], summary)


def _public_features(sources: SourceColumns, narrow: Data, **arrays: Any) -> PublicFeatures:
    """Return feature maps from their arrays, or refuse those that do not fit together."""
    quantities = arrays["center"].size - sources.levels.size
    public = PublicFeatures(
        **{"directions": None, "direction_ranks": None} | arrays,
        sources=sources,
        waves=wave_count(quantities),
        block=np.zeros(0, dtype=np.int64),
        narrowing=Projection(**narrow) if narrow else None,
    )
    block = np.repeat(np.arange(BLOCKS), public.block_sizes())
    inputs = quantities if narrow else sources.quantities.size
    has_directions = (public.directions is not None) == (quantities > ALL_PAIRS)
    if not (quantities == inputs == len(public.weights) and has_directions and block.size == public.means.size):
        raise CardError("the model's arrays do not fit together")
    return replace(public, block=block)
