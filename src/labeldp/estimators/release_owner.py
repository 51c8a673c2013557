"""Which regressor inside a model was trained on a release: alone, last in a pipeline, or in a search."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
from sklearn.pipeline import Pipeline

from labeldp.errors import ParameterError
from labeldp.estimators.label_regressor import LabelReleaseRegressor
from labeldp.estimators.row_release import RowRelease
from labeldp.estimators.wrappers import innermost

_DEEPEST = 12
"""Models are searched this deep, step in step."""


def find_owner(model: Any, release: RowRelease) -> tuple[LabelReleaseRegressor, list[Pipeline]] | None:
    """Return the regressor inside a model that was trained on a release, and the steps that X takes to it.

    None if nothing in it was; if something was, but is only a part of what predicts, the model is refused.
    """
    inner, steps = innermost(model)
    if isinstance(inner, LabelReleaseRegressor) and _is_of(inner, release):
        return inner, steps
    if any(_is_of(one, release) for one in _regressors_in(model, _DEEPEST, set())):
        raise ParameterError(
            f"a regressor inside this {type(model).__name__} was trained on these very labels, and what is around "
            "it predicts as well, so that rows held out of it cannot be had: give that regressor itself, or judge "
            "the whole by private_score on fresh labels"
        )
    return None


def _is_of(regressor: LabelReleaseRegressor, release: RowRelease) -> bool:
    own = getattr(regressor, "release_", None)
    return isinstance(own, RowRelease) and np.array_equal(own.labels, release.labels)


def _regressors_in(thing: Any, depth: int, seen: set[int]) -> Iterator[LabelReleaseRegressor]:
    """Yield the regressors among the attributes of an object, and among theirs."""
    if not depth or id(thing) in seen or isinstance(thing, str | bytes | np.ndarray | type):
        return
    seen.add(id(thing))
    if isinstance(thing, LabelReleaseRegressor):
        yield thing
    elif isinstance(thing, list | tuple | dict):
        for part in thing.values() if isinstance(thing, dict) else thing:
            yield from _regressors_in(part, depth - 1, seen)
    else:
        yield from _regressors_in(getattr(thing, "__dict__", {}), depth, seen)
