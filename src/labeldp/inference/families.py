"""Families of regressions with their canonical links: linear, logistic, Poisson.

With a canonical link the score is Xᵀ(y − μ(Xθ)), so labels enter through sums with public weights alone, and the
derivative of the mean is the variance function.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from scipy.special import expit, gammainc, logit

from labeldp._values import Array, Interval
from labeldp.errors import ParameterError, Setting

_MAX_EXPONENT = 40.0
"""Linear predictors are cut off here, so that means stay finite while a solution is searched for."""


@dataclass(frozen=True, slots=True)
class Family:
    """A family of regressions, for labels that are scaled to [0, 1].

    Attributes
    ----------
    name : str
        The method of `PrivateMoments` that estimates it.
    title : str
        The name in tables.
    mean : callable
        The mean as a function of the linear predictor.
    link : callable
        The inverse of ``mean``.
    variance : callable
        The variance function of the mean, which is also the derivative of ``mean``.
    limits : (lo, hi)
        Between these, and apart from them, all means lie.
    quantity : str
        The mean in the words of the family.
    estimand : str
        What coefficients are, for a note.
    ratios : str, optional
        The name of exp(coefficient).
    bounds : pair
        The bounds that the link needs; None for any.
    bounds_rule : str
        These bounds in words.
    """

    name: str
    title: str
    mean: Callable[[Array], Array]
    link: Callable[[Array], Array]
    variance: Callable[[Array], Array]
    limits: Interval
    quantity: str
    estimand: str
    ratios: str | None = None
    bounds: tuple[float | None, float | None] = (None, None)
    bounds_rule: str = ""

    @property
    def is_linear(self) -> bool:
        """True for least squares."""
        return self.ratios is None

    def refuse_bounds(self, bounds: Interval) -> None:
        """Refuse bounds for which the link is not defined."""
        low, high = bounds
        if self.bounds[0] not in (None, low) or self.bounds[1] not in (None, high):
            raise ParameterError(Setting("bounds"), f" {self.bounds_rule}, got ({low:g}, {high:g})")

    def units(self, bounds: Interval) -> Interval:
        """Return the factor of coefficients, and the term added to the intercept, in the label's unit."""
        low, high = bounds
        return (high - low, low) if self.is_linear else (1.0, float(np.log(high - low)))


def poisson_excess(counts: Array, limit: float) -> Array:
    """Return the expected amount by which Poisson variables with these means exceed a limit."""
    return np.asarray(counts * gammainc(limit, counts) - limit * gammainc(limit + 1, counts))


def _identity(values: Array) -> Array:
    return values


def _bernoulli_variance(mean: Array) -> Array:
    return mean * (1 - mean)


def _bounded_exp(predictor: Array) -> Array:
    return np.exp(np.minimum(predictor, _MAX_EXPONENT))


OLS = Family(
    name="ols",
    title="OLS",
    mean=_identity,
    link=_identity,
    variance=np.ones_like,
    limits=(-np.inf, np.inf),
    quantity="mean",
    estimand="least squares on labels clipped to the bounds",
)
LOGIT = Family(
    name="logit",
    title="Logit",
    mean=expit,
    link=logit,
    variance=_bernoulli_variance,
    limits=(0.0, 1.0),
    quantity="probability",
    estimand="logistic regression by maximum likelihood on labels clipped to the bounds",
    ratios="odds ratio",
    bounds=(0.0, 1.0),
    bounds_rule="must be (0, 1) for a logistic regression",
)
POISSON = Family(
    name="poisson",
    title="Poisson",
    mean=_bounded_exp,
    link=np.log,
    variance=_identity,
    limits=(0.0, np.inf),
    quantity="rate",
    estimand="Poisson regression by maximum likelihood on labels clipped to the bounds",
    ratios="rate ratio",
    bounds=(0.0, None),
    bounds_rule="must begin at 0 for a Poisson regression",
)
FAMILIES = {family.name: family for family in (OLS, LOGIT, POISSON)}
