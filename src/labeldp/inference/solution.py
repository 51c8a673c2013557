"""Estimating equations: coefficients from the moments of a regression."""

from __future__ import annotations

from dataclasses import dataclass, field

from labeldp._values import Array
from labeldp.inference.design import Design
from labeldp.inference.moments import Moments


@dataclass(frozen=True, slots=True)
class Solution:
    """Coefficients, and their dependence on labels and noise, for labels in [0, 1].

    Attributes
    ----------
    coefficients : array
    label_weights : array, rows × coefficients
        The weight of each label in each coefficient.
    noise_scales : array, coefficients × sums
        The scale of the noise of each sum in each coefficient.
    fitted : array
        Fitted values.
    fitted_noise : array, rows × sums
        The scale of the noise of each sum in each fitted value.
    """

    coefficients: Array
    label_weights: Array = field(repr=False)
    noise_scales: Array = field(repr=False)
    fitted: Array = field(repr=False)
    fitted_noise: Array = field(repr=False)


def solve_linear(design: Design, moments: Moments) -> Solution:
    """Return the solution of MᵀDγ = z: M has the weights of labels in the sums z, D is the design matrix."""
    weights = moments.weights
    coefficients = weights.solution @ moments.label_sums[: design.size]
    noise_scales = weights.noise_scales(design.coefficient_array(1 / moments.epsilon, moments.noise_scale))
    fitted = design.predict(coefficients)
    return Solution(coefficients, weights.of_labels(), noise_scales, fitted, design.predict(noise_scales))
