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
from labeldp.exact import DiscreteLaplace
from mechanism_cases import ALPHA

HUGE = Fraction(10**12 + 39, 7)
SCALES = [Fraction(1, 3), Fraction(10, 3), HUGE]
MANY = 30_000
"""Draws a test. A scale that is off by δ moves χ² by about n·δ²; with at most 40 bins, 10 % less noise passes a
test of fit with probability below 1e-4."""

each_noise = pytest.mark.parametrize("noise", [*map(DiscreteLaplace, SCALES)], ids=repr)


@cache
def draws(noise, seed):
    return noise.sample(MANY, seeded(seed))


# ---- exact probabilities ------------------------------------------------------------------------------


def laplace_cdf(scale, x):
    """Return P(noise ≤ x): r^|x| / (1 + r) to the left of zero, with r = e^(−1/scale)."""
    x = np.asarray(x, dtype=np.float64)
    below = np.exp(-np.where(x < 0, -x, x + 1) / float(scale)) / (1 + math.exp(-1 / float(scale)))
    return np.where(x < 0, below, 1 - below)


def edges_of(noise):
    """Return integers, at most 40, on which to cut: each bin holds (left, right]."""
    spread = 3 * max(math.sqrt(noise.variance()), 1.0)
    return np.unique(np.linspace(-spread, spread, 40).round().astype(np.int64))


def fit(noise, x):
    """Return the p-value of χ² against the exact probabilities."""
    edges = edges_of(noise)
    share = np.diff(np.concatenate([[0.0], laplace_cdf(noise.scale, edges), [1.0]]))
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
    less = DiscreteLaplace(noise.scale * Fraction(9, 10))
    assert fit(noise, draws(less, seed=2)) < ALPHA


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
@pytest.mark.parametrize("noise", [DiscreteLaplace(Fraction(scale)) for scale in ("1/2", "5000")], ids=repr)
def test_opendp_draws_integers_from_the_same_distribution(noise):
    """15,000 draws of theirs: 20 % less noise of ours passes with probability below 1e-4."""
    dp.enable_features("contrib")
    integers = dp.vector_domain(dp.atom_domain(T=int))
    theirs = dp.m.make_laplace(integers, dp.l1_distance(T=int), scale=float(noise.scale))
    peer = np.array(theirs([0] * 15_000))
    ours = draws(noise, seed=5)
    assert two_sample(noise, ours, peer) > ALPHA
    less = draws(DiscreteLaplace(noise.scale * Fraction(4, 5)), seed=6)
    assert two_sample(noise, less, peer) < ALPHA


# ---- what it costs ------------------------------------------------------------------------------------


@pytest.mark.parametrize("epsilon", [Fraction(1, 3), Fraction(2)])
def test_shifting_by_the_sensitivity_changes_no_probability_by_more_than_e_to_epsilon(epsilon):
    noise = DiscreteLaplace.calibrated(sensitivity=2, epsilon=epsilon)
    assert noise.scale == 2 / epsilon
    share = np.diff(laplace_cdf(noise.scale, np.arange(-30, 1)))
    assert np.abs(np.log(share[2:] / share[:-2])).max() == pytest.approx(float(epsilon), rel=1e-6)


def test_a_scale_that_is_no_positive_fraction_or_whose_noise_does_not_fit_into_64_bits_is_refused():
    for bad in (Fraction(0), Fraction(-1, 2), 0.5, 1, True, math.nan, "1", None, Fraction(2**52 + 1)):
        with pytest.raises(ldp.errors.ParameterError, match="scale must be"):
            DiscreteLaplace(bad)
    assert 2**45 < np.abs(DiscreteLaplace(Fraction(2**52)).sample(6, seeded(9))).max() < 2**59


def test_a_release_is_the_statistic_and_a_draw_for_each_of_its_integers():
    exact, noise = np.array([5, -(2**40), 0], dtype=np.int64), DiscreteLaplace(Fraction(1000))
    noisy = (exact + noise.sample(3, seeded(4))).tolist()
    for statistic in (exact, exact.astype(object)):
        released = noise.release(statistic, seeded(4))
        assert released.dtype == np.int64
        assert released.tolist() == noisy


def test_stated_variances_are_sums_over_the_probabilities():
    for scale in (Fraction(1, 3), Fraction(10, 3)):
        r = math.exp(-1 / scale)
        by_hand = sum(2 * x * x * r**x * (1 - r) / (1 + r) for x in range(1, 2000))
        assert DiscreteLaplace(scale).variance() == pytest.approx(by_hand, rel=1e-12)
