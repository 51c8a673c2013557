"""Regression tables of private labels: coefficients, standard errors, intervals and p-values."""

from labeldp.inference.private_moments import PrivateMoments
from labeldp.inference.regression_table import RegressionTable
from labeldp.inference.regressions import private_logit, private_moments, private_ols, private_poisson

__all__ = [
    "PrivateMoments",
    "RegressionTable",
    "private_logit",
    "private_moments",
    "private_ols",
    "private_poisson",
]
