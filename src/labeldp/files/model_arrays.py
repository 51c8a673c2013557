"""A model's numbers as arrays, and a model from such arrays."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import fields
from typing import Any

import numpy as np
from numpy.typing import NDArray

from labeldp.estimators.bayes import Posterior
from labeldp.estimators.features import Narrowing, PublicFeatures
from labeldp.estimators.learner import Blend, Knowledge
from labeldp.files.forest import Forest, one_number

Arrays = Mapping[str, NDArray[Any]]

_LINEAR = ("mean", "explained", "rest")
_BLEND = ("weight", "rest", "error")
_KNOWN = ("low", "high", "variance", "residual")


def as_arrays(public: PublicFeatures, blend: Blend) -> dict[str, NDArray[Any]]:
    """Return all numbers of a model."""
    maps = {field.name: getattr(public, field.name) for field in fields(public) if field.name != "narrowing"}
    numbers = {f"public_{name}": value for name, value in maps.items() if value is not None}
    if public.narrowing is not None:
        numbers |= {"narrow_matrix": public.narrowing.matrix, "narrow_shift": public.narrowing.shift}
    numbers |= {"linear_weights": blend.linear.weights}
    numbers |= {f"linear_{name}": getattr(blend.linear, name) for name in _LINEAR}
    numbers |= {f"blend_{name}": getattr(blend, name) for name in _BLEND}
    numbers |= {f"known_{name}": getattr(blend.knowledge, name) for name in (*_KNOWN, "sums")}
    if blend.trees is not None:
        forest = blend.trees if isinstance(blend.trees, Forest) else Forest.of(blend.trees)
        numbers |= {f"trees_{name}": array for name, array in forest.as_arrays().items()}
    return {name: np.asarray(value) for name, value in numbers.items()}


def from_arrays(arrays: Arrays) -> tuple[PublicFeatures, Blend]:
    """Return the model that numbers make; numbers that make none raise whatever comes first."""
    return _public(arrays), _blend(arrays)


def _public(arrays: Arrays) -> PublicFeatures:
    maps: dict[str, Any] = {
        field.name: np.asarray(arrays[f"public_{field.name}"], dtype=np.float64)
        for field in fields(PublicFeatures)
        if field.name not in ("narrowing", "waves", "block", "directions", "direction_ranks")
    }
    for name in ("directions", "direction_ranks"):
        array = arrays.get(f"public_{name}")
        maps[name] = None if array is None else np.asarray(array, dtype=np.float64)
    waves, block = int(one_number(arrays["public_waves"])), arrays["public_block"].astype(np.int64)
    if not 1 <= waves <= 64 or (block < 0).any() or (block > 3).any() or (maps["scale"] <= 0).any():
        raise ValueError("the maps of features are damaged")
    narrowing = None
    if "narrow_matrix" in arrays:
        narrowing = Narrowing(*(np.asarray(arrays[f"narrow_{name}"], np.float64) for name in ("matrix", "shift")))
    return PublicFeatures(**maps, waves=waves, block=block, narrowing=narrowing)


def _blend(arrays: Arrays) -> Blend:
    weights = np.asarray(arrays["linear_weights"], dtype=np.float32)
    mean, explained, rest = (one_number(arrays[f"linear_{name}"]) for name in _LINEAR)
    linear = Posterior(weights, mean, explained, rest, likely=())
    numbers = {name: one_number(arrays[f"known_{name}"]) for name in _KNOWN}
    known = Knowledge(**numbers, sums=int(one_number(arrays["known_sums"])))
    trees: Any = None
    if "trees_sizes" in arrays:
        trees = Forest.from_arrays({name.removeprefix("trees_"): array for name, array in arrays.items()})
    weight, rest, error = (one_number(arrays[f"blend_{name}"]) for name in _BLEND)
    if not known.low < known.high or not 0 <= weight <= 1:
        raise ValueError("the bounds or the share of the trees are damaged")
    return Blend(linear, trees, weight, rest, error, known)
