"""`privatize`: private labels for others, in one call.

With public features, a model is fitted to noisy sums and private labels, and every label is replaced by its
posterior mean: a function of released values, which costs nothing more. A part of the rows is held out: they
spend their ε on measuring the model's error. Without features, each label is randomised once by a mechanism.
"""

from __future__ import annotations

import warnings
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, nullcontext, suppress
from dataclasses import replace
from typing import Any, Literal, Unpack

import numpy as np
from numpy.typing import ArrayLike

from labeldp._values import Array, Data, Index, Interval, as_fraction
from labeldp.accounts.budget import declared, exact_sum
from labeldp.accounts.ledger import Ledger, as_ledger, forget_labels, ledger_to_charge
from labeldp.accounts.scope import RowOptions, Scope
from labeldp.errors import ParameterError, Setting, WeakModelWarning, warn
from labeldp.exact.word_sources import RandomState, WordSource, resolve_source
from labeldp.learning.base import PrivateRegressor, column_encoder
from labeldp.learning.clipped_errors import ErrorPlan
from labeldp.learning.epsilon_split import FEWEST_FOR_GROUPS
from labeldp.learning.label_columns import LabelColumn, label_columns
from labeldp.learning.label_regressor import LabelReleaseRegressor
from labeldp.learning.label_rounds import report_step
from labeldp.learning.model_regressor import ModelReleaseRegressor
from labeldp.learning.quality import Risk, terms_with_score
from labeldp.learning.released_labels import Release, ReleasedColumn
from labeldp.learning.row_release import RowRelease
from labeldp.learning.score import TEST_SIZE, can_split, fit_and_measure, person_codes, take_kept
from labeldp.mechanisms.base import Mechanism
from labeldp.mechanisms.histogram import Histogram
from labeldp.release.arrays import randomize_labels
from labeldp.release.label_requests import charge_in_turn, label_requests
from labeldp.release.plan import MECHANISM_OPTIONS, Request

Purpose = Literal["training", "statistics", "values"]

LEAST_ROWS_EPSILON2 = 200
"""With less rows · ε² than this, no learner gains from labels that are randomised one by one."""


def privatize(
    labels: ArrayLike,
    *,
    X: Any = None,
    epsilon: float,
    shares: Sequence[float] | None = None,
    bounds: Any = None,
    purpose: Purpose = "training",
    mechanism: str | Mechanism | Sequence[str | Mechanism] = "auto",
    prior: Histogram | Sequence[Histogram | None] | None = None,
    trust: Literal["curator", "local"] = "curator",
    method: Literal["laplace"] | None = None,
    epsilon_prior: float | None = None,
    sigma: float | None = None,
    zeta: float | None = None,
    outside: Literal["project", "uniform"] | None = None,
    ledger: Ledger | None = None,
    rows_per_person: int = 1,
    intended_use: str | None = None,
    recipient: str | None = None,
    bounds_reason: str | None = None,
    verbose: bool = False,
    random_state: RandomState = None,
    **rows: Unpack[RowOptions],
) -> Release:
    """Release private labels for ε in all: whatever is estimated on the way included.

    A label should be released **once**. Calling this again on the same labels spends ε again, which the
    ledger shows; to try other learners, reuse the release.

    Parameters
    ----------
    labels : array-like, n or n × k, or a data frame
        Private labels, one or several for each row. Those outside the bounds are clipped.
    X : array-like, rows × columns, or a data frame of pandas, Polars or Arrow, optional
        The public features that a recipient of the labels has. With them, labels for training are posterior means
        under a private model, which are far better to train on at the same ε; this takes as long as a fit.
    epsilon : float
        The total budget for a row, with all of its labels.
    shares : sequence of float, optional
        The parts of ε of several labels, up to a factor; by default all are equal.
    bounds : (lo, hi), or one pair for each label
        Public bounds. Never read them off the data.
    purpose : {"training", "statistics", "values"}
        "training": to fit models that learn a mean, such as least squares, trees or networks.
        "statistics": unbiased for labels clipped to the bounds, for means and totals of groups with intervals.
        "values": as the mechanism drew them, for those who debias themselves.
    mechanism : str
        ``"auto"`` takes the one whose unbiased label serves best; or ``"rp"``, ``"laplace"``, ``"staircase"``,
        ``"two-point"``, ``"rr-on-bins"``, ``"unbiased"``; or, without X, a mechanism instance with this ε. A list
        has one for each label.
    prior : Histogram, optional
        A public distribution of the labels; costs nothing. This is the paper's Algorithm 2. A part
        outside the bounds counts as labels at the bounds, since those are clipped; then a warning says so. A list
        has one for each label.
    trust : {"curator", "local"}
        Who sees labels before noise: a curator, or nobody, so that each is randomised on its own.
    method : {None, "laplace"}
        ``trust="local", method="laplace"`` with ``epsilon_prior``, ``zeta`` and ``purpose="values"`` is the
        paper's Algorithm 4, but for one point: its α is a mass, and here a density.
    epsilon_prior : float, optional
        Without X, the part of ε for the prior; by default it follows from the number of labels and ε. 0 for none:
        then nothing but the bounds clips labels.
    sigma : float, optional
        Bin width of Algorithm 3; by default the standard deviation of the randomised labels, as in the paper.
    zeta : float, optional
        Half-width of RPWithPrior's window, with the paper's interval (Algorithm 1).
    outside : {"project", "uniform"}, optional
        RPWithPrior's answer to labels outside its interval: as to the nearer end, the default (the paper's
        equation 3.6); or uniform (3.7), which is biased and so for ``purpose="values"`` alone.
    ledger : Ledger, optional
        Is charged after validation and before any label is used.
    rows_per_person : int
        The most rows of one person; the ledger is charged for all of them.
    intended_use, recipient, bounds_reason : str, optional
        The aim, the recipient, and the source of the bounds; on the card and in the ledger.
    verbose : bool
        Print the steps of a release with X.
    random_state : None, int or source of words
        Leave it out for a release.
    segment : str or array-like, optional
        The segment of all rows, or of each, such as a night: a label is in one segment of a ledger, so charges of
        different segments do not add up. Without, the charge counts for the rows of all segments.
    id : array-like, optional
        A public id of each row, text or integers: rows that were released in another segment are refused.
    person : array-like, optional
        A public id of each row's person: rows of a person are counted, and ``rows_per_person`` is not believed.
    most_rows_per_person : int, optional
        Use this many rows of a person at most, chosen by a public seed; the labels of the others stay empty (NaN).

    Returns
    -------
    Release
        Its ``labels`` are those to use; ``summary()`` describes the release in words.

    Raises
    ------
    ParameterError, LabelError
        Before anything is charged.
    BudgetError
        If the ledger refuses; then nothing was released.

    Warns
    -----
    RepeatedReleaseWarning
        If the same labels were released before without a ledger.
    InsecureRandomnessWarning
        If ``random_state`` is a seed.
    WeakModelWarning
        Before the charge, if rows and ε are so few that every released label is the private mean; after it, if the
        model is weak.

    Examples
    --------
    >>> import numpy as np, labeldp as ldp
    >>> release = ldp.privatize(np.linspace(1, 4, 5000), epsilon=1.0, bounds=(0, 5))
    >>> release.labels.shape, release.cost
    ((5000,), Budget(epsilon=1.0))

    Several labels of a row share ε; none of them is a feature of another:

    >>> Y = np.random.default_rng(1).uniform(0, 5, size=(4000, 2))
    >>> both = ldp.privatize(Y, epsilon=2.0, shares=[3, 1], bounds=[(0, 5), (0, 5)])
    >>> both.labels.shape, [str(column.cost) for column in both.columns.values()]
    ((4000, 2), ['ε = 1.5', 'ε = 0.5'])
    """
    columns = label_columns(labels, X)
    scope = Scope.parse(rows_per_person, labels=labels, X=X, **rows)
    requests = label_requests(
        len(columns),
        epsilon=epsilon,
        shares=shares,
        bounds=bounds,
        mechanism=mechanism,
        prior=prior,
        trust=trust,
        method=method,
        epsilon_prior=epsilon_prior,
        sigma=sigma,
        zeta=zeta,
        outside=outside,
        scope=scope,
        purpose=purpose,
    )
    for request in requests:
        if X is None:
            request.refuse_biased()
        else:
            refuse_mechanism_options(request)
    source = resolve_source(random_state)
    with declared(intended_use=intended_use, recipient=recipient, bounds_reason=bounds_reason):
        return release_columns(requests, columns, X, labels, as_ledger(ledger), source, verbose=verbose)


def release_columns(
    requests: Sequence[Request],
    columns: Sequence[LabelColumn],
    X: Any,
    labels: Any,
    ledger: Ledger | None,
    source: WordSource,
    *,
    verbose: bool,
) -> Release:
    """Release label columns one after another, of the rows that a ledger admits."""
    rows, cost = len(columns[0].array), exact_sum(request.epsilon.exact for request in requests)
    scope = (ledger or Ledger()).admit(requests[0].scope, rows, cost)
    requests = [request.with_scope(scope) for request in requests]
    columns = [
        replace(column, labels=take_kept(scope, column.labels), array=scope.select(column.array))
        for column in columns
    ]
    X, charged = take_kept(scope, X), ledger_to_charge(ledger, labels)
    charges_before = len(charged.own_charges)

    def release(number: int, request: Request) -> ReleasedColumn:
        return release_column(request, columns[number], X, charged, source, verbose=verbose)

    try:
        names = [column.name if len(columns) > 1 else None for column in columns]
        released = charge_in_turn(requests, names, charged, release)
    except BaseException:
        if len(charged.own_charges) == charges_before:
            forget_labels(labels)  # nothing was released
        raise
    return Release.of(released, charged).spread(scope, rows)


def release_column(
    request: Request, column: LabelColumn, X: Any, ledger: Ledger, source: WordSource, *, verbose: bool = False
) -> ReleasedColumn:
    """Release one label column as its purpose, its features and the number of rows have it."""
    if X is not None:
        return release_with_model(request, column, X, ledger, source, verbose=verbose)
    if is_only_mean(request, len(column.array)):
        return release_mean(request, column, ledger, source)
    values, terms = randomize_labels(request, column.array, ledger, source)
    private = request.labels_of(terms.mechanisms[0], values)
    return ReleasedColumn(column.name, private, terms, values, entries={"purpose": request.purpose})


def refuse_mechanism_options(request: Request) -> None:
    """Refuse options of a release by one mechanism beside X, which is for a model."""
    if request.purpose != "training":
        raise ParameterError("X is for ", Setting("purpose", "training"), ": leave it out, or take that")
    if request.trust == "local":
        raise ParameterError(
            "X needs a curator: with ", Setting("trust", "local"), ", leave it out, or fit LabelReleaseRegressor"
        )
    if isinstance(request.mechanism, Mechanism):
        raise ParameterError("with X, ", Setting("mechanism"), " is a name: each label has its own interval")
    for name in MECHANISM_OPTIONS:
        if getattr(request, name) is not None:
            raise ParameterError(Setting(name), " is for a release without X: leave one of the two out")


def is_model_constant(request: Request, rows: int) -> bool:
    """Return whether a model of features will be the private mean, by public numbers."""
    return rows * float(request.epsilon) < FEWEST_FOR_GROUPS


def is_only_mean(request: Request, rows: int) -> bool:
    """Return whether labels for training without features are the private mean, by public numbers."""
    return request.may_use_features and rows * float(request.epsilon) ** 2 < LEAST_ROWS_EPSILON2


def release_mean(
    request: Request, column: LabelColumn, ledger: Ledger | None, source: WordSource
) -> ReleasedColumn:
    """Return the private mean as the label of every row: a model without features."""
    rows = len(column.array)
    model = ModelReleaseRegressor(**_shared(request, ledger, source))
    with _announced_mean(request, rows, "X, more rows"):
        return _release_model(model, np.zeros((rows, 1)), column, [], source, request.scope)


def release_with_model(
    request: Request,
    column: LabelColumn,
    X: Any,
    ledger: Ledger | None,
    source: WordSource,
    *,
    features: list[str] | None = None,
    verbose: bool = False,
) -> ReleasedColumn:
    """Return labels for training that a model of their public features has made better.

    ``features`` names the columns behind X; by default X has their names.
    """
    shared, rows = _shared(request, ledger, source), len(column.array)
    model = LabelReleaseRegressor(mechanism=str(request.mechanism), verbose=verbose, **shared)
    is_constant = is_model_constant(request, rows)
    with _announced_mean(request, rows, "more rows") if is_constant else nullcontext():
        return _release_model(model, X, column, features, source, request.scope)


@contextmanager
def _announced_mean(request: Request, rows: int, remedies: str) -> Iterator[None]:
    """Warn that every released label will be the private mean; then no model in the block warns so again."""
    warn(
        f"{rows:,} labels at ε = {float(request.epsilon):g} are too few to learn from: every released label is "
        f"the private mean of all, to predict and not to train on. Pass {remedies} or a larger epsilon",
        WeakModelWarning,
    )
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", WeakModelWarning)
        yield


def _shared(request: Request, ledger: Ledger | None, source: WordSource) -> Data:
    """Return the parameters that both regressors have."""
    return {
        "epsilon": float(request.epsilon),
        "bounds": request.bounds,
        "ledger": ledger,
        "rows_per_person": request.scope.rows_per_person,
        "random_state": source,
    }


@np.errstate(all="ignore")  # strict settings of a user must not lose labels after their charge
def _release_model(
    model: PrivateRegressor,
    X: Any,
    column: LabelColumn,
    features: list[str] | None,
    source: WordSource,
    scope: Scope,
) -> ReleasedColumn:
    """Fit a model, measure its error on rows held out if they are enough, and return the posterior means."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", WeakModelWarning)
        error = _fit_and_measure(model, X, column, source, scope)
    if model.weakness_ is not None:
        with suppress(WeakModelWarning):  # as an error it must not lose labels after their charge
            warn(model.weakness_, WeakModelWarning)
    model.set_params(random_state=None)  # its words are secret, and the model is released
    report_step("labels")
    residual = residual_variance(model, error)
    train = None
    if error is not None and error.split is not None:
        train = error.split.indices(person_codes(scope))[0]
    private = posterior_means(model, model.predict(X), residual, train).reshape(column.array.shape)
    terms = model.terms_
    entries: Data = {
        "purpose": "training",
        "features": column_encoder(model).names if features is None else features,
        "residual_variance": residual,
    }
    if error is not None:
        terms, entries["quality"] = terms_with_score(terms, error), error.as_data()
    return ReleasedColumn(column.name, private, replace(terms, rows=len(private)), None, model, error, entries)


def _fit_and_measure(
    model: PrivateRegressor, X: Any, column: LabelColumn, source: WordSource, scope: Scope
) -> Risk | None:
    """Fit a model, and return its error on rows held out; None if they are too few."""
    rows = len(column.array)
    plan = plan_error(rows, model.epsilon, model.bounds)
    if plan is None or not can_split(scope, plan.rows, rows):
        with model.charging(scope):
            model.fit(X, column.labels)
        return None
    labels = column.array.reshape(-1).astype(np.float64, copy=False)
    return fit_and_measure(model, X, column.labels, labels, plan, source, scope)[1]


def plan_error(rows: int, epsilon: float, bounds: Interval) -> ErrorPlan | None:
    """Return how to measure the error on a tenth of the rows; None if they are too few, by public numbers."""
    try:
        return ErrorPlan.of(int(rows * TEST_SIZE), as_fraction(epsilon), bounds)
    except ParameterError:
        return None


def residual_variance(model: PrivateRegressor, error: Risk | None) -> float:
    """Return the private variance of labels around the model's predictions: measured, or as the fit estimates."""
    if error is not None:
        return error.mse
    low, high = model.bounds
    return float(model.public_model()[1].error) * (high - low) ** 2


def posterior_means(model: PrivateRegressor, predicted: Array, residual: float, train: Index | None) -> Array:
    """Return the mean of each label given its prediction and its private label; without ``train``, all have one.

    That is prediction + w · (private label − prediction), with w = residual variance / (residual variance + noise
    variance of the private label). A row without a private label has its prediction.
    """
    if not isinstance(model, LabelReleaseRegressor):
        return predicted
    rows = np.arange(predicted.size) if train is None else train
    return means_given_labels(predicted, model.release_, rows, residual, model.bounds)


def means_given_labels(
    predicted: Array, release: RowRelease, rows: Index, residual: float, bounds: Interval
) -> Array:
    """Return predictions moved towards the private labels of some rows, inside the bounds."""
    weight = residual / (residual + release.noise + release.hidden)
    posterior = predicted.copy()
    posterior[rows] += weight * (release.labels - predicted[rows])
    return np.clip(posterior, *bounds)
