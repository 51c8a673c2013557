"""What is around a model, or around a fit: what repeats it, or sees the labels themselves, which no ε covers."""

from __future__ import annotations

import inspect
import sys
import warnings
from collections.abc import Iterator
from contextlib import suppress
from threading import get_ident
from types import FrameType
from typing import Any

from sklearn.feature_selection import SelectorMixin
from sklearn.frozen import FrozenEstimator
from sklearn.pipeline import Pipeline
from sklearn.utils import get_tags

from labeldp.errors import RawLabelWarning, RepeatedReleaseWarning

_REPEATS = (
    "sklearn.model_selection.",
    "sklearn.ensemble.",
    "sklearn.feature_selection._rfe.",
    "sklearn.linear_model._ransac.",
    "sklearn.multioutput.",
)
_REPLACES = ("sklearn.ensemble._bagging._parallel_build_estimators", "sklearn.ensemble._weight_boosting.")
"""Where scikit-learn draws rows with replacement, unless a variable there named bootstrap is false."""
_SEES_LABELS = {
    "sklearn.compose._target.": "TransformedTargetRegressor fits or tries its transformer on them",
    "sklearn.ensemble._stacking.": "a stacking ensemble fits its other estimators to them",
    "sklearn.ensemble._weight_boosting.": "AdaBoost weighs rows and members by errors on them",
    "sklearn.ensemble._gb.": "gradient boosting fits its trees to them",
    "sklearn.multioutput._BaseChain.": "a chain of regressors makes features of them",
    "sklearn.linear_model._ransac.": "RANSAC chooses rows by errors on them",
    "sklearn.feature_selection._rfe.RFECV.": "RFECV chooses features by scores on them",
    "sklearn.feature_selection._rfe._rfe_single_fit": "RFECV chooses features by scores on them",
}
"""Where scikit-learn's code is, and what it does with labels there."""

_JOBLIB_CALL = "joblib.parallel.Parallel."
_REPLACED = (
    " Rows that are drawn with replacement are released several times in one fit, which the ledger does not "
    "count: use bootstrap=False, or a rows_per_person that no row's copies exceed."
)


DEEPEST = 12
"""Wrappers are looked into this deep."""


def innermost(model: Any) -> tuple[Any, list[Pipeline]]:
    """Return what predicts inside pipelines, searches and frozen models, and the steps that X takes to it."""
    steps: list[Pipeline] = []
    for _ in range(DEEPEST):
        if isinstance(model, Pipeline):
            steps += [model[:-1]] if len(model) > 1 else []
            model = model[-1]
        elif isinstance(model, FrozenEstimator):
            model = model.estimator
        elif hasattr(model, "best_estimator_"):
            model = model.best_estimator_
        else:
            break
    return model, steps


def warn_of_wrappers(stacklevel: int) -> None:
    """Warn of callers that fit again and again, and of those that see labels, as far as the stack shows."""
    repeated, replaced, reasons = False, False, list[str]()
    for place, frame in _places_around(sys._getframe(1)):
        repeated = repeated or place.startswith(_REPEATS)
        replaced = replaced or (place.startswith(_REPLACES) and bool(frame.f_locals.get("bootstrap", True)))
        reasons += [why for start, why in _SEES_LABELS.items() if place.startswith(start)]
        if frame.f_code.co_name.startswith("fit") and isinstance(around := frame.f_locals.get("self"), Pipeline):
            reasons += _reasons_in(around)
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
            "this fit is one of several in a search, a cross-validation, a selection of features, an ensemble or "
            "for several labels of a row: each releases the labels again and costs epsilon again; scores on the "
            "labels themselves, choices by such scores, and members that are not private have no epsilon at all. "
            "Release once (privatize, or release_ of a LabelReleaseRegressor), then search and validate on the "
            "release, for free." + (_REPLACED if replaced else ""),
            RepeatedReleaseWarning,
            stacklevel=stacklevel,
        )


def _places_around(frame: FrameType) -> list[tuple[str, FrameType]]:
    """Return the frames of a call and where their code is, with those of joblib's callers if it is in a worker."""
    places = _stack(frame)
    jobs = [place for place, _ in places if place.startswith("joblib.")]
    if jobs and not jobs[-1].startswith(_JOBLIB_CALL):  # a worker is outermost: its caller is in another thread
        others = [_stack(top) for thread, top in sys._current_frames().items() if thread != get_ident()]
        for other in others:
            if any(place.startswith(_JOBLIB_CALL) for place, _ in other):
                places += other
    return places


def _stack(frame: FrameType | None) -> list[tuple[str, FrameType]]:
    """Return a frame and its callers, each with its module and qualified name."""
    places = []
    while frame is not None:
        places.append((f"{frame.f_globals.get('__name__', '')}.{frame.f_code.co_qualname}", frame))
        frame = frame.f_back
    return places


def _reasons_in(around: Pipeline) -> list[str]:
    """Return what a pipeline does with the labels before they reach its last step."""
    steps = [step for _, step in around.steps[:-1]]
    reasons = [
        f"{type(step).__name__}, a step of a pipeline, learns from them"
        for step in steps
        if learns_from_labels(step)
    ]
    inner = [part for step in steps for part in _parts(step)]
    if any(isinstance(one, Pipeline) and one.memory is not None for one in (around, *inner)):
        reasons.append("a cached pipeline (memory=...) writes them to its cache folder")
    return reasons


def learns_from_labels(step: Any) -> bool:
    """Return whether a step of a pipeline learns from labels, as far as it or a part of it declares."""
    return any(_needs_labels(part) for part in _parts(step))


def _parts(step: Any) -> Iterator[Any]:
    """Yield a step and the estimators among its parameters, all that have a fit and get the labels."""
    if not hasattr(step, "fit"):  # "passthrough", say
        return
    yield step
    inner: dict[str, Any] = {}
    if not type(step).__module__.startswith("sklearn.impute."):  # an imputer's model predicts columns, not labels
        with suppress(Exception):  # third-party steps may raise anything
            inner = step.get_params()
    for name, part in inner.items():
        if "__" not in name:
            yield from _parts(part)


def _needs_labels(step: Any) -> bool:
    """Return whether an estimator by itself asks for labels; a selector passes them to any score_func."""
    with suppress(Exception):  # as above
        if get_tags(step).target_tags.required:
            return True
    if isinstance(step, SelectorMixin) and hasattr(step, "score_func"):
        return True
    with suppress(TypeError, ValueError):
        y = inspect.signature(step.fit).parameters.get("y")
        return y is not None and y.default is y.empty
    return False
