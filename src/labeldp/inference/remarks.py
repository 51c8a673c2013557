"""Remarks below a regression table, on the method of its figures."""

from __future__ import annotations

import numpy as np

from labeldp._values import Array
from labeldp.accounts.numbers import number
from labeldp.accounts.terms import Terms
from labeldp.inference.distribution import Estimates
from labeldp.inference.families import Family
from labeldp.inference.formula import Formula
from labeldp.inference.moments import Moments
from labeldp.inference.solution import Solution
from labeldp.learning.fit_plan import Pair

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

_NEAR_BOUND = 0.05
"""Fitted values lie at a bound if they are within this fraction of the bounds' width."""

_NEARLY_ALL = 0.9
"""A note is made if more than this fraction of fitted values lies at a bound."""


def clipping_notes(moments: Moments, solution: Solution, bounds: Pair) -> list[str]:
    """Return notes on clipped labels, and on fitted values that lie at a bound."""
    width = bounds[1] - bounds[0]
    window, fitted = moments.window, solution.fitted
    notes = []
    if window.clipped_total:
        average = width * window.clipped_total / fitted.size
        notes.append(_TRIMMED.format(number(width * window.half_width), number(average)))
    for bound, distances in zip(bounds, (fitted, 1 - fitted), strict=True):
        if solution.family.is_linear and (distances < _NEAR_BOUND).mean() > _NEARLY_ALL:
            notes.append(_EDGE.format(number(bound)))
    return notes


def describe_method(
    estimates: Estimates, family: Family, terms: Terms, row_weights: Array, formula: Formula, clipping: list[str]
) -> list[str]:
    """Return remarks on the method of a table."""
    correlation = estimates.correlation
    references = ", ".join(f"{name} = {values[0]}" for name, values in formula.levels.items())
    model = "for equal variances" if family.is_linear else "for the model's variances"
    remarks = []
    if np.ptp(row_weights) > 0:
        remarks.append("Rows have public weights.")
    if correlation is not None:
        remarks.append(_CLUSTERED.format(correlation))
    elif terms.rows_per_person > 1:
        remarks.append(INDEPENDENT)
    if references:
        remarks.append(f"Categories are compared with: {references}.")
    remarks.append(f"{_ROBUST if family.is_linear else _DISPERSED} {_LAW}")
    remarks.append(_CLIPPED.format(family.estimand))
    remarks += clipping
    if not family.is_linear:
        remarks.append(EFRON)
    ordinary = "hidden by noise" if np.isnan(estimates.ordinary_errors).any() else f"estimated {model}"
    remarks.append(f"Standard errors without privacy are {ordinary}.")
    return remarks
