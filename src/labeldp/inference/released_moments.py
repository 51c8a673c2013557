"""Moments that were released, and the models that follow from them at no further cost."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from labeldp.accounts.budget import Budget
from labeldp.accounts.terms import Terms
from labeldp.errors import DataError, NoSolutionError
from labeldp.inference.distribution import describe_errors
from labeldp.inference.families import LOGIT, OLS, POISSON, Family
from labeldp.inference.formula import Formula
from labeldp.inference.moments import Moments
from labeldp.inference.regression_table import RegressionTable
from labeldp.inference.remarks import describe_method
from labeldp.inference.solution import solve
from labeldp.learning.threads import limit_libraries


@dataclass(frozen=True, slots=True, repr=False)
class PrivateMoments:
    """Noisy sums of labels with their public weights, and public columns. It contains no label.

    Attributes
    ----------
    moments : Moments
        The sums.
    label : str
        The name of the label.
    terms : Terms
        The statistics that were released, and their cost.
    rows : Arrow table
        The public columns.
    columns : Formula
        Turns the public columns into those of a regression.
    frame : bool
        Whether X was a pandas data frame: then results are pandas objects.

    Examples
    --------
    >>> import numpy as np, labeldp as ldp
    >>> X = np.random.default_rng(0).normal(size=(5000, 2))
    >>> moments = ldp.private_moments(X, np.clip(2 + X[:, 0], 0, 5), epsilon=1.0, bounds=(0, 5))
    >>> moments.names, moments.cost
    (['Intercept', 'x1', 'x2'], Budget(epsilon=1.0))
    >>> bool(abs(moments.ols("x1").params[1] - 1) < 0.2)    # costs nothing more
    True
    """

    moments: Moments
    label: str
    terms: Terms
    rows: Any
    columns: Formula
    frame: bool = False

    @property
    def names(self) -> list[str]:
        """The names of the coefficients that can be estimated; the intercept is the first."""
        return self.moments.design.names

    @property
    def cost(self) -> Budget:
        """The cost of the moments, and of everything that is estimated from them."""
        return self.terms.cost

    def summary(self) -> str:
        """Return the release in plain words: actions, cost, noise, and warnings."""
        return self.terms.summary("model")

    def to_card(self) -> str:
        """Return the card of the sums: JSON with a checksum, without labels."""
        entries = {"model": "private_moments", "label": self.label, "features": self.names[1:]}
        return self.terms.to_card("labeldp.model", **entries)

    def ols(self, on: str | None = None) -> RegressionTable:
        """Estimate a linear regression on some of the released columns, by default on all.

        Parameters
        ----------
        on : str, optional
            A formula of released columns, such as ``"age + C(region)"``.
        """
        return self._estimate(OLS, on)

    def logit(self, on: str | None = None) -> RegressionTable:
        """Estimate a logistic regression, for bounds of (0, 1).

        Parameters
        ----------
        on : str, optional
            As in `ols`.
        """
        return self._estimate(LOGIT, on)

    def poisson(self, on: str | None = None) -> RegressionTable:
        """Estimate a Poisson regression, for a lower bound of 0.

        Parameters
        ----------
        on : str, optional
            As in `ols`.
        """
        return self._estimate(POISSON, on)

    def __repr__(self) -> str:
        secure = "secure" if self.terms.secure else "NOT PRIVATE"
        return f"<PrivateMoments of {self.label!r}, {len(self.names)} coefficients, {self.cost}, {secure}>"

    @limit_libraries()
    def _estimate(self, family: Family, on: str | None) -> RegressionTable:
        """Solve the equations of a family for some columns, and describe the errors of the solution."""
        (bounds,) = self.terms.bounds
        family.refuse_bounds(bounds)
        formula, positions = self._select(on)
        with np.errstate(all="ignore"):  # strict settings of the user must not lose a release that is paid for
            design, moments = self.moments.design.select(positions), self.moments.select(positions)
            try:
                solution = solve(design, moments, family, bounds)
            except NoSolutionError as error:
                error.moments = self
                raise
            estimates = describe_errors(design, moments, solution, bounds)
        return RegressionTable(
            names=design.names,
            label=self.label,
            terms=self.terms,
            estimates=estimates,
            family=family,
            remarks=describe_method(moments, solution, estimates, formula, self.terms),
            rows=self.rows,
            row_weights=design.row_weights,
            columns=formula,
            frame=self.frame,
        )

    def _select(self, on: str | None) -> tuple[Formula, Sequence[int]]:
        """Return a formula of released columns, and the positions of its coefficients."""
        if on is None:
            return self.columns, range(len(self.names))
        formula = self.columns.subset(Formula.parse(on, self.label))
        unknown = [name for name in formula.names if name not in self.names]
        if unknown:
            names = ", ".join(map(repr, unknown[:8]))
            raise DataError(
                f"{names} was not released with these moments: leave it out, or release moments with it for "
                f"{self.cost} more, on the same labels"
            )
        positions = [0, *(self.names.index(name) for name in formula.names)]
        return formula, positions
