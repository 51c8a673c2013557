"""Errors of a model on true labels, each with its standard error."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, replace

from labeldp._values import Data
from labeldp.accounts.budget import Budget, Charge, exact_sum
from labeldp.accounts.scores import FAR_GROUP, Figure, list_figures
from labeldp.accounts.statistic import Statistic
from labeldp.accounts.terms import Split, Terms, fit_times
from labeldp.errors import ParameterError

_MEANING = "± is one standard error, an upper limit of noise and chance: twice it covers in at least 95 % of runs."
_MEANING_CLIPPED = f"± is one standard error, of noise and chance: twice it usually covers. {FAR_GROUP}"
_HIDDEN_R2 = "R² is left out: noise hides the error of the mean prediction. More rows or more ε would show it."


@dataclass(frozen=True, slots=True, repr=False)
class Risk:
    """Errors of a model on true labels, measured by `private_score` or `fit_and_score`.

    Attributes
    ----------
    figures : dict of Figure
        The mean squared error ``"mse"``, its root ``"rmse"``, in the label's unit, and the mean absolute error
        ``"mae"``; or, where errors were clipped, ``"rmse_limit"``, the root with rare errors that noise may
        hide, at most. ``"r2"``, where it was asked for, is the share of the squared error of the mean prediction
        that the model avoids. No error is negative. Where an error is at most twice its standard error, only its
        limit says something (`Figure.limit`), and that is what texts show.
    rows : int
        Rows that it was measured on.
    secure : bool
        False if the noise came from a seed: then this is an experiment, and **not private**.
    statistics : sequence of Statistic
        The released integers.
    charge : Charge or None
        Its entry in the ledger; None if nothing was charged beyond the fit, which did not use these rows.
    rows_per_person : int
        The number of rows that one person may have.
    split : Split or None
        How rows were held out, if `fit_and_score` did it; None if the rows were given: then nobody can check
        that the model was not trained on them.
    fit_charges : tuple of str
        The time of each charge of the fit that was scored; empty if the model is not one of this library.
    note : str
        A public note on the noise of a small group; empty without one.

    Examples
    --------
    >>> import numpy as np, labeldp as ldp
    >>> from sklearn.dummy import DummyRegressor
    >>> y = np.linspace(0, 5, 4000)
    >>> X = np.zeros((4000, 1))
    >>> constant = DummyRegressor(strategy="constant", constant=2.5).fit(X, y)
    >>> risk = ldp.private_score(constant, X, y, epsilon=1.0, bounds=(0, 5))
    >>> bool(abs(risk.rmse - 1.44) < 0.2), risk.cost
    (True, Budget(epsilon=1.0))
    >>> print(risk.summary())
    typical error (RMSE) 1.4... ± 0.0..., mean squared error ..., mean absolute error 1.2..., from 4,000 rows
      ± is one standard error, an upper limit of noise and chance: twice it covers in at least 95 % of runs.
      Labels and predictions were clipped to the bounds first.
      Cost: ε = 1.
    """

    figures: Mapping[str, Figure]
    rows: int
    secure: bool
    statistics: Sequence[Statistic]
    charge: Charge | None
    rows_per_person: int = 1
    split: Split | None = None
    fit_charges: tuple[str, ...] = ()
    note: str = ""

    @property
    def cost(self) -> Budget:
        """The cost for each row that was scored, times the rows of a person."""
        epsilon = exact_sum(statistic.epsilon for statistic in self.statistics)
        return Budget(self.rows_per_person * epsilon)

    @property
    def mse(self) -> float:
        """The mean squared error; the square of the mean absolute one where noise put it below that."""
        return self.figures["mse"].value

    @property
    def rmse(self) -> float:
        """The root of the mean squared error, a typical error in the label's unit.

        It equals ``mae`` where noise put it below, as no root mean square is: then noise hides it, and the limit
        of ``figures["rmse"]`` has a meaning.
        """
        return self.figures["rmse"].value

    @property
    def mae(self) -> float:
        """The mean absolute error, in the label's unit; 0 if noise made it negative."""
        return self.figures["mae"].value

    def __repr__(self) -> str:
        secure = "secure" if self.secure else "NOT PRIVATE"
        return f"<Risk: {self._estimates()} from {self.rows:,} rows, {self.cost}, {secure}>"

    def _estimates(self) -> str:
        return list_figures(self.figures)

    def summary(self) -> str:
        """Return the estimates, for people."""
        estimates = f"{self._estimates()}, from {self.rows:,} rows"
        lines = [
            "NOT PRIVATE: the noise can be repeated from a seed." if not self.secure else "",
            self._meaning() if "±" in estimates or "mae" not in self.figures else "",
            "Labels and predictions were clipped to the bounds first.",
            _HIDDEN_R2 if self._hides_r2 else "",
            self.note,
            f"Cost: {self.cost}" + (" for these rows, which the model did not use." if self.split else "."),
        ]
        return "\n  ".join([estimates, *filter(None, lines)])

    @property
    def _hides_r2(self) -> bool:
        """True if errors of the mean prediction were measured beside those of the model, and noise hides them."""
        return "mae" in self.figures and len(self.statistics) > 1 and "r2" not in self.figures

    def _meaning(self) -> str:
        """Return the meaning of ±: a mean squared error from clipped errors has no limit that always holds."""
        return _MEANING if "mae" in self.figures else _MEANING_CLIPPED

    def as_data(self) -> Data:
        """Return the figures as plain data, for a card."""
        return {"rows": self.rows, "figures": {name: asdict(figure) for name, figure in self.figures.items()}}


def terms_with_score(terms: Terms, risk: Risk) -> Terms:
    """Return the terms of a model with its score: they cost as much as the ledger was charged for both.

    Both must have been paid for persons with the same number of rows. The score of another fit is refused: it
    depends on that fit, which this card does not pay for. A score is a sum of labels, so a curator is trusted with
    them, also where the fit trusts nobody.
    """
    people = terms.rows_per_person
    if risk.fit_charges != fit_times(terms.charges):
        raise ParameterError(
            "the score is of another fit: give the model as fit_and_score returned it, or score this one with "
            "private_score"
        )
    if risk.rows_per_person != people:
        raise ParameterError(
            f"the score was paid for with rows_per_person={risk.rows_per_person}, the model with {people}: one "
            "card cannot promise both"
        )
    charges = terms.charges if risk.charge is None else (*terms.charges, risk.charge)
    statistics = (*terms.statistics, *risk.statistics)
    secure = terms.secure and risk.secure
    return replace(terms, trust="curator", secure=secure, charges=charges, statistics=statistics, split=risk.split)
