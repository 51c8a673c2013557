"""A Bayesian linear model with known noise, averaged over how much signal there is and of what kind.

Observations are s = Hθ + noise of known variance plus what the features do not explain. The prior of θ
gives each block of features a part of the explained variance. The mix of blocks, and how much is
explained, are averaged over a small grid by their evidence, a model without features among them. So at
little data it is the mean, and with more data ridge, additive or kernel regression.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import cholesky, solve_triangular

__all__ = [
    "EXPLAINED",
    "Observations",
    "Posterior",
    "explained_risk",
    "fit_linear",
    "unknown_variance",
]

Array = NDArray[np.float64]

MIXES = (
    (1.0, 0.0, 0.0, 0.0),
    (0.5, 0.5, 0.0, 0.0),
    (0.05, 0.55, 0.4, 0.0),
    (0.4, 0.2, 0.1, 0.3),
    (0.1, 0.2, 0.3, 0.4),
)
"""How the explained variance is split over the blocks of `PublicFeatures`."""

EXPLAINED = (1e-6, 3e-5, 0.0006, 0.0025, 0.01, 0.04)
RESTS = (1e-5, 2e-4, 0.001, 0.004, 0.015, 0.05)
"""The explained variance, and the rest, in squared ranges: labels that fill their range evenly have 0.083 in all,
and bounds may be a hundred times too wide."""

Choices = tuple[tuple[tuple[float, ...], float, float], ...]

_NULL = 0.1
"""Prior probability that the features explain nothing."""


@dataclass(frozen=True, slots=True)
class Observations:
    """Sufficient statistics of rows, or of scaled sums over rows, with one noise level.

    Attributes
    ----------
    gram, moment : arrays
        HᵀH and Hᵀs, with s centred at the mean label.
    square : float
        sᵀs.
    count : int
    share : float
        How much of a single row's unexplained variance is in one observation: 1 for rows, the mean over
        scaled sums.
    noise : float
        Known variance of the privacy noise.
    """

    gram: NDArray[np.float32]
    moment: Array
    square: float
    count: int
    share: float
    noise: float


@dataclass(frozen=True, slots=True)
class Posterior:
    """The averaged model: ``mean + features @ weights``.

    Attributes
    ----------
    weights : array
    mean : float
        The centre that labels were measured from.
    explained, rest : float
        Posterior means of the variance that features explain, and of what they do not.
    likely : Choices
        The choices of most weight, best first; none if features seem to explain nothing.
    """

    weights: NDArray[np.float32]
    mean: float
    explained: float
    rest: float
    likely: Choices

    def predict(self, features: NDArray[np.float32]) -> Array:
        """Return predictions for rows of features."""
        return np.asarray(features @ self.weights + self.mean, dtype=np.float64)


def unknown_variance(width: float, *, few: bool = False) -> Choices:
    """Return what to average over where only the labels' range is known; a part of it if few will do."""
    mixes = (MIXES[0], MIXES[2], MIXES[3]) if few else MIXES
    pairs = [(e, r) for e in EXPLAINED for r in RESTS if e / 30 < r < 30 * e]
    return tuple((mix, e * width**2, r * width**2) for e, r in pairs for mix in mixes)


def fit_linear(
    observations: list[Observations],
    block: NDArray[np.int64],
    *,
    mean: float,
    mean_variance: float,
    choices: Choices,
) -> Posterior:
    """Return the posterior mean, averaged over mixes and strengths by evidence.

    Parameters
    ----------
    observations : list
    block : array
        The block of each feature.
    mean, mean_variance : float
        The labels' mean, as it is known, and how uncertain it is.
    choices : tuple of (mix, explained variance, rest)
        What to average over, besides features that explain nothing.
    """
    log_evidence: list[float] = []
    weights: list[Array] = []
    strength: list[tuple[float, float]] = []
    nothing = (0.0,) * 4
    totals = sorted({explained + rest for _, explained, rest in choices})
    options = [*((nothing, 0.0, total) for total in totals), *choices]
    by_rest: dict[float, list[int]] = {}
    for k, (_, _, rest) in enumerate(options):
        by_rest.setdefault(rest, []).append(k)
    order: list[int] = []
    for rest, members in by_rest.items():
        levels = [o.share * rest + o.noise for o in observations]
        gram = sum(o.gram / np.float32(level) for o, level in zip(observations, levels, strict=True))
        moment = sum(o.moment / level for o, level in zip(observations, levels, strict=True))
        base = _log_null(observations, rest)
        for k in members:
            mix, explained, _ = options[k]
            prior = np.append(np.asarray(mix)[block] * explained, mean_variance)
            evidence, solution = _solve(np.asarray(gram), np.asarray(moment), prior)
            log_evidence.append(base + evidence)
            weights.append(solution)
            strength.append((explained, rest))
            order.append(k)
    nulls = np.array([k < len(totals) for k in order])
    log_prior = np.where(nulls, np.log(_NULL / len(totals)), np.log((1 - _NULL) / max(1, len(choices))))
    score = np.array(log_evidence) + log_prior
    posterior = np.exp(score - score.max())
    posterior /= posterior.sum()
    explained_mean, rest_mean = posterior @ np.array(strength)
    ranked = [order[k] for k in np.argsort(-posterior)]
    likely = tuple(options[k] for k in ranked if k >= len(totals))[:5]
    if nulls[int(np.argmax(posterior))] and posterior.max() > 0.5:
        likely = ()
    return Posterior(
        (posterior @ np.array(weights)).astype(np.float32),
        mean,
        float(explained_mean),
        float(rest_mean),
        likely,
    )


def _log_null(observations: list[Observations], rest: float) -> float:
    total = 0.0
    for o in observations:
        level = o.share * rest + o.noise
        total -= 0.5 * o.count * np.log(level) + 0.5 * o.square / level
    return float(total)


def _solve(gram: Array, moment: Array, prior: Array) -> tuple[float, Array]:
    """Return the log evidence gained over the null model, and the posterior mean."""
    active = np.flatnonzero(prior > 0)
    root = np.sqrt(prior[active]).astype(np.float32)
    matrix = gram[np.ix_(active, active)] * root * root[:, None]
    matrix[np.diag_indices_from(matrix)] += 1
    factor = cholesky(matrix, lower=True, check_finite=False, overwrite_a=True)
    half = solve_triangular(factor, (moment[active] * root).astype(np.float32), lower=True, check_finite=False)
    evidence = 0.5 * float(half.astype(np.float64) @ half) - float(np.log(np.diag(factor).astype(float)).sum())
    solution = np.zeros(prior.size)
    solution[active] = root * solve_triangular(factor, half, lower=True, trans=1, check_finite=False)
    return evidence, solution


def explained_risk(spectrum: Array, signal: float, noise: float) -> float:
    """Return Σ s v/(s + v): what estimating the signal costs, at noise v a row over the number of rows."""
    strength = spectrum * signal
    return float((strength * noise / (strength + noise)).sum())
