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

from labeldp._values import Array
from labeldp.learning.features import BLOCKS
from labeldp.learning.threads import limit_threads

MIXES = (
    (1.0, 0.0, 0.0, 0.0, 0.0),
    (0.5, 0.5, 0.0, 0.0, 0.0),
    (0.05, 0.55, 0.4, 0.0, 0.0),
    (0.4, 0.2, 0.1, 0.3, 0.0),
    (0.1, 0.2, 0.3, 0.4, 0.0),
    (0.4, 0.2, 0.0, 0.0, 0.4),
    (0.1, 0.2, 0.0, 0.0, 0.7),
    (0.05, 0.25, 0.2, 0.2, 0.3),
)
"""How the explained variance is split over the blocks of `PublicFeatures`; the last three need interactions."""

EXPLAINED = (1e-6, 3e-5, 0.0006, 0.0025, 0.01, 0.04)
RESTS = (1e-5, 2e-4, 0.001, 0.004, 0.015, 0.05)
"""The explained variance, and the rest, in squared ranges: labels that fill their range evenly have 0.083 in all,
and bounds may be a hundred times too wide."""

MEAN_VARIANCE = 25.0
"""Of the labels' mean before anything is known, in squared ranges: next to flat, since a mean near a bound, as of
skewed labels, must not be drawn to the middle."""

Choices = tuple[tuple[tuple[float, ...], float, float], ...]

_UNLIKELY = 8.0
"""Choices with less log evidence than the best one, by so much, are left out."""

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
    design, values : arrays or None
        H and s themselves, where there are few: then the model is solved in their number, not in that of features.
    """

    gram: NDArray[np.float32]
    moment: Array
    square: float
    count: int
    share: float
    noise: float
    design: NDArray[np.float32] | None = None
    values: Array | None = None

    @classmethod
    def of_few(cls, design: NDArray[np.float32], values: Array, share: float, noise: float) -> Observations:
        """Return the statistics of a few observations, with these themselves."""
        moment = (design.T @ values.astype(np.float32)).astype(np.float64)
        square = float(values @ values)
        return cls(design.T @ design, moment, square, values.size, share, noise, design, values)

    def without(self, some: Observations) -> Observations:
        """Return what is left without some of these observations."""
        square, count = self.square - some.square, self.count - some.count
        moment = self.moment - some.moment
        return Observations(self.gram - some.gram, moment, square, count, self.share, self.noise)

    def level(self, rest: float) -> float:
        """Return the variance of an observation around what features explain."""
        return self.share * rest + self.noise


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
    blocks : tuple of float
        The explained variance by blocks of features.
    """

    weights: NDArray[np.float32]
    mean: float
    explained: float
    rest: float
    likely: Choices
    blocks: tuple[float, ...] = (0.0,) * BLOCKS

    def predict(self, features: NDArray[np.float32]) -> Array:
        """Return predictions for rows of features."""
        return np.asarray(features @ self.weights + self.mean, dtype=np.float64)


def unknown_variance(width: float, *, few: bool = False) -> Choices:
    """Return what to average over where only the labels' range is known; a part of it if few will do."""
    mixes = (MIXES[0], MIXES[2], MIXES[3], MIXES[5]) if few else MIXES
    pairs = [(e, r) for e in EXPLAINED for r in RESTS if e / 30 < r < 30 * e]
    return tuple((mix, e * width**2, r * width**2) for e, r in pairs for mix in mixes)


def fit_linear(
    observations: list[Observations],
    block: NDArray[np.int64],
    *,
    mean: float,
    mean_variance: float,
    choices: Choices,
    doubt: float = 0.0,
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
    doubt : float
        Log odds against interactions.
    """
    nothing = (0.0,) * BLOCKS
    choices = tuple(choice for choice in choices if not choice[0][-1] or block[-1] == BLOCKS - 1)
    totals = sorted({explained + rest for _, explained, rest in choices})
    options: Choices = (*((nothing, 0.0, total) for total in totals), *choices)
    few = all(o.design is not None for o in observations) and 3 * sum(o.count for o in observations) <= block.size
    solve = solve_few if few else solve_likely if len(choices) > 20 else solve_many
    log_evidence, weights = solve(observations, block, mean_variance, options)
    null = np.arange(len(options)) < len(totals)
    log_prior = np.where(null, np.log(_NULL / len(totals)), np.log((1 - _NULL) / max(1, len(choices))))
    score = log_evidence + log_prior - doubt * np.array([mix[-1] > 0 for mix, _, _ in options])
    posterior = np.exp(score - score.max())
    posterior /= posterior.sum()
    mixes, explained, rest = (np.array(each) for each in zip(*options, strict=True))
    likely = tuple(options[k] for k in np.argsort(-score, kind="stable") if not null[k])[:5]
    if null[int(np.argmax(posterior))] and posterior.max() > 0.5:
        likely = ()
    return Posterior(
        (posterior @ weights).astype(np.float32),
        mean,
        float(posterior @ explained),
        float(posterior @ rest),
        likely,
        tuple((posterior * explained) @ mixes),
    )


def solve_few(
    observations: list[Observations], block: NDArray[np.int64], mean_variance: float, options: Choices
) -> tuple[Array, Array]:
    """Return the log evidence and the posterior mean under each option, in the dimension of observations.

    Their covariance is a sum over blocks of features, plus noise: the products of each block are made once.
    """
    designs = [o.design for o in observations if o.design is not None]
    values = np.concatenate([o.values for o in observations if o.values is not None])
    counts = [o.count for o in observations]
    design = np.concatenate(designs).astype(np.float64)
    own = np.append(block, BLOCKS)  # the constant is a block of its own
    products = np.array([design[:, own == k] @ design[:, own == k].T for k in range(BLOCKS + 1)])
    log_evidence, weights = np.zeros(len(options)), np.zeros((len(options), own.size))
    for k, (mix, explained, rest) in enumerate(options):
        prior = np.append(np.asarray(mix) * explained, mean_variance)
        covariance = np.tensordot(prior, products, 1)
        covariance[np.diag_indices_from(covariance)] += np.repeat([o.level(rest) for o in observations], counts)
        factor = np.linalg.cholesky(covariance)
        half = solve_triangular(factor, values, lower=True, check_finite=False)
        log_evidence[k] = -0.5 * float(half @ half) - float(np.log(np.diag(factor)).sum())
        dual = solve_triangular(factor, half, lower=True, trans=1, check_finite=False)
        weights[k] = prior[own] * (dual @ design)
    return log_evidence, weights


def solve_likely(
    observations: list[Observations], block: NDArray[np.int64], mean_variance: float, options: Choices
) -> tuple[Array, Array]:
    """Return what `solve_many` does for options not far less likely than the best; others have no evidence.

    For each mix of blocks it walks over the grid of variances, from what is best for the mix of fewest features,
    on from options that are likely, and from the best one of a mix. Options must be such a grid.
    """
    log_evidence, weights = np.full(len(options), -np.inf), np.zeros((len(options), block.size + 1))
    mix, explained, rest = (np.array(each) for each in zip(*options, strict=True))
    features = (mix[:, block] > 0).sum(axis=1)
    some = features > 0
    place = np.array([np.searchsorted(np.unique(axis[some]), axis) for axis in (explained, rest)])
    same = (mix[:, None] == mix).all(axis=2)
    linked = same & (np.abs(place[:, :, None] - place[:, None]) <= 1).all(axis=0)
    fewest = features == np.min(features[some], initial=block.size)
    wanted = fewest | ~some
    while wanted.any():
        now = np.flatnonzero(wanted)
        log_evidence[now], weights[now] = solve_many(
            observations, block, mean_variance, tuple(options[k] for k in now)
        )
        start = np.argmax(np.where(fewest, log_evidence, -np.inf))
        leading = log_evidence == np.where(same, log_evidence, -np.inf).max(axis=1)
        likely = log_evidence > log_evidence.max() - _UNLIKELY
        known = np.isfinite(log_evidence)
        reached = linked[known & (leading | likely)].any(axis=0) | (place == place[:, [start]]).all(axis=0)
        wanted = some & reached & ~known
    return log_evidence, weights


@limit_threads(1)  # matrices are too small for several threads to help
def solve_many(
    observations: list[Observations], block: NDArray[np.int64], mean_variance: float, options: Choices
) -> tuple[Array, Array]:
    """Return the log evidence and the posterior mean under each option, in the dimension of features."""
    own = np.append(block, BLOCKS)
    log_evidence, weights = np.zeros(len(options)), np.zeros((len(options), own.size))
    alike: dict[tuple[tuple[bool, ...], float], list[int]] = {}  # those that share a matrix but for its diagonal
    for k, (mix, _, rest) in enumerate(options):
        alike.setdefault((tuple(part > 0 for part in mix), rest), []).append(k)
    grams: dict[tuple[bool, ...], list[NDArray[np.float32]]] = {}
    for (used, rest), members in sorted(alike.items()):
        active = np.append(used, True)[own]
        if used not in grams:
            grams = {used: [o.gram.compress(active, 0).compress(active, 1) for o in observations]}
        levels = [o.level(rest) for o in observations]
        unit = min(levels)  # in its units numbers of single precision neither overflow nor vanish
        parts = zip(grams[used], levels, strict=True)
        gram = np.asarray(sum(part * np.float32(unit / level) for part, level in parts))
        moment = sum(o.moment[active] * (unit / level) for o, level in zip(observations, levels, strict=True))
        right = np.asarray(moment, dtype=np.float32)
        base = -0.5 * sum(o.count * np.log(v) + o.square / v for o, v in zip(observations, levels, strict=True))
        for k in members:
            mix, explained, _ = options[k]
            prior = np.append(np.asarray(mix) * explained, mean_variance)[own[active]]
            matrix = gram.T.copy(order="F")  # LAPACK works on it in place
            matrix[np.diag_indices_from(matrix)] += unit / prior
            factor = cholesky(matrix, lower=True, check_finite=False, overwrite_a=True)
            half = solve_triangular(factor, right, lower=True, check_finite=False)
            gain = 0.5 * float(half.astype(np.float64) @ half) / unit
            size = float(np.log(np.diag(factor).astype(np.float64)).sum()) + 0.5 * float(
                np.log(prior / unit).sum()
            )
            log_evidence[k] = base + gain - size
            weights[k, active] = solve_triangular(factor, half, lower=True, trans=1, check_finite=False)
    return log_evidence, weights


def explained_risk(spectrum: Array, signal: float, noise: float) -> float:
    """Return Σ s v/(s + v): what estimating the signal costs, at noise v a row over the number of rows."""
    strength = spectrum * signal
    return float((strength * noise / (strength + noise)).sum())
