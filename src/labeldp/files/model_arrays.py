"""A model's numbers as arrays, and a model from such arrays."""

from __future__ import annotations

import os
from dataclasses import fields
from typing import Any

import numpy as np

from labeldp._array_files import Arrays, ArraySpec, read_arrays
from labeldp.errors import CardError
from labeldp.estimators.bayes import Posterior
from labeldp.estimators.features import (
    ALL_PAIRS,
    FOURIER,
    PAIRED,
    WAVES,
    WIDE,
    Narrowing,
    PublicFeatures,
    wave_count,
)
from labeldp.estimators.learner import Blend, Knowledge
from labeldp.files.forest import FOREST, MAX_NODES, MAX_TREES, Forest

_NUMBER, _SHARE, _COUNT = ArraySpec("<f8"), ArraySpec("<f8", (), 0, 1), ArraySpec("<i8", (), 0)
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
    "public_block": ArraySpec("<i8", ("features",), 0, 3),
    "narrow_matrix": ArraySpec("<f8", ("numbers", "columns")),
    "narrow_shift": ArraySpec("<f8", ("columns",)),
    "linear_weights": ArraySpec("<f4", ("coefficients",)),
    **{f"linear_{name}": _NUMBER for name in ("mean", "explained", "rest")},
    **{"blend_weight": _SHARE, "blend_rest": _NUMBER, "blend_error": _NUMBER},
    **{f"known_{name}": _NUMBER for name in ("low", "high", "variance", "residual")},
    "known_sums": _COUNT,
    **{f"trees_{name}": spec for name, spec in FOREST.items()},
}
"""All arrays that a model can have."""

OPTIONAL = ("public_direction", "narrow_", "trees_")
"""Few columns are paired without directions, few are not narrowed, and not every model has trees."""

_SIZES = {
    "columns": (1, WIDE),
    "quantiles": (2, 255),
    "directions": (1, PAIRED),
    "frequencies": (1, FOURIER),
    "features": (1, 1 << 14),
    "coefficients": (2, 1 + (1 << 14)),
    "trees": (1, MAX_TREES),
    "nodes": (1, MAX_NODES),
}


def as_arrays(public: PublicFeatures, blend: Blend) -> Arrays:
    """Return all numbers of a model."""
    maps = {field.name: getattr(public, field.name) for field in fields(public) if field.name != "narrowing"}
    parts: dict[str, dict[str, Any]] = {
        "public": {name: value for name, value in maps.items() if value is not None},
        "narrow": {} if public.narrowing is None else {name: getattr(public.narrowing, name) for name in _NARROW},
        "linear": {name: getattr(blend.linear, name) for name in _LINEAR},
        "blend": {name: getattr(blend, name) for name in _BLEND},
        "known": {name: getattr(blend.knowledge, name) for name in _KNOWN},
    }
    if blend.trees is not None:
        forest = blend.trees if isinstance(blend.trees, Forest) else Forest.of(blend.trees)
        parts["trees"] = forest.as_arrays()
    named = {f"{part}_{name}": value for part, values in parts.items() for name, value in values.items()}
    return {name: np.asarray(value, dtype=MODEL_ARRAYS[name].dtype) for name, value in named.items()}


def _names(part: str) -> list[str]:
    return [name.removeprefix(part) for name in MODEL_ARRAYS if name.startswith(part)]


_NARROW, _LINEAR, _BLEND, _KNOWN = map(_names, ("narrow_", "linear_", "blend_", "known_"))


def read_model_arrays(path: str | os.PathLike[str], numbers: int) -> tuple[PublicFeatures, Blend]:
    """Return the model in a file, for rows that are so many numbers.

    Raises
    ------
    CardError
        If the arrays are not those of a model, or do not fit together.
    """
    arrays = read_arrays(path, MODEL_ARRAYS, {**_SIZES, "numbers": (numbers, numbers)}, optional=OPTIONAL)

    def part(name: str) -> dict[str, Any]:
        """Return the arrays of a part by their own names, and those without dimensions as numbers."""
        found = {each.removeprefix(name): array for each, array in arrays.items() if each.startswith(name)}
        return {each: array if array.ndim else array.item() for each, array in found.items()}

    narrowing = Narrowing(**part("narrow_")) if part("narrow_") else None
    maps = {"directions": None, "direction_ranks": None, **part("public_")}
    public = PublicFeatures(**maps, narrowing=narrowing)
    linear, known = Posterior(**part("linear_"), likely=()), Knowledge(**part("known_"))
    trees: Any = Forest.from_arrays(part("trees_")) if part("trees_") else None
    columns = len(public.center)
    fits = (
        (narrowing is not None or columns == numbers)
        and public.waves == wave_count(columns)
        and (public.directions is not None) == (columns > ALL_PAIRS)
        and np.array_equal(public.block, np.repeat(np.arange(4), public.block_sizes()))
        and linear.weights.size == public.size
        and (trees is None or trees.features == columns)
        and known.low < known.high
    )
    if not fits:
        raise CardError("the model's arrays do not fit together")
    return public, Blend(linear, trees, **part("blend_"), knowledge=known)
