"""`preview`: what each ε would give, computed from public numbers alone."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import numpy as np

from labeldp._values import Count, Data, Epsilon, Interval, LabelBounds, as_fraction, parse_integer, parse_positive
from labeldp.accounts.accuracy import Accuracy
from labeldp.accounts.budget import rounded_up
from labeldp.accounts.numbers import number, percent, times
from labeldp.accounts.scores import DEFAULT_METRICS
from labeldp.errors import MissingExtraError, ParameterError, Setting
from labeldp.evidence.accuracy_suite import KeptShare, share_kept
from labeldp.evidence.cautions import NOTES, cautions
from labeldp.evidence.curves import draw_preview
from labeldp.mechanisms.histogram import Histogram
from labeldp.release.curator import mean_variance
from labeldp.release.plan import Request

GROUPS = {"hundred": 100, "thousand": 1000}
"""Rows of the groups that errors are shown for."""

HELD_OUT = 10
"""A score takes one row in so many, as ``labeldp fit --score`` does."""

CURVE = tuple(float(f"{epsilon:.2g}") for epsilon in np.geomspace(0.02, 20, 25))
"""Where curves are computed, beside the budgets asked for."""

NAMES = {
    "label": "one label",
    **{name: f"mean of {count:,} labels" for name, count in GROUPS.items()},
    "mean": "mean of all labels",
    "curator_mean": "the mean alone",
}
"""What errors are shown for."""


@dataclass(frozen=True, slots=True)
class BudgetPreview:
    """What to expect of one ε, in the label's unit.

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
    kept : KeptShare or None
        What a model may keep of what features explain, by the accuracy suite.

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
    kept: KeptShare | None


@dataclass(frozen=True, slots=True, repr=False)
class Preview:
    """What to expect of several budgets, before any label is read.

    Attributes
    ----------
    rows : int
        How many rows the table has.
    bounds : (lo, hi)
        Public bounds of the label.
    prior : Histogram or None
        How labels are spread, if that was given.
    budgets : tuple of BudgetPreview
        For each ε asked for.
    wanted : float or None
        The ± that was asked for.
    rows_per_person : int
        Each ε is that of one row; a person with so many is exposed to as many times ε.
    columns : int or None
        Columns of a regression table, if that was asked for.

    Examples
    --------
    >>> import labeldp as ldp
    >>> plan = ldp.preview(rows=20_000, bounds=(0, 200), epsilon=[0.3, 1.0], wanted=2.0)
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
    >>> round(plan.needed["mean"], 1)           # the least ε at which the mean of all labels is off by 2
    0.7
    """

    rows: int
    bounds: Interval
    prior: Histogram | None
    budgets: tuple[BudgetPreview, ...]
    wanted: float | None
    rows_per_person: int = 1
    columns: int | None = None

    @property
    def coefficients(self) -> tuple[float, ...]:
        """For each ε, the ± of 95 % intervals of `private_ols` if there are so many columns; else none.

        It is that of a column with a standard deviation of 1, uncorrelated with the others, for labels with a
        standard deviation of a tenth of the bounds' width around the model.
        """
        from labeldp.learning.ols_design import expected_error  # noqa: PLC0415 (scikit-learn takes a second)

        columns = self.columns
        if columns is None:
            return ()
        reach = 1.96 * (self.bounds[1] - self.bounds[0])
        return tuple(reach * expected_error(self.rows, columns, point.epsilon) for point in self.budgets)

    @property
    def curve(self) -> tuple[BudgetPreview, ...]:
        """What to expect of many budgets, those asked for among them, as a plot shows it."""
        epsilons = sorted({*CURVE, *(point.epsilon for point in self.budgets)})
        return tuple(_preview_budget(self.rows, self.bounds, epsilon, self.prior) for epsilon in epsilons)

    @property
    def needed(self) -> dict[str, float | None]:
        """The least ε for the wanted ±, by what it is of; None where no ε up to 20 gives it."""
        if self.wanted is None:
            return {}
        curve = self.curve
        return {name: _needed(curve, name, self.wanted) for name in self.names}

    @property
    def names(self) -> dict[str, str]:
        """What errors are shown for, where no group has more rows than the table."""
        return {name: what for name, what in NAMES.items() if GROUPS.get(name, 1) <= self.rows}

    def table(self) -> tuple[list[str], list[list[str]]]:
        """Return a header, and a line for each thing that could be released."""
        errors = {what: [getattr(point, name) for point in self.budgets] for name, what in self.names.items()}
        if self.columns is not None:
            errors[f"coefficient per SD, {self.columns} columns"] = [*self.coefficients]
        scores = [number(point.score, 3) if math.isfinite(point.score) else "nothing" for point in self.budgets]
        header = ["", *(f"ε = {rounded_up(point.epsilon)}" for point in self.budgets)]
        return header, [
            ["odds grow by up to", *(times(self.rows_per_person * point.epsilon) for point in self.budgets)],
            *([what, *(f"±{number(error, 3)}" for error in each)] for what, each in errors.items()),
            ["error a score shows", *scores],
            ["what a model keeps", *(_share(point.kept) for point in self.budgets)],
        ]

    def records(self) -> list[Data]:
        """Return every figure in full, for a data frame: what it is of, at which ε, and the error or the share."""
        names, records = {**self.names, "score": "error a score shows"}, []
        for k, point in enumerate(self.budgets):
            figures = {what: getattr(point, name) for name, what in names.items()}
            figures |= {"coefficient": self.coefficients[k]} if self.columns else {}
            figures |= {"kept by a model": point.kept.middle} if point.kept else {}
            records += [{"of": of, "epsilon": point.epsilon, "figure": figure} for of, figure in figures.items()]
        return records

    def to_frame(self) -> Any:
        """Return every figure in full as a data frame of pandas, with the columns of `records`."""
        return data_frame(self.records())

    def notes(self) -> list[str]:
        """Return what the figures rest on, in sentences."""
        tables = [point.kept.tables for point in self.budgets if point.kept is not None]
        notes = [
            NOTES["basis"].format(labels=NOTES["even" if self.prior is None else "prior"]),
            NOTES["score"].format(held=f"{self.rows // HELD_OUT:,}"),
            NOTES["model"].format(tables=max(tables)) if tables else NOTES["unknown"],
        ]
        if self.columns is not None:
            notes.append("Coefficients: the ± of a 95 % interval, per standard deviation (SD) of its column.")
        if self.wanted is not None:
            needs = [f"{self.names[name]} needs {_amount(epsilon)}" for name, epsilon in self.needed.items()]
            notes.append(f"For ±{number(self.wanted)}: {'; '.join(needs)}.")
        return notes

    def cautions(self) -> list[str]:
        """Return what speaks against these budgets, in sentences."""
        return cautions(self)

    def summary(self) -> str:
        """Return the table and what it rests on, for people."""
        header, lines = self.table()
        widths = [max(len(line[k]) for line in (header, *lines)) for k in range(len(header))]
        shown = [
            "  ".join([line[0].ljust(widths[0]), *(c.rjust(w) for c, w in zip(line[1:], widths[1:], strict=True))])
            for line in (header, *lines)
        ]
        low, high = self.bounds
        first = f"{self.rows:,} rows, labels in ({number(low)}, {number(high)})"
        return "\n".join([first, *(line.rstrip() for line in shown), *self.notes(), *self.cautions()])

    def __str__(self) -> str:
        return self.summary()

    def __repr__(self) -> str:
        budgets = ", ".join(rounded_up(point.epsilon) for point in self.budgets)
        return f"<Preview of {self.rows:,} rows at ε = {budgets}>"

    def plot(self) -> Any:
        """Return a Matplotlib figure: errors, and what models keep, against ε."""
        return draw_preview(self)


def data_frame(records: list[Data]) -> Any:
    """Return records as a data frame of pandas."""
    try:
        from pandas import DataFrame  # noqa: PLC0415 (not a dependency)
    except ImportError:
        raise MissingExtraError("a data frame needs pandas: pip install pandas") from None
    return DataFrame(records)


def preview(
    *,
    rows: int,
    bounds: Interval,
    epsilon: float | Sequence[float] = (0.1, 0.3, 1.0, 3.0),
    prior: Histogram | None = None,
    wanted: float | None = None,
    rows_per_person: int = 1,
    columns: int | None = None,
) -> Preview:
    """Return what each ε would give, before any label is read: no data go in, and no budget is spent.

    Parameters
    ----------
    rows : int
        How many rows the table has.
    bounds : (lo, hi)
        Public bounds of the label.
    epsilon : float or sequence of float
        The budgets to compare.
    prior : Histogram, optional
        How labels are spread, where that is public: an older survey, a census. Without it, evenly over the bounds.
    wanted : float, optional
        A ± that would be good enough, in the label's unit: ``needed`` then says which ε gives it.
    rows_per_person : int
        Rows that one person may have: odds are those on all of them.
    columns : int, optional
        How many columns a regression table would have: ``coefficients`` then has the ± of its intervals.

    Returns
    -------
    Preview
        With ``summary()``, ``plot()``, ``budgets`` and ``needed``.

    Examples
    --------
    >>> import labeldp as ldp
    >>> plan = ldp.preview(rows=20_000, bounds=(0, 200), epsilon=[0.3, 1.0], wanted=1.0)
    >>> [round(point.curator_mean, 3) for point in plan.budgets]
    [0.047, 0.014]
    >>> round(plan.needed["curator_mean"], 3) <= 0.02
    True
    """
    rows = parse_integer(rows, "rows")
    bounds = LabelBounds(bounds)
    given = np.atleast_1d(np.asarray(epsilon, dtype=object)).tolist()
    epsilons = sorted({Epsilon(value) for value in given})
    if not epsilons:
        raise ParameterError(Setting("epsilon"), " must be a number or several, such as (0.1, 0.3, 1, 3)")
    known = None if prior is None else Histogram.parse(prior).restricted(*bounds)
    if wanted is not None:
        parse_positive(wanted, "wanted")
    people = int(Count(rows_per_person, "rows_per_person"))
    size = None if columns is None else int(Count(columns, "columns"))
    if size is not None and not 3 * (size + 1) <= rows:
        raise ParameterError(Setting("columns"), f" must be at most a third of the {rows:,} rows, got {size}")
    budgets = tuple(_preview_budget(rows, bounds, value, known) for value in epsilons)
    return Preview(rows, bounds, known, budgets, wanted, people, size)


@lru_cache(maxsize=256)
def _preview_budget(rows: int, bounds: Interval, epsilon: float, prior: Histogram | None) -> BudgetPreview:
    free = {"epsilon_prior": 0.0} if prior is None else {"prior": prior}
    mechanism = Request(epsilon=epsilon, bounds=bounds, **free).plan(rows).mechanism_for(prior)
    accuracy = Accuracy.under(mechanism, prior, bounds)
    counts = {"label": 1, **GROUPS, "mean": rows}
    errors = accuracy.error_of_mean(np.array(list(counts.values()), dtype=np.float64)).tolist()
    return BudgetPreview(
        epsilon=epsilon,
        **dict(zip(counts, errors, strict=True)),
        curator_mean=math.sqrt(mean_variance(as_fraction(epsilon), rows, bounds)),
        score=_least_score(max(rows // HELD_OUT, 1), bounds, epsilon),
        kept=share_kept(rows, epsilon),
    )


def _least_score(rows: int, bounds: Interval, epsilon: float) -> float:
    """Return the root mean squared error that is twice the noise of its square, as `private_score` says it."""
    from labeldp.learning.score_sums import MOST_ROWS, ScorePlan  # noqa: PLC0415 (scikit-learn takes a second)

    try:
        plan = ScorePlan.of(min(rows, MOST_ROWS), as_fraction(epsilon), bounds, DEFAULT_METRICS)
    except ParameterError:
        return math.inf
    square = 2 * plan.expected()["mse"]
    return math.sqrt(square) if 12 * square < (bounds[1] - bounds[0]) ** 2 else math.inf


def _needed(curve: Sequence[BudgetPreview], name: str, wanted: float) -> float | None:
    """Return the least ε from which on an error is as wanted, read off between points of the curve."""
    falling = curve[::-1]
    epsilons = np.log([point.epsilon for point in falling])
    largest = np.maximum.accumulate(np.log([getattr(point, name) for point in falling]))  # from an ε on
    if math.log(wanted) < largest[0]:
        return None
    return math.exp(float(np.interp(math.log(wanted), largest, epsilons)))


def _amount(epsilon: float | None) -> str:
    if epsilon is None:
        return f"ε beyond {CURVE[-1]:g}"
    amount = number(epsilon, 2)
    return f"ε of {amount} or less" if epsilon < 1.001 * CURVE[0] else f"ε of about {amount}"


def _share(kept: KeptShare | None) -> str:
    if kept is None:
        return "not measured"
    return f"{percent(kept.middle)} ({100 * kept.low:.0f}–{100 * kept.high:.0f})"
