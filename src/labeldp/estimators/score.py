"""How wrong is a model on labels that it was not trained on? Sums of errors with noise, for a stated price."""

from __future__ import annotations

import sys
from collections.abc import Collection
from typing import Any

import numpy as np

from labeldp._arrays import Array
from labeldp._values import Epsilon, LabelBounds, as_fraction
from labeldp.errors import ParameterError
from labeldp.estimators.quality import Risk
from labeldp.estimators.score_sums import ScorePlan
from labeldp.estimators.seen_rows import fresh_predictions
from labeldp.ledger import Charge, Ledger, as_ledger, warn_if_seen
from labeldp.randomness import SecureWords, WordSource, resolve_source
from labeldp.release.scores import DEFAULT_METRICS


def private_score(
    model: Any,
    X: Any,
    y: Any,
    *,
    epsilon: float,
    bounds: tuple[float, float],
    metrics: Collection[str] | str = DEFAULT_METRICS,
    ledger: Ledger | None = None,
    rows_per_person: int = 1,
    random_state: int | WordSource | None = None,
    verbose: bool = False,
) -> Risk:
    """Return how wrong a model is on test labels, for ε.

    `fit_and_score` holds out rows itself, which a card can state. That rows given here were held out nobody can
    check: on a card, the costs of model and score add up.

    A curator sums errors as integers and adds exact noise for the worst change of one label. Predictions inside
    the bounds keep that change small.

    Parameters
    ----------
    model : regressor
        Public or private already: its predictions count as public.
    X : array-like
        Public features of rows that the model was not trained on.
    y : array-like
        Their private labels.
    epsilon : float
        For all figures together.
    bounds : (lo, hi)
        Public bounds of the label. Never read them off the data.
    metrics : collection of {"mse", "rmse", "mae", "r2"}
        What to estimate: the mean squared error with its root, in the label's unit; the mean absolute error, which
        has far less noise; R². They share the same ε: with the mean absolute error, the squared one's noise is √2
        times as large; with R² all are twice as large.
    ledger : Ledger, optional
        Is charged after validation and before any label is used.
    rows_per_person : int
        How many rows one person may have; the ledger is charged for all of them.
    random_state : None, int or source of words
        Leave it out for a release.
    verbose : bool
        Whether to say on standard error, before the charge, what ± is to be expected.

    Returns
    -------
    Risk
        Its standard errors are upper limits of noise and of chance in the choice of rows: twice them covers in
        at least 95 % of runs (docs/proofs/scores.md).

    Raises
    ------
    ParameterError
        Before anything is charged, if rows and ε are so few that the noise would say nothing; or if the rows are
        those that the model was trained on, where that can be told.

    Examples
    --------
    >>> import numpy as np, labeldp as ldp
    >>> X = np.random.default_rng(0).normal(size=(1500, 3))
    >>> y = np.clip(2.5 + X[:, 0], 0, 5)
    >>> model = ldp.ModelReleaseRegressor(epsilon=1.0, bounds=(0, 5)).fit(X[:500], y[:500])
    >>> risk = ldp.private_score(model, X[500:], y[500:], epsilon=0.5, bounds=(0, 5), metrics=["rmse", "mae"])
    >>> sorted(risk.figures), risk.cost
    (['mae', 'mse', 'rmse'], Budget(epsilon=0.5))
    """
    budget = as_fraction(Epsilon(epsilon))
    low, high = LabelBounds(bounds)
    why = "and a score would be too good; keep rows out of the fit, and score those"
    labels, predicted = fresh_predictions(model, X, y, why)
    largest = _largest_error(predicted, low, high)
    plan = ScorePlan.of(labels.size, budget, (low, high), metrics, largest)
    ledger = as_ledger(ledger)
    source = resolve_source(random_state)
    if verbose:
        print(plan.describe(), file=sys.stderr)
    charge = plan.charge(rows_per_person)
    if ledger is None:
        warn_if_seen(y)
        ledger = Ledger()
    return charged_score(plan, predicted, labels, charge, ledger, source)


def charged_score(
    plan: ScorePlan, predicted: Array, labels: Array, charge: Charge, ledger: Ledger, source: WordSource
) -> Risk:
    """Charge for a score, and return it."""
    ledger.charge_all([charge])
    figures = plan.figures(plan.sums(predicted, labels), source)
    secure = isinstance(source, SecureWords)
    return Risk(figures, labels.size, charge.budget, secure, plan.shared, (plan.statistic,), charge)


def _largest_error(predicted: Array, low: float, high: float) -> float:
    """Return the largest error that any label in the bounds could have; refuse one whose square is no number."""
    with np.errstate(over="ignore"):
        largest = float(np.maximum(np.abs(predicted - low), np.abs(high - predicted)).max())
        if not np.isfinite(np.square(largest)):
            raise ParameterError(
                "the model's predictions are too far from the bounds for squared errors to be numbers"
            )
    return largest
