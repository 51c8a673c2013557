"""How good a model is, in figures that people use, each with its ±."""

from __future__ import annotations

import math
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal

from labeldp.errors import ParameterError, describe
from labeldp.ledger import Budget, Charge, Statistic
from labeldp.release.numbers import number
from labeldp.release.scores import METRICS, Figure
from labeldp.release.terms import Terms

How = Literal["unbiased", "prior", "assumed", "curator"]

_BASIS = {
    "unbiased": "Unbiased: it follows from the private labels alone.",
    "prior": "It rests on the private prior for the labels' own spread, whose error is not in the ± above.",
    "assumed": "What clipping hides follows from an assumed shape of residuals; its error is not in the ± above.",
    "curator": "A curator's sums; ± holds their noise, and the most that chance in the rows adds.",
}


@dataclass(frozen=True, slots=True, repr=False)
class Risk:
    """How wrong a model is on true labels.

    Attributes
    ----------
    figures : dict of Figure
        What was estimated: ``"mse"`` and its root ``"rmse"``, in the label's unit; ``"mae"`` and ``"r2"`` if they
        were asked for. Unbiased estimates of a small squared error may be below 0.
    hidden : float
        The most by which clipping may have moved the squared error, by the prior; 0 if no label was clipped.
    how : {"unbiased", "prior", "assumed", "curator"}
        What it rests on: unbiased private labels, a private prior, an assumed shape, or a curator's sums.
    rows : int
        Rows that it was judged on.
    cost : Budget
        What it cost, beyond what was private already.
    secure : bool
        False if the noise came from a seed: then this is an experiment, and **not private**.
    shared : str
        What measuring several figures for one ε did to each ±, in words.
    statistics : sequence of Statistic
        What left for its cost.
    charge : Charge or None
        Its entry in the ledger; None if it cost nothing more.

    Examples
    --------
    `private_score` and `private_risk` return one.

    >>> import numpy as np, labeldp as ldp
    >>> from sklearn.dummy import DummyRegressor
    >>> y = np.linspace(0, 5, 4000)
    >>> X = np.zeros((4000, 1))
    >>> constant = DummyRegressor(strategy="constant", constant=2.5).fit(X, y)
    >>> risk = ldp.private_score(constant, X, y, epsilon=1.0, bounds=(0, 5))
    >>> bool(abs(risk.rmse - 1.44) < 0.1), risk.cost
    (True, Budget(epsilon=1.0))
    >>> print(risk.summary())
    typical error (RMSE) 1.4... ± 0.0..., mean squared error ..., from 4,000 rows
      A curator's sums; ± holds their noise, and the most that chance in the rows adds.
      Cost: ε = 1.
    """

    figures: Mapping[str, Figure]
    hidden: float
    how: How
    rows: int
    cost: Budget
    secure: bool
    shared: str = ""
    statistics: Sequence[Statistic] = ()
    charge: Charge | None = None

    @property
    def mse(self) -> float:
        """The mean squared error."""
        return self._figure("mse").value

    @property
    def standard_error(self) -> float:
        """Of the mean squared error, by noise and by the choice of rows."""
        return self._figure("mse").standard_error

    @property
    def rmse(self) -> float:
        """The root of the mean squared error, a typical error in the label's unit; 0 if that came out negative."""
        return self._figure("rmse").value

    @property
    def rmse_limit(self) -> float:
        """What the RMSE should not pass, with two standard errors and all that clipping may hide added to it."""
        return math.sqrt(max(self.mse, 0.0) + 2 * self.standard_error + self.hidden)

    @property
    def mae(self) -> float:
        """The mean absolute error, in the label's unit."""
        return self._figure("mae").value

    @property
    def r2(self) -> float:
        """What part of the labels' variance the model explains; NaN where that drowns in noise."""
        return self._figure("r2").value

    def _figure(self, name: str) -> Figure:
        if name not in self.figures:
            raise ParameterError(f"{METRICS[name]} was not estimated: ask for it with metrics=[{name!r}, …]")
        return self.figures[name]

    def __repr__(self) -> str:
        words = "secure" if self.secure else "NOT PRIVATE"
        limit = f", with clipping RMSE < {number(self.rmse_limit, 3)}" if self.hidden else ""
        return f"<Risk: {self._estimates()} from {self.rows:,} rows{limit}, {self.cost}, {words}>"

    def _estimates(self) -> str:
        return ", ".join(f"{METRICS[name]} {self.figures[name]}" for name in METRICS if name in self.figures)

    def summary(self) -> str:
        """Return the estimates, for people."""
        lines = [f"{self._estimates()}, from {self.rows:,} rows"]
        if not self.secure:
            lines.append("  NOT PRIVATE: the noise can be repeated from a seed.")
        lines.append(f"  {_BASIS[self.how]}")
        if "mse" in self.figures and self.mse < 2 * self.standard_error + self.hidden:
            cause = "Noise and clipping hide" if self.hidden else "Noise hides"
            limit = number(self.rmse_limit, 3)
            lines.append(f"  {cause} how small the error is: all that is known is RMSE < {limit}.")
        if "r2" in self.figures:
            lines.append(f"  {self._about_r2()}")
        if self.shared:
            lines.append(f"  {self.shared}")
        if self.hidden:
            lines.append(
                f"  Labels were clipped: that may hide up to {number(self.hidden, 2)} more or less of the mean "
                "squared error."
            )
        lines.append(f"  Cost: {self.cost}." if self.cost.epsilon else "  It cost nothing more.")
        return "\n".join(lines)

    def table(self) -> list[list[str]]:
        """Return the figures as rows of a table: what it is, and the value with ±."""
        return [[called, str(self.figures[name])] for name, called in METRICS.items() if name in self.figures]

    def _about_r2(self) -> str:
        if math.isnan(self.r2):
            return "R² cannot be told: the labels' own variance is as small as the noise in it."
        return "R² is 1 − error/variance; both are private estimates, and the true variance was not used."

    def as_data(self) -> dict[str, Any]:
        """Return the figures as plain data, for a card: each value with its standard error."""
        told = {name: figure for name, figure in self.figures.items() if math.isfinite(figure.value)}
        return {
            "how": self.how,
            "rows": self.rows,
            "epsilon": self.cost.epsilon,
            "figures": {name: [figure.value, figure.standard_error] for name, figure in told.items()},
            "statistics": [statistic.as_data() for statistic in self.statistics],
            **({} if self.charge is None else {"charge": self.charge.as_data()}),
        }


def terms_with_score(terms: Terms, risk: Risk) -> Terms:
    """Return what the card of a model with its score on it promises: more only where one person pays for both.

    Whoever has one row is in the model or in the score, and pays the larger price; if that is the model's, the
    card states it already. Both must have been paid for persons with the same number of rows.
    """
    charge, people = risk.charge, terms.rows_per_person
    terms = replace(terms, secure=terms.secure and risk.secure)
    if charge is None:
        return terms
    if charge.rows_per_person != people:
        raise ParameterError(
            f"the score was paid for with rows_per_person={charge.rows_per_person}, the model with {people}: one "
            "card cannot promise both"
        )
    if people == 1 and charge.budget <= terms.cost:
        return terms
    return replace(terms, charges=(*terms.charges, charge), statistics=(*terms.statistics, *risk.statistics))


def rmse_of(mse: Figure) -> Figure:
    """Return the root of a mean squared error; twice its ± reaches as far as twice the ± of the square.

    So it holds where the error is no larger than its noise, too, and a root has no slope to go by.

    Examples
    --------
    >>> print(rmse_of(Figure(4.0, 0.04)), "|", rmse_of(Figure(1.0, 1.0)), "|", rmse_of(Figure(-3.0, 1.0)))
    2 ± 0.01 | 1 ± 0.5 | 0 ± 0.71
    """
    middle, reach = max(mse.value, 0.0), 2 * mse.standard_error
    low, value, high = (math.sqrt(max(middle + step, 0.0)) for step in (-reach, 0.0, reach))
    return Figure(value, max(value - low, high - value) / 2)


def as_metrics(metrics: Collection[str] | str) -> frozenset[str]:
    """Return the figures to be estimated, or refuse names that there are none of."""
    listed = [metrics] if isinstance(metrics, str) or not isinstance(metrics, Iterable) else list(metrics)
    unknown = [name for name in listed if not (isinstance(name, str) and name in METRICS)]
    if unknown or not listed:
        known = ", ".join(f'"{name}"' for name in METRICS)
        what = describe(unknown[0]) if len(unknown) == 1 else describe(metrics)  # several may be labels
        raise ParameterError(f"metrics must be some of {known}, got {what}")
    return frozenset(listed)
