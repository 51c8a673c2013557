"""A curator's integer noise is distributed exactly as promised, for any rational scale.

Tests of fit have a false-alarm rate of 1e-9 each (`ALPHA`), below 1e-6 for all of them together.
"""

import math
from fractions import Fraction
from functools import cache

import numpy as np
import opendp.prelude as dp
import pytest
from scipy import stats

import labeldp as ldp
from helpers import seeded
from labeldp.noise import DiscreteGaussian, DiscreteLaplace, LatticeNorm
from labeldp.noise.concentrated import rho_for
from labeldp.noise.integers import MOST_COORDINATES
from mechanism_cases import ALPHA

HUGE = Fraction(10**12 + 39, 7)
SCALES = [Fraction(1, 3), Fraction(10, 3), HUGE]
VARIANCES = [Fraction(1, 5), Fraction(10, 3), HUGE]
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


@pytest.mark.slow
@pytest.mark.statistical
@each_noise
def test_draws_have_exactly_the_promised_probabilities_and_ten_percent_less_noise_is_noticed(noise):
    assert fit(noise, draws(noise, seed=1)) > ALPHA
    less = with_scale_times(noise, Fraction(9, 10))
    assert fit(noise, draws(less, seed=2)) < ALPHA


@pytest.mark.slow
@pytest.mark.statistical
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


@pytest.mark.slow
@pytest.mark.statistical
@pytest.mark.parametrize("size", [1, 2])
def test_norm_noise_has_exactly_the_promised_probabilities(size):
    """5,000 vectors, by the size of the first coordinate; 15 % less noise is noticed."""
    scale = Fraction(8, 5)
    grid = np.indices((121,) * size).reshape(size, -1) - 60
    weight = np.exp(-np.sqrt((grid**2).sum(axis=0)) / float(scale))
    share = np.bincount(np.minimum(np.abs(grid[0]), 9), weight / weight.sum())

    def p_value(noise):
        source = seeded(10)
        first = np.abs([noise.sample(size, source)[0] for _ in range(5000)])
        return stats.chisquare(np.bincount(np.minimum(first, 9), minlength=10), share * 5000).pvalue

    assert p_value(LatticeNorm(scale)) > ALPHA
    assert p_value(LatticeNorm(scale * Fraction(17, 20))) < ALPHA


# ---- a peer: OpenDP -----------------------------------------------------------------------------------


def two_sample(noise, ours, theirs):
    """Return the p-value of χ² between two samples, binned alike."""
    edges = edges_of(noise)
    table = np.array(
        [np.bincount(np.searchsorted(edges, x, side="left"), minlength=edges.size + 1) for x in (ours, theirs)]
    )
    often = table.sum(axis=0) >= 20
    merged = np.column_stack([table[:, often], table[:, ~often].sum(axis=1)])
    return stats.chi2_contingency(merged[:, merged.sum(axis=0) > 0], correction=False).pvalue


@pytest.mark.slow
@pytest.mark.statistical
@pytest.mark.parametrize(
    "noise",
    [DiscreteLaplace(Fraction(scale)) for scale in ("1/2", "5000")]
    + [DiscreteGaussian(Fraction(variance)) for variance in ("1/4", "9000")],
    ids=repr,
)
def test_opendp_draws_integers_from_the_same_distribution(noise):
    """15,000 draws of theirs: 20 % less noise of ours passes with probability below 1e-4."""
    dp.enable_features("contrib")
    integers = dp.vector_domain(dp.atom_domain(T=int))
    if isinstance(noise, DiscreteLaplace):
        theirs = dp.m.make_laplace(integers, dp.l1_distance(T=int), scale=float(noise.scale))
    else:
        theirs = dp.m.make_gaussian(integers, dp.l2_distance(T=float), scale=math.sqrt(noise.sigma_squared))
    peer = np.array(theirs([0] * 15_000))
    ours = draws(noise, seed=5)
    assert two_sample(noise, ours, peer) > ALPHA
    less = draws(with_scale_times(noise, Fraction(4, 5)), seed=6)
    assert two_sample(noise, less, peer) < ALPHA


# ---- what it costs ------------------------------------------------------------------------------------


@pytest.mark.parametrize("epsilon", [Fraction(1, 3), Fraction(2)])
def test_shifting_by_the_sensitivity_changes_no_probability_by_more_than_e_to_epsilon(epsilon):
    noise = DiscreteLaplace.calibrated(sensitivity=2, epsilon=epsilon)
    assert noise.scale == 2 / epsilon
    share = np.diff(laplace_cdf(noise.scale, np.arange(-30, 1)))
    assert np.abs(np.log(share[2:] / share[:-2])).max() == pytest.approx(float(epsilon), rel=1e-6)


@pytest.mark.parametrize("squared", [1, 2, 9, 1000])
def test_norm_noise_is_calibrated_to_a_root_that_is_rounded_up(squared):
    epsilon = Fraction(3, 7)
    exact = LatticeNorm.calibrated(squared_sensitivity=squared, epsilon=epsilon).scale * epsilon
    assert (exact - Fraction(1, 1 << 31)) ** 2 < squared <= exact**2


def test_gaussian_noise_is_calibrated_to_its_concentrated_budget():
    """ρ = Δ²/(2σ²), exactly."""
    epsilon, delta = Fraction(1, 2), Fraction(1, 10**5)
    noise = DiscreteGaussian.calibrated(squared_sensitivity=6, epsilon=epsilon, delta=delta)
    assert Fraction(6) / (2 * noise.sigma_squared) == rho_for(epsilon, delta)


BUILDERS = {
    DiscreteLaplace: "scale",
    DiscreteGaussian: "sigma_squared",
    LatticeNorm: "scale",
    lambda bad: DiscreteLaplace.calibrated(sensitivity=2, epsilon=bad): "epsilon",
    lambda bad: LatticeNorm.calibrated(squared_sensitivity=2, epsilon=bad): "epsilon",
}


@pytest.mark.parametrize("bad", [Fraction(0), Fraction(-1, 2), 0.5, 1, True, math.nan, math.inf, "1", None])
def test_a_scale_that_is_no_positive_fraction_is_refused(bad):
    for build, name in BUILDERS.items():
        with pytest.raises(ldp.ParameterError, match=f"^{name} must be a positive Fraction"):
            build(bad)


def test_a_scale_whose_noise_does_not_fit_into_64_bits_is_refused():
    for noise, largest in ((DiscreteLaplace, 2**52), (DiscreteGaussian, 2**104), (LatticeNorm, 2**52)):
        with pytest.raises(
            ldp.ParameterError, match=rf"must be at most 2\^{largest.bit_length() - 1}: use a larger"
        ):
            noise(Fraction(largest + 1))
        assert 2**45 < np.abs(noise(Fraction(largest)).sample(6, seeded(9))).max() < 2**59


def test_vectors_longer_than_the_proof_covers_are_refused():
    """docs/proofs/noise.md bounds the rejections of K-norm noise up to this many coordinates."""
    assert LatticeNorm(Fraction(2)).sample(MOST_COORDINATES, seeded(9)).size == 17
    with pytest.raises(ldp.ParameterError, match="at most 17 coordinates, got 18"):
        LatticeNorm(Fraction(2)).sample(MOST_COORDINATES + 1, seeded(9))


@pytest.mark.parametrize("noise", [DiscreteLaplace, DiscreteGaussian, LatticeNorm])
def test_no_draws_are_an_empty_array_of_integers(noise):
    none = noise(Fraction(2)).sample(0, seeded(9))
    assert none.size == 0
    assert none.dtype == np.int64


@pytest.mark.parametrize("noise", [DiscreteLaplace, DiscreteGaussian, LatticeNorm])
def test_a_release_is_the_statistic_and_a_draw_for_each_of_its_integers(noise):
    exact = np.array([5, -(2**40), 0], dtype=np.int64)
    noisy = (exact + noise(Fraction(1000)).sample(3, seeded(4))).tolist()
    for statistic in (exact, exact.astype(object)):
        released = noise(Fraction(1000)).release(statistic, seeded(4))
        assert released.dtype == np.int64
        assert released.tolist() == noisy


def test_stated_variances_are_sums_over_the_probabilities():
    assert DiscreteGaussian(Fraction(10, 3)).variance() == pytest.approx(10 / 3)
    for scale in (Fraction(1, 3), Fraction(10, 3)):
        r = math.exp(-1 / scale)
        by_hand = sum(2 * x * x * r**x * (1 - r) / (1 + r) for x in range(1, 2000))
        assert DiscreteLaplace(scale).variance() == pytest.approx(by_hand, rel=1e-12)
    scale, reach = 4.0, 200
    for size in (1, 2):
        grid = np.indices((2 * reach + 1,) * size) - reach
        weight = np.exp(-np.sqrt((grid**2).sum(axis=0)) / scale)
        by_hand = (weight * grid[0] ** 2).sum() / weight.sum()
        assert LatticeNorm(Fraction(4)).variance(size) == pytest.approx(by_hand, rel=0.01)
