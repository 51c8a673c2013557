"""How wrong is a model on fresh labels? A curator's sum of squared errors, for a stated price."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from numpy.typing import NDArray

from labeldp._validation import as_bounds, as_epsilon, as_fraction, as_labels, as_roomy_bounds
from labeldp.errors import LabelError, ParameterError
from labeldp.estimators.risk import Risk, predictions
from labeldp.ledger import Budget, Ledger, as_ledger, new_charge, warn_if_seen
from labeldp.priors.curator import grid_sum, mean_noise, noisy_mean
from labeldp.randomness import SecureWords, WordSource, resolve_source
from labeldp.release.plan import Payment

__all__ = ["private_score"]

Array = NDArray[np.float64]


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
        Public or private already: its predictions count as public.
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
    labels = as_labels(y).astype(np.float64)
    if labels.ndim != 1:
        raise LabelError(f"labels must be one column, got shape {labels.shape}")
    predicted = predictions(model, X, labels.size)
    most = _largest_error(predicted, low, high)
    if not np.isfinite(most):
        raise ParameterError(
            "the model's predictions are too far from the bounds for squared errors to be numbers"
        )
    ledger = as_ledger(ledger)
    source = resolve_source(random_state)
    charge = new_charge("score", Budget(budget), purpose="score", rows_per_person=rows_per_person)
    if ledger is None:
        warn_if_seen(y)
        ledger = Ledger()
    Payment(ledger, [charge]).describe([str(mean_noise(budget))])
    with np.errstate(all="ignore"):  # a warning that depends on labels would leak them
        total = grid_sum((predicted - np.clip(labels, low, high)) ** 2, (0.0, most))
    mean, variance = noisy_mean(total, labels.size, (0.0, most), budget, source)
    inside = float(np.clip(mean, 0.0, most))
    chance = inside * (most - inside) / labels.size  # a mean of values in [0, most] varies by no more
    secure = isinstance(source, SecureWords)
    return Risk(mean, math.sqrt(variance + chance), 0.0, "curator", labels.size, charge.budget, secure)


def _largest_error(predicted: Array, low: float, high: float) -> float:
    """Return the largest squared error that any label in the bounds could have."""
    with np.errstate(over="ignore"):
        return float(np.maximum((predicted - low) ** 2, (high - predicted) ** 2).max())
