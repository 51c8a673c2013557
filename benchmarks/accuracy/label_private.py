"""Peers for public columns and private labels, written from their papers: noisy X'y, and Cond-DP.

Both are (ε, δ) in the label of one row, which is replaced; δ is `DELTA`, which favours them: ours is pure ε.
"""

from __future__ import annotations

import math
from importlib import import_module
from typing import Any

import numpy as np

from benchmarks.accuracy.heldout import Array
from benchmarks.accuracy.tables import Bounds

DELTA = 1e-6

NORM_QUANTILE = 0.8
"""Rows beyond this quantile of the norms weigh less, as one long row would set the noise of all."""

PRIOR_VARIANCES = np.geomspace(1e-8, 1.0, 33)
"""Of a coefficient, in squared widths of the bounds."""

STEPS = 128
FIRST_DEVIATION = 0.01
"""Those of the code of Cond-DP."""

LEARNING_RATE = 0.01
CLIPPED_NORM = 1.0
"""The best of 24 settings on ten development tables; the code has 0.1 and 0.1 for its one table."""


def _multiplier(epsilon: float) -> float:
    """Return the least deviation of Gaussian noise over the L2 sensitivity."""
    return float(import_module("labeldp.mechanisms.gaussian").analytic_sigma(epsilon, DELTA))


def _standardized(X: Array, new: Array) -> tuple[Array, Array]:
    """Return the columns over the deviations of the training rows, which are public."""
    spread = X.std(axis=0)
    keep = spread > 0
    return tuple((rows[:, keep] - X[:, keep].mean(axis=0)) / spread[keep] for rows in (X, new))


def fit_noisy_moments(X: Array, y: Array, new: Array, epsilon: float, bounds: Bounds, seed: int) -> Array:
    """Ridge regression from one noisy X'y and the public X'X, with the ridge of greatest marginal likelihood.

    AdaSSP where only labels are private: X'X needs no noise, so all of ε is for X'y, and the ridge follows from
    the noisy moments by themselves.

    References
    ----------
    Y.-X. Wang, Revisiting differentially private linear regression, UAI 2018.
    """
    low, high = bounds
    columns = _standardized(X, new)
    constant = math.sqrt(columns[0].shape[1])  # as long as all columns together, or noise would drown the mean
    train, test = (np.column_stack([np.full(len(rows), constant), rows]) for rows in columns)
    norms = np.linalg.norm(train, axis=1)
    limit = float(np.quantile(norms, NORM_QUANTILE))
    weights = np.minimum(1.0, limit / norms)
    labels = (np.clip(y, low, high) - (low + high) / 2) / (high - low)  # one label moves by at most 1
    noise = limit * _multiplier(epsilon)
    moments = (weights * labels) @ train
    moments += noise * np.random.default_rng(seed).normal(size=moments.size)
    values, vectors = np.linalg.eigh((train * weights[:, None]).T @ train)
    rotated = vectors.T @ moments
    variances = PRIOR_VARIANCES[:, None] * values**2 + noise**2
    best = int(np.argmin((rotated**2 / variances + np.log(variances)).sum(axis=1)))
    coefficients = vectors @ (PRIOR_VARIANCES[best] * values * rotated / variances[best])
    return np.asarray(np.clip((low + high) / 2 + (high - low) * (test @ coefficients), low, high))


def fit_cond_dp(X: Array, y: Array, new: Array, epsilon: float, bounds: Bounds, seed: int) -> Array:
    """Linear model by Cond-DP: noisy Adam on clipped gradients, in columns that the public X'X whitens.

    Gradients of all rows at every step, as in its code. Replacing one label moves a clipped
    gradient by up to twice the clipped norm.

    References
    ----------
    S. Jiang, W. Krichene and N. Mayoraz, Private learning with public feature conditioning, ICML 2026,
    arXiv:2606.18773.
    """
    low, high = bounds
    train, test = _standardized(X, new)
    values, vectors = np.linalg.eigh(train.T @ train)
    kept = values > 1e-10 * values[-1]
    whitening = vectors[:, kept] / np.sqrt(values[kept]) @ vectors[:, kept].T
    scale = math.sqrt(float(np.mean(train**2) / np.mean((train @ whitening) ** 2)))
    train, test = (np.column_stack([np.ones(len(rows)), scale * rows @ whitening]) for rows in (train, test))
    labels = (np.clip(y, low, high) - (low + high) / 2) / ((high - low) / 2)
    rng: Any = np.random.default_rng(seed)
    noise = 2 * CLIPPED_NORM * _multiplier(epsilon) * math.sqrt(STEPS)
    coefficients = FIRST_DEVIATION * rng.normal(size=train.shape[1])
    norms = np.linalg.norm(train, axis=1)
    mean, square = np.zeros_like(coefficients), np.zeros_like(coefficients)
    for step in range(1, STEPS + 1):
        slopes = 2 * (train @ coefficients - labels)
        clipped = slopes * np.minimum(1.0, CLIPPED_NORM / np.maximum(np.abs(slopes) * norms, 1e-12))
        gradient = (clipped @ train + noise * rng.normal(size=coefficients.size)) / len(train)
        mean = 0.9 * mean + 0.1 * gradient
        square = 0.999 * square + 0.001 * gradient**2
        change = mean / (1 - 0.9**step) / (np.sqrt(square / (1 - 0.999**step)) + 1e-8)
        coefficients -= LEARNING_RATE * change
    return np.asarray(np.clip((low + high) / 2 + (high - low) / 2 * (test @ coefficients), low, high))
