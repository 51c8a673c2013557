"""Private errors of a model on labels that it was not trained on, from noisy sums of errors.

`private_score` takes rows that were held out; `fit_and_score` chooses them itself.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any, Unpack

import numpy as np
from numpy.typing import ArrayLike
from scipy import sparse
from sklearn.utils import _safe_indexing

from labeldp._values import Array, Epsilon, Index, LabelBounds, Labels, as_fraction, parse_number
from labeldp.accounts.budget import Budget, label_cost
from labeldp.accounts.ledger import Ledger, as_ledger, ledger_to_charge, warn_if_seen
from labeldp.accounts.scope import RowOptions, Scope
from labeldp.accounts.terms import Split, Terms, fit_times
from labeldp.errors import DataError, ParameterError, Setting
from labeldp.exact.word_sources import WordSource, resolve_source
from labeldp.learning.base import PrivateRegressor
from labeldp.learning.held_out import final_step, finite_predictions, fresh_predictions, innermost
from labeldp.learning.quality import Risk
from labeldp.learning.score_sums import HeldOutPlan, ScorePlan
from labeldp.release.label_access import LabelAccess
from labeldp.tables.frames import refuse_other_order, row_count

TEST_SIZE = 0.1
FEWEST_ROWS = 100

NOT_SCORED = "the model was fitted and paid for, and can be used; only its score failed"
"""The note on an error that comes after the fit."""


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
    **rows: Unpack[RowOptions],
) -> Risk:
    """Return how wrong a model is on test labels, for ε: its mean squared error, the root, and the absolute error.

    `fit_and_score` holds out rows itself, which a card can state. That rows given here were held out nobody can
    check: on a card, the costs of model and score add up.

    A curator sums errors as integers and adds exact noise for the worst change of one label. Predictions are
    clipped to the bounds first, which keeps that change small.

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
    ledger : Ledger, optional
        Is charged after validation and before any label is used.
    rows_per_person : int
        The number of rows that one person may have; the ledger is charged for all of them.
    random_state : None, int or source of words
        Leave it out for a release.
    **rows
        ``segment``, ``id``, ``person`` and ``most_rows_per_person``, as in `privatize`.

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
    >>> risk = ldp.private_score(model, X[500:], y[500:], epsilon=0.5, bounds=(0, 5))
    >>> sorted(risk.figures), risk.cost
    (['mae', 'mse', 'rmse'], Budget(epsilon=0.5))
    """
    (risk,) = private_scores(
        model,
        X,
        y,
        by=None,
        epsilon=epsilon,
        bounds=bounds,
        ledger=ledger,
        rows_per_person=rows_per_person,
        random_state=random_state,
        **rows,
    ).values()
    return risk


def private_scores(
    model: Any,
    X: Any,
    y: Any,
    *,
    by: ArrayLike | None,
    epsilon: float,
    bounds: tuple[float, float],
    ledger: Ledger | None = None,
    rows_per_person: int = 1,
    random_state: int | WordSource | None = None,
    **rows: Unpack[RowOptions],
) -> dict[Any, Risk]:
    """Return how wrong a model is in each public group of rows, for one ε: each row is in one group.

    The noise is the same in all groups, so a small group has larger standard errors. The model may be worse in a
    small group, too: noise in training hides what is special about few rows.

    Parameters
    ----------
    by : array-like or None
        The public group of each row; None if all rows are one group.
    model, X, y, epsilon, bounds, ledger, rows_per_person, random_state, **rows
        As in `private_score`.

    Returns
    -------
    dict of Risk
        By group. Each states the ε that was charged once for all.

    Raises
    ------
    ParameterError
        Before anything is charged, if noise would hide the errors of a group: join it with another.

    Examples
    --------
    >>> import numpy as np, labeldp as ldp
    >>> from labeldp.learning import private_scores
    >>> X = np.random.default_rng(0).normal(size=(4000, 3))
    >>> y, ledger = np.clip(2.5 + X[:, 0], 0, 5), ldp.Ledger()
    >>> model = ldp.ModelReleaseRegressor(epsilon=1.0, bounds=(0, 5)).fit(X[:2000], y[:2000])
    >>> region = np.where(X[2000:, 1] > 1, "north", "south")
    >>> scores = private_scores(model, X[2000:], y[2000:], by=region, epsilon=1.0, bounds=(0, 5), ledger=ledger)
    >>> sorted(scores), ledger.total, scores["north"].rows < scores["south"].rows
    (['north', 'south'], Budget(epsilon=1.0), True)
    """
    scope = Scope.parse(rows_per_person, **rows)
    budget = as_fraction(Epsilon(epsilon))
    bounds = LabelBounds(bounds)
    why = "and a score would be too good; keep rows out of the fit, and score those"
    labels, predicted = fresh_predictions(model, X, y, why)
    predicted = np.clip(predicted, *bounds)
    names, groups = _parse_groups(by, labels.size)
    ledger = as_ledger(ledger)
    scope = (ledger or Ledger()).admit(scope, labels.size, budget)
    labels, predicted, groups = (scope.select(array) for array in (labels, predicted, groups))
    largest = float(max(predicted.max() - bounds[0], bounds[1] - predicted.min()))
    present = np.unique(groups).tolist()
    members = [np.flatnonzero(groups == group) for group in present]
    plans = [ScorePlan.of(rows.size, budget, bounds, largest) for rows in members]
    source, charges = resolve_source(random_state), plans[0].charges(scope)
    accesses = [LabelAccess(labels[rows], source, "score") for rows in members]
    paid = ledger_to_charge(ledger, y)
    for number, access in enumerate(accesses):
        access.charge(paid, [] if number else charges, None if number else scope, epsilon=budget)
    fit_charges = _fit_charges(innermost(model)[0])
    risks = [
        _measure(plan, predicted[rows], access, scope.rows_per_person)
        for plan, rows, access in zip(plans, members, accesses, strict=True)
    ]
    return {
        names[group]: replace(risk, charge=charges[0], fit_charges=fit_charges)
        for group, risk in zip(present, risks, strict=True)
    }


def _parse_groups(by: ArrayLike | None, rows: int) -> tuple[list[Any], Index]:
    """Return the names of groups, and the number of each row's group; one for all rows without groups."""
    groups = np.zeros(rows) if by is None else np.asarray(by).reshape(-1)
    if groups.size != rows:
        raise ParameterError(f"by must name a group for each of the {rows:,} rows, got {groups.size:,}")
    try:
        names, numbers = np.unique(groups, return_inverse=True)
    except TypeError:
        raise ParameterError("by must have names of one type, without missing ones: text, or numbers") from None
    return names.tolist(), numbers


@np.errstate(all="ignore")  # a user's strict settings must not lose what is paid for
def _measure(plan: HeldOutPlan, predicted: Array, access: LabelAccess, rows_per_person: int) -> Risk:
    """Return a score that is paid for."""
    figures = plan.measure(predicted, access)
    return Risk(figures, access.rows, access.is_secure, tuple(access.statistics), None, rows_per_person)


def _fit_charges(model: Any) -> tuple[str, ...]:
    """Return the times of the charges of a fitted model; none if it is not one of this library."""
    terms = getattr(model, "terms_", None)
    return fit_times(terms.charges) if isinstance(terms, Terms) else ()


def fit_and_score(
    model: Any,
    X: Any,
    y: Any,
    *,
    epsilon: float,
    test_size: float = TEST_SIZE,
    random_state: int | WordSource | None = None,
    **rows: Unpack[RowOptions],
) -> tuple[Any, Risk]:
    """Fit a private regressor to most rows, and score it on the others.

    Rows are held out at random, by their numbers, without a look at labels. No row is in both the fit and the
    score, so one label costs the larger of the two, and this is charged: a score for no more ε than the fit costs
    nothing beyond it.

    Parameters
    ----------
    model : LabelReleaseRegressor or ModelReleaseRegressor, or a pipeline that ends in one
        Is fitted, for its own ε. Its bounds, ledger and rows_per_person hold for the score, too. A search or a
        frozen model is refused: one fit is what the card pays for.
    X : array-like, rows × columns, or a data frame of pandas, Polars or Arrow
        Public features.
    y : array-like
        Private labels.
    epsilon : float
        For the score, all figures together: the cost of the rows that are held out.
    test_size : float
        The share of rows to hold out.
    random_state : None, int or source of words
        For the split and the noise of the score; leave it out for a release.
    **rows
        ``segment``, ``id``, ``person`` and ``most_rows_per_person``, as in `privatize`. All rows of a person are
        on one side of the split.

    Returns
    -------
    model : as given
        Fitted.
    score : Risk
        ``save_model(model, path, quality=score)`` writes it on the model's card, with the split.

    Raises
    ------
    ParameterError, DataError, BudgetError
        Before anything is charged: bad parameters, fewer than 100 rows, a score of nothing but noise, or a ledger
        that cannot pay for both.

    Examples
    --------
    >>> import numpy as np, labeldp as ldp
    >>> X = np.random.default_rng(0).normal(size=(2000, 3))
    >>> y = np.clip(2.5 + X[:, 0], 0, 5)
    >>> ledger = ldp.Ledger(limit=ldp.Budget(1.0))
    >>> model = ldp.ModelReleaseRegressor(epsilon=1.0, bounds=(0, 5), ledger=ledger)
    >>> model, score = ldp.fit_and_score(model, X, y, epsilon=1.0)
    >>> score.rows, score.split, ledger.total
    (200, Split(seed=..., train_rows=1800, test_rows=200), Budget(epsilon=1.0))
    """
    regressor = final_step(model)
    if not isinstance(regressor, PrivateRegressor):
        raise ParameterError(
            "model must be a LabelReleaseRegressor or a ModelReleaseRegressor, or a pipeline that ends in one, "
            f"got {type(regressor).__name__}"
        )
    refuse_other_order(X, y)
    labels = Labels.parse(y).values.astype(np.float64)
    if labels.ndim != 1 or labels.size != row_count(X):
        raise ParameterError(f"y must be one label for each of the {row_count(X):,} rows of X, got {labels.shape}")
    scope, source = Scope.parse(regressor.rows_per_person, **rows), resolve_source(random_state)
    dearest = max(Epsilon(epsilon).exact, Epsilon(regressor.epsilon).exact)
    scope = regressor._get_ledger().admit(scope, labels.size, dearest)
    X, y, labels = take_kept(scope, X), take_kept(scope, y), scope.select(labels)
    plan = plan_test(labels.size, epsilon, regressor.bounds, test_size)
    if not can_split(scope, plan.rows, labels.size):
        raise ParameterError(
            f"one person has {scope.rows_per_person:,} of {labels.size:,} rows, too many to hold some out: "
            "leave the score out, or give a smaller ",
            Setting("most_rows_per_person"),
        )
    return fit_and_measure(model, X, y, labels, plan, source, scope)


def fit_and_measure(
    model: Any,
    X: Any,
    y: Any,
    labels: Array,
    plan: HeldOutPlan,
    random_state: int | WordSource | None,
    scope: Scope,
) -> tuple[Any, Risk]:
    """Fit a private regressor to most rows, and measure its error on the others, as a plan says.

    ``labels`` are those of y, checked, and ``scope`` that of all rows, which a ledger has admitted.
    """
    regressor = final_step(model)
    fit_epsilon = Epsilon(regressor.epsilon).exact
    source, ledger = resolve_source(random_state), regressor._get_ledger()
    people = None if scope.people is None else scope.people.codes
    split = Split.of(_draw_seed(source), labels.size, plan.rows, people)
    plan = replace(plan, rows=split.test_rows)
    charges = plan.charges(scope, paid=fit_epsilon)
    train, test = split.indices(people)
    if regressor.ledger is None:
        warn_if_seen(y)
    X = sparse.csr_array(X) if sparse.issparse(X) else X
    earlier = len(ledger.own_charges)
    with ledger.reserve(charges), regressor.charging(scope):
        model.fit(_take(X, train), _take(y, train))
    paid = ledger.own_charges[earlier:]
    if not paid:
        raise ParameterError("the model was not fitted again: give a regressor that is not frozen")
    fit_charges = fit_times(paid)
    try:
        if fit_charges != _fit_charges(regressor) or label_cost(paid) != Budget(fit_epsilon):
            raise ParameterError("the ledger was charged for more than one fit, and the card of a model is of one")
        predicted = finite_predictions(model, _take(X, test), plan.rows)
        access = LabelAccess(labels[test], source, "score")
        access.charge(ledger, charges, scope, epsilon=plan.epsilon)
        score = _measure(plan, predicted, access, scope.rows_per_person)
    except Exception as error:
        error.add_note(NOT_SCORED)
        raise
    split = replace(split, fit_charges=fit_charges)
    charge = charges[0] if charges else None
    return model, replace(score, charge=charge, split=split, fit_charges=fit_charges)


def plan_test(rows: int, epsilon: float, bounds: tuple[float, float], test_size: float = TEST_SIZE) -> ScorePlan:
    """Return the plan of a score on rows held out; all predictions will lie inside the bounds.

    Examples
    --------
    >>> plan_test(4000, 1.0, (0, 5)).rows
    400
    """
    if not 0 < parse_number(test_size, "test_size") < 1:
        raise ParameterError(Setting("test_size"), f" must lie in (0, 1), such as 0.1, got {test_size}")
    if rows < FEWEST_ROWS:
        raise DataError(f"{rows} rows are too few to hold some out: leave the score out, or give {FEWEST_ROWS}")
    return ScorePlan.of(max(int(rows * test_size), 1), as_fraction(Epsilon(epsilon)), LabelBounds(bounds))


def can_split(scope: Scope, test_rows: int, rows: int) -> bool:
    """Return whether rows are left to learn from beside those to score, and further ones of the last person."""
    return scope.people is None or test_rows + scope.rows_per_person <= rows


def take_kept(scope: Scope, table: Any) -> Any:
    """Return the rows of a table that a release uses; None and the name of a column as they are."""
    return table if table is None or isinstance(table, str) or scope.kept is None else _take(table, scope.kept)


def _draw_seed(source: WordSource) -> int:
    """Return a public seed of 32 bits."""
    word = np.empty(1, dtype=np.uint64)
    source.fill(word)
    return int(word[0]) >> 32


def _take(table: Any, rows: Index) -> Any:
    return table.take(rows) if hasattr(table, "to_pylist") else _safe_indexing(table, rows)  # Arrow, or others
