"""Average the linear Gaussian model over priors, weighted by their evidence (the marginal likelihood).

A prior gives each block of features a share of the signal variance, and has a residual variance: that of labels
around what features explain. Priors are a small grid of both; a few of them have no features. With few data the
average is the mean of the labels, and with more data it is close to ridge, additive or kernel regression.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from labeldp._values import Array, Index, Small
from labeldp.learning.feature_maps import BLOCKS, INTERACTIONS
from labeldp.learning.linear_gaussian import DualGaussian, LinearGaussian, Observation, PrimalGaussian

BLOCK_SHARES = (
    (1.0, 0.0, 0.0, 0.0, 0.0),
    (0.5, 0.5, 0.0, 0.0, 0.0),
    (0.05, 0.55, 0.4, 0.0, 0.0),
    (0.4, 0.2, 0.1, 0.3, 0.0),
    (0.1, 0.2, 0.3, 0.4, 0.0),
    (0.4, 0.2, 0.0, 0.0, 0.4),
    (0.1, 0.2, 0.0, 0.0, 0.7),
    (0.05, 0.25, 0.2, 0.2, 0.3),
)
"""Shares of the blocks of `PublicFeatures` in the signal variance; the last three need interactions."""

FEW_BLOCK_SHARES = (0, 2, 3, 5)
"""Positions of a few different shares, which suffice between rounds of labels."""

SIGNAL_VARIANCES = (1e-6, 3e-5, 0.0006, 0.0025, 0.01, 0.04)
"""In squared widths of the range. Labels that are uniform on the range have a variance of 0.083; smaller variances
are for bounds that are up to a hundred times too wide."""

RESIDUAL_VARIANCES = (1e-5, 2e-4, 0.001, 0.004, 0.015, 0.05)
"""In squared widths of the range."""

_MAX_RATIO = 30
"""The largest ratio between the signal variance and the residual variance, either way."""

MEAN_VARIANCE = 25.0
"""The prior variance of the labels' mean, in squared widths of the range. It is nearly flat, so that a mean near a
bound, as of skewed labels, is not shrunk to the middle."""

_PROBABILITY_NO_SIGNAL = 0.1
"""The prior probability that the features explain nothing."""

_MAX_EVIDENCE_GAP = 8.0
"""The search goes on from priors whose log evidence is lower than the best one by less than this."""

_MAX_PRIORS_WITHOUT_SEARCH = 40
"""With more priors, a search for the likely ones saves time."""

_TOP_PRIORS = 5
"""The number of priors that a model keeps for models that are fitted to compare it with trees."""


class Prior(NamedTuple):
    """The share of each block in the signal variance, the signal variance, and the residual variance."""

    block_shares: tuple[float, ...]
    signal_variance: float
    residual_variance: float

    def variances(self, mean_variance: float) -> Array:
        """Return the prior variance of a weight, for each block and for the constant."""
        return np.append(np.asarray(self.block_shares) * self.signal_variance, mean_variance)

    @property
    def uses(self) -> tuple[bool, ...]:
        """Whether it gives each block a share."""
        return tuple(share > 0 for share in self.block_shares)


Priors = tuple[Prior, ...]


def prior_grid(width: float, *, few: bool = False) -> Priors:
    """Return priors for labels whose range has this width; fewer of them if ``few``."""
    shares = [BLOCK_SHARES[k] for k in FEW_BLOCK_SHARES] if few else BLOCK_SHARES
    return tuple(
        Prior(block_shares, signal * width**2, residual * width**2)
        for signal in SIGNAL_VARIANCES
        for residual in RESIDUAL_VARIANCES
        if signal / _MAX_RATIO < residual < _MAX_RATIO * signal
        for block_shares in shares
    )


@dataclass(frozen=True, slots=True)
class Posterior:
    """The averaged model: ``mean + features @ weights``.

    Attributes
    ----------
    weights : array
    mean : float
        The value that was subtracted from labels.
    signal_variance, residual_variance : float
        Posterior means.
    top_priors : Priors
        The priors with the largest posterior probability, best first; empty if features seem to explain nothing.
    block_variances : tuple of float
        The signal variance by blocks of features.
    """

    weights: Small
    mean: float
    signal_variance: float
    residual_variance: float
    top_priors: Priors
    block_variances: tuple[float, ...] = (0.0,) * BLOCKS

    @classmethod
    def constant(cls, size: int, mean: float, signal_variance: float, residual_variance: float) -> Posterior:
        """Return the model that predicts the mean for all rows."""
        return cls(np.zeros(size, dtype=np.float32), mean, signal_variance, residual_variance, ())

    def predict(self, features: Small) -> Array:
        """Return predictions for rows of features."""
        return np.asarray(features @ self.weights + self.mean, dtype=np.float64)


def average_priors(
    observations: Sequence[Observation],
    block: Index,
    priors: Priors,
    *,
    mean: float,
    mean_variance: float,
    log_prior_odds: float = 0.0,
    strengths: Array | None = None,
) -> Posterior:
    """Return the posterior mean, averaged over priors by their evidence.

    Parameters
    ----------
    observations : sequence of Observation
    block : array
        The block of each feature; the constant, which comes last, has none.
    priors : Priors
        The priors to average over, besides those without features.
    mean, mean_variance : float
        Prior mean and variance of the labels' mean.
    log_prior_odds : float
        Log odds of interactions.
    strengths : array, optional
        The prior variance of a weight of each feature over that of its block; by default 1.
    """
    if block[-1] != INTERACTIONS:
        priors = tuple(prior for prior in priors if not prior.block_shares[INTERACTIONS])
    totals = sorted({prior.signal_variance + prior.residual_variance for prior in priors})
    without_signal = tuple(Prior((0.0,) * BLOCKS, 0.0, total) for total in totals)
    options = (*without_signal, *priors)
    relative = np.ones(block.size + 1)
    if strengths is not None:
        relative[:-1] = strengths
    log_evidence, weights = _solve(observations, block, options, mean_variance, relative)
    has_signal = np.arange(len(options)) >= len(totals)
    share = (1 - _PROBABILITY_NO_SIGNAL) / max(1, len(priors))
    chance = np.where(has_signal, share, _PROBABILITY_NO_SIGNAL / len(totals))
    interacts = np.array([prior.block_shares[INTERACTIONS] > 0 for prior in options])
    score = log_evidence + np.log(chance) + log_prior_odds * interacts
    probability = np.exp(score - score.max())
    probability /= probability.sum()
    shares, signal, residual = (np.array(column) for column in zip(*options, strict=True))
    return Posterior(
        weights=(probability @ weights).astype(np.float32),
        mean=mean,
        signal_variance=float(probability @ signal),
        residual_variance=float(probability @ residual),
        top_priors=_top_priors(options, probability, has_signal),
        block_variances=tuple((probability * signal) @ shares),
    )


def _top_priors(options: Priors, probability: Array, has_signal: NDArray[np.bool_]) -> Priors:
    """Return the likeliest priors with a signal; none if one without a signal is likelier than all others."""
    if not has_signal[np.argmax(probability)] and probability.max() > 0.5:
        return ()
    best_first = np.argsort(-probability, kind="stable")
    return tuple(options[k] for k in best_first if has_signal[k])[:_TOP_PRIORS]


Solver = Callable[[Prior], LinearGaussian]
"""Returns the model for a prior; its weights are those of the blocks that the prior uses, and of the constant."""


def _solve(
    observations: Sequence[Observation], block: Index, priors: Priors, mean_variance: float, strengths: Array
) -> tuple[Array, Array]:
    """Return the log evidence of each prior, -∞ if the search does not reach the prior, and the weights."""
    count = sum(observation.count for observation in observations)
    is_few = all(observation.design is not None for observation in observations) and 3 * count <= block.size
    owner = np.append(block, BLOCKS)  # the constant is a block of its own
    solver = (_dual_solver if is_few else _primal_solver)(observations, owner, mean_variance, strengths)
    log_evidence = np.full(len(priors), -np.inf)
    weights = np.zeros((len(priors), owner.size))
    search = _GridSearch(priors, block)
    wanted = search.start()
    while wanted.size:
        for k in sorted(wanted, key=lambda k: (priors[k].uses, priors[k].residual_variance)):
            model = solver(priors[k])
            log_evidence[k] = model.log_evidence
            weights[k, _is_used(priors[k], owner)] = model.coefficients
        wanted = search.reach(log_evidence)
    return log_evidence, weights


def _is_used(prior: Prior, owner: Index) -> NDArray[np.bool_]:
    """Return which weights belong to blocks that a prior uses; the constant always does."""
    return np.append(prior.uses, True)[owner]


class _GridSearch:
    """A search of the grid for priors that are not far less likely than the best one.

    For each choice of shares, it moves over the grid of variances: it starts at the best variances of the shares
    with the fewest features, and goes on from likely priors and from the best one of the same shares.
    """

    def __init__(self, priors: Priors, block: Index) -> None:
        shares, signal, residual = (np.array(column) for column in zip(*priors, strict=True))
        features = (shares[:, block] > 0).sum(axis=1)
        self.has_signal = features > 0
        self.is_simplest = features == np.min(features[self.has_signal], initial=block.size)
        self.position = np.array([_positions(axis, self.has_signal) for axis in (signal, residual)])
        self.same_shares = (shares[:, None] == shares).all(axis=2)
        distance = np.abs(self.position[:, :, None] - self.position[:, None])
        self.neighbours = self.same_shares & (distance <= 1).all(axis=0)

    def start(self) -> Index:
        """Return the first priors to solve: all of them if there are few."""
        if len(self.has_signal) <= _MAX_PRIORS_WITHOUT_SEARCH:
            return np.arange(len(self.has_signal))
        return np.flatnonzero(self.is_simplest | ~self.has_signal)

    def reach(self, log_evidence: Array) -> Index:
        """Return further priors to solve, by the log evidence of those that are solved."""
        best_simple = np.argmax(np.where(self.is_simplest, log_evidence, -np.inf))
        is_start = (self.position == self.position[:, [best_simple]]).all(axis=0)
        is_best = log_evidence == np.where(self.same_shares, log_evidence, -np.inf).max(axis=1)
        is_likely = log_evidence > log_evidence.max() - _MAX_EVIDENCE_GAP
        is_solved = np.isfinite(log_evidence)
        is_neighbour = self.neighbours[is_solved & (is_best | is_likely)].any(axis=0)
        return np.flatnonzero(self.has_signal & (is_neighbour | is_start) & ~is_solved)


def _positions(values: Array, used: NDArray[np.bool_]) -> Index:
    """Return the positions of values on the grid of distinct values."""
    return np.searchsorted(np.unique(values[used]), values)


def _dual_solver(
    observations: Sequence[Observation], owner: Index, mean_variance: float, strengths: Array
) -> Solver:
    """Return a solver in the dimension of values; the products of each block are computed once."""
    design = np.concatenate([each.design for each in observations if each.design is not None]).astype(np.float64)
    values = np.concatenate([each.values for each in observations if each.values is not None])
    counts = [observation.count for observation in observations]
    scaled = design * np.sqrt(strengths)
    products = np.array([scaled[:, owner == k] @ scaled[:, owner == k].T for k in range(BLOCKS + 1)])

    def solve(prior: Prior) -> LinearGaussian:
        noise = np.repeat([each.variance(prior.residual_variance) for each in observations], counts)
        root = 1 / np.sqrt(noise)
        is_used, variances = _is_used(prior, owner), prior.variances(mean_variance)
        return DualGaussian(
            (variances[owner] * strengths)[is_used],
            design[:, is_used] * root[:, None],
            values * root,
            products=np.tensordot(variances, products, 1) * root * root[:, None],
            log_noise=float(np.log(noise).sum()),
        )

    return solve


def _primal_solver(
    observations: Sequence[Observation], owner: Index, mean_variance: float, strengths: Array
) -> Solver:
    """Return a solver in the dimension of features.

    Priors that use the same blocks, and have the same residual variance, share sums of products.
    """

    @lru_cache(maxsize=1)
    def select(uses: tuple[bool, ...]) -> tuple[NDArray[np.bool_], list[Small]]:
        is_used = np.append(uses, True)[owner]
        return is_used, [_submatrix(observation.gram, is_used) for observation in observations]

    @lru_cache(maxsize=1)
    def weigh(uses: tuple[bool, ...], residual_variance: float) -> tuple[Any, Any, float, float]:
        is_used, grams = select(uses)
        noise = [observation.variance(residual_variance) for observation in observations]
        pairs = list(zip(observations, noise, strict=True))
        gram = sum(part / np.float32(variance) for part, variance in zip(grams, noise, strict=True))
        moment = sum(observation.moment[is_used] / variance for observation, variance in pairs)
        square = sum(observation.square / variance for observation, variance in pairs)
        log_noise = sum(observation.count * np.log(variance) for observation, variance in pairs)
        return gram, moment, float(square), float(log_noise)

    def solve(prior: Prior) -> LinearGaussian:
        gram, moment, square, log_noise = weigh(prior.uses, prior.residual_variance)
        variances = (prior.variances(mean_variance)[owner] * strengths)[_is_used(prior, owner)]
        return PrimalGaussian(variances, gram, moment, square, log_noise=log_noise)

    return solve


def _submatrix(matrix: Small, is_used: NDArray[np.bool_]) -> Small:
    """Return the rows and columns of used features, copied by runs of neighbouring features."""
    edges = np.flatnonzero(np.diff(is_used, prepend=False, append=False))
    runs = [slice(*edge) for edge in edges.reshape(-1, 2).tolist()]
    return np.concatenate([np.concatenate([matrix[rows, columns] for columns in runs], axis=1) for rows in runs])
