"""Regression tables of private labels: coefficients, standard errors, intervals and p-values."""

from labeldp.inference.printed_table import PrintedTable
from labeldp.inference.regression_table import RegressionTable
from labeldp.inference.regressions import private_logit, private_moments, private_ols, private_poisson
from labeldp.inference.released_moments import PrivateMoments
from labeldp.inference.table_columns import side_by_side

__all__ = [
    "PrintedTable",
    "PrivateMoments",
    "RegressionTable",
    "private_logit",
    "private_moments",
    "private_ols",
    "private_poisson",
    "side_by_side",
]
