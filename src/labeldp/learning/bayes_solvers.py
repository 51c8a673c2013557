"""How likely observations are under each choice of a prior, and the weights that follow from it: three ways.

They differ in speed only: `solve_few` works in the dimension of observations, `solve_many` in that of features,
and `solve_likely` leaves out choices that are far less likely than the best.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from scipy.linalg import cholesky, solve_triangular

from labeldp._values import Array, Index, Small
from labeldp.learning.features import BLOCKS
from labeldp.learning.threads import limit_threads

_UNLIKELY = 8.0
"""Choices with less log evidence than the best one, by so much, are left out."""

_MANY_CHOICES = 20
"""From so many on it pays to look for the likely ones."""


class Choice(NamedTuple):
    """How much features explain: the share of each block, the explained variance, and the rest."""

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
        How much of a single row's unexplained variance is in one observation: 1 for rows, the mean over
        scaled sums.
    noise : float
        Known variance of the privacy noise.
    design, values : arrays or None
        H and s themselves, where there are few: then the model is solved in their number, not in that of features.
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
        """Return the statistics of a few observations, with these themselves."""
        moment = (design.T @ values.astype(np.float32)).astype(np.float64)
        square = float(values @ values)
        return cls(design.T @ design, moment, square, values.size, share, noise, design, values)

    def without(self, some: Observations) -> Observations:
        """Return what is left without some of these observations."""
        return Observations(
            gram=self.gram - some.gram,
            moment=self.moment - some.moment,
            square=self.square - some.square,
            count=self.count - some.count,
            share=self.share,
            noise=self.noise,
        )

    def variance(self, rest: float) -> float:
        """Return the variance of an observation around what features explain."""
        return self.share * rest + self.noise


Solver = Callable[[list[Observations], Index, float, Choices], tuple[Array, Array]]
"""Returns the log evidence and the posterior mean of the weights under each option."""


def choose_solver(observations: list[Observations], block: Index, choices: int) -> Solver:
    """Return the solver that takes the least time."""
    count = sum(each.count for each in observations)
    if all(each.design is not None for each in observations) and 3 * count <= block.size:
        return solve_few
    return solve_likely if choices > _MANY_CHOICES else solve_many


def solve_few(
    observations: list[Observations], block: Index, mean_variance: float, options: Choices
) -> tuple[Array, Array]:
    """Return the log evidence and the posterior mean under each option, in the dimension of observations.

    Their covariance is a sum over blocks of features, plus noise: the products of each block are made once.
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


def solve_likely(
    observations: list[Observations], block: Index, mean_variance: float, options: Choices
) -> tuple[Array, Array]:
    """Return what `solve_many` does for options not far less likely than the best; others have no evidence.

    For each mix of blocks it walks over the grid of variances, from what is best for the mix of fewest features,
    on from options that are likely, and from the best one of a mix. Options must be such a grid.
    """
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
        solved = solve_many(observations, block, mean_variance, tuple(options[k] for k in now))
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
    """Return where values lie on the grid of those that are used."""
    return np.searchsorted(np.unique(values[used]), values)


@limit_threads(1)  # matrices are too small for several threads to help
def solve_many(
    observations: list[Observations], block: Index, mean_variance: float, options: Choices
) -> tuple[Array, Array]:
    """Return the log evidence and the posterior mean under each option, in the dimension of features."""
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
            grams = [each.gram.compress(active, 0).compress(active, 1) for each in observations]
            used_before = used
        system = _System.of(observations, grams, active, rest)
        for k in members:
            mix, explained, _ = options[k]
            prior = np.append(np.asarray(mix) * explained, mean_variance)[own[active]]
            log_evidence[k], weights[k, active] = system.solve(prior)
    return log_evidence, weights


class _System(NamedTuple):
    """The normal equations of all observations, without the prior.

    Attributes
    ----------
    gram, moment : arrays
        Sums over observations, times ``unit``: so numbers of single precision neither overflow nor vanish.
    unit : float
        The least variance of an observation.
    log_evidence : float
        What does not depend on the prior.
    """

    gram: Small
    moment: Small
    unit: float
    log_evidence: float

    @classmethod
    def of(cls, observations: Sequence[Observations], grams: list[Small], active: Array, rest: float) -> _System:
        """Return the equations of the active features, whose grams are given."""
        variances = [each.variance(rest) for each in observations]
        unit = min(variances)
        shares = [unit / variance for variance in variances]
        gram = sum(part * np.float32(share) for part, share in zip(grams, shares, strict=True))
        moment = sum(each.moment[active] * share for each, share in zip(observations, shares, strict=True))
        base = sum(
            each.count * np.log(variance) + each.square / variance
            for each, variance in zip(observations, variances, strict=True)
        )
        return cls(np.asarray(gram), np.asarray(moment, dtype=np.float32), unit, -0.5 * base)

    def solve(self, prior: Array) -> tuple[float, Array]:
        """Return the log evidence and the posterior mean under a prior variance of each weight."""
        matrix = self.gram.T.copy(order="F")  # LAPACK works on it in place
        matrix[np.diag_indices_from(matrix)] += self.unit / prior
        factor = cholesky(matrix, lower=True, check_finite=False, overwrite_a=True)
        half = solve_triangular(factor, self.moment, lower=True, check_finite=False)
        gain = 0.5 * float(half.astype(np.float64) @ half) / self.unit
        log_factor = float(np.log(np.diag(factor).astype(np.float64)).sum())
        log_prior = 0.5 * float(np.log(prior / self.unit).sum())
        weights = solve_triangular(factor, half, lower=True, trans=1, check_finite=False)
        return self.log_evidence + gain - (log_factor + log_prior), weights
