"""Private errors of a model on labels that it was not trained on, from noisy sums of errors.

`private_score` takes rows that were held out; `fit_and_score` chooses them itself.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from fractions import Fraction
from typing import Any, Unpack

import numpy as np
from numpy.typing import ArrayLike
from scipy import sparse
from sklearn.utils import _safe_indexing

from labeldp._values import (
    Array,
    Epsilon,
    Index,
    Interval,
    LabelBounds,
    Labels,
    as_fraction,
    parse_number,
    refuse_other_order,
)
from labeldp.accounts.budget import Budget, Charge, label_cost
from labeldp.accounts.ledger import Ledger, warn_if_seen
from labeldp.accounts.numbers import number
from labeldp.accounts.scope import RowOptions, Scope
from labeldp.accounts.terms import Split, fit_times
from labeldp.errors import DataError, ParameterError, Setting
from labeldp.exact.word_sources import RandomState, WordSource, resolve_source
from labeldp.learning.base import PrivateRegressor
from labeldp.learning.held_out import HeldOutRows, final_step, finite_predictions, fit_terms
from labeldp.learning.quality import Risk
from labeldp.learning.score_sums import HeldOutPlan, ScorePlan
from labeldp.release.label_access import LabelAccess
from labeldp.tables.frames import row_count

TEST_SIZE = 0.1
FEWEST_ROWS = 100

MAX_NOISE_RATIO = 2
"""A group whose noise is more than this times that of the largest group is called small."""

NOT_SCORED = "the model was fitted and paid for, and can be used; only its score failed"
"""The note on an error that comes after the fit."""


def private_score(
    model: Any,
    X: Any,
    y: Any,
    *,
    epsilon: float,
    bounds: Interval,
    r2: bool = False,
    ledger: Ledger | None = None,
    rows_per_person: int = 1,
    random_state: RandomState = None,
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
        Public bounds of the label, not narrower than those of a model of this library. Never read them off the
        data.
    r2 : bool
        Measure R² over the mean prediction too: above 0, the model beats a constant. A third of ε pays for it, so
        the noise of the other figures grows by a half. It is left out where noise hides it.
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
        r2=r2,
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
    bounds: Interval,
    r2: bool = False,
    ledger: Ledger | None = None,
    rows_per_person: int = 1,
    random_state: RandomState = None,
    **rows: Unpack[RowOptions],
) -> dict[Any, Risk]:
    """Return how wrong a model is in each public group of rows, for one ε: each row is in one group.

    The noise of sums is the same in all groups, so a small group has larger standard errors; its score has a note
    that says so. The model may be worse in a small group, too: noise in training hides patterns of few rows.

    Parameters
    ----------
    by : array-like or None
        The public group of each row; None if all rows are one group.
    model, X, y, epsilon, bounds, r2, ledger, rows_per_person, random_state, **rows
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
    budget, bounds = as_fraction(Epsilon(epsilon)), LabelBounds(bounds)
    held_out = HeldOutRows.parse(
        model,
        X,
        y,
        bounds=bounds,
        by=by,
        scope=Scope.parse(rows_per_person, labels=y, X=X, **rows),
        ledger=ledger,
        epsilon=budget,
        harm="and a score would be too good; keep rows out of the fit, and score those",
    )
    plans = _plan_groups(held_out, bounds, r2=r2)
    largest = max(plans.values(), key=lambda plan: plan.rows)
    (charge,) = largest.charges(held_out.scope)
    fit_charges = _fit_charges(model)

    def measure(name: Any, predicted: Array, access: LabelAccess) -> Risk:
        score = plans[name].score(predicted, access, held_out.scope)
        note = _note_on_noise(score.rows, largest.rows)
        return replace(score, charge=charge, fit_charges=fit_charges, note=note)

    return held_out.measure(charge, resolve_source(random_state), measure)


def _plan_groups(held_out: HeldOutRows, bounds: LabelBounds, *, r2: bool) -> dict[Any, ScorePlan]:
    """Return the plan of the score of each group, for predictions clipped to the bounds."""
    predicted = np.clip(held_out.predicted, *bounds)
    largest_error = float(max(predicted.max() - bounds[0], bounds[1] - predicted.min()))
    plans = {}
    for name, rows in held_out.groups.items():
        plans[name] = ScorePlan.of(rows.size, held_out.epsilon, bounds, largest_error, has_reference=r2)
    return plans


def _note_on_noise(rows: int, most_rows: int) -> str:
    """Return a note on a small group: the noise of a mean is in inverse proportion to its rows."""
    ratio = most_rows / rows
    if ratio <= MAX_NOISE_RATIO:
        return ""
    return (
        f"The group is small: noise in its mean errors is {number(ratio, 2)} times that of the largest group, of "
        f"{most_rows:,} rows."
    )


def _fit_charges(model: Any) -> tuple[str, ...]:
    """Return the times of the charges of a fit; none if it is not one of this library."""
    terms = fit_terms(model)
    return () if terms is None else fit_times(terms.charges)


def fit_and_score(
    model: Any,
    X: Any,
    y: Any,
    *,
    epsilon: float,
    r2: bool = False,
    test_size: float = TEST_SIZE,
    random_state: RandomState = None,
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
        frozen model is refused: the card pays for one fit.
    X : array-like, rows × columns, or a data frame of pandas, Polars or Arrow
        Public features.
    y : array-like
        Private labels.
    epsilon : float
        For the score, all figures together: the cost of the rows that are held out.
    r2 : bool
        Measure R² too, as in `private_score`.
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
    scope, source = Scope.parse(regressor.rows_per_person, labels=y, X=X, **rows), resolve_source(random_state)
    dearest = max(Epsilon(epsilon).exact, Epsilon(regressor.epsilon).exact)
    scope = regressor._get_ledger().admit(scope, labels.size, dearest)
    X, y, labels = take_kept(scope, X), take_kept(scope, y), scope.select(labels)
    plan = plan_test(labels.size, epsilon, regressor.bounds, test_size, r2=r2)
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
    source: WordSource,
    scope: Scope,
) -> tuple[Any, Risk]:
    """Fit a private regressor to most rows, and measure its error on the others, as a plan says.

    ``labels`` are those of y, checked, and ``scope`` that of all rows, which a ledger has admitted.
    """
    regressor = final_step(model)
    ledger, fit_epsilon = regressor._get_ledger(), Epsilon(regressor.epsilon).exact
    people = person_codes(scope)
    split = Split.of(_draw_seed(source), labels.size, plan.rows, people)
    plan = replace(plan, rows=split.test_rows)
    charges = plan.charges(scope, fit_epsilon)
    train, test = split.indices(people)
    if regressor.ledger is None:
        warn_if_seen(y)
    with ledger.reserve(charges):
        fit_charges = _fit_once(model, _take(X, train), _take(y, train), ledger, scope)
    times = fit_times(fit_charges)
    try:
        _refuse_other_fits(model, fit_charges, fit_epsilon)
        predicted = finite_predictions(model, _take(X, test), plan.rows)
        access = LabelAccess(labels[test], source, "score")
        access.charge(ledger, charges, scope, epsilon=plan.epsilon)
        score = plan.score(predicted, access, scope)
    except Exception as error:
        error.add_note(NOT_SCORED)
        raise
    charge = charges[0] if charges else None
    return model, replace(score, charge=charge, split=replace(split, fit_charges=times), fit_charges=times)


def _fit_once(model: Any, X: Any, y: Any, ledger: Ledger, scope: Scope) -> Sequence[Charge]:
    """Fit a model to rows of a scope, and return the charges for it."""
    earlier = len(ledger.own_charges)
    with final_step(model).charging(scope):
        model.fit(X, y)
    charges = ledger.own_charges[earlier:]
    if not charges:
        raise ParameterError("the model was not fitted again: give a regressor that is not frozen")
    return charges


def _refuse_other_fits(model: Any, charges: Sequence[Charge], epsilon: Fraction) -> None:
    """Refuse charges for more than the fit of a model, for ε."""
    if fit_times(charges) != _fit_charges(model) or label_cost(charges) != Budget(epsilon):
        raise ParameterError("the ledger was charged for more than one fit, and the card of a model is of one")


def plan_test(
    rows: int, epsilon: float, bounds: Interval, test_size: float = TEST_SIZE, *, r2: bool = False
) -> ScorePlan:
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
    scored = max(int(rows * test_size), 1)
    return ScorePlan.of(scored, as_fraction(Epsilon(epsilon)), LabelBounds(bounds), has_reference=r2)


def can_split(scope: Scope, test_rows: int, rows: int) -> bool:
    """Return whether rows are left to learn from beside those to score, and further ones of the last person."""
    return scope.people is None or test_rows + scope.rows_per_person <= rows


def person_codes(scope: Scope) -> Index | None:
    """Return the code of each row's person; None where people are not known."""
    return None if scope.people is None else scope.people.codes


def take_kept(scope: Scope, table: Any) -> Any:
    """Return the rows of a table that a release uses; None and the name of a column as they are."""
    return table if table is None or isinstance(table, str) or scope.kept is None else _take(table, scope.kept)


def _draw_seed(source: WordSource) -> int:
    """Return a public seed of 32 bits."""
    word = np.empty(1, dtype=np.uint64)
    source.fill(word)
    return int(word[0]) >> 32


def _take(table: Any, rows: Index) -> Any:
    """Return some rows of a table of any kind."""
    if sparse.issparse(table):
        return sparse.csr_array(table)[rows]
    return table.take(rows) if hasattr(table, "to_pylist") else _safe_indexing(table, rows)  # Arrow, or others
