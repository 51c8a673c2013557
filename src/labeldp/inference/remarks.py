"""Remarks below a regression table, on the method of its figures."""

from __future__ import annotations

import numpy as np

from labeldp._values import Array
from labeldp.accounts.terms import Terms
from labeldp.inference.estimate import Estimates
from labeldp.inference.families import Family
from labeldp.inference.formula import Formula

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


def describe_method(
    estimates: Estimates, family: Family, terms: Terms, row_weights: Array, formula: Formula
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
    remarks += estimates.notes
    if not family.is_linear:
        remarks.append(EFRON)
    ordinary = "hidden by noise" if np.isnan(estimates.ordinary_errors).any() else f"estimated {model}"
    remarks.append(f"Standard errors without privacy are {ordinary}.")
    return remarks
