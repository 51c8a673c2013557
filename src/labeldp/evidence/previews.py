"""`preview`: expected errors at each ε, computed from public numbers alone."""

from __future__ import annotations

import math
from bisect import bisect_left
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import lru_cache, partial
from html import escape

import numpy as np

from labeldp._values import (
    Data,
    Epsilon,
    Interval,
    LabelBounds,
    as_fraction,
    parse_choice,
    parse_integer,
    parse_number,
)
from labeldp.accounts.accuracy import Accuracy
from labeldp.accounts.budget import Budget, rounded_up
from labeldp.accounts.numbers import number, percent, times
from labeldp.errors import ParameterError, Setting
from labeldp.evidence.accuracy_suite import ModelShare, model_share
from labeldp.evidence.cautions import NOTES, cautions
from labeldp.mechanisms.histogram import Histogram
from labeldp.release.curator import mean_variance
from labeldp.release.plan import Request

GROUPS = {"hundred": 100, "thousand": 1000}
"""Rows of groups whose means are shown."""

HELD_OUT = 10
"""A score takes one row of this many, as ``labeldp fit --score`` does."""

NAMES = {
    "label": "one label",
    **{name: f"mean of {count:,} labels" for name, count in GROUPS.items()},
    "mean": "mean of all labels",
    "curator_mean": "the mean alone",
}
"""Quantities whose errors are shown."""

_SHARE_OF_SUMS = 0.7
"""The part of ε that a regression table has left for its sums after the search for the range of most labels."""

TARGETS = (*NAMES, "score", "coefficient")
"""Errors that an ε can be chosen by."""

DEFAULTS = (0.1, 0.3, 1.0, 3.0)
"""Values of ε to compare, unless others are given."""

_LADDER = [float(f"{digits / 10:.1f}e{power}") for power in range(-3, 1) for digits in range(10, 100)] + [10.0]
"""Values of ε with two digits, from 0.001 to 10: the range of `target_error`."""


@dataclass(frozen=True, slots=True)
class BudgetPreview:
    """Expected errors at one ε, in the label's unit.

    Attributes
    ----------
    epsilon : float
        The budget that the others are for.
    label, hundred, thousand, mean : float
        Typical error of one private label, of the mean of 100 and of 1,000 of them, and of the mean of all.
    curator_mean : float
        Typical error of the mean of all labels, where nothing else is released.
    score : float
        The smallest root mean squared error that `private_score` could distinguish from none, for this ε more
        on a tenth of the rows, held out; infinite where it would refuse.
    model : ModelShare or None
        The share of explained variation that a model may keep, by the accuracy suite.
    coefficient : float or None
        If ``columns`` was given, the ± of 95 % intervals of `private_ols`: of a column with a standard deviation
        of 1, uncorrelated with the others, for labels with a standard deviation of a tenth of the bounds' width
        around the model.

    Examples
    --------
    >>> import labeldp as ldp
    >>> one, = ldp.preview(rows=20_000, bounds=(0, 200), epsilon=1.0).budgets
    >>> one.label > one.hundred > one.mean > one.curator_mean
    True
    """

    epsilon: float
    label: float
    hundred: float
    thousand: float
    mean: float
    curator_mean: float
    score: float
    model: ModelShare | None
    coefficient: float | None


@dataclass(frozen=True, slots=True, repr=False)
class Preview:
    """Expected errors at several budgets, before any label is read.

    Attributes
    ----------
    rows : int
        Number of rows of the table.
    bounds : (lo, hi)
        Public bounds of the label.
    prior : Histogram or None
        The distribution of labels, if that was given.
    budgets : tuple of BudgetPreview
        For each ε asked for.
    rows_per_person : int
        Each ε is that of one row; a person with k rows is exposed to kε.
    columns : int or None
        Columns of a regression table, if that was asked for.

    Examples
    --------
    >>> import labeldp as ldp
    >>> plan = ldp.preview(rows=20_000, bounds=(0, 200), epsilon=[0.3, 1.0])
    >>> print(plan.summary())
    20,000 rows, labels in (0, 200)
                               ε = 0.3          ε = 1
    odds grow by up to           1.35×          2.72×
    one label                     ±667           ±197
    mean of 100 labels           ±66.7          ±19.7
    mean of 1,000 labels         ±21.1          ±6.24
    mean of all labels           ±4.72          ±1.39
    the mean alone             ±0.0471        ±0.0141
    ...
    """

    rows: int
    bounds: Interval
    prior: Histogram | None
    budgets: tuple[BudgetPreview, ...]
    rows_per_person: int = 1
    columns: int | None = None

    @property
    def names(self) -> dict[str, str]:
        """Quantities whose errors are shown; no group has more rows than the table."""
        return {name: text for name, text in NAMES.items() if GROUPS.get(name, 1) <= self.rows}

    def table(self) -> tuple[list[str], list[list[str]]]:
        """Return a header, and a line for each thing that could be released."""
        points = self.budgets
        names = self.names
        if self.columns is not None:
            coefficient = f"coefficient per SD, {self.columns} columns"
            names["coefficient"] = coefficient if self.columns else "95 % interval of the mean"
        header = ["", *(f"ε = {rounded_up(point.epsilon)}" for point in points)]
        lines = [["odds grow by up to", *(times(self.rows_per_person * point.epsilon) for point in points)]]
        for name, text in names.items():
            lines.append([text, *(f"±{number(getattr(point, name), 3)}" for point in points)])
        lines.append(["error a score shows", *(_score(point.score) for point in points)])
        lines.append(["model quality", *(_share(point.model) for point in points)])
        return header, lines

    def records(self) -> list[Data]:
        """Return every figure in full, for a data frame: the quantity, ε, and the error or the share."""
        names = self.names | {"score": "error a score shows", "coefficient": "coefficient"}
        records = []
        for point in self.budgets:
            figures = {text: getattr(point, name) for name, text in names.items()}
            figures["model quality"] = point.model.middle if point.model else None
            for quantity, figure in figures.items():
                if figure is not None:
                    records.append({"of": quantity, "epsilon": point.epsilon, "figure": figure})
        return records

    def notes(self) -> list[str]:
        """Return the basis of the figures, in sentences."""
        tables = [point.model.tables for point in self.budgets if point.model is not None]
        notes = [
            NOTES["basis"].format(labels=NOTES["even" if self.prior is None else "prior"]),
            NOTES["score"].format(held=f"{self.rows // HELD_OUT:,}"),
            NOTES["model"].format(tables=max(tables)) if tables else NOTES["unknown"],
        ]
        if self.columns is not None:
            notes.append(NOTES["coefficient" if self.columns else "interval"])
        return [*notes, NOTES["alone"]]

    def cautions(self, besides: Budget = Budget(0)) -> list[str]:  # noqa: B008 (it cannot change)
        """Return cautions about these budgets, in sentences; ``besides`` is spent on the same labels too."""
        return cautions(self, besides)

    def summary(self) -> str:
        """Return the table, its notes and its cautions, as text."""
        header, lines = self.table()
        cells = [header, *lines]
        widths = [max(map(len, column)) for column in zip(*cells, strict=True)]
        low, high = self.bounds
        text = [f"{self.rows:,} rows, labels in ({number(low)}, {number(high)})"]
        for name, *figures in cells:
            line = [name.ljust(widths[0])]
            line += [figure.rjust(width) for figure, width in zip(figures, widths[1:], strict=True)]
            text.append("  ".join(line).rstrip())
        return "\n".join([*text, *self.notes(), *self.cautions()])

    def __str__(self) -> str:
        return self.summary()

    def _repr_html_(self) -> str:
        return f"<pre>{escape(self.summary())}</pre>"

    def __repr__(self) -> str:
        budgets = ", ".join(rounded_up(point.epsilon) for point in self.budgets)
        return f"<Preview of {self.rows:,} rows at ε = {budgets}>"


def preview(
    *,
    rows: int,
    bounds: Interval,
    epsilon: float | Sequence[float] | None = None,
    prior: Histogram | None = None,
    rows_per_person: int = 1,
    columns: int | None = None,
    target_error: float | None = None,
    target: str = "mean",
) -> Preview:
    """Return expected errors at each ε, before any label is read: no data go in, and no budget is spent.

    With ``target_error`` return the least ε that reaches this error, and its other errors.

    Parameters
    ----------
    rows : int
        Number of rows of the table.
    bounds : (lo, hi)
        Public bounds of the label.
    epsilon : float or sequence of float
        The budgets to compare; by default 0.1, 0.3, 1 and 3.
    prior : Histogram, optional
        The distribution of labels, where it is public: an older survey, a census. By default even over the bounds.
    rows_per_person : int
        Rows that one person may have: odds are those on all of them.
    columns : int, optional
        Number of columns of a regression table: ``coefficient`` is then the ± of its intervals; with 0 columns
        that of the mean.
    target_error : float, optional
        The error that is needed, in the label's unit, in place of ``epsilon``.
    target : {"label", "hundred", "thousand", "mean", "curator_mean", "score", "coefficient"}
        The figure of `BudgetPreview` that has this error.

    Returns
    -------
    Preview
        With ``summary()``, ``table()``, ``records()`` and ``budgets``.

    Examples
    --------
    >>> import labeldp as ldp
    >>> plan = ldp.preview(rows=20_000, bounds=(0, 200), epsilon=[0.3, 1.0])
    >>> [round(point.curator_mean, 3) for point in plan.budgets]
    [0.047, 0.014]
    >>> ldp.preview(rows=20_000, bounds=(0, 200), target_error=2.0).budgets[0].epsilon
    0.71
    """
    rows = parse_integer(rows, "rows")
    bounds = LabelBounds(bounds)
    restricted = None if prior is None else Histogram.parse(prior).restricted(*bounds)
    people = parse_integer(rows_per_person, "rows_per_person")
    size = None if columns is None else parse_integer(columns, "columns", low=0)
    if size is not None and not 3 * (size + 1) <= rows:
        raise ParameterError(Setting("columns"), f" must be at most a third of the {rows:,} rows, got {size}")
    at = partial(_preview_budget, rows, bounds, prior=restricted, columns=size)
    if target_error is None:
        budgets = tuple(map(at, _parse_epsilons(DEFAULTS if epsilon is None else epsilon)))
    elif epsilon is None:
        budgets = (_reach_error(at, parse_number(target_error, "target_error"), _parse_target(target, size)),)
    else:
        raise ParameterError("give ", Setting("epsilon"), " or ", Setting("target_error"), ", not both")
    return Preview(rows, bounds, restricted, budgets, people, size)


def _parse_epsilons(epsilon: float | Sequence[float]) -> list[float]:
    """Return values of ε, in ascending order."""
    epsilons = {Epsilon(value) for value in np.atleast_1d(np.asarray(epsilon, dtype=object)).tolist()}
    if not epsilons:
        raise ParameterError(Setting("epsilon"), " must be a number or several, such as (0.1, 0.3, 1, 3)")
    return sorted(epsilons)


def _parse_target(target: str, columns: int | None) -> str:
    """Return the name of an error of `BudgetPreview`."""
    parse_choice(target, "target", TARGETS)
    if target == "coefficient" and columns is None:
        raise ParameterError(Setting("target", target), " needs ", Setting("columns"))
    return target


def _reach_error(at: Callable[[float], BudgetPreview], error: float, name: str) -> BudgetPreview:
    """Return the preview of the least ε of `_LADDER` that reaches an error: it falls as ε grows."""
    first = bisect_left(_LADDER, True, key=lambda epsilon: getattr(at(epsilon), name) <= error)
    if first == len(_LADDER):
        best = number(getattr(at(_LADDER[-1]), name), 3)
        raise ParameterError(
            Setting("target_error"),
            f" {number(error)} is not reached up to ε = {_LADDER[-1]:g}, where it is {best}: more rows, tighter "
            "bounds or another target would",
        )
    return at(_LADDER[first])


@lru_cache(maxsize=256)
def _preview_budget(
    rows: int, bounds: Interval, epsilon: float, prior: Histogram | None, columns: int | None
) -> BudgetPreview:
    from labeldp.inference.label_weights import expected_error  # noqa: PLC0415 (scikit-learn takes a second)

    free = {"epsilon_prior": 0.0} if prior is None else {"prior": prior}
    mechanism = Request(epsilon=epsilon, bounds=bounds, **free).plan(rows).mechanism_for(prior)
    accuracy = Accuracy.under(mechanism, prior, bounds)
    counts = np.array([1.0, *GROUPS.values(), rows])
    label, hundred, thousand, mean = accuracy.error_of_mean(counts).tolist()
    coefficient = None
    if columns is not None:
        share = 1.0 if columns == 0 and bounds == (0, 1) else _SHARE_OF_SUMS
        coefficient = 1.96 * (bounds[1] - bounds[0]) * expected_error(rows, columns, share * epsilon)
    return BudgetPreview(
        epsilon=epsilon,
        label=label,
        hundred=hundred,
        thousand=thousand,
        mean=mean,
        curator_mean=math.sqrt(mean_variance(as_fraction(epsilon), rows, bounds)),
        score=_least_score(max(rows // HELD_OUT, 1), bounds, epsilon),
        model=model_share(rows, epsilon),
        coefficient=coefficient,
    )


def _least_score(rows: int, bounds: Interval, epsilon: float) -> float:
    """Return the root mean squared error whose square is twice its noise, as `private_score` states it."""
    from labeldp.learning.score_sums import MOST_ROWS, ScorePlan  # noqa: PLC0415 (scikit-learn takes a second)

    try:
        plan = ScorePlan.of(min(rows, MOST_ROWS), as_fraction(epsilon), bounds)
    except ParameterError:
        return math.inf
    return plan.least_rmse if 12 * plan.least_rmse**2 < (bounds[1] - bounds[0]) ** 2 else math.inf


def _score(error: float) -> str:
    return number(error, 3) if math.isfinite(error) else "nothing"


def _share(share: ModelShare | None) -> str:
    if share is None:
        return "not measured"
    return f"{percent(share.middle)} ({100 * share.low:.0f}–{100 * share.high:.0f})"
