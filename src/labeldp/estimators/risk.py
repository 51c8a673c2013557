"""How wrong is a model? Its mean squared error on true labels, from what is private already.

With predictions f and labels y, (f − y)² = f² − 2fy + y². An unbiased private label gives the first two terms. The
last needs a channel that distinguishes y², too: the variance of its unbiased label is a quadratic function of y,
but not a + by − y², as it is for two points, where labels at the middle look like labels at both ends.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from labeldp.errors import NotUnbiasedError, ParameterError
from labeldp.estimators.label_regressor import LabelReleaseRegressor
from labeldp.estimators.row_release import RowRelease
from labeldp.histogram import Histogram
from labeldp.ledger import Budget
from labeldp.mechanisms import Mechanism
from labeldp.release import Release

__all__ = ["Risk", "predictions", "private_risk"]

Array = NDArray[np.float64]

How = Literal["unbiased", "prior", "assumed", "curator"]

_BASIS = {
    "unbiased": "Unbiased: it follows from the private labels alone.",
    "prior": "It rests on the private prior for the labels' own spread, whose error is not in the ± above.",
    "assumed": "What clipping hides follows from an assumed shape of residuals; its error is not in the ± above.",
    "curator": "A curator's sum of squared errors; ± holds its noise, and the most that chance in the rows adds.",
}


@dataclass(frozen=True, slots=True, repr=False)
class Risk:
    """An estimate of a model's mean squared error on true labels.

    Attributes
    ----------
    mse : float
        The estimate. Unbiased estimates of a small error may be below 0.
    standard_error : float
        Of the estimate, by noise and by the choice of rows.
    hidden : float
        The most by which clipping may have moved the estimate, by the prior; 0 if no label was clipped.
    how : {"unbiased", "prior", "assumed", "curator"}
        What it rests on.
    rows : int
    cost : Budget
        What it cost, beyond what was private already.
    secure : bool
        False if the noise came from a seed: then this is an experiment, and **not private**.
    """

    mse: float
    standard_error: float
    hidden: float
    how: How
    rows: int
    cost: Budget
    secure: bool

    def __repr__(self) -> str:
        words = "secure" if self.secure else "NOT PRIVATE"
        return f"<Risk: {self._estimate()} from {self.rows:,} rows, {self.cost}, {words}>"

    def _estimate(self) -> str:
        return f"mean squared error {self.mse:.4g} ± {self.standard_error:.2g}"

    def summary(self) -> str:
        """Return the estimate, for people."""
        lines = [f"{self._estimate()}, from {self.rows:,} rows"]
        if not self.secure:
            lines.append("  NOT PRIVATE: the noise can be repeated from a seed.")
        lines.append(f"  {_BASIS[self.how]}")
        if self.mse < 2 * self.standard_error:
            lines.append("  The noise is as large as the error itself: this says little.")
        if self.hidden:
            lines.append(f"  Labels were clipped: that may hide up to {self.hidden:.2g} more or less.")
        lines.append(f"  Cost: {self.cost}." if self.cost.epsilon else "  It cost nothing more.")
        return "\n".join(lines)


def private_risk(model: Any, X: Any, release: Release | RowRelease, *, rows: Any = None) -> Risk:
    """Return a model's mean squared error on true labels, estimated from a release, at no further cost.

    With the default mechanism at ε of 1 or less, and few rows, there is often nothing to estimate it from: then
    this refuses, and `private_score` on fresh labels is the way.

    A model is too sure of labels that it was trained on. Give rows that it was not trained on, with ``rows`` if
    they are a part of the release. For a `LabelReleaseRegressor` and its own ``release_`` that is done here:
    models like it are fitted again without some rows of the last round, and judged on those.

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

    Returns
    -------
    Risk

    Raises
    ------
    NotUnbiasedError
        If neither the mechanism nor a prior gives the labels' spread, or there are no unbiased labels at all.

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
    total = len(release.labels)
    index = np.arange(total) if rows is None else _row_index(rows, total)
    if isinstance(release, RowRelease) and _trained_on(model, release):
        if rows is not None or np.shape(X)[:1] != (total,):
            raise ParameterError(
                f"this model was trained on these very labels: leave out rows, and give all {total:,} rows of X "
                "as it was fitted; it is then judged by models like it that did not see the rows they judge by"
            )
        index, predicted = model.predict_held_out(X)
        risk = _risk_by_rows(predicted, release, index)
        return replace(risk, mse=risk.mse / max(1 - 2 * release.knowledge.sums / total, 0.5))
    predicted = predictions(model, X, index.size)
    if isinstance(release, RowRelease):
        return _risk_by_rows(predicted, release, index)
    return _risk_by_release(predicted, release, index)


def _trained_on(model: Any, release: RowRelease) -> bool:
    own = getattr(model, "release_", None) if isinstance(model, LabelReleaseRegressor) else None
    return isinstance(own, RowRelease) and np.array_equal(own.labels, release.labels)


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
    predicted = np.asarray(model.predict(X), dtype=np.float64)
    if predicted.shape != (rows,):
        raise ParameterError(f"the model predicts {predicted.shape} values for {rows:,} rows of private labels")
    if not np.isfinite(predicted).all():
        raise ParameterError("the model's predictions must be finite")
    return predicted


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


def _risk_by_release(predicted: Array, release: Release, rows: NDArray[np.int64]) -> Risk:
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
    return _risk(terms + more, hidden, how, release.secure)


def _values(prior: Histogram) -> tuple[Array, Array]:
    """Return many values, and how likely the prior has them."""
    points = np.unique(np.concatenate([np.linspace(*prior.bounds, 4097), prior.nodes]))
    return (points[:-1] + points[1:]) / 2, np.diff(prior.cumulative(points))


def _risk_by_rows(predicted: Array, release: RowRelease, rows: NDArray[np.int64]) -> Risk:
    """Return the risk from labels in their own intervals.

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
        risk = _risk((labels - predicted) ** 2 - noise + hidden, 0.0, how, release.secure)
        size = max(risk.mse, 0.0) + 2 * risk.standard_error
    elif known.residual:
        start = release.start[rows]
        step = predicted - start
        terms = step**2 - 2 * step * (labels - start) + known.residual
        risk = _risk(terms, 0.0, "assumed", release.secure)
        size = float((step**2).mean())
    else:
        raise NotUnbiasedError(
            "labels at the middle of an interval and labels at both ends look the same after this release's "
            "mechanism, and their spread was not measured: use private_score on fresh labels (a new release with "
            "mechanism='rp' would, and costs again)"
        )
    return replace(risk, hidden=2 * math.sqrt(size * float(hidden.mean())) if clipped else 0.0)


def _risk(terms: Array, hidden: float, how: How, secure: bool) -> Risk:
    error = float(terms.std(ddof=1) / math.sqrt(terms.size)) if terms.size > 1 else math.inf
    return Risk(float(terms.mean()), error, hidden, how, terms.size, Budget(0), secure)
