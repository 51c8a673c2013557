"""How wrong is a model? Its mean squared error on true labels, from what is private already, or at a stated price.

With predictions f and labels y, (f − y)² = f² − 2fy + y². An unbiased private label gives the first two terms. The
last needs a channel that tells y² apart, too: the variance of its unbiased label is a quadratic function of y, but
not a + by − y², as it is for two points, where labels at the middle look like labels at both ends.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from labeldp._checks import as_bounds, as_epsilon, as_fraction, as_labels, as_roomy_bounds
from labeldp.channels.noise import DiscreteLaplace
from labeldp.errors import LabelError, NotUnbiasedError, ParameterError
from labeldp.estimators.label_regressor import LabelReleaseRegressor
from labeldp.estimators.row_release import RowRelease
from labeldp.histogram import Histogram
from labeldp.ledger import Budget, Ledger, new_charge
from labeldp.mechanisms import Mechanism
from labeldp.randomness import WordSource, resolve_source
from labeldp.release import Release

__all__ = ["Risk", "private_risk", "private_score"]

Array = NDArray[np.float64]

GRID = 1 << 20
"""A squared error is an integer from 0 to this where squared errors are summed."""

_SAYS = {
    "unbiased": "Unbiased: it follows from the private labels alone.",
    "prior": "It rests on the private prior for the labels' own spread, whose error is not in the ± above.",
    "curator": "A curator's sum of squared errors, with noise for its worst change.",
}


@dataclass(frozen=True, slots=True)
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
    how : {"unbiased", "prior", "curator"}
        What it rests on.
    rows : int
    cost : Budget
        What it cost, beyond what was private already.
    """

    mse: float
    standard_error: float
    hidden: float
    how: Literal["unbiased", "prior", "curator"]
    rows: int
    cost: Budget

    def summary(self) -> str:
        """Return the estimate, for people."""
        lines = [f"mean squared error {self.mse:.4g} ± {self.standard_error:.2g}, from {self.rows:,} rows"]
        lines.append(f"  {_SAYS[self.how]}")
        if self.hidden:
            lines.append(f"  Labels were clipped: that may hide up to {self.hidden:.2g} more or less.")
        lines.append(f"  Cost: {self.cost}." if self.cost.epsilon else "  It cost nothing more.")
        return "\n".join(lines)


def private_risk(model: Any, X: Any, release: Release | RowRelease, *, rows: Any = None) -> Risk:
    """Return a model's mean squared error on true labels, estimated from a release, at no further cost.

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
        Which rows of the release ``X`` holds; all by default.

    Returns
    -------
    Risk

    Raises
    ------
    NotUnbiasedError
        If neither the mechanism nor a prior tells the labels' spread, or there are no unbiased labels at all.

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
    chosen = np.arange(total) if rows is None else _chosen(rows, total)
    own = isinstance(model, LabelReleaseRegressor) and getattr(model, "release_", None) is release
    if own and rows is None:
        chosen, predicted = model._held_out(model._inputs(X))
    else:
        predicted = _predictions(model, X, chosen.size)
    if isinstance(release, RowRelease):
        return _risk_by_rows(predicted, release, chosen)
    return _risk_by_release(predicted, release, chosen)


def _chosen(rows: Any, total: int) -> NDArray[np.int64]:
    index = np.asarray(rows)
    if index.dtype == bool and index.shape == (total,):
        index = np.flatnonzero(index)
    if index.ndim != 1 or index.dtype.kind not in "iu" or index.size == 0:
        raise ParameterError(f"rows must be places in the release, or {total:,} truth values")
    if index.min() < 0 or index.max() >= total or np.unique(index).size != index.size:
        raise ParameterError(f"rows must be different places from 0 to {total - 1:,}")
    return index.astype(np.int64)


def _predictions(model: Any, X: Any, rows: int) -> Array:
    predicted = np.asarray(model.predict(X), dtype=np.float64)
    if predicted.shape != (rows,):
        raise ParameterError(f"the model predicts {predicted.shape} values for {rows:,} rows of private labels")
    if not np.isfinite(predicted).all():
        raise ParameterError("the model's predictions must be finite")
    return predicted


def _spread(mechanism: Mechanism, low: float, high: float) -> tuple[float, float, float] | None:
    """Return a, b and c with Var(unbiased label | y) = a + by + cy² on [low, high], or None if there are none.

    There are none, too, if c is −1: then y² is not told apart.
    """
    points = np.linspace(low, high, 201)
    scale = high - low
    place = (points - low) / scale
    variance = mechanism.unbiased_variance(points) / scale**2
    c, b, a = np.polyfit(place, variance, 2)
    gap = float(np.abs(np.polyval([c, b, a], place) - variance).max())
    if gap > 1e-6 * max(1.0, float(variance.max())) or 1 + c < 1e-3:
        return None
    whole = (a * scale**2 - b * low * scale + c * low**2, b * scale - 2 * c * low, c)
    return float(whole[0]), float(whole[1]), float(whole[2])


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
        kept = np.clip(values, *ends)
        if spread is None:
            more += float(masses @ kept**2)
        gone = values - kept  # (f − y)² = (f − c)² − 2(f − c)g + g², for y = c + g
        more += float(masses @ (2 * kept * gone + gone**2)) - 2 * float(predicted.mean() * (masses @ gone))
        hidden = 2 * float(predicted.std()) * math.sqrt(float(masses @ (gone - masses @ gone) ** 2))
    how: Literal["unbiased", "prior"] = "prior" if clipped or spread is None else "unbiased"
    return _risk(terms + more, hidden, how)


def _values(prior: Histogram) -> tuple[Array, Array]:
    """Return many values, and how likely the prior has them."""
    points = np.unique(np.concatenate([np.linspace(*prior.bounds, 4097), prior.nodes]))
    return (points[:-1] + points[1:]) / 2, np.diff(prior.cumulative(points))


def _risk_by_rows(predicted: Array, release: RowRelease, rows: NDArray[np.int64]) -> Risk:
    """Return the risk from labels in their own intervals: (z − f)² − noise, plus what clipping hides."""
    labels, part = release.labels[rows], release.part[rows]
    noise = release.noise[rows].copy()
    rests_on_prior = bool(release.clipped)
    for k in np.unique(part):
        at = part == k
        spread = _spread(release.mechanisms[k], 0.0, 1.0)
        if spread is None:
            rests_on_prior = True
            continue
        a, b, c = spread
        scale = release.scale[rows][at]
        unit = (labels[at] - release.offset[rows][at]) / scale
        noise[at] = scale**2 * (a + b * unit + c * (unit**2 - a - b * unit) / (1 + c))
    terms = (labels - predicted) ** 2 - noise
    gone = release.hidden[rows]
    seen = max(float(terms.mean()), 0.0)
    hidden = 2 * math.sqrt(seen * float(gone.mean())) if release.clipped else 0.0
    return _risk(terms + gone, hidden, "prior" if rests_on_prior else "unbiased")


def _risk(terms: Array, hidden: float, how: Literal["unbiased", "prior"]) -> Risk:
    error = float(terms.std(ddof=1) / math.sqrt(terms.size)) if terms.size > 1 else math.inf
    return Risk(float(terms.mean()), error, hidden, how, terms.size, Budget(0))


def private_score(
    model: Any,
    X: Any,
    y: Any,
    *,
    epsilon: float,
    bounds: tuple[float, float],
    ledger: Ledger | None = None,
    rows_per_person: int = 1,
    random_state: int | WordSource | None = None,
) -> Risk:
    """Return a model's mean squared error on fresh test labels, for ε.

    A curator sums squared errors as integers and adds exact noise for the worst change of one label. Predictions
    inside the bounds keep that change small.

    Parameters
    ----------
    model : regressor
        Public or private already: its predictions are taken as known.
    X, y : array-like
        Public features, and private labels that the model was not trained on.
    epsilon : float
    bounds : (lo, hi)
        Public bounds of the label. Never read them off the data.
    ledger : Ledger, optional
    rows_per_person : int
    random_state : None, int or source of words
        Leave it out for a release.

    Returns
    -------
    Risk
        Its standard error holds the noise, and the most that the choice of rows could add.

    Examples
    --------
    >>> import numpy as np, labeldp as ldp
    >>> X = np.random.default_rng(0).normal(size=(5000, 3))
    >>> y = np.clip(2.5 + X[:, 0], 0, 5)
    >>> model = ldp.ModelReleaseRegressor(epsilon=1.0, bounds=(0, 5)).fit(X[:4000], y[:4000])
    >>> risk = ldp.private_score(model, X[4000:], y[4000:], epsilon=0.2, bounds=(0, 5))
    >>> risk.how, risk.cost
    ('curator', Budget(epsilon=0.2))
    """
    budget = as_fraction(as_epsilon(epsilon))
    as_roomy_bounds(bounds)
    low, high = as_bounds(bounds)
    labels = as_labels(y)
    if labels.ndim != 1:
        raise LabelError(f"labels must be one column, got shape {labels.shape}")
    predicted = _predictions(model, X, labels.size)
    if ledger is not None and not isinstance(ledger, Ledger):
        raise ParameterError("ledger must be a Ledger; for a file use Ledger.open(path, limit=...)")
    source = resolve_source(random_state)
    charge = new_charge("score", Budget(budget), rows_per_person=rows_per_person)
    ledger = Ledger() if ledger is None else ledger
    noise = DiscreteLaplace.calibrated(sensitivity=GRID, epsilon=budget)
    place = ledger.charge_all([charge])[0]
    ledger.describe(place, str(noise))
    return _noisy_mean(predicted, labels.astype(np.float64), (low, high), noise, source, charge.budget)


def _noisy_mean(
    predicted: Array,
    labels: Array,
    bounds: tuple[float, float],
    noise: DiscreteLaplace,
    source: WordSource,
    cost: Budget,
) -> Risk:
    """Return the mean of squared errors, each an integer from 0 to `GRID`, with noise for a change of `GRID`."""
    low, high = bounds
    most = float(np.maximum((predicted - low) ** 2, (high - predicted) ** 2).max())
    errors = (predicted - np.clip(labels, low, high)) ** 2
    steps = np.clip(np.rint(errors / most * GRID), 0, GRID).astype(np.int64)
    unit = most / GRID / labels.size
    mean = (int(steps.sum()) + int(noise.sample(1, source)[0])) * unit
    inside = float(np.clip(mean, 0.0, most))
    chance = inside * (most - inside) / labels.size  # a mean of values in [0, most] varies by no more
    return Risk(mean, math.sqrt(noise.variance() * unit**2 + chance), 0.0, "curator", labels.size, cost)
