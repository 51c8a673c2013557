"""A curator's integer noise is distributed exactly as promised, for any rational scale.

Tests of fit have a false-alarm rate of 1e-9 each (`ALPHA`), below 1e-6 for all of them together.
"""

import math
from fractions import Fraction
from functools import cache

import numpy as np
import opendp.prelude as dp
import pytest
from benchmarks.loop_noise import LoopNoise
from scipy import stats

from helpers import seeded
from labeldp.noise import DiscreteGaussian, DiscreteLaplace, LatticeNorm
from mechanism_cases import ALPHA

HUGE = Fraction(10**12 + 39, 7)
SCALES = [Fraction(1, 3), Fraction(4, 5), Fraction(1), Fraction(10, 3), Fraction(2000, 17), HUGE]
VARIANCES = [Fraction(1, 5), Fraction(3, 4), Fraction(1), Fraction(10, 3), Fraction(5000, 7), HUGE]
MANY = {DiscreteLaplace: 30_000, DiscreteGaussian: 12_000}
"""Draws a test. A scale that is off by δ moves χ² by about n·δ² for Laplace noise and 2n·δ² for Gaussian
noise; with at most 40 bins, 10 % less noise passes a test of fit with probability below 1e-4."""

each_noise = pytest.mark.parametrize(
    "noise",
    [*map(DiscreteLaplace, SCALES), *map(DiscreteGaussian, VARIANCES)],
    ids=repr,
)


def with_scale_times(noise, factor):
    if isinstance(noise, DiscreteLaplace):
        return DiscreteLaplace(noise.scale * factor)
    return DiscreteGaussian(noise.sigma_squared * factor**2)


@cache
def draws(noise, seed):
    return noise.sample(MANY[type(noise)], seeded(seed))


# ---- exact probabilities ------------------------------------------------------------------------------


def laplace_cdf(scale, x):
    """Return P(noise ≤ x): r^|x| / (1 + r) to the left of zero, with r = e^(−1/scale)."""
    x = np.asarray(x, dtype=np.float64)
    below = np.exp(-np.where(x < 0, -x, x + 1) / float(scale)) / (1 + math.exp(-1 / float(scale)))
    return np.where(x < 0, below, 1 - below)


def gaussian_cdf(variance, x):
    """Return P(noise ≤ x), summed over all integers within 12 deviations."""
    reach = math.ceil(12 * math.sqrt(variance)) + 3
    weight = np.exp(-(np.arange(-reach, reach + 1, dtype=np.float64) ** 2) / (2 * float(variance)))
    return np.cumsum(weight / weight.sum())[np.clip(np.asarray(x), -reach, reach) + reach]


def cdf(noise, x):
    if isinstance(noise, DiscreteLaplace):
        return laplace_cdf(noise.scale, x)
    return gaussian_cdf(noise.sigma_squared, x)


def deviation(noise):
    if isinstance(noise, DiscreteLaplace):
        return math.sqrt(noise.variance())
    return math.sqrt(noise.sigma_squared)


def edges_of(noise):
    """Return integers, at most 40, on which to cut: each bin holds (left, right]."""
    spread = 3 * max(deviation(noise), 1.0)
    return np.unique(np.linspace(-spread, spread, 40).round().astype(np.int64))


def fit(noise, x):
    """Return the p-value of χ² against the exact probabilities."""
    edges = edges_of(noise)
    share = np.diff(np.concatenate([[0.0], cdf(noise, edges), [1.0]]))
    seen = np.bincount(np.searchsorted(edges, x, side="left"), minlength=share.size)
    often = share * x.size >= 10
    expected = np.append(share[often], share[~often].sum()) * x.size
    counted = np.append(seen[often], seen[~often].sum())
    statistic = ((counted - expected) ** 2 / np.maximum(expected, 1.0)).sum()
    return stats.chi2.sf(statistic, expected.size - 1)


@each_noise
def test_draws_have_exactly_the_promised_probabilities(noise):
    assert fit(noise, draws(noise, seed=1)) > ALPHA


@each_noise
def test_ten_percent_less_noise_is_noticed(noise):
    less = with_scale_times(noise, Fraction(9, 10))
    assert fit(noise, draws(less, seed=2)) < ALPHA


@each_noise
def test_noise_is_symmetric(noise):
    """As many draws above zero as below, at every size: sees a tenth of the noise change its sign."""
    x = draws(noise, seed=1)
    x = x[x != 0]
    sizes = np.digitize(np.abs(x), np.quantile(np.abs(x), [0.25, 0.5, 0.75]))
    for size in np.unique(sizes):
        some = x[sizes == size]
        assert stats.binomtest(int((some > 0).sum()), some.size).pvalue > ALPHA
    turned = np.where(np.arange(x.size) % 5 == 0, np.abs(x), x)
    assert stats.binomtest(int((turned > 0).sum()), x.size).pvalue < ALPHA


@pytest.mark.parametrize("scale", SCALES, ids=str)
def test_the_stated_variance_is_that_of_the_distribution(scale):
    noise = DiscreteLaplace(scale)
    if scale < 1000:
        x = np.arange(-20_000, 20_001)
        share = np.diff(laplace_cdf(scale, np.append(-20_001, x)))
        assert noise.variance() == pytest.approx(share @ x.astype(float) ** 2, rel=1e-9)
    squares = draws(noise, seed=1).astype(np.float64) ** 2
    assert abs(squares.mean() - noise.variance()) < 6.5 * squares.std() / math.sqrt(squares.size)


@pytest.mark.parametrize("size", [1, 2])
def test_norm_noise_has_exactly_the_promised_probabilities(size):
    """5,000 vectors, by the size of the first coordinate; 15 % less noise is noticed."""
    scale = Fraction(8, 5)
    grid = np.indices((121,) * size).reshape(size, -1) - 60
    weight = np.exp(-np.sqrt((grid**2).sum(axis=0)) / float(scale))
    share = np.bincount(np.minimum(np.abs(grid[0]), 9), weight / weight.sum())

    def p_value(made):
        source = seeded(10)
        first = np.abs([made.sample(size, source)[0] for _ in range(5000)])
        return stats.chisquare(np.bincount(np.minimum(first, 9), minlength=10), share * 5000).pvalue

    assert p_value(LatticeNorm(scale)) > ALPHA
    assert p_value(LatticeNorm(scale * Fraction(17, 20))) < ALPHA


# ---- two peers: OpenDP, and coins that stop early -----------------------------------------------------


def two_sample(noise, ours, theirs):
    """Return the p-value of χ² between two samples, binned alike."""
    edges = edges_of(noise)
    table = np.array(
        [np.bincount(np.searchsorted(edges, x, side="left"), minlength=edges.size + 1) for x in (ours, theirs)]
    )
    often = table.sum(axis=0) >= 20
    merged = np.column_stack([table[:, often], table[:, ~often].sum(axis=1)])
    return stats.chi2_contingency(merged[:, merged.sum(axis=0) > 0], correction=False).pvalue


def opendp_draws(noise, size):
    dp.enable_features("contrib")
    integers = dp.vector_domain(dp.atom_domain(T=int))
    if isinstance(noise, DiscreteLaplace):
        theirs = dp.m.make_laplace(integers, dp.l1_distance(T=int), scale=float(noise.scale))
    else:
        theirs = dp.m.make_gaussian(integers, dp.l2_distance(T=float), scale=math.sqrt(noise.sigma_squared))
    return np.array(theirs([0] * size))


def loop_draws(noise, size):
    return LoopNoise(noise).sample(size, seeded(12))


@pytest.mark.parametrize("peer_draws", [opendp_draws, loop_draws])
@pytest.mark.parametrize(
    "noise",
    [DiscreteLaplace(Fraction(scale)) for scale in ("1/2", "10/3", "5000")]
    + [DiscreteGaussian(Fraction(variance)) for variance in ("1/4", "10/3", "9000")],
    ids=repr,
)
def test_other_samplers_draw_integers_from_the_same_distribution(noise, peer_draws):
    """15,000 draws of theirs: 20 % less noise of ours passes with probability below 1e-4."""
    peer = peer_draws(noise, 15_000)
    ours = draws(noise, seed=5)
    assert two_sample(noise, ours, peer) > ALPHA
    assert stats.ks_2samp(ours, peer, method="asymp").pvalue > ALPHA
    less = draws(with_scale_times(noise, Fraction(4, 5)), seed=6)
    assert two_sample(noise, less, peer) < ALPHA


# ---- what it costs ----------------------------------------------------------------------------------


@pytest.mark.parametrize("epsilon", [Fraction(1, 3), Fraction(2)])
def test_shifting_by_the_sensitivity_changes_no_probability_by_more_than_e_to_epsilon(epsilon):
    noise = DiscreteLaplace.calibrated(sensitivity=2, epsilon=epsilon)
    share = np.diff(laplace_cdf(noise.scale, np.arange(-30, 1)))
    assert np.abs(np.log(share[2:] / share[:-2])).max() == pytest.approx(float(epsilon), rel=1e-6)
