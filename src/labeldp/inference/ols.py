"""`private_ols`: least squares with private labels, and intervals that account for the noise.

Features are public, so a coefficient is a public weighting of the labels. The release is a list of noisy weighted
sums of labels and of their squares. docs/proofs/ols.md has the proof, docs/method.md the equations.
"""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction
from types import SimpleNamespace
from typing import Any

import numpy as np

from labeldp._values import Array, Labels
from labeldp.accounts.budget import declared, rounded_up
from labeldp.accounts.ledger import Ledger, as_ledger, ledger_to_charge
from labeldp.errors import DataError, LabelError, ParameterError, Setting
from labeldp.exact.word_sources import WordSource, resolve_source
from labeldp.inference.design import Design
from labeldp.inference.estimate import Estimates, describe_errors
from labeldp.inference.formula import Formula
from labeldp.inference.label_weights import WeightCandidates
from labeldp.inference.moments import measure
from labeldp.inference.regression_table import RegressionTable
from labeldp.inference.solution import solve_linear
from labeldp.inference.weighted_sums import PrivateLabels
from labeldp.learning.epsilon_split import SumBudget
from labeldp.learning.fit_plan import FitRequest, Pair, unit_labels
from labeldp.learning.threads import limit_libraries
from labeldp.release.names import UNNAMED, name_of_labels
from labeldp.release.plan import Plan, state_terms
from labeldp.tables.frames import frame_names, is_frame, refuse_other_order

_ADVICE = 'drop it from X, say which columns to use (on="age + region")'

_MAX_NOISE = 0.25
"""The largest standard deviation of the noise, in widths of the bounds; no coefficient is above half a width."""


@limit_libraries()
def private_ols(
    X: Any,
    y: Any,
    *,
    epsilon: float,
    bounds: tuple[float, float],
    on: str | None = None,
    ledger: Ledger | None = None,
    rows_per_person: int = 1,
    intended_use: str | None = None,
    recipient: str | None = None,
    bounds_reason: str | None = None,
    label: str | None = None,
    random_state: int | WordSource | None = None,
) -> RegressionTable:
    """Estimate the coefficients of a linear regression, with standard errors, intervals and p-values.

    The estimand is that of least squares on the labels clipped to the bounds, (XᵀX)⁻¹Xᵀ E[clip(y) | X], with a
    constant, which is the first row of the table. Intervals follow from the known law of the noise and from a
    private estimate of the labels' variance around the fitted line, which may differ between rows.

    Parameters
    ----------
    X : array-like, rows × columns, or a data frame of pandas, Polars or Arrow
        Public features. A data frame keeps its column names; all its columns must be numbers, unless ``on`` says
        which to use and how: then others may be in it too, even the label's.
    y : array-like
        Private labels.
    epsilon : float
        The whole budget.
    bounds : (lo, hi)
        Public bounds of the label. Never read them off the data.
    on : str, optional
        A formula of columns of a data frame, such as ``'schooling + age + age**2 + C(region, ref="north")'``:
        names, powers, categories with a reference level, and products such as ``schooling:age``.
    ledger : Ledger, optional
        Is charged after validation and before any label is used.
    rows_per_person : int
        The number of rows that one person may have; the ledger is charged for all of them.
    intended_use, recipient, bounds_reason : str, optional
        The use of the release, its recipient, and the source of the bounds; on the card and in the ledger.
    label : str, optional
        What to call the label; by default as ``y`` is called. ``on`` must not use a column of that name.
    random_state : None, int or source of words
        Leave it out for a release.

    Returns
    -------
    RegressionTable

    Raises
    ------
    ParameterError, DataError, LabelError
        Before anything is charged: bad parameters, columns that are not numeric, constant or collinear, by name,
        or so few rows for ε that noise would hide any coefficient that the bounds allow. A note says so where it
        hides all but large ones.

    Examples
    --------
    >>> import numpy as np, labeldp as ldp
    >>> rng = np.random.default_rng(0)
    >>> X = rng.normal(size=(5000, 2))
    >>> income = np.clip(50 + 10 * X[:, 0] + rng.normal(0, 10, 5000), 0, 100)
    >>> table = ldp.private_ols(X, income, epsilon=1.0, bounds=(0, 100))
    >>> table.names, bool(abs(table.params[1] - 10) < 3)
    (['Intercept', 'x1', 'x2'], True)
    """
    request = FitRequest(epsilon=epsilon, bounds=bounds, rows_per_person=rows_per_person, labels=False)
    ledger = as_ledger(ledger)
    label_names = _label_names(X, y, on, label)
    formula = _formula(X, on, label_names)
    candidates = WeightCandidates.of(_design(X, formula))
    _refuse_noise(candidates, float(request.epsilon))
    units = _units(y, len(candidates.design.matrix), request.bounds)
    source, ledger = resolve_source(random_state), ledger_to_charge(ledger, y)
    plan = Plan(request, units.size, Fraction(0), for_sums=request.epsilon.exact)
    with declared(intended_use=intended_use, recipient=recipient, bounds_reason=bounds_reason):
        charges = plan.pay(ledger)
    labels = PrivateLabels(units, SumBudget(plan.for_sums, units.size), source)
    estimates = _estimate(candidates, labels, request.bounds)
    terms = state_terms(plan, charges, source, statistics=labels.budget.noise)
    name = next(iter(label_names), UNNAMED)
    return RegressionTable(
        names=candidates.design.names,
        label=name,
        terms=terms,
        estimates=estimates,
        columns=formula,
        frame=hasattr(X, "iloc"),
    )


@np.errstate(all="ignore")  # strict settings of the user must not lose a release that is paid for
def _estimate(candidates: WeightCandidates, labels: PrivateLabels, bounds: Pair) -> Estimates:
    """Measure moments, solve for the coefficients, and describe their errors."""
    moments = measure(candidates, labels)
    solution = solve_linear(candidates.design, moments, bounds)
    return describe_errors(candidates.design, moments, solution, bounds)


def _label_names(X: Any, y: Any, on: str | None, label: str | None) -> list[str]:
    """Return the names of the label; without a formula, X must not have a column of such a name."""
    features = X if on is None else None
    labels = [y] if label is None else [SimpleNamespace(name=label), y]
    names = [name_of_labels(one, features, advice=_ADVICE) for one in labels]
    refuse_other_order(X, y)
    return [name for name in names if name is not None]


def _formula(X: Any, on: str | None, label_names: Sequence[str]) -> Formula | None:
    """Return the formula of a data frame's columns; None for an array."""
    if on is None:
        return Formula.plain(frame_names(X)) if is_frame(X) else None
    if not is_frame(X):
        raise ParameterError(Setting("on"), " names columns: X must be a data frame")
    if not label_names:
        raise ParameterError(Setting("label"), " must name y, so that a formula cannot use it as a feature")
    formulas = [Formula.parse(on, label) for label in label_names]  # none of the names may be used
    return formulas[0].fit(X)


def _design(X: Any, formula: Formula | None) -> Design:
    """Return the design of a data frame or an array."""
    if formula is not None:
        return Design.of(formula.transform(X), formula.names)
    try:
        columns: Array = np.asarray(X, dtype=np.float64)
    except (TypeError, ValueError):
        columns = np.empty(0)
    if columns.ndim != 2:
        raise DataError("X comes first and must be a dense table of numbers, rows × columns, or a data frame")
    return Design.of(columns, [f"x{k + 1}" for k in range(columns.shape[1])])


def _units(y: Any, rows: int, bounds: Pair) -> Array:
    """Return the labels, one for each row, scaled to [0, 1]."""
    labels = Labels.parse(y).values
    if labels.shape not in ((rows,), (rows, 1)):
        raise LabelError(f"y must be one label for each of {rows:,} rows, got the shape {labels.shape}")
    return unit_labels(labels.reshape(-1).astype(np.float64), bounds)


def _refuse_noise(candidates: WeightCandidates, epsilon: float) -> None:
    """Refuse an ε for which noise would hide any coefficient that the bounds allow."""
    enough = epsilon
    while (noise := candidates.smallest_noise(enough)) > _MAX_NOISE:
        enough = float(rounded_up(enough * noise / _MAX_NOISE, 2))
    if enough > epsilon:
        design = candidates.design
        raise ParameterError(
            f"the noise for {len(design.matrix):,} rows, {design.size} coefficients and ",
            Setting("epsilon", epsilon),
            f" would hide any coefficient that bounds allow: give {enough:g} or more, more rows or fewer columns",
        )
