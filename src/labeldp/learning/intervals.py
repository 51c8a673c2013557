"""Private prediction intervals: conformal prediction with noisy counts of the labels inside."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, Unpack

import numpy as np

from labeldp._values import Array, Epsilon, Interval, LabelBounds, as_fraction, parse_number
from labeldp.accounts.budget import Budget, new_charge
from labeldp.accounts.ledger import Ledger, as_ledger, ledger_to_charge
from labeldp.accounts.numbers import number, percent
from labeldp.accounts.scope import RowOptions, Scope
from labeldp.errors import ParameterError, warn
from labeldp.exact.word_sources import SecureWords, WordSource, resolve_source
from labeldp.learning.coverage_plan import CoveragePlan, plan_coverage
from labeldp.learning.fit_plan import LabelScale
from labeldp.learning.held_out import fresh_predictions, innermost
from labeldp.release.label_access import LabelAccess
from labeldp.release.queries import IntegerQuery

_ROUNDING = 1e-12
"""Ends of intervals are moved outwards by this part, more than a transform and its inverse are off."""


@dataclass(frozen=True, slots=True, repr=False)
class IntervalModel:
    """A model with prediction intervals.

    Attributes
    ----------
    model : regressor
    half_width : float
        Intervals reach this far to both sides of a prediction, on the model's scale, and are cut to the bounds.
    scale : LabelScale
        The label's public bounds, and the model's transform, if it has one.
    coverage : float
        The share of labels inside, at least, on average over calibration rows and noise.
    rows : int
        The number of calibration rows.
    cost : Budget
        The cost of the intervals, beyond that of the model.
    secure : bool
        False if the noise came from a seed, here or in the model: then this is an experiment, and **not private**.

    Examples
    --------
    >>> import numpy as np, labeldp as ldp
    >>> from sklearn.linear_model import LinearRegression
    >>> X = np.random.default_rng(0).normal(size=(2000, 2))
    >>> y = np.clip(2.5 + X[:, 0], 0, 5)
    >>> model = LinearRegression().fit([[0, 0], [1, 0]], [2.5, 3.4])            # public, or private already
    >>> intervals = ldp.private_intervals(model, X, y, epsilon=1.0, bounds=(0, 5), coverage=0.9)
    >>> low, high = intervals.predict_interval([[0.2, 0.0]])[0]
    >>> bool(0 <= low <= intervals.predict([[0.2, 0.0]])[0] <= high <= 5)
    True
    """

    model: Any
    half_width: float
    scale: LabelScale
    coverage: float
    rows: int
    cost: Budget
    secure: bool

    @property
    def full(self) -> bool:
        """True if every interval is the full bounds, which says nothing."""
        low, high = self.scale.inner
        return self.half_width >= high - low

    def predict(self, X: Any) -> Array:
        """Return the model's predictions, inside the bounds.

        Parameters
        ----------
        X : array-like
            Public features, as the model takes them.
        """
        return np.clip(np.asarray(self.model.predict(X), dtype=np.float64), *self.scale.bounds)

    def predict_interval(self, X: Any) -> Array:
        """Return the ends of an interval for each row.

        Parameters
        ----------
        X : array-like
            Public features, as the model takes them.

        Returns
        -------
        array, rows × 2
        """
        low, high = _ends(self.scale.apply(self.predict(X)), self.half_width, self.scale.inner)
        return np.column_stack([self.scale.invert(low, -_ROUNDING), self.scale.invert(high, _ROUNDING)])

    def __repr__(self) -> str:
        secure = "secure" if self.secure else "NOT PRIVATE"
        return f"<IntervalModel: {self._reach()} for {percent(self.coverage)}, {self.cost}, {secure}>"

    def _reach(self) -> str:
        if self.full:
            return "the full bounds"
        if self.scale.transform == "log":
            return f"a factor of {number(math.exp(self.half_width))}"
        return f"{number(self.half_width)}{' of square roots' if self.scale.transform else ''}"

    def summary(self) -> str:
        """Return what the intervals are and cost, for people."""
        share, bounds = percent(self.coverage), " to ".join(map(number, self.scale.bounds))
        lines = [
            f"Intervals reach {self._reach()} to both sides of a prediction, cut to the bounds {bounds}.",
            f"  At least {share} of labels lie inside, on average over calibration rows and noise, for rows like "
            f"the {self.rows:,} calibration rows, none of them used in training. Labels outside the bounds count "
            "as the nearest bound.",
        ]
        if self.full:
            lines = [
                f"Intervals are the full bounds: {self.rows:,} rows and this ε show no narrower ones that cover "
                f"{share}. Give more rows, more ε, or less coverage."
            ]
        if not self.secure:
            lines.append("  NOT PRIVATE: the noise can be repeated from a seed.")
        return "\n".join([*lines, f"  Cost: {self.cost}."])


def private_intervals(
    model: Any,
    X_cal: Any,
    y_cal: Any,
    *,
    epsilon: float,
    bounds: Interval,
    coverage: float = 0.9,
    ledger: Ledger | None = None,
    rows_per_person: int = 1,
    random_state: int | WordSource | None = None,
    **rows: Unpack[RowOptions],
) -> IntervalModel:
    """Return a model with prediction intervals, for ε: split conformal prediction with exact noisy counts.

    A curator bisects a public grid of half widths, by noisy counts of the labels inside. How many must be inside
    makes up for the noise, whatever the labels are: docs/proofs/intervals.md. If the model has a transform, so do
    the half widths: those of "log" are factors.

    Parameters
    ----------
    model : regressor
        Public or private already: its predictions count as public.
    X_cal : array-like
        Public features of rows that the model was **not** trained on. Rows that a regressor of this library
        remembers are refused; for other models nobody can check.
    y_cal : array-like
        Their private labels.
    epsilon : float
        The cost of the intervals.
    bounds : (lo, hi)
        Public bounds of the label. Never read them off the data.
    coverage : float
        At least this share of labels lies inside, on average over calibration rows and noise.
    ledger : Ledger, optional
        Is charged after validation and before any label is used.
    rows_per_person : int
        The number of rows that one person may have; the ledger is charged for all of them.
    random_state : None, int or source of words
        Leave it out for a release.
    **rows
        ``segment``, ``id``, ``person`` and ``most_rows_per_person`` of the calibration rows, as in `privatize`.

    Returns
    -------
    IntervalModel
        With ``predict_interval``. Where rows · ε cannot support the coverage, intervals are the full bounds: a
        warning says so, and nothing is charged.

    Examples
    --------
    >>> import numpy as np, labeldp as ldp
    >>> X = np.random.default_rng(0).normal(size=(2500, 3))
    >>> y = np.clip(2.5 + X[:, 0], 0, 5)
    >>> model = ldp.ModelReleaseRegressor(epsilon=1.0, bounds=(0, 5)).fit(X[:500], y[:500])
    >>> intervals = ldp.private_intervals(model, X[500:], y[500:], epsilon=0.5, bounds=(0, 5), coverage=0.9)
    >>> intervals.predict_interval(X[:4]).shape, intervals.cost
    ((4, 2), Budget(epsilon=0.5))
    """
    budget, coverage = as_fraction(Epsilon(epsilon)), parse_number(coverage, "coverage")
    if not 0 < coverage < 1:
        raise ParameterError(f"coverage must lie in (0, 1), such as 0.9, got {coverage}")
    share = as_fraction(coverage)
    bounds = LabelBounds(bounds)
    scale = LabelScale.parse(
        bounds, getattr(getattr(innermost(model)[0], "terms_", None), "label_transform", None)
    )
    why = "and intervals would not cover; keep rows out of the fit, and calibrate on those"
    labels, predicted = fresh_predictions(model, X_cal, y_cal, why)
    scope, ledger = Scope.parse(rows_per_person, **rows), as_ledger(ledger)
    source = resolve_source(random_state)
    if ledger is not None or rows:
        scope = (ledger or Ledger()).admit(scope, labels.size, budget)
        labels, predicted = scope.select(labels), scope.select(predicted)
    plan = plan_coverage(labels.size, budget, share)
    charge = new_charge(
        "prediction intervals",
        Budget(budget),
        purpose="intervals",
        mechanism=None if plan is None else str(plan.noise),
        scope=scope,
    )
    inner = scale.inner
    half_width, cost = inner[1] - inner[0], Budget(0)
    if plan is not None:
        access = LabelAccess(scale.apply(labels), source, "intervals")
        access.charge(ledger_to_charge(ledger, y_cal), [charge], scope, epsilon=budget)
        half_width = _search(plan, scale.apply(predicted), access, inner)
        cost = charge.budget
    secure = isinstance(source, SecureWords) and bool(getattr(model, "secure_", True))
    result = IntervalModel(model, half_width, scale, float(share), labels.size, cost, secure)
    if result.full:
        warn(result.summary())
    return result


def _ends(predicted: Array, half_width: float, bounds: Interval) -> tuple[Array, Array]:
    low, high = bounds
    if half_width >= high - low:  # a rounded difference could miss a bound
        return np.full_like(predicted, low), np.full_like(predicted, high)
    return np.maximum(predicted - half_width, low), np.minimum(predicted + half_width, high)


@dataclass(frozen=True, slots=True)
class LabelsInside(IntegerQuery):
    """The number of labels inside their rows' intervals.

    Attributes
    ----------
    low, high : arrays
        The interval of each row.
    """

    low: Array
    high: Array
    kind = "largest count"
    description = "count of labels inside intervals"
    largest = 1

    def integers(self, labels: Array) -> Array:
        """Return 1 for labels inside, else 0."""
        return np.asarray((self.low <= labels) & (labels <= self.high))


def _search(plan: CoveragePlan, predicted: Array, access: LabelAccess, bounds: Interval) -> float:
    """Return a half width, by bisection with noisy counts of the labels inside."""
    width = bounds[1] - bounds[0]
    below, above = 0, 1 << plan.counts
    for _ in range(plan.counts):
        middle = (below + above) // 2
        inside = LabelsInside(*_ends(predicted, plan.half_width(middle, width), bounds))
        passes = access.measure(inside, plan.epsilon / plan.counts).values[0] >= plan.min_count
        below, above = (below, middle) if passes else (middle, above)
    return plan.half_width(above, width)
