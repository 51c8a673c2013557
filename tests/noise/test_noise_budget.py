"""A curator's integer noise is calibrated to its budget, in fractions, and says how large it is."""

import math
from fractions import Fraction

import numpy as np
import pytest

import labeldp as ldp
from helpers import seeded
from labeldp.noise import DiscreteGaussian, DiscreteLaplace, LatticeNorm
from labeldp.noise.concentrated import rho_for


@pytest.mark.parametrize("squared", [1, 2, 9, 1000])
def test_norm_noise_is_calibrated_to_a_root_that_is_rounded_up(squared):
    epsilon = Fraction(3, 7)
    exact = LatticeNorm.calibrated(squared_sensitivity=squared, epsilon=epsilon).scale * epsilon
    assert (exact - Fraction(1, 1 << 31)) ** 2 < squared <= exact**2


def test_epsilon_and_rho_are_exact_fractions():
    noise = DiscreteLaplace.calibrated(sensitivity=2, epsilon=Fraction(17, 1000))
    assert noise.scale == Fraction(2000, 17)
    assert noise.epsilon(2) == Fraction(17, 1000)
    assert noise.epsilon(6) == Fraction(51, 1000)
    assert DiscreteGaussian(Fraction(10, 3)).rho(Fraction(2)) == Fraction(3, 10)


@pytest.mark.parametrize("bad", [Fraction(0), Fraction(-1, 2), 0.5, 1, True, math.nan, math.inf, "1", None])
def test_a_scale_that_is_no_positive_fraction_is_refused(bad):
    with pytest.raises(ldp.ParameterError, match=r"^scale must be a positive Fraction"):
        DiscreteLaplace(bad)
    with pytest.raises(ldp.ParameterError, match=r"^sigma_squared must be a positive Fraction"):
        DiscreteGaussian(bad)
    with pytest.raises(ldp.ParameterError, match=r"^scale must be a positive Fraction"):
        LatticeNorm(bad)
    with pytest.raises(ldp.ParameterError, match=r"^epsilon must be a positive Fraction"):
        DiscreteLaplace.calibrated(sensitivity=2, epsilon=bad)
    with pytest.raises(ldp.ParameterError, match=r"^epsilon must be a positive Fraction"):
        LatticeNorm.calibrated(squared_sensitivity=2, epsilon=bad)


def test_a_scale_whose_noise_does_not_fit_into_64_bits_is_refused():
    for noise, largest in ((DiscreteLaplace, 2**52), (DiscreteGaussian, 2**104), (LatticeNorm, 2**52)):
        with pytest.raises(
            ldp.ParameterError, match=rf"must be at most 2\^{largest.bit_length() - 1}: use a larger"
        ):
            noise(Fraction(largest + 1))
        drawn = noise(Fraction(largest)).sample(6, seeded(9))
        assert 2**45 < np.abs(drawn).max() < 2**59
    with pytest.raises(ldp.ParameterError, match=r"at most 256 coordinates, got 257"):
        LatticeNorm(Fraction(2)).sample(257, seeded(9))


@pytest.mark.parametrize("noise", [DiscreteLaplace, DiscreteGaussian, LatticeNorm])
def test_no_draws_are_an_empty_array_of_integers(noise):
    drawn = noise(Fraction(2)).sample(0, seeded(9))
    assert drawn.size == 0
    assert drawn.dtype == np.int64


@pytest.mark.parametrize("noise", [DiscreteLaplace, DiscreteGaussian, LatticeNorm])
def test_a_release_is_the_statistic_and_a_draw_for_each_of_its_integers(noise):
    exact = np.array([5, -(2**40), 0], dtype=np.int64)
    drawn = noise(Fraction(1000)).sample(3, seeded(4))
    for statistic in (exact, exact.astype(object)):
        released = noise(Fraction(1000)).release(statistic, seeded(4))
        assert released.dtype == np.int64
        assert released.tolist() == (exact + drawn).tolist()


def test_gaussian_noise_is_calibrated_to_its_concentrated_budget():
    epsilon, delta = Fraction(1, 2), Fraction(1, 10**5)
    noise = DiscreteGaussian.calibrated(squared_sensitivity=6, epsilon=epsilon, delta=delta)
    assert noise.rho(Fraction(6)) == rho_for(epsilon, delta)


def test_stated_variances_are_those_of_the_formulas():
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
