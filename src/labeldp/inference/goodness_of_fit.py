"""R² and a test for lack of fit, from the same moments as the coefficients."""

from __future__ import annotations

import math

import numpy as np

from labeldp.inference.moments import Moments
from labeldp.inference.normal_laplace import NormalLaplaceMixture
from labeldp.inference.solution import Solution
from labeldp.inference.variance_posterior import VarianceDistribution

_MAX_R_SQUARED_ERROR = 0.1
"""R² is hidden by noise if its standard error is larger."""


def r_squared(solution: Solution, residual: VarianceDistribution) -> dict[str, float]:
    """Return R² without the part that noise adds, and its approximate standard error; nothing if noise hides it.

    The error has two parts: the product of the noise with the fit, and the square of the noise.
    """
    rows = solution.fitted.size
    fitted = solution.fitted - solution.fitted.mean()
    noise = solution.fitted_noise - solution.fitted_noise.mean(axis=0)
    signal = max(float(fitted @ fitted - 2 * (noise**2).sum()) / rows, 0.0)
    linear, products = np.linalg.norm(fitted @ noise) / rows, np.linalg.norm(noise.T @ noise) / rows
    total = signal + residual.mean
    signal_variance = 8 * linear**2 + 20 * products**2
    error = math.sqrt(residual.mean**2 * signal_variance + signal**2 * residual.variance) / total**2
    return {"rsquared": signal / total, "standard_error": error} if error <= _MAX_R_SQUARED_ERROR else {}


def lack_of_fit(moments: Moments, solution: Solution, residual: VarianceDistribution) -> dict[str, float]:
    """Return the p-value of RESET, that squared rough predictions improve the fit; nothing without its sum."""
    weights = moments.reset_weights
    if not weights.size or not solution.family.is_linear:
        return {}
    law = NormalLaplaceMixture(residual.scaled(float((weights**2).sum())), moments.noise_scales[-1:])
    return {"pvalue": law.tail(float(moments.label_sums[-1] - weights[:, 0] @ solution.fitted))}
