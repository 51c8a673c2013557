"""How wrong is a model? Its mean squared error on true labels, from what is private already.

With predictions f and labels y, (f − y)² = f² − 2fy + y². An unbiased private label gives the first two terms. The
last needs a channel that distinguishes y², too: the variance of its unbiased label is a quadratic function of y,
but not a + by − y², as it is for two points, where labels at the middle look like labels at both ends.
"""

from __future__ import annotations

import math
import warnings
from collections.abc import Collection, Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.pipeline import Pipeline

from labeldp._arrays import Array
from labeldp._values import Labels
from labeldp.errors import LabelError, NotUnbiasedError, ParameterError
from labeldp.estimators.label_regressor import LabelReleaseRegressor
from labeldp.estimators.quality import How, Risk, as_metrics, rmse_of
from labeldp.estimators.row_release import RowRelease
from labeldp.estimators.seen_rows import refuse_seen_rows
from labeldp.estimators.wrappers import DEEPEST, innermost
from labeldp.histogram import Histogram
from labeldp.ledger import Budget
from labeldp.mechanisms import Mechanism
from labeldp.release import Release
from labeldp.release.scores import Figure
from labeldp.tabular import refuse_other_order, row_count


def private_risk(
    model: Any,
    X: Any,
    release: Release | RowRelease,
    *,
    rows: Any = None,
    metrics: Collection[str] | str = ("mse",),
) -> Risk:
    """Return how wrong a model is on true labels, estimated from a release, at no further cost.

    With the default mechanism at ε of 1 or less, and few rows, there is often nothing to estimate it from: then
    this refuses, and `private_score` on fresh labels is the way.

    A model is too sure of labels that it was trained on. Give rows that it was not trained on, with ``rows`` if
    they are a part of the release. For a `LabelReleaseRegressor` and its own ``release_``, alone or as the last
    step of a pipeline or a search, that is done here: models like it are fitted again without some rows of the
    last round, and judged on those.

    Parameters
    ----------
    model : regressor
        Anything with ``predict``.
    X : array-like
        Features of the rows to judge by.
    release : Release or RowRelease
        Their private labels.
    rows : array of int or bool, optional
        Which rows of the release ``X`` holds; all by default. Where the estimate rests on the prior, they should
        be a random part: the prior is that of all labels.
    metrics : collection of {"mse", "rmse", "r2"}
        What to estimate: the mean squared error with its root, in the label's unit, and R². The labels' variance
        in R² is a private estimate as well. A mean absolute error cannot be estimated from a release.

    Returns
    -------
    Risk

    Raises
    ------
    NotUnbiasedError
        If neither the mechanism nor a prior gives the labels' spread, or there are no unbiased labels at all; or
        for a mean absolute error.
    ParameterError
        If something in ``model`` was trained on these labels, and rows held out of it cannot be had.

    Warns
    -----
    UserWarning
        If the estimate is clearly below 0: then the model has seen these labels.

    Examples
    --------
    >>> import numpy as np, labeldp as ldp
    >>> from sklearn.linear_model import Ridge
    >>> X = np.random.default_rng(0).normal(size=(20_000, 3))
    >>> y = np.clip(2.5 + X[:, 0], 0, 5)
    >>> release = ldp.privatize(y, epsilon=2.0, bounds=(0, 5))
    >>> model = Ridge().fit(X[:10_000], release.debiased[:10_000])      # trained on one half,
    >>> rows = np.arange(10_000, 20_000)                                # judged on the other, for free
    >>> risk = ldp.private_risk(model, X[rows], release, rows=rows)
    >>> risk.cost
    Budget(epsilon=0.0)
    """
    if not isinstance(release, Release | RowRelease):
        raise ParameterError("release must come from privatize or from release_ of a LabelReleaseRegressor")
    wanted = as_metrics(metrics)
    if "mae" in wanted:
        raise NotUnbiasedError(
            "a mean absolute error cannot be estimated from private labels: their noise is added to errors before "
            "the sign is dropped, and cannot be taken off again; ask for metrics=['rmse'], or use private_score "
            "on fresh labels with metrics=['mae']"
        )
    total = len(release.labels)
    index = np.arange(total) if rows is None else _row_index(rows, total)
    optimism = 1.0
    own = _find_owner(model, release) if isinstance(release, RowRelease) else None
    if own is None:
        predicted = predictions(model, X, index.size)
    else:
        if rows is not None or row_count(X) != total:
            raise ParameterError(
                f"this model was trained on these very labels: leave out rows, and give all {total:,} rows of X "
                "as it was fitted; it is then judged by models like it that did not see the rows they judge by"
            )
        regressor, steps = own
        for step in steps:
            X = step.transform(X)
        index, predicted = regressor.predict_held_out(X)
        optimism = max(1 - 2 * regressor.release_.knowledge.sums / total, 0.5)
    terms_of = _terms_by_rows if isinstance(release, RowRelease) else _terms_by_release
    terms, hidden, how = terms_of(predicted, release, index)
    mse = _mean(terms / optimism)
    figures = {"mse": mse, "rmse": rmse_of(mse)}
    if "r2" in wanted:
        labels = (release.labels if isinstance(release, RowRelease) else release.debiased).reshape(-1)[index]
        around, _, _ = terms_of(np.full(index.size, labels.mean()), release, index)
        figures["r2"] = _r2(terms / optimism, around + labels.var() / index.size)
    if mse.value < -2 * mse.standard_error:
        why = (
            "the model has probably learnt from these very labels, or the release is not of these rows; judge it "
            "by rows that it was not trained on, with rows=, or by private_score"
            if own is None
            else "noise made it so, and the error may be near 0; private_score on fresh labels tells more"
        )
        warnings.warn(
            f"the estimate is clearly below 0 ({mse}), which no squared error is: {why}", UserWarning, stacklevel=2
        )
    return Risk(figures, hidden, how, index.size, Budget(0), release.secure)


def _find_owner(model: Any, release: RowRelease) -> tuple[LabelReleaseRegressor, list[Pipeline]] | None:
    """Return the regressor inside a model that was trained on a release, and the steps that X takes to it.

    None if nothing in it was; if something was, but is only a part of what predicts, the model is refused.
    """
    inner, steps = innermost(model)
    if isinstance(inner, LabelReleaseRegressor) and _is_of(inner, release):
        return inner, steps
    if any(_is_of(one, release) for one in _regressors_in(model, DEEPEST, set())):
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


def _row_index(rows: Any, total: int) -> NDArray[np.int64]:
    index = np.asarray(rows)
    if index.dtype == bool and index.shape == (total,):
        index = np.flatnonzero(index)
    if index.ndim != 1 or index.dtype.kind not in "iu" or index.size == 0:
        raise ParameterError(f"rows must be places in the release, or {total:,} booleans")
    if index.min() < 0 or index.max() >= total or np.unique(index).size != index.size:
        raise ParameterError(f"rows must be different places from 0 to {total - 1:,}")
    return index.astype(np.int64)


def predictions(model: Any, X: Any, rows: int) -> Array:
    """Return a model's predictions for some rows, checked."""
    if not hasattr(model, "predict"):
        raise ParameterError(f"model must have predict, got {type(model).__name__}")
    predicted = np.asarray(model.predict(X), dtype=np.float64)
    if predicted.shape != (rows,):
        raise ParameterError(f"the model predicts {predicted.shape} values for {rows:,} rows of private labels")
    if not np.isfinite(predicted).all():
        raise ParameterError("the model's predictions must be finite")
    return predicted


def fresh_predictions(model: Any, X: Any, y: Any, why: str) -> tuple[Array, Array]:
    """Return labels of rows that a model was not trained on, and what it predicts for them."""
    labels = Labels.parse(y).values.astype(np.float64)
    if labels.ndim != 1:
        raise LabelError(f"labels must be one column, got shape {labels.shape}")
    refuse_other_order(X, y)
    predicted = predictions(model, X, labels.size)
    refuse_seen_rows(model, X, why)
    return labels, predicted


def _spread(mechanism: Mechanism, low: float, high: float) -> tuple[float, float, float] | None:
    """Return a, b and c with Var(unbiased label | y) = a + by + cy² on [low, high], or None if there are none.

    There are none, too, if c is −1: then y² is not distinguished.
    """
    points = np.linspace(low, high, 201)
    scale = high - low
    place = (points - low) / scale
    variance = mechanism.unbiased_variance(points) / scale**2
    c, b, a = np.polyfit(place, variance, 2)
    gap = float(np.abs(np.polyval([c, b, a], place) - variance).max())
    if gap > 1e-4 * max(1.0, float(variance.max())) or 1 + c < 1e-3:
        return None
    coefficients = (a * scale**2 - b * low * scale + c * low**2, b * scale - 2 * c * low, c)
    return float(coefficients[0]), float(coefficients[1]), float(coefficients[2])


def _terms_by_release(predicted: Array, release: Any, rows: NDArray[np.int64]) -> tuple[Array, float, How]:
    """Return each row's squared error, estimated, what clipping may hide of their mean, and what they rest on."""
    if len(release.mechanisms) > 1:
        raise ParameterError("the release has several label columns; judge a model of one label at a time")
    mechanism, prior, (low, high) = release.mechanism, release.prior, release.bounds[0]
    labels = release.debiased.reshape(-1)[rows]
    ends = mechanism.debias(mechanism.mean(np.array([low, high])))
    clipped = bool(np.abs(ends - [low, high]).max() > 1e-6 * (high - low))
    spread = _spread(mechanism, *np.clip(ends, low, high))
    if prior is None and (clipped or spread is None):
        raise NotUnbiasedError(
            "labels at the middle of the bounds and labels at both ends look the same after this mechanism, and "
            "there is no prior: use mechanism='rp' or 'laplace', or private_score on fresh labels"
            if spread is None
            else "labels were clipped, and no prior says how many: use private_score on fresh labels"
        )
    terms = predicted**2 - 2 * predicted * labels
    more = hidden = 0.0
    if spread is not None:
        a, b, c = spread
        terms += (labels**2 - a - b * labels) / (1 + c)
    if prior is not None and (clipped or spread is None):
        values, masses = _values(prior)
        clipped_values = np.clip(values, *ends)
        if spread is None:
            more += float(masses @ clipped_values**2)
        cut = values - clipped_values  # (f − y)² = (f − c)² − 2(f − c)g + g², for y = c + g
        more += float(masses @ (2 * clipped_values * cut + cut**2)) - 2 * float(predicted.mean() * (masses @ cut))
        hidden = 2 * float(predicted.std()) * math.sqrt(float(masses @ (cut - masses @ cut) ** 2))
    how: How = "prior" if clipped or spread is None else "unbiased"
    return terms + more, hidden, how


def _values(prior: Histogram) -> tuple[Array, Array]:
    """Return many values, and how likely the prior has them."""
    points = np.unique(np.concatenate([np.linspace(*prior.bounds, 4097), prior.nodes]))
    return (points[:-1] + points[1:]) / 2, np.diff(prior.cumulative(points))


def _terms_by_rows(predicted: Array, release: Any, rows: NDArray[np.int64]) -> tuple[Array, float, How]:
    """Return the same from labels in their own intervals.

    Where every mechanism distinguishes y², it is (z − f)² less the noise, plus what clipping hides. Else it is
    (f − s)² − 2(f − s)(z − s) plus the mean of (y − s)², if that was measured around the first predictions s.
    """
    known = release.knowledge
    if (known.low, known.high) != release.terms.bounds[0]:
        raise NotUnbiasedError(
            "the bounds were far too wide, so labels were clipped to a narrower range, found privately, and "
            "how far they lie outside is not known: use private_score on fresh labels, or give tighter bounds"
        )
    labels, part, hidden = release.labels[rows], release.part[rows], release.hidden[rows]
    spreads = {int(k): _spread(release.mechanisms[k], 0.0, 1.0) for k in np.unique(part)}
    clipped = release.clipped
    if all(spread is not None for spread in spreads.values()):
        noise = np.full(rows.size, np.nan)
        for k, spread in spreads.items():
            at = part == k
            a, b, c = spread or (0.0, 0.0, 0.0)
            scale = release.scale[rows][at]
            unit = (labels[at] - release.offset[rows][at]) / scale
            noise[at] = scale**2 * (a + b * unit + c * (unit**2 - a - b * unit) / (1 + c))
        how: How = "assumed" if clipped else "unbiased"
        terms = (labels - predicted) ** 2 - noise + hidden
        mean = _mean(terms)
        size = max(mean.value, 0.0) + 2 * mean.standard_error
    elif known.residual:
        start = release.start[rows]
        step = predicted - start
        terms = step**2 - 2 * step * (labels - start) + known.residual
        how = "assumed"
        size = float((step**2).mean())
    else:
        raise NotUnbiasedError(
            "labels at the middle of an interval and labels at both ends look the same after this release's "
            "mechanism, and their spread was not measured: use private_score on fresh labels (a new release with "
            "mechanism='rp' would, and costs again)"
        )
    return terms, 2 * math.sqrt(size * float(hidden.mean())) if clipped else 0.0, how


def _mean(terms: Array) -> Figure:
    error = float(terms.std(ddof=1) / math.sqrt(terms.size)) if terms.size > 1 else math.inf
    return Figure(float(terms.mean()), error)


def _r2(terms: Array, around: Array) -> Figure:
    """Return 1 − error/variance from estimates for each row, ± by both together; NaN if variance is noise."""
    error, variance = _mean(terms), _mean(around)
    if variance.value <= 2 * variance.standard_error:
        return Figure(math.nan, math.inf)
    rest = error.value / variance.value
    return Figure(1 - rest, _mean(terms - rest * around).standard_error / variance.value)
