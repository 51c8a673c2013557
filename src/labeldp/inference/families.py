"""Families of regressions with their canonical links: linear, logistic, Poisson.

With a canonical link the score is Xᵀ(y − μ(Xθ)), so labels enter through sums with public weights alone, and the
derivative of the mean is the variance function.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from scipy.special import expit, gammainc, logit

from labeldp._values import Array
from labeldp.errors import ParameterError, Setting
from labeldp.learning.fit_plan import Pair

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
    ratios : str, optional
        The name of exp(coefficient).
    quantity : str
        The mean in the words of the family.
    estimand : str
        What coefficients are, for a note.
    """

    name: str
    title: str
    mean: Callable[[Array], Array]
    link: Callable[[Array], Array]
    variance: Callable[[Array], Array]
    limits: Pair
    ratios: str | None
    quantity: str
    estimand: str

    def __reduce__(self) -> tuple[Callable[[str], Family], tuple[str]]:
        """Return the family by its name, so that a pickled table has no code."""
        return family_of, (self.name,)

    @property
    def is_linear(self) -> bool:
        """True for least squares."""
        return self.ratios is None

    def refuse_bounds(self, bounds: Pair) -> None:
        """Refuse bounds for which the link is not defined."""
        low, high = bounds
        if self is LOGIT and bounds != (0, 1):
            problem = "must be (0, 1) for a logistic regression"
        elif self is POISSON and low != 0:
            problem = "must begin at 0 for a Poisson regression"
        else:
            return
        raise ParameterError(Setting("bounds"), f" {problem}, got ({low:g}, {high:g})")

    def clipped_shares(self, mean: Array, limit: float, bounds: Pair) -> Array:
        """Return the expected share of each row in the amount a limit cuts off; equal unless for counts."""
        if self is not POISSON:
            return np.full(mean.size, 1 / mean.size)
        counts, largest = bounds[1] * mean, bounds[1] * limit
        excess = np.maximum(counts * gammainc(largest, counts) - largest * gammainc(largest + 1, counts), 1e-300)
        return np.asarray(excess / excess.sum())

    def units(self, bounds: Pair) -> tuple[float, float]:
        """Return the factor of coefficients, and the term added to the intercept, in the label's unit."""
        low, high = bounds
        if self.is_linear:
            return high - low, low
        return 1.0, float(np.log(high - low))


def _identity(values: Array) -> Array:
    return np.asarray(values)


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
    ratios=None,
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
    ratios="odds ratio",
    quantity="probability",
    estimand="logistic regression by maximum likelihood on labels clipped to the bounds",
)
POISSON = Family(
    name="poisson",
    title="Poisson",
    mean=_bounded_exp,
    link=np.log,
    variance=_identity,
    limits=(0.0, np.inf),
    ratios="rate ratio",
    quantity="rate",
    estimand="Poisson regression by maximum likelihood on labels clipped to the bounds",
)
FAMILIES = {family.name: family for family in (OLS, LOGIT, POISSON)}


def family_of(name: str) -> Family:
    """Return the family of a name."""
    return FAMILIES[name]
