"""A Bayesian linear model with known noise variance, averaged over priors.

Observations are s = Hθ + e, where the variance of e is the known privacy noise plus the variance of labels that
features do not explain. A prior of θ gives each block of features a share of the explained variance. Models are
averaged over a small grid of shares and variances, weighted by their evidence (the marginal likelihood); one of
them has no features. With few data the result is the mean of the labels, and with more data it is close to ridge,
additive or kernel regression.

Two solvers compute the same evidence at different speeds: `solve_few` in the dimension of observations,
`solve_many` in that of features. `solve` skips priors that are far less likely than the best one.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import cholesky, solve_triangular

from labeldp._values import Array, Index, Small
from labeldp.learning.feature_maps import BLOCKS, INTERACTIONS

_UNLIKELY = 8.0
"""Priors whose log evidence is lower than the best one by more than this are skipped."""

_MANY_CHOICES = 40
"""With at least this many priors, a search for the likely ones saves time."""


class Choice(NamedTuple):
    """A prior: the share of each block, the variance that features explain, and the rest."""

    mix: tuple[float, ...]
    explained: float
    rest: float


Choices = tuple[Choice, ...]


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
        The factor of the unexplained variance of a row in the variance of an observation: 1 for rows, the mean
        factor for scaled sums.
    noise : float
        Known variance of the privacy noise.
    design, values : arrays or None
        H and s, if there are few observations: then the model is solved in the dimension of observations.
    """

    gram: Small
    moment: Array
    square: float
    count: int
    share: float
    noise: float
    design: Small | None = None
    values: Array | None = None

    @classmethod
    def of_few(cls, design: Small, values: Array, share: float, noise: float) -> Observations:
        """Return the statistics of a few observations, and keep the observations."""
        moment = (design.T @ values.astype(np.float32)).astype(np.float64)
        square = float(values @ values)
        return cls(design.T @ design, moment, square, values.size, share, noise, design, values)

    def without(self, some: Observations) -> Observations:
        """Return the statistics without some of these observations."""
        return replace(
            self,
            gram=self.gram - some.gram,
            moment=self.moment - some.moment,
            square=self.square - some.square,
            count=self.count - some.count,
            design=None,
            values=None,
        )

    def variance(self, rest: float) -> float:
        """Return the variance of an observation around what features explain."""
        return self.share * rest + self.noise


_MORE = (0.0, 1e-6, 1e-4, 1e-2, 1.0)
"""Fractions of the diagonal that are added to it, in turn, until the factorisation succeeds."""


def factorise(matrix: NDArray[Any]) -> NDArray[Any]:
    """Return the lower Cholesky factor; a fit that is already charged must not fail by rounding errors."""
    for more in _MORE:
        padded = matrix.copy(order="F")
        padded[np.diag_indices_from(matrix)] *= 1 + more
        with suppress(np.linalg.LinAlgError):
            return np.asarray(cholesky(padded, lower=True, check_finite=False, overwrite_a=True))
    return np.diag(np.sqrt(np.diag(matrix)))


Solver = Callable[[list[Observations], Index, float, Choices], tuple[Array, Array]]
"""Returns the log evidence and the posterior mean of the weights for each prior."""


def solve_few(
    observations: list[Observations], block: Index, mean_variance: float, options: Choices
) -> tuple[Array, Array]:
    """Return the log evidence and the posterior mean for each prior, in the dimension of observations.

    The covariance of observations is a sum over blocks, plus noise; the products of each block are computed once.
    """
    designs = [each.design for each in observations if each.design is not None]
    values = np.concatenate([each.values for each in observations if each.values is not None])
    counts = [each.count for each in observations]
    design = np.concatenate(designs).astype(np.float64)
    own = np.append(block, BLOCKS)  # the constant is a block of its own
    products = np.array([design[:, own == k] @ design[:, own == k].T for k in range(BLOCKS + 1)])
    log_evidence = np.zeros(len(options))
    weights = np.zeros((len(options), own.size))
    for k, (mix, explained, rest) in enumerate(options):
        prior = np.append(np.asarray(mix) * explained, mean_variance)
        covariance = np.tensordot(prior, products, 1)
        noise = np.repeat([each.variance(rest) for each in observations], counts)
        covariance[np.diag_indices_from(covariance)] += noise
        factor = np.linalg.cholesky(covariance)
        half = solve_triangular(factor, values, lower=True, check_finite=False)
        log_evidence[k] = -0.5 * float(half @ half) - float(np.log(np.diag(factor)).sum())
        dual = solve_triangular(factor, half, lower=True, trans=1, check_finite=False)
        weights[k] = prior[own] * (dual @ design)
    return log_evidence, weights


def solve(
    observations: list[Observations], block: Index, mean_variance: float, options: Choices
) -> tuple[Array, Array]:
    """Return the result of the faster solver; of many priors, only for those not far less likely than the best.

    Priors must be a grid of mixes and variances. For each mix, the search moves over the grid of variances: it
    starts at the best variances of the mix with the fewest features, and goes on from likely priors and from the
    best one of the mix. Priors that it does not reach have no evidence.
    """
    count = sum(each.count for each in observations)
    is_few = all(each.design is not None for each in observations) and 3 * count <= block.size
    solve_all: Solver = solve_few if is_few else solve_many
    if len(options) <= _MANY_CHOICES:
        return solve_all(observations, block, mean_variance, options)
    log_evidence = np.full(len(options), -np.inf)
    weights = np.zeros((len(options), block.size + 1))
    mix, explained, rest = (np.array(each) for each in zip(*options, strict=True))
    features = (mix[:, block] > 0).sum(axis=1)
    has_signal = features > 0
    position = np.array([_positions(axis, has_signal) for axis in (explained, rest)])
    same_mix = (mix[:, None] == mix).all(axis=2)
    neighbours = same_mix & (np.abs(position[:, :, None] - position[:, None]) <= 1).all(axis=0)
    fewest = features == np.min(features[has_signal], initial=block.size)
    wanted = fewest | ~has_signal
    while wanted.any():
        now = np.flatnonzero(wanted)
        solved = solve_all(observations, block, mean_variance, tuple(options[k] for k in now))
        log_evidence[now], weights[now] = solved
        start = np.argmax(np.where(fewest, log_evidence, -np.inf))
        is_start = (position == position[:, [start]]).all(axis=0)
        leads_mix = log_evidence == np.where(same_mix, log_evidence, -np.inf).max(axis=1)
        is_likely = log_evidence > log_evidence.max() - _UNLIKELY
        is_known = np.isfinite(log_evidence)
        is_reached = neighbours[is_known & (leads_mix | is_likely)].any(axis=0)
        wanted = has_signal & (is_reached | is_start) & ~is_known
    return log_evidence, weights


def _positions(values: Array, used: Array) -> Index:
    """Return the positions of values on the grid of distinct values."""
    return np.searchsorted(np.unique(values[used]), values)


def solve_many(
    observations: list[Observations], block: Index, mean_variance: float, options: Choices
) -> tuple[Array, Array]:
    """Return the log evidence and the posterior mean for each prior, in the dimension of features."""
    own = np.append(block, BLOCKS)
    log_evidence = np.zeros(len(options))
    weights = np.zeros((len(options), own.size))
    alike: dict[tuple[tuple[bool, ...], float], list[int]] = {}  # those that share a matrix but for its diagonal
    for k, (mix, _, rest) in enumerate(options):
        alike.setdefault((tuple(part > 0 for part in mix), rest), []).append(k)
    used_before, grams = None, []
    for (used, rest), members in sorted(alike.items()):
        active = np.append(used, True)[own]
        if used != used_before:
            grams = [_submatrix(each.gram, active) for each in observations]
            used_before = used
        variances = np.array([each.variance(rest) for each in observations])
        unit = float(variances.min())  # with it numbers of single precision neither overflow nor vanish
        shares = unit / variances
        gram: Any = sum(part * np.float32(share) for part, share in zip(grams, shares, strict=True))
        moment = sum(each.moment[active] * share for each, share in zip(observations, shares, strict=True))
        squares = sum(
            each.count * np.log(variance) + each.square / variance
            for each, variance in zip(observations, variances, strict=True)
        )
        for k in members:
            mix, explained, _ = options[k]
            prior = np.append(np.asarray(mix) * explained, mean_variance)[own[active]]
            gain, weights[k, active] = _solve_system(gram, np.asarray(moment, dtype=np.float32), unit, prior)
            log_evidence[k] = gain - 0.5 * squares
    return log_evidence, weights


def _solve_system(gram: Small, moment: Small, unit: float, prior: Array) -> tuple[float, Array]:
    """Return the log evidence, up to a constant for all priors, and the posterior mean of the weights.

    ``gram`` and ``moment`` are sums over observations times ``unit``, ``prior`` is the variance of each weight.
    """
    matrix = gram.T.copy(order="F")
    matrix[np.diag_indices_from(matrix)] += unit / prior
    factor = factorise(matrix)
    half = solve_triangular(factor, moment, lower=True, check_finite=False)
    gain = 0.5 * float(half.astype(np.float64) @ half) / unit
    log_factor = float(np.log(np.diag(factor).astype(np.float64)).sum())
    log_prior = 0.5 * float(np.log(prior / unit).sum())
    return gain - (log_factor + log_prior), solve_triangular(factor, half, lower=True, trans=1, check_finite=False)


def _submatrix(matrix: Small, active: NDArray[np.bool_]) -> Small:
    """Return the rows and columns of active features, copied by runs of neighbouring features."""
    edges = np.flatnonzero(np.diff(active, prepend=False, append=False))
    runs = [slice(*edge) for edge in edges.reshape(-1, 2).tolist()]
    return np.concatenate([np.concatenate([matrix[rows, columns] for columns in runs], axis=1) for rows in runs])


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
"""Shares of the blocks of `PublicFeatures` in the explained variance; the last three need interactions."""

FEW_MIXES = (0, 2, 3, 5)
"""Positions of a few different mixes, which suffice between rounds of labels."""

EXPLAINED = (1e-6, 3e-5, 0.0006, 0.0025, 0.01, 0.04)
RESTS = (1e-5, 2e-4, 0.001, 0.004, 0.015, 0.05)
"""Grids of the explained variance and the rest, in squared widths of the range. Labels that are uniform on the
range have a variance of 0.083; smaller ones are for bounds that are up to a hundred times too wide."""

_MOST_RATIO = 30
"""The largest ratio between the explained variance and the rest, either way."""

MEAN_VARIANCE = 25.0
"""The prior variance of the labels' mean, in squared widths of the range. It is nearly flat, so that a mean near a
bound, as of skewed labels, is not shrunk to the middle."""

_NO_SIGNAL = 0.1
"""Prior probability that the features explain nothing."""


@dataclass(frozen=True, slots=True)
class Posterior:
    """The averaged model: ``mean + features @ weights``.

    Attributes
    ----------
    weights : array
    mean : float
        The value that was subtracted from labels.
    explained, rest : float
        Posterior means of the variance that features explain, and of the rest.
    likely : Choices
        The priors with the largest weights, best first; empty if features seem to explain nothing.
    blocks : tuple of float
        The explained variance by blocks of features.
    """

    weights: Small
    mean: float
    explained: float
    rest: float
    likely: Choices
    blocks: tuple[float, ...] = (0.0,) * BLOCKS

    def predict(self, features: Small) -> Array:
        """Return predictions for rows of features."""
        return np.asarray(features @ self.weights + self.mean, dtype=np.float64)


def unknown_variance(width: float, *, few: bool = False) -> Choices:
    """Return the grid of priors for labels with a range of this width; fewer of them if ``few``."""
    return tuple(
        Choice(mix, explained * width**2, rest * width**2)
        for explained in EXPLAINED
        for rest in RESTS
        if explained / _MOST_RATIO < rest < _MOST_RATIO * explained
        for mix in ([MIXES[k] for k in FEW_MIXES] if few else MIXES)
    )


def fit_linear(
    observations: list[Observations],
    block: Index,
    *,
    mean: float,
    mean_variance: float,
    choices: Choices,
    doubt: float = 0.0,
) -> Posterior:
    """Return the posterior mean, averaged over priors by their evidence.

    Parameters
    ----------
    observations : list
    block : array
        The block of each feature.
    mean, mean_variance : float
        Prior mean and variance of the labels' mean.
    choices : Choices
        The priors to average over, besides the model without features.
    doubt : float
        Log odds against interactions.
    """
    if block[-1] != INTERACTIONS:
        choices = tuple(choice for choice in choices if not choice.mix[INTERACTIONS])
    totals = sorted({choice.explained + choice.rest for choice in choices})
    no_signal = tuple(Choice((0.0,) * BLOCKS, 0.0, total) for total in totals)
    options = (*no_signal, *choices)
    log_evidence, weights = solve(observations, block, mean_variance, options)
    is_null = np.arange(len(options)) < len(totals)
    prior = np.where(is_null, _NO_SIGNAL / len(totals), (1 - _NO_SIGNAL) / max(1, len(choices)))
    interacts = np.array([choice.mix[INTERACTIONS] > 0 for choice in options])
    score = log_evidence + np.log(prior) - doubt * interacts
    posterior = np.exp(score - score.max())
    posterior /= posterior.sum()
    best_first = np.argsort(-score, kind="stable")
    likely = tuple(options[k] for k in best_first if not is_null[k])[:5]
    if is_null[int(np.argmax(posterior))] and posterior.max() > 0.5:
        likely = ()
    mixes, explained, rest = (np.array(each) for each in zip(*options, strict=True))
    return Posterior(
        weights=(posterior @ weights).astype(np.float32),
        mean=mean,
        explained=float(posterior @ explained),
        rest=float(posterior @ rest),
        likely=likely,
        blocks=tuple((posterior * explained) @ mixes),
    )


def explained_risk(spectrum: Array, signal: float, noise: float) -> float:
    """Return Σ s v/(s + v): the expected error of estimating the signal; v is a row's noise over the row count."""
    strength = spectrum * signal
    return float((strength * noise / (strength + noise)).sum())
