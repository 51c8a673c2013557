"""The integer sums behind a score, their joint sensitivity to one label, and their noise.

A row's error becomes an integer k from 0 to `STEPS`. Sums of STEPS·k and k·(STEPS − k) move by no more together
than the first of them alone, so a mean absolute error comes with the squared one at no more noise for the sums:
docs/proofs/scores.md.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from dataclasses import dataclass, field, replace
from fractions import Fraction

import numpy as np

from labeldp._values import Array, Interval, Sums
from labeldp.accounts.budget import Budget, Charge, new_charge
from labeldp.accounts.numbers import number
from labeldp.accounts.scope import Scope
from labeldp.accounts.scores import Figure, list_figures
from labeldp.accounts.statistic import Statistic
from labeldp.errors import ParameterError
from labeldp.learning.quality import Risk
from labeldp.release.label_access import LabelAccess
from labeldp.release.queries import IntegerQuery

STEPS = 1 << 18
_REACH = math.log(20) / math.sqrt(2)
"""Laplace noise is within so many of its standard deviations in 95 % of draws; of normal noise, 97 % is."""

REFERENCE_SHARE = Fraction(1, 3)
"""The share of ε for the errors of the mean prediction, which are at most half of the bounds' width if that is in
the middle, so that their noise is small."""

MOST_ROWS = 1 << 26
"""Sums of this many squares of `STEPS`, and their noise, are 64-bit integers."""


@dataclass(frozen=True, slots=True)
class ErrorSums(IntegerQuery):
    """Sums of absolute and of squared errors of predictions.

    Attributes
    ----------
    bounds : (lo, hi)
        Predictions and labels outside count as the bounds.
    largest_error : float
        The error that becomes `STEPS`.
    predicted : array, optional
        The predictions of the rows.
    """

    bounds: Interval
    largest_error: float
    predicted: Array | None = field(default=None, repr=False)
    kind = "score"
    description = "sums of errors"
    largest = STEPS

    def integers(self, labels: Array) -> Array:
        """Return the error of each row, in steps of the largest one."""
        predicted = np.clip(np.asarray(self.predicted), *self.bounds)
        errors = np.abs(predicted - np.clip(labels, *self.bounds)) / self.largest_error
        return np.asarray(np.rint(np.minimum(errors, 1.0) * STEPS))

    @staticmethod
    def columns(integers: Sums) -> Sums:
        """Return STEPS·k and k·(STEPS − k) of each integer k."""
        return np.array([STEPS * integers, integers * (STEPS - integers)])


@dataclass(frozen=True, slots=True)
class HeldOutPlan(ABC):
    """Measurements of the errors of a model on rows that it was not trained on; all of the plan is public.

    Attributes
    ----------
    rows : int
    epsilon : Fraction
    bounds : (lo, hi)
    """

    rows: int
    epsilon: Fraction
    bounds: Interval

    @property
    @abstractmethod
    def statistics(self) -> tuple[Statistic, ...]:
        """The released integers, for a card."""

    @abstractmethod
    def measure(self, predicted: Array, access: LabelAccess) -> dict[str, Figure]:
        """Return the errors of predictions, with noise."""

    @np.errstate(all="ignore")  # strict settings of a user must not lose a score after its charge
    def score(self, predicted: Array, access: LabelAccess, scope: Scope) -> Risk:
        """Return the errors of predictions for labels that were charged."""
        figures = self.measure(predicted, access)
        return Risk(figures, access.rows, access.is_secure, tuple(access.statistics), None, scope.rows_per_person)

    def charges(self, scope: Scope, fit_epsilon: Fraction = Fraction(0)) -> list[Charge]:
        """Return the charge for a score, or no charge if the rows need no more than the ε of a fit.

        Parameters
        ----------
        scope : Scope
        fit_epsilon : Fraction
            The ε of a fit that did not use these rows: each label is either in the fit or in the score.
        """
        if self.epsilon <= fit_epsilon:
            return []
        budget, noise = Budget(self.epsilon - fit_epsilon), "; ".join(map(str, self.statistics))
        description = "score, beyond the fit" if fit_epsilon else "score"
        return [new_charge(description, budget, purpose="score", mechanism=noise, scope=scope)]


@dataclass(frozen=True, slots=True)
class ScorePlan(HeldOutPlan):
    """The sums of a score and their noise; all of it is public.

    Attributes
    ----------
    rows, epsilon, bounds : as in `HeldOutPlan`
    largest : float
        The largest error that any label in the bounds could have, at most their width.
    has_reference : bool
        Whether errors of the mean prediction are measured too, for a third of ε: R² compares with them.
    """

    largest: float
    has_reference: bool = False

    @classmethod
    def of(
        cls,
        rows: int,
        epsilon: Fraction,
        bounds: Interval,
        largest: float | None = None,
        *,
        has_reference: bool = False,
    ) -> ScorePlan:
        """Return the plan, or refuse one that would say nothing.

        Noise must not hide even the mean absolute error of guessing the middle for labels spread evenly.
        """
        if rows > MOST_ROWS:
            raise ParameterError(
                f"a score takes at most {MOST_ROWS:,} rows, got {rows:,}: give a random part of them"
            )
        width = bounds[1] - bounds[0]
        plan = cls(rows, epsilon, bounds, width if largest is None else largest, has_reference)
        noise = plan.largest * plan._deviation
        short = 1.01 * 2 * noise / (width / 4)
        if short >= 1.01:
            enough = f"ε = {number(short * float(epsilon), 3)} or more, {math.ceil(rows * short):,} rows or more"
            raise ParameterError(
                f"a score of {plan._size} would say nothing: its noise is ± {number(noise, 2)}; give {enough}, or "
                "tighter bounds"
            )
        return plan

    def query(self, predicted: Array | None = None) -> ErrorSums:
        """Return the sums over rows with these predictions."""
        return ErrorSums(self.bounds, self.largest, predicted)

    @property
    def statistics(self) -> tuple[Statistic, ...]:
        """The released sums, for a card."""
        shares = (1 - REFERENCE_SHARE, REFERENCE_SHARE) if self.has_reference else (Fraction(1),)
        return tuple(self.query().statistic(self.epsilon * share, "score") for share in shares)

    def measure(self, predicted: Array, access: LabelAccess) -> dict[str, Figure]:
        """Return the errors of predictions, with noise, none of them negative; and R² if there is a reference."""
        if self.has_reference:
            return self._compare(predicted, access)
        sums = access.measure(self.query(predicted), self.epsilon).values
        first, second = (sums * (1 / (STEPS**2 * self.rows))).tolist()
        return self._figures_of(first, first - second)

    def _compare(self, predicted: Array, access: LabelAccess) -> dict[str, Figure]:
        """Return the errors of predictions, and R² by those of their mean, whose largest error is another."""
        low, high = self.bounds
        mean = float(np.clip(predicted, low, high).mean())
        budgets = [statistic.epsilon for statistic in self.statistics]
        of_model, of_mean = (replace(self, epsilon=epsilon, has_reference=False) for epsilon in budgets)
        of_mean = replace(of_mean, largest=max(mean - low, high - mean))
        figures = of_model.measure(predicted, access)
        reference = of_mean.measure(np.full(self.rows, mean), access)
        return figures | explained_share(figures["mse"], reference["mse"])

    def _figures_of(self, first: float, square: float) -> dict[str, Figure]:
        """Return the figures of a mean absolute and a mean squared error, in units of the largest error."""
        first = min(max(first, 0.0), 1.0)
        square = min(max(square, first**2), 1.0)  # never below the square of the mean
        reach = wilson_reach(square, self._deviation * math.sqrt(2), self.rows)
        mse = Figure(self.largest**2 * square, self.largest**2 * reach / 2)
        mae_reach = wilson_reach(first, self._deviation, self.rows, min(square + reach, 1.0))
        mae = Figure(self.largest * first, self.largest * mae_reach / 2)
        return {"mse": mse, "rmse": rmse_of(mse), "mae": mae}

    @property
    def _deviation(self) -> float:
        """The standard deviation of the noise of a mean of values between 0 and 1."""
        return math.sqrt(self.statistics[0].noise.variance()) / STEPS**2 / self.rows

    @property
    def least_rmse(self) -> float:
        """The root mean squared error whose square is twice its noise; noise hides smaller ones."""
        return self.largest * math.sqrt(2 * math.sqrt(2) * self._deviation)

    def describe(self) -> str:
        """Return the figures to expect, for errors of a tenth of the bounds' width with a normal distribution.

        Examples
        --------
        >>> ScorePlan.of(1000, Fraction(1), (0.0, 10.0)).describe()
        "A score of 1,000 rows for ε = 1 would show ... of the bounds' width as: typical error (RMSE) ..."
        """
        figures = self._figures_of(0.1 * math.sqrt(2 / math.pi), 0.01)
        del figures["mse"]
        expected = list_figures(figures)
        return f"A score of {self._size} would show errors of a tenth of the bounds' width as: {expected}."

    @property
    def _size(self) -> str:
        return f"{self.rows:,} rows for ε = {float(self.epsilon):g}"


def wilson_reach(share: float, noise: float, rows: int, square: float = 1.0) -> float:
    """Return the largest distance of the mean of values in [0, 1] from an estimate: 95 %, at the worst variance.

    The variance is not known. At a mean p it is at most p − p², and s − p² for a mean square of s at most. So
    the limits are those p for which (p − share)² = z²(noise² + variance(p)/rows), as in Wilson's interval.
    """
    z2 = _REACH**2
    reaches = []
    for slope, offset in ((1.0, 0.0), (0.0, square)):
        a, b = 1 + z2 / rows, share + slope * z2 / rows / 2
        root = math.sqrt(max(b**2 - a * (share**2 - z2 * (noise**2 + offset / rows)), 0.0))
        reaches.append(max((b + root) / a - share, share - (b - root) / a))
    return min(*reaches, max(share, 1 - share))


def explained_share(error: Figure, reference: Figure) -> dict[str, Figure]:
    """Return R² by two mean squared errors; nothing if noise hides the error of the reference.

    Twice its ± covers wherever twice the ± of both errors covers.

    Examples
    --------
    >>> print(explained_share(Figure(2.0, 0.1), Figure(8.0, 0.5))["r2"])
    0.75 ± 0.032
    >>> explained_share(Figure(2.0, 1.0), Figure(3.0, 2.0))
    {}
    """
    smallest_reference = reference.value - 2 * reference.standard_error
    if smallest_reference <= 0:
        return {}
    value = 1 - error.value / reference.value
    low = 1 - error.limit / smallest_reference
    high = 1 - max(error.value - 2 * error.standard_error, 0.0) / reference.limit
    return {"r2": Figure(value, max(value - low, high - value) / 2)}


def rmse_of(mse: Figure) -> Figure:
    """Return the root of a mean squared error; twice its ± covers the roots of what twice the square's ± covers.

    This holds where the error is not larger than its noise, too.

    Examples
    --------
    >>> print(rmse_of(Figure(4.0, 0.04)), "|", rmse_of(Figure(1.0, 1.0)), "|", rmse_of(Figure(0.0, 1.0)))
    2 ± 0.01 | 1 ± 0.5 | 0 ± 0.71
    """
    reach = 2 * mse.standard_error
    low, value, high = (math.sqrt(max(mse.value + step, 0.0)) for step in (-reach, 0.0, reach))
    return Figure(value, max(value - low, high - value) / 2)
