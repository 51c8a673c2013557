"""`private_moments` and the models it serves: `private_ols`, `private_logit`, `private_poisson`.

Features are public, so labels enter a coefficient through sums with public weights. The release is a list of noisy
weighted sums of labels and of their squares. docs/proofs/glm.md and docs/proofs/ols.md have the proofs.
"""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction
from types import SimpleNamespace
from typing import Any, Unpack

import numpy as np

from labeldp._values import Array, Interval, Labels, parse_choice, parse_numbers, refuse_other_order
from labeldp.accounts.budget import declared, rounded_up
from labeldp.accounts.ledger import Ledger, as_ledger, ledger_to_charge
from labeldp.accounts.scope import RowOptions, Scope
from labeldp.accounts.terms import Terms
from labeldp.errors import DataError, LabelError, ParameterError, Setting
from labeldp.exact.word_sources import RandomState, resolve_source
from labeldp.inference.design import Design
from labeldp.inference.families import FAMILIES, LOGIT, OLS, POISSON, Family
from labeldp.inference.formula import Formula
from labeldp.inference.label_weights import WeightCandidates
from labeldp.inference.moments import Moments, measure
from labeldp.inference.regression_table import RegressionTable
from labeldp.inference.released_moments import PrivateMoments
from labeldp.inference.weighted_sums import PersonRows
from labeldp.learning.fit_plan import FitRequest, unit_labels
from labeldp.learning.score import take_kept
from labeldp.learning.threads import limit_libraries
from labeldp.release.label_access import LabelAccess
from labeldp.release.names import UNNAMED, name_of_labels, same_name
from labeldp.release.plan import Plan, state_terms
from labeldp.tables.frames import frame_names, is_frame, row_count

_ADVICE = 'drop it from X, say which columns to use (on="age + region")'

_MAX_WEIGHT_RATIO = 20
"""The largest weight of a row, in means of the weights."""

_MAX_NOISE = 0.25
"""The largest standard deviation of the noise, in widths of the bounds; no coefficient is above half a width."""


@limit_libraries()
def private_moments(
    X: Any,
    y: Any,
    *,
    epsilon: float,
    bounds: Interval,
    on: str | Sequence[str] | None = None,
    family: str | None = None,
    positive: str | None = None,
    weights: Any = None,
    ledger: Ledger | None = None,
    rows_per_person: int = 1,
    intended_use: str | None = None,
    recipient: str | None = None,
    bounds_reason: str | None = None,
    label: str | None = None,
    random_state: RandomState = None,
    **rows: Unpack[RowOptions],
) -> PrivateMoments:
    """Release noisy weighted sums of labels, which serve any number of regressions.

    A linear, a logistic and a Poisson regression, with all of the columns or some, follow from the same sums and
    from public columns: they cost nothing more.

    Parameters
    ----------
    X : array-like, rows × columns, or a data frame of pandas, Polars or Arrow
        Public features. A data frame keeps its column names; all its columns must be numbers, unless ``on`` says
        which to use and how: then others may be in it too, even the label's.
    y : array-like
        Private labels: numbers, booleans, which are 0 and 1, or text with ``positive``.
    epsilon : float
        The whole budget.
    bounds : (lo, hi)
        Public bounds of the label, to which labels are clipped. Never read them off the data. A logistic
        regression needs (0, 1), and a Poisson regression a lower bound of 0.
    on : str or list of str, optional
        A formula of columns of a data frame, such as ``'schooling + age + age**2 + C(region, ref="north")'``:
        names, powers, ``log(x)`` and ``sqrt(x)``, categories with a reference level, and products such as
        ``schooling:age``; ``a*b`` is ``a + b + a:b``. Of several formulas all terms are released.
    family : {"ols", "logit", "poisson"}, optional
        The family for which the weights are chosen; every other that the bounds allow can be estimated too. By
        default "logit" for bounds (0, 1), else "ols".
    positive : str, optional
        The public word that counts as 1, if labels are text; all others count as 0. To check its spelling would
        reveal labels: with a word that no label has, ε is spent and every label counts as 0.
    weights : array-like or str, optional
        Public weights of rows, such as those of a survey's design, or, with ``on``, the name of their column; none
        may be more than 20 times their mean.
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
    PrivateMoments

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
    >>> employed = rng.random(5000) < 1 / (1 + np.exp(-X[:, 0]))
    >>> moments = ldp.private_moments(X, employed, epsilon=1.0, bounds=(0, 1))
    >>> one, two = moments.logit("x1"), moments.logit("x1 + x2")
    >>> bool(abs(one.params[1] - 1) < 0.3), two.names
    (True, ['Intercept', 'x1', 'x2'])
    """
    request = FitRequest(
        epsilon=epsilon, bounds=bounds, scope=Scope.parse(rows_per_person, labels=y, X=X, **rows), labels=False
    )
    weights_family = _family(family, request.bounds)
    ledger = as_ledger(ledger)
    label_names = _label_names(X, y, on, label)
    if ledger is not None or rows:
        request, X, y, weights = _admit(request, ledger or Ledger(), X, y, weights)
    columns, formula, candidates = _public_part(X, on, weights, label_names, request)
    labels = _units(y, candidates.design.rows, request.bounds, positive)
    access = LabelAccess(labels, resolve_source(random_state))
    ledger = ledger_to_charge(ledger, y)
    with declared(intended_use=intended_use, recipient=recipient, bounds_reason=bounds_reason):
        moments, terms = _pay_and_measure(request, candidates, weights_family, access, ledger)
    name = next(iter(label_names), UNNAMED)
    return PrivateMoments(moments, name, terms, columns, formula, hasattr(X, "iloc"))


def _admit(request: FitRequest, ledger: Ledger, *columns: Any) -> tuple[Any, ...]:
    """Return a request for the rows that a ledger admits, and these rows of columns."""
    request = request.admit(ledger, row_count(columns[0]))
    return request, *(take_kept(request.scope, column) for column in columns)


def _pay_and_measure(
    request: FitRequest, candidates: WeightCandidates, family: Family, access: LabelAccess, ledger: Ledger
) -> tuple[Moments, Terms]:
    """Charge a ledger for a request, and return the moments of labels and their terms."""
    if family is OLS and candidates.design.size == 1:  # the mean of labels 0 and 1 needs no narrower window
        family = _family(None, request.bounds)
    plan = Plan(request, access.rows, Fraction(0), for_sums=request.epsilon.exact)
    charges = plan.pay(ledger, access)
    scope, people = request.scope, None
    if scope.people is not None and scope.rows_per_person > 1:
        people = PersonRows(scope.people.codes, scope.rows_per_person)
    with np.errstate(all="ignore"):  # strict settings of the user must not lose a release that is paid for
        moments = measure(candidates, access, family, people)
    return moments, state_terms(plan, charges, access, statistics=access.statistics)


def private_ols(X: Any, y: Any, *, epsilon: float, bounds: Interval, **options: Any) -> RegressionTable:
    """Estimate the coefficients of a linear regression, with standard errors, intervals and p-values.

    The estimand is that of least squares on the labels clipped to the bounds, (XᵀX)⁻¹Xᵀ E[clip(y) | X], with a
    constant, which is the first row of the table. Intervals follow from the known law of the noise and from a
    private estimate of the labels' variance around the fitted line, which may differ between rows.

    Parameters
    ----------
    X, y, epsilon, bounds
        As in `private_moments`.
    **options
        Others of `private_moments`: ``on``, ``ledger``, ``label`` and so on.

    Returns
    -------
    RegressionTable

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
    return private_moments(X, y, epsilon=epsilon, bounds=bounds, family=OLS.name, **options).ols()


def private_logit(X: Any, y: Any, *, epsilon: float, bounds: Interval = (0, 1), **options: Any) -> RegressionTable:
    """Estimate the coefficients of a logistic regression, with odds ratios and intervals.

    The estimand is that of maximum likelihood on the labels clipped to [0, 1]; fractions count as fractions.

    Parameters
    ----------
    X, y, epsilon, bounds
        As in `private_moments`. Booleans are 0 and 1; text needs ``positive``.
    **options
        Others of `private_moments`: ``on``, ``positive``, ``ledger``, ``label`` and so on.

    Returns
    -------
    RegressionTable

    Raises
    ------
    NoSolutionError
        After the charge, if no logistic model fits the noisy sums. Its ``moments`` are the release.

    Examples
    --------
    >>> import numpy as np, labeldp as ldp
    >>> rng = np.random.default_rng(0)
    >>> X = rng.normal(size=(5000, 1))
    >>> answer = np.where(rng.random(5000) < 1 / (1 + np.exp(-X[:, 0])), "yes", "no")
    >>> table = ldp.private_logit(X, answer, epsilon=1.0, positive="yes")
    >>> bool(2 < table.ratios[1] < 4)    # the odds ratio is e
    True
    """
    return private_moments(X, y, epsilon=epsilon, bounds=bounds, family=LOGIT.name, **options).logit()


def private_poisson(X: Any, y: Any, *, epsilon: float, bounds: Interval, **options: Any) -> RegressionTable:
    """Estimate the coefficients of a Poisson regression of counts, with rate ratios and intervals.

    The estimand is that of maximum likelihood on the labels clipped to the bounds. The variance may be
    any multiple of the mean: the dispersion is estimated.

    Parameters
    ----------
    X, y, epsilon
        As in `private_moments`.
    bounds : (0, hi)
        Public bounds of the counts.
    **options
        Others of `private_moments`: ``on``, ``ledger``, ``label`` and so on.

    Returns
    -------
    RegressionTable

    Raises
    ------
    NoSolutionError
        After the charge, if no Poisson model fits the noisy sums. Its ``moments`` are the release.

    Examples
    --------
    >>> import numpy as np, labeldp as ldp
    >>> rng = np.random.default_rng(0)
    >>> X = rng.normal(size=(5000, 1))
    >>> visits = rng.poisson(np.exp(X[:, 0] / 2))
    >>> table = ldp.private_poisson(X, visits, epsilon=1.0, bounds=(0, 10))
    >>> bool(1.4 < table.ratios[1] < 1.9)    # the rate ratio is √e
    True
    """
    return private_moments(X, y, epsilon=epsilon, bounds=bounds, family=POISSON.name, **options).poisson()


def _family(name: str | None, bounds: Interval) -> Family:
    """Return the family for which weights are chosen; bounds that it does not allow are refused."""
    if name is None:
        return LOGIT if bounds == (0, 1) else OLS
    family = FAMILIES[parse_choice(name, "family", list(FAMILIES))]
    family.refuse_bounds(bounds)
    return family


def _label_names(X: Any, y: Any, on: str | Sequence[str] | None, label: str | None) -> list[str]:
    """Return the names of the label; without a formula, X must not have a column of such a name."""
    if isinstance(y, str):
        raise LabelError("y must be the labels, such as survey['income'], not the name of their column")
    features = X if on is None else None
    sources = [y] if label is None else [SimpleNamespace(name=label), y]
    names = [name_of_labels(labels, features, advice=_ADVICE) for labels in sources]
    refuse_other_order(X, y)
    return [name for name in names if name is not None]


def _public_part(
    X: Any, on: str | Sequence[str] | None, weights: Any, label_names: Sequence[str], request: FitRequest
) -> tuple[Any, Formula, WeightCandidates]:
    """Return the public columns, their formula, and the design that follows, with weights to choose from.

    An ε for which noise would hide any coefficient that the bounds allow is refused.
    """
    if on is None and isinstance(weights, str):
        raise ParameterError(
            Setting("weights", weights), " needs a formula of the other columns: give ", Setting("on")
        )
    row_weights = _row_weights(X, weights, label_names)
    X, formula = _parse_columns(X, on, label_names)
    design = Design.of(formula.transform(X), formula.names, row_weights)
    candidates = WeightCandidates.of(design)
    enough = epsilon = float(request.epsilon)
    while (noise := candidates.smallest_noise(enough)) > _MAX_NOISE:
        enough = float(rounded_up(enough * noise / _MAX_NOISE, 2))
    if enough > epsilon:
        raise ParameterError(
            f"the noise for {design.rows:,} rows, {design.size} coefficients and ",
            Setting("epsilon", epsilon),
            f" would hide any coefficient that bounds allow: give {enough:g} or more, more rows or fewer columns",
        )
    return formula.select(X), formula, candidates


def _parse_columns(X: Any, on: str | Sequence[str] | None, label_names: Sequence[str]) -> tuple[Any, Formula]:
    """Return a data frame, of x1, x2 and so on for an array, with the formula of its columns."""
    if on is None:
        X = X if is_frame(X) else _as_frame(X)
        if not frame_names(X):
            raise DataError("X has no columns: for the mean alone give ", Setting("on", "1"))
        return X, Formula.plain(frame_names(X))
    if not is_frame(X):
        raise ParameterError(Setting("on"), " names columns: X must be a data frame")
    if not label_names:
        raise ParameterError(Setting("label"), " must name y, so that a formula cannot use it as a feature")
    texts = [on] if isinstance(on, str) else on
    formulas = [Formula.parse(text, label) for label in label_names for text in texts]  # none may be used
    return X, Formula.joined(formulas).fit(X)


def _as_frame(X: Any) -> Any:
    """Return an array as an Arrow table with columns x1, x2 and so on."""
    import pyarrow as pa  # noqa: PLC0415 (an extra)

    try:
        columns = np.asarray(X, dtype=np.float64)
    except (TypeError, ValueError):
        columns = np.empty(0)
    if columns.ndim != 2:
        raise DataError("X comes first and must be a dense table of numbers, rows × columns, or a data frame")
    return pa.table({f"x{k}": column for k, column in enumerate(columns.T, 1)})


def _row_weights(X: Any, weights: Any, label_names: Sequence[str]) -> Array | None:
    """Return public weights of rows; weights that are not positive, or far above the others, are refused."""
    if weights is None:
        return None
    if isinstance(weights, str):
        if any(same_name(weights, label) for label in label_names) or not is_frame(X):
            raise ParameterError(Setting("weights", weights), " must be a public column of a data frame X")
        values = Formula.plain([weights]).transform(X)[:, 0]
    else:
        refuse_other_order(X, weights, "weights")
        values = parse_numbers(weights, "weights")
    if values.size != row_count(X) or not (values > 0).all():  # NaN is refused, too
        raise ParameterError(Setting("weights"), " must be a positive number for each row: leave out other rows")
    ratio = values.max() / values.mean()
    if ratio > _MAX_WEIGHT_RATIO:
        raise ParameterError(
            Setting("weights"),
            f" have a largest one of {ratio:.3g} times their mean, and noise grows with it: trim them to "
            f"{_MAX_WEIGHT_RATIO} times the mean at most, by a rule that you state",
        )
    return values


def _units(y: Any, rows: int, bounds: Interval, positive: str | None) -> Array:
    """Return the labels, one for each row, scaled to [0, 1]."""
    labels = Labels.parse(y if positive is None else _are_positive(y, positive)).values
    if labels.shape not in ((rows,), (rows, 1)):
        raise LabelError(f"y must be one label for each of {rows:,} rows, got the shape {labels.shape}")
    return unit_labels(labels.reshape(-1).astype(np.float64), bounds)


def _are_positive(y: Any, positive: str) -> Any:
    """Return whether each text is the positive word.

    The type of the labels is public. Every row is looked at, whatever is found.
    """
    try:
        values = np.asarray(y, dtype=object)
        are_text = all([isinstance(value, str) for value in values.flat])  # noqa: C419
    except Exception:  # an array-like may raise anything, and quote a label
        are_text = False
    if not are_text:
        raise LabelError("labels must be text with ", Setting("positive"), "; some are missing, or no text")
    return values == positive
