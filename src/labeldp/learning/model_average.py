"""Average the linear Gaussian model over priors, weighted by their evidence (the marginal likelihood).

A prior gives each block of features a share of the signal variance, and has a residual variance: that of labels
around what features explain. Priors are a small grid of both; a few of them have no features. With few data the
average is the mean of the labels, and with more data it is close to ridge, additive or kernel regression.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from scipy.special import softmax

from labeldp._values import Array, Index, Mask, Small
from labeldp.learning.feature_maps import BLOCKS, INTERACTIONS
from labeldp.learning.fit_plan import Limits
from labeldp.learning.linear_gaussian import Observation, solve_priors

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


Priors = tuple[Prior, ...]


def prior_grid(width: float, *, coarse: bool = False) -> Priors:
    """Return priors for labels whose range has this width; fewer of them if ``coarse``."""
    shares = [BLOCK_SHARES[k] for k in FEW_BLOCK_SHARES] if coarse else BLOCK_SHARES
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

    def predict(self, features: Small) -> Array:
        """Return predictions for rows of features."""
        return np.asarray(features @ self.weights + self.mean, dtype=np.float64)


def average_priors(
    observations: Sequence[Observation],
    block: Index,
    priors: Priors,
    *,
    limits: Limits,
    log_prior_odds: float,
    strengths: Array,
) -> Posterior:
    """Return the posterior mean, averaged over priors by their evidence.

    Parameters
    ----------
    observations : sequence of Observation
    block : array
        The block of each feature; the constant, which comes last, has none.
    priors : Priors
        The priors to average over, besides those without features.
    limits : Limits
        The range of labels. Its middle is the prior mean of the labels' mean.
    log_prior_odds : float
        Log odds of interactions.
    strengths : array
        The prior variance of a weight of each feature over that of its block.
    """
    options, without_signal = _with_constants(priors, with_interactions=block[-1] == INTERACTIONS)
    shares, signal, residual = (np.array(column) for column in zip(*options, strict=True))
    log_evidence, weights = _solve_grid(
        observations, block, strengths, (shares, signal, residual), MEAN_VARIANCE * limits.width**2
    )
    log_odds = log_prior_odds * (shares[:, INTERACTIONS] > 0)
    probability = _probabilities(log_evidence + log_odds, without_signal)
    return Posterior(
        weights=(probability @ weights).astype(np.float32),
        mean=limits.middle,
        signal_variance=float(probability @ signal),
        residual_variance=float(probability @ residual),
        top_priors=_top_priors(options, probability, without_signal),
        block_variances=tuple((probability * signal) @ shares),
    )


def _with_constants(priors: Priors, *, with_interactions: bool) -> tuple[Priors, int]:
    """Return priors without features, then those with features that there are; and the number of the first."""
    if not with_interactions:
        priors = tuple(prior for prior in priors if not prior.block_shares[INTERACTIONS])
    totals = sorted({prior.signal_variance + prior.residual_variance for prior in priors})
    constants = [Prior((0.0,) * BLOCKS, 0.0, total) for total in totals]
    return (*constants, *priors), len(totals)


def _solve_grid(
    observations: Sequence[Observation],
    block: Index,
    strengths: Array,
    grid: tuple[Array, Array, Array],
    mean_variance: float,
) -> tuple[Array, Array]:
    """Return the log evidence of priors, -∞ for unlikely ones, and their weights, priors × features.

    ``grid`` has the block shares, the signal variance and the residual variance of each prior.
    """
    shares, signal, residual = grid
    owner = np.append(block, BLOCKS)  # the constant is a block of its own
    relative = np.append(strengths, 1.0)
    block_variances = np.column_stack([shares * signal[:, None], np.full(signal.size, mean_variance)])
    log_evidence = np.full(signal.size, -np.inf)
    weights = np.zeros((signal.size, owner.size))
    search = _GridSearch(shares, signal, residual, block)
    while (reached := search.reach(log_evidence)).size:
        for variance in np.unique(residual[reached]):
            selected = reached[residual[reached] == variance]
            log_evidence[selected], weights[selected] = solve_priors(
                observations, owner, relative, block_variances[selected], variance
            )
    return log_evidence, weights


def _probabilities(log_evidence: Array, without_signal: int) -> Array:
    """Return posterior probabilities of priors, of which the first ones have no signal."""
    with_signal = log_evidence.size - without_signal
    prior = np.repeat(
        [_PROBABILITY_NO_SIGNAL / without_signal, (1 - _PROBABILITY_NO_SIGNAL) / max(1, with_signal)],
        [without_signal, with_signal],
    )
    return np.asarray(softmax(log_evidence + np.log(prior)))


def _top_priors(options: Priors, probability: Array, without_signal: int) -> Priors:
    """Return the likeliest priors with a signal; none if one without a signal is likelier than all others."""
    if np.argmax(probability) < without_signal and probability.max() > 0.5:
        return ()
    best_first = np.argsort(-probability, kind="stable")
    return tuple(options[k] for k in best_first if k >= without_signal)[:_TOP_PRIORS]


class _GridSearch:
    """A search of the grid for priors that are not far less likely than the best one.

    For each choice of shares, it moves over the grid of variances: it starts at the best variances of the shares
    with the fewest features, and goes on from likely priors and from the best one of the same shares.
    """

    def __init__(self, shares: Array, signal: Array, residual: Array, block: Index) -> None:
        features = (shares[:, block] > 0).sum(axis=1)
        self.has_signal = features > 0
        self.is_simplest = features == np.min(features[self.has_signal], initial=block.size)
        self.position = np.array([_positions(axis, self.has_signal) for axis in (signal, residual)])
        self.same_shares = (shares[:, None] == shares).all(axis=2)
        distance = np.abs(self.position[:, :, None] - self.position[:, None])
        self.neighbours = self.same_shares & (distance <= 1).all(axis=0)

    def reach(self, log_evidence: Array) -> Index:
        """Return further priors to solve, by the log evidence of those that are solved; -∞ stands for others."""
        is_solved = np.isfinite(log_evidence)
        if not is_solved.any():
            is_small = self.has_signal.size <= _MAX_PRIORS_WITHOUT_SEARCH
            return np.flatnonzero(is_small | self.is_simplest | ~self.has_signal)
        best_simple = np.argmax(np.where(self.is_simplest, log_evidence, -np.inf))
        is_start = (self.position == self.position[:, [best_simple]]).all(axis=0)
        is_best = log_evidence == np.where(self.same_shares, log_evidence, -np.inf).max(axis=1)
        is_likely = log_evidence > log_evidence.max() - _MAX_EVIDENCE_GAP
        is_neighbour = self.neighbours[is_solved & (is_best | is_likely)].any(axis=0)
        return np.flatnonzero(self.has_signal & (is_neighbour | is_start) & ~is_solved)


def _positions(values: Array, is_on_grid: Mask) -> Index:
    """Return the positions of values on the grid of distinct values."""
    return np.searchsorted(np.unique(values[is_on_grid]), values)
