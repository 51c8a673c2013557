"""Estimating equations: coefficients from the moments of a regression."""

from __future__ import annotations

from dataclasses import dataclass, field

from labeldp._values import Array
from labeldp.inference.design import Design
from labeldp.inference.moments import Moments
from labeldp.learning.fit_plan import Pair


@dataclass(frozen=True, slots=True)
class Solution:
    """Coefficients, and their dependence on labels and noise.

    Attributes
    ----------
    coefficients : array
        In the label's unit, as the next two.
    label_weights : array, rows × coefficients
        The weight of each label, scaled to [0, 1], in each coefficient.
    noise_scales : array, coefficients × sums
        The scale of the noise of each sum in each coefficient.
    fitted : array
        Fitted values of labels that are scaled to [0, 1].
    fitted_noise : array, rows × sums
        The scale of the noise of each sum in each fitted value.
    """

    coefficients: Array
    label_weights: Array = field(repr=False)
    noise_scales: Array = field(repr=False)
    fitted: Array = field(repr=False)
    fitted_noise: Array = field(repr=False)


def solve_linear(design: Design, moments: Moments, bounds: Pair) -> Solution:
    """Return the solution of MᵀDγ = z: M has the weights of labels in the sums z, D is the design matrix."""
    low, high = bounds
    width = high - low
    coefficients = moments.weights.solution @ moments.label_sums[: design.size]
    noise_scales = moments.weights.noise_scales(moments.noise_scales)
    return Solution(
        coefficients=width * coefficients + design.coefficient_array(low, 0.0),
        label_weights=width * moments.weights.of_labels(),
        noise_scales=width * noise_scales,
        fitted=design.predict(coefficients),
        fitted_noise=design.predict(noise_scales),
    )
