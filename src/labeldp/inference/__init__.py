"""Regression tables of private labels: coefficients, standard errors, intervals and p-values."""

from labeldp.inference.ols import private_ols
from labeldp.inference.regression_table import RegressionTable

__all__ = ["RegressionTable", "private_ols"]
