"""What is around a fit: something that repeats it, or that sees the labels themselves, which no ε covers."""

from __future__ import annotations

import inspect
import sys
import warnings
from contextlib import suppress
from typing import Any

from sklearn.compose import ColumnTransformer
from sklearn.feature_selection import SelectorMixin
from sklearn.pipeline import FeatureUnion, Pipeline
from sklearn.utils import get_tags

from labeldp.errors import RawLabelWarning, RepeatedReleaseWarning

__all__ = ["learns_from_labels", "warn_of_wrappers"]

_REPEATS = ("sklearn.model_selection.", "sklearn.ensemble.")
_SEES_LABELS = {
    "sklearn.compose._target.": "TransformedTargetRegressor fits or tries its transformer on them",
    "sklearn.ensemble._stacking.": "a stacking ensemble fits its other estimators to them",
    "sklearn.ensemble._weight_boosting.": "AdaBoost weighs rows and members by errors on them",
    "sklearn.ensemble._gb.": "gradient boosting fits its trees to them",
    "sklearn.multioutput._BaseChain.": "a chain of regressors makes features of them",
}
"""Where scikit-learn's code is, and what it does with labels there."""


def warn_of_wrappers(stacklevel: int) -> None:
    """Warn of callers that fit again and again, and of those that see labels, as far as the stack tells."""
    repeated, reasons = False, list[str]()
    frame = sys._getframe(1)
    while frame is not None:
        code = frame.f_code
        place = f"{frame.f_globals.get('__name__', '')}.{code.co_qualname}"
        repeated = repeated or place.startswith(_REPEATS)
        reasons += [why for start, why in _SEES_LABELS.items() if place.startswith(start)]
        if code.co_name.startswith("fit") and isinstance(around := frame.f_locals.get("self"), Pipeline):
            steps = [type(step).__name__ for _, step in around.steps[:-1] if learns_from_labels(step)]
            reasons += [f"{name}, a step of a pipeline, learns from them" for name in steps]
        frame = frame.f_back  # type: ignore[assignment]
    if reasons:
        warnings.warn(
            "something around this regressor sees the labels themselves: "
            f"{'; '.join(dict.fromkeys(reasons))}. That part has no epsilon at all, and what it learns must not "
            "leave. Release the labels once (privatize, or release_ of a LabelReleaseRegressor), and fit all of "
            "it to the release.",
            RawLabelWarning,
            stacklevel=stacklevel,
        )
    if repeated:
        warnings.warn(
            "this fit is one of several in a search, a cross-validation or an ensemble: each releases the "
            "labels again and costs epsilon again; scores on the labels themselves, choices by such scores, and "
            "members that are not private have no epsilon at all. Release once (privatize, or release_ of a "
            "LabelReleaseRegressor), then search and validate on the release, for free.",
            RepeatedReleaseWarning,
            stacklevel=stacklevel,
        )


def learns_from_labels(step: Any) -> bool:
    """Return whether a step of a pipeline learns from labels, as far as it or a part of it tells."""
    if not hasattr(step, "fit"):  # "passthrough", say
        return False
    if isinstance(step, Pipeline | FeatureUnion | ColumnTransformer | SelectorMixin):
        parts = [part for name, part in step.get_params().items() if "__" not in name]
        if any(learns_from_labels(part) for part in parts):
            return True
    with suppress(Exception):  # whatever other people's steps raise when asked
        if get_tags(step).target_tags.required:
            return True
    return _asks_for_labels(step.fit) or _asks_for_labels(getattr(step, "score_func", None))


def _asks_for_labels(function: Any) -> bool:
    """Return whether a function has an argument y that must be given."""
    with suppress(TypeError, ValueError):
        given = inspect.signature(function).parameters.get("y")
        return given is not None and given.default is given.empty
    return False
