"""Remarks below a regression table, on the method of its figures."""

from __future__ import annotations

import numpy as np

from labeldp._values import Interval
from labeldp.accounts.numbers import number
from labeldp.accounts.terms import Terms
from labeldp.inference.distribution import Estimates
from labeldp.inference.formula import Formula
from labeldp.inference.moments import Moments
from labeldp.inference.solution import Solution

INDEPENDENT = "Intervals assume independent rows: with several rows of a person they may be too narrow."
EFRON = "R² of logistic and Poisson models is Efron's: the part of the labels' variance that fitted means explain."

_ROBUST = (
    "Standard errors include the noise. They allow for unequal variances of labels around the fitted line and for "
    "its misfit, as robust errors (HC1) do without privacy."
)
_DISPERSED = (
    "Standard errors include the noise. The variance of labels is a multiple of the model's: the dispersion is "
    "estimated for the rows that matter for each coefficient."
)
_CLUSTERED = (
    "Rows of one person are taken to be equally correlated, by about {:.2f} at most, as one noisy sum shows. "
    "Standard errors allow for that."
)
_LAW = "Intervals and p-values follow from the exact distribution of the noise."
_CLIPPED = (
    "Coefficients are those of {}. Where the true relation is of another form, the weights of rows may move them "
    "by a fraction of a standard error."
)
_TRIMMED = (
    "To save noise, slopes are from labels that were clipped {} from a rough fit. By noisy counts, this moves a "
    "label by about {} on average at most; standard errors include it."
)
_EDGE = "Nearly all fitted values lie at the bound {}: check that bounds and labels have the same unit."

REFERENCES = "Categories are compared with: "
"""Beginning of the remark on reference categories."""

_NEAR_BOUND = 0.05
"""Fitted values lie at a bound if they are within this fraction of the bounds' width."""

_NEARLY_ALL = 0.9
"""A note is made if more than this fraction of fitted values lies at a bound."""


def describe_method(
    moments: Moments, solution: Solution, estimates: Estimates, formula: Formula, terms: Terms
) -> list[str]:
    """Return remarks on the method of a table."""
    is_linear = solution.family.is_linear
    references = ", ".join(f"{name} = {values[0]}" for name, values in formula.levels.items())
    model = "for equal variances" if is_linear else "for the model's variances"
    model += ", as if rows of a person were not alike" if terms.rows_per_person > 1 else ""
    ordinary = "hidden by noise" if np.isnan(estimates.ordinary_errors).any() else f"estimated {model}"
    is_known = estimates.correlation is not None
    remarks = {
        "Rows have public weights.": np.ptp(moments.design.row_weights) > 0,
        _CLUSTERED.format(estimates.correlation or 0.0): is_known,
        INDEPENDENT: terms.rows_per_person > 1 and not is_known,
        f"{REFERENCES}{references}.": references,
        f"{_ROBUST if is_linear else _DISPERSED} {_LAW}": True,
        _CLIPPED.format(solution.family.estimand): True,
        **_describe_clipping(moments, solution, terms.bounds[0]),
        EFRON: not is_linear,
        f"Standard errors without privacy are {ordinary}.": True,
    }
    return [remark for remark, is_true in remarks.items() if is_true]


def _describe_clipping(moments: Moments, solution: Solution, bounds: Interval) -> dict[str, bool]:
    """Return remarks on clipped labels, and on fitted values that lie at a bound, and whether they are true."""
    width = bounds[1] - bounds[0]
    window, fitted = moments.window, solution.fitted
    average = width * window.clipped_total / fitted.size
    remarks = {_TRIMMED.format(number(width * window.half_width), number(average)): window.clipped_total > 0}
    for bound, distances in zip(bounds, (fitted, 1 - fitted), strict=True):
        is_near = (distances < _NEAR_BOUND).mean() > _NEARLY_ALL
        remarks[_EDGE.format(number(bound))] = solution.family.is_linear and is_near
    return remarks
