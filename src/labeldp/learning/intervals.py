"""Private prediction intervals: conformal prediction with noisy counts of the labels inside, by public group."""

from __future__ import annotations

import math
from collections.abc import Mapping
from contextlib import nullcontext, suppress
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Any, Unpack

import numpy as np
from numpy.typing import ArrayLike

from labeldp._values import Array, Epsilon, Interval, LabelBounds, as_fraction, parse_number, refuse_other_order
from labeldp.accounts.budget import Budget, Charge, new_charge
from labeldp.accounts.ledger import Ledger
from labeldp.accounts.numbers import number, percent
from labeldp.accounts.scope import RowOptions, Scope
from labeldp.errors import ParameterError, list_first, warn
from labeldp.exact.word_sources import RandomState, SecureWords, WordSource, resolve_source
from labeldp.learning.coverage_plan import CoveragePlan, fewest_rows, plan_coverage
from labeldp.learning.fit_plan import LabelScale
from labeldp.learning.held_out import HeldOutRows, fit_terms
from labeldp.release.group_means import parse_groups
from labeldp.release.label_access import LabelAccess
from labeldp.release.queries import IntegerQuery

_ROUNDING = 1e-12
"""Ends of intervals are moved outwards by this part, more than a transform and its inverse are off."""

_UNEQUAL = 0.05
"""Noise hurts small groups more if the fractions by which it widens intervals differ by more than this."""

_MOST_LISTED = 5
"""The most names of groups in a message."""


@dataclass(frozen=True, slots=True)
class GroupWidth:
    """The half width of the intervals of a public group.

    Attributes
    ----------
    half_width : float
        Intervals reach this far to both sides of a prediction, on the model's scale, and are cut to the bounds.
    rows : int
        The number of calibration rows.
    widening : float
        The fraction by which noise is expected to widen the intervals, for normal residuals of a twentieth of the
        bounds' width. It follows from rows, ε and coverage alone.
    full : bool
        True if every interval is the full bounds, which says nothing.

    Examples
    --------
    >>> import numpy as np, labeldp as ldp
    >>> from sklearn.dummy import DummyRegressor
    >>> y, town = np.linspace(0, 5, 3000), np.repeat(["Bath", "York"], [400, 2600])
    >>> X, model = np.zeros((3000, 1)), DummyRegressor(strategy="constant", constant=0.0).fit([[0]], [0])
    >>> groups = ldp.private_intervals(model, X, y, epsilon=1.0, bounds=(0, 5), by=town).groups
    >>> groups["Bath"].rows, groups["Bath"].half_width < groups["York"].half_width
    (400, True)
    >>> groups["Bath"].widening > groups["York"].widening                   # noise hurts the small group more
    True
    """

    half_width: float
    rows: int
    widening: float
    full: bool


@dataclass(frozen=True, slots=True, repr=False)
class IntervalModel:
    """A model with prediction intervals.

    Attributes
    ----------
    model : regressor
    groups : dict of GroupWidth
        The intervals of each public group, by its name; those of all rows are named None.
    scale : LabelScale
        The label's public bounds, and the model's transform, if it has one.
    coverage : float
        The fraction of labels inside, at least, in each group, on average over calibration rows and noise.
    cost : Budget
        The cost of the intervals of all groups together, beyond that of the model.
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
    groups: Mapping[Any, GroupWidth]
    scale: LabelScale
    coverage: float
    cost: Budget
    secure: bool

    @property
    def half_width(self) -> float:
        """The half width of all intervals, on the model's scale; by group, see ``groups``."""
        if None not in self.groups:
            raise ParameterError("each group has its own half width: take groups[name].half_width")
        return self.groups[None].half_width

    @property
    def rows(self) -> int:
        """The number of calibration rows, of all groups."""
        return sum(group.rows for group in self.groups.values())

    @property
    def full(self) -> bool:
        """True if every interval is the full bounds, which says nothing."""
        return all(group.full for group in self.groups.values())

    def predict(self, X: Any) -> Array:
        """Return the model's predictions, inside the bounds.

        Parameters
        ----------
        X : array-like
            Public features, as the model takes them.
        """
        return np.clip(np.asarray(self.model.predict(X), dtype=np.float64), *self.scale.bounds)

    def predict_interval(self, X: Any, by: ArrayLike | None = None) -> Array:
        """Return the ends of an interval for each row.

        Parameters
        ----------
        X : array-like
            Public features, as the model takes them.
        by : array-like, optional
            The public group of each row, of intervals by group. A group without calibration rows is refused: no
            interval is known to cover its labels.

        Returns
        -------
        array, rows × 2
        """
        refuse_other_order(X, by, "by")
        predicted = self.scale.apply(self.predict(X))
        low, high = _ends(predicted, self._half_widths(by, predicted.size), self.scale.inner)
        return np.column_stack([self.scale.invert(low, -_ROUNDING), self.scale.invert(high, _ROUNDING)])

    def _half_widths(self, by: ArrayLike | None, rows: int) -> Array:
        """Return the half width of each row's group."""
        names, numbers = parse_groups(by, rows)
        unknown = [name for name in names if name not in self.groups]
        if None in unknown:
            raise ParameterError("intervals differ by group: give by, the public group of each row")
        if None in self.groups and unknown:
            raise ParameterError("intervals are the same for all rows: leave by out, or calibrate with by")
        if unknown:
            groups = list_first([*map(repr, unknown)], _MOST_LISTED)
            raise ParameterError(
                f"no interval is known to cover labels of {groups}, a group without calibration rows: leave these "
                "rows out, or calibrate with rows of the group"
            )
        return np.array([self.groups[name].half_width for name in names])[numbers]

    def __repr__(self) -> str:
        secure = "secure" if self.secure else "NOT PRIVATE"
        reach = f"{len(self.groups):,} groups"
        if None in self.groups:
            reach = self._describe_reach(self.groups[None])
        return f"<IntervalModel: {reach} for {percent(self.coverage)}, {self.cost}, {secure}>"

    def _describe_reach(self, group: GroupWidth) -> str:
        if group.full:
            return "the full bounds"
        if self.scale.transform == "log":
            return f"a factor of {number(math.exp(group.half_width))}"
        return f"{number(group.half_width)}{' of square roots' if self.scale.transform else ''}"

    def summary(self) -> str:
        """Return the reach, the promise and the cost of the intervals, for people."""
        coverage, bounds = percent(self.coverage), " to ".join(map(number, self.scale.bounds))
        widenings = [group.widening for group in self.groups.values() if not group.full]
        labels = "labels" if None in self.groups else "labels of each group"
        lines = [
            f"Intervals reach to both sides of a prediction, cut to the bounds {bounds}:",
            *(self._describe(name, group) for name, group in self.groups.items()),
            f"At least {coverage} of {labels} lie inside, on average over calibration rows and noise, for rows "
            "like the calibration rows, none of them used in training. Labels outside the bounds count as the "
            "nearest bound.",
        ]
        if widenings and max(widenings) > min(widenings) + _UNEQUAL:
            lines.append("Noise hurts small groups more. Join groups, or give more rows or more ε.")
        if not self.secure:
            lines.append("NOT PRIVATE: the noise can be repeated from a seed.")
        return "\n  ".join([*lines, f"Cost: {self.cost}."])

    def _describe(self, name: Any, group: GroupWidth) -> str:
        """Return the reach of a group's intervals, its rows, and the widening by noise."""
        rows = f"all {group.rows:,} rows" if name is None else f"{name!r}, {group.rows:,} rows"
        if group.full:
            return f"{rows}: the full bounds. Narrower ones need more rows, more ε, or less coverage."
        reach = self._describe_reach(group)
        return f"{rows}: {reach}; noise widens them by about {percent(group.widening)}."


def private_intervals(
    model: Any,
    X_cal: Any,
    y_cal: Any,
    *,
    epsilon: float,
    bounds: Interval,
    coverage: float = 0.9,
    by: ArrayLike | None = None,
    ledger: Ledger | None = None,
    rows_per_person: int = 1,
    random_state: RandomState = None,
    **rows: Unpack[RowOptions],
) -> IntervalModel:
    """Return a model with prediction intervals, for ε: split conformal prediction with exact noisy counts.

    A curator bisects a public grid of half widths, by noisy counts of the labels inside. The count that a half
    width needs makes up for the noise, whatever the labels are: docs/proofs/intervals.md. If the model has a
    transform, so do the half widths: those of "log" are factors.

    With ``by``, each public group has a half width of its own, and the coverage holds in each group (Mondrian
    conformal prediction). A label is in one group, so one ε pays for all groups. Noise widens the intervals of a
    small group more; ``groups`` and the summary state the expected widening.

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
        Public bounds of the label, not narrower than those of a model of this library. Never read them off the
        data.
    coverage : float
        At least this share of labels lies inside, on average over calibration rows and noise; with ``by``, in
        each group.
    by : array-like, optional
        The public group of each calibration row. A group may follow from public columns, never from labels.
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

    Raises
    ------
    ParameterError
        Before anything is charged; also if a group of ``by`` is so small that ε cannot support the coverage: join
        it with another.

    Examples
    --------
    >>> import numpy as np, labeldp as ldp
    >>> X = np.random.default_rng(0).normal(size=(2500, 3))
    >>> y = np.clip(2.5 + X[:, 0], 0, 5)
    >>> model = ldp.ModelReleaseRegressor(epsilon=1.0, bounds=(0, 5)).fit(X[:500], y[:500])
    >>> intervals = ldp.private_intervals(model, X[500:], y[500:], epsilon=0.5, bounds=(0, 5), coverage=0.9)
    >>> intervals.predict_interval(X[:4]).shape, intervals.cost
    ((4, 2), Budget(epsilon=0.5))

    By group, for one ε:

    >>> size = np.where(X[:, 1] > 1, "large", "small")
    >>> fair = ldp.private_intervals(model, X[500:], y[500:], epsilon=0.5, bounds=(0, 5), by=size[500:])
    >>> fair.predict_interval(X[:4], by=size[:4]).shape, fair.cost
    ((4, 2), Budget(epsilon=0.5))
    """
    budget, share = as_fraction(Epsilon(epsilon)), _parse_coverage(coverage)
    terms = fit_terms(model)
    bounds = LabelBounds(bounds)
    scale = LabelScale.parse(bounds, None if terms is None else terms.label_transform)
    held_out = HeldOutRows.parse(
        model,
        X_cal,
        y_cal,
        bounds=bounds,
        by=by,
        scope=Scope.parse(rows_per_person, labels=y_cal, X=X_cal, **rows),
        ledger=ledger,
        epsilon=budget,
        harm="and intervals would not cover; keep rows out of the fit, and calibrate on those",
    )
    source = resolve_source(random_state)
    secure = isinstance(source, SecureWords) and bool(getattr(model, "secure_", True))
    plans = _plan_groups(held_out, budget, share)
    groups, cost = _calibrate(held_out, plans, scale, share, source)
    full = [name for name, group in groups.items() if group.full]
    if full:
        where = "" if by is None else f" in {list_first([*map(repr, full)], _MOST_LISTED)}"
        with suppress(UserWarning) if plans else nullcontext():  # as an error it must not lose paid intervals
            warn(
                f"Intervals are the full bounds{where}: these rows and this ε show no narrower ones that cover "
                f"{percent(float(share))}. Give more rows, more ε, or less coverage"
            )
    return IntervalModel(model, groups, scale, float(share), cost, secure)


def _parse_coverage(coverage: float) -> Fraction:
    """Return a coverage in (0, 1)."""
    share = parse_number(coverage, "coverage")
    if not 0 < share < 1:
        raise ParameterError(f"coverage must lie in (0, 1), such as 0.9, got {share}")
    return as_fraction(share)


def _plan_groups(held_out: HeldOutRows, epsilon: Fraction, coverage: Fraction) -> dict[Any, CoveragePlan]:
    """Return the search in each group; none where all rows are one group and ε cannot support the coverage.

    A small group is refused: its intervals would be the full bounds, at the same price.
    """
    plans = {}
    for name, rows in held_out.groups.items():
        plan = plan_coverage(rows.size, epsilon, coverage)
        if plan is not None:
            plans[name] = plan
        elif name is not None:
            raise ParameterError(
                f"group {name!r} has {rows.size:,} calibration rows: at ε = {float(epsilon):g}, coverage "
                f"{float(coverage):g} needs {fewest_rows(epsilon, coverage):,}. Join the group with another, or "
                "give more rows or more ε"
            )
    return plans


def _calibrate(
    held_out: HeldOutRows,
    plans: Mapping[Any, CoveragePlan],
    scale: LabelScale,
    coverage: Fraction,
    source: WordSource,
) -> tuple[dict[Any, GroupWidth], Budget]:
    """Charge the ledger, and return half widths by group, and the cost; without plans, those are the bounds'."""
    width = scale.inner[1] - scale.inner[0]
    if not plans:
        return {None: GroupWidth(width, held_out.labels.size, math.inf, full=True)}, Budget(0)
    charge = _new_charge(plans, held_out)

    def measure(name: Any, predicted: Array, access: LabelAccess) -> GroupWidth:
        plan = plans[name]
        half_width = _search(plan, predicted, access, scale.inner)
        return GroupWidth(half_width, plan.rows, plan.widening(coverage), half_width >= width)

    labels, predicted = scale.apply(held_out.labels), scale.apply(held_out.predicted)
    groups = replace(held_out, labels=labels, predicted=predicted).measure(charge, source, measure)
    return groups, charge.budget


def _new_charge(plans: Mapping[Any, CoveragePlan], held_out: HeldOutRows) -> Charge:
    """Return the one charge for the intervals of all groups: a label is in one of them."""
    return new_charge(
        "prediction intervals" if None in plans else f"prediction intervals of {len(plans):,} groups",
        Budget(held_out.epsilon),
        purpose="intervals",
        mechanism="; ".join(dict.fromkeys(str(plan.noise) for plan in plans.values())),
        scope=held_out.scope,
    )


def _ends(predicted: Array, half_width: float | Array, bounds: Interval) -> tuple[Array, Array]:
    """Return the ends of intervals, inside the bounds; a rounded difference could miss a bound of full ones."""
    low, high = bounds
    reach = np.where(np.asarray(half_width) >= high - low, np.inf, half_width)
    return np.maximum(predicted - reach, low), np.minimum(predicted + reach, high)


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
