"""Designs weigh the noise that the literature gives for their mechanism, at every ε, prior and number of rows."""

import math

import numpy as np
import pytest
from scipy import optimize, stats

import labeldp as ldp
from labeldp.mechanisms.clipping import best_interval, mean_square
from labeldp.mechanisms.gaussian import analytic_sigma
from labeldp.mechanisms.rp_with_prior import window_noise
from labeldp.mechanisms.staircase import optimal_tread, staircase_variance
from mechanism_cases import rp_share, staircase_gamma
from mechanism_cases import staircase_variance as textbook_staircase

PRIOR = ldp.Histogram([0, 1, 2, 4, 8, 16], [16, 8, 4, 2, 1])
DELTA = 1e-4

each_epsilon = pytest.mark.parametrize("epsilon", [0.3, 1.7, 5.0])
each_rows = pytest.mark.parametrize("rows", [None, 500])


def textbook_sigma(epsilon, delta):
    """Return σ for a range of 1, from the definition of δ."""

    def excess(log_sigma):
        s = math.exp(log_sigma)
        far = math.exp(epsilon + stats.norm.logcdf(-1 / (2 * s) - epsilon * s))
        return stats.norm.cdf(1 / (2 * s) - epsilon * s) - far - delta

    return math.exp(optimize.brentq(excess, -6, 9, xtol=1e-14))


def rp_variance(r, q, epsilon):
    """Return the variance of RPWithPrior's unbiased label on an interval of width 1, with ζ = r."""
    rho = rp_share(1.0, r, epsilon)
    return (rho * r**2 / 3 + (1 - rho) * (1 + 2 * r) ** 2 / 12) / rho**2 + q * (1 - rho) / rho


def two_point_variance(q, epsilon):
    return ((math.exp(epsilon) + 1) / (math.exp(epsilon) - 1)) ** 2 / 4 - q


def least(q, epsilon):
    """Return the lesser of what RPWithPrior and TwoPoint need."""
    return np.minimum(window_noise(epsilon, q)[0], two_point_variance(q, epsilon))


NOISE = {
    "laplace": (ldp.Laplace, {}, lambda q, e: 2 / e**2 + 0 * q),
    "staircase": (ldp.Staircase, {}, lambda q, e: textbook_staircase(e, "squared") + 0 * q),
    "gaussian": (ldp.Gaussian, {"delta": DELTA}, lambda q, e: textbook_sigma(e, DELTA) ** 2 + 0 * q),
    "two-point": (ldp.TwoPoint, {}, two_point_variance),
    "unbiased": (ldp.Unbiased, {"size": 6}, least),
}


@each_epsilon
@each_rows
@pytest.mark.parametrize("name", NOISE)
def test_bounds_are_the_best_for_the_noise_of_the_literature(name, rows, epsilon):
    kind, more, noise = NOISE[name]
    made = kind.design(PRIOR, epsilon, rows=rows, **more)
    best = best_interval(PRIOR, lambda q: noise(q, epsilon), rows)
    if name == "unbiased" and rows is None:
        best = PRIOR.bounds
    assert made.bounds == pytest.approx(best, abs=1e-3)
    assert made.epsilon == epsilon
    assert getattr(made, "minimise", "squared") == "squared"


@each_epsilon
def test_the_window_has_the_width_of_least_variance(epsilon):
    q = np.array([0.0, 0.01, 1 / 12, 0.2, 0.25])
    variance, r = window_noise(epsilon, q)
    for one, found, ratio in zip(q, variance, r, strict=True):
        assert found == pytest.approx(rp_variance(ratio, one, epsilon), rel=1e-12)
        best = optimize.minimize_scalar(
            lambda x, one=one: rp_variance(math.exp(x), one, epsilon), bounds=(-9, 6), method="bounded"
        )
        assert best.fun * (1 - 1e-9) <= found <= best.fun * (1 + 5e-5)


@each_epsilon
@each_rows
def test_interval_and_window_of_a_design_go_together(rows, epsilon):
    made = ldp.RPWithPrior.design(PRIOR, epsilon, rows=rows, outside="uniform")
    interval = best_interval(PRIOR, lambda q: window_noise(epsilon, q)[0], rows)
    q = mean_square(PRIOR, interval)
    ratio = float(window_noise(epsilon, np.array([q]))[1][0])
    assert made.interval == interval
    assert made.zeta == pytest.approx(ratio * (interval[1] - interval[0]))
    assert (made.epsilon, made.outside) == (epsilon, "uniform")


def test_with_a_window_of_its_own_the_interval_is_the_papers():
    made = ldp.RPWithPrior.design(PRIOR, 1.7, zeta=0.5, outside="uniform")
    assert made.interval == ldp.optimal_interval(PRIOR, epsilon=1.7, zeta=0.5)
    assert (made.zeta, made.epsilon, made.outside) == (0.5, 1.7, "uniform")


@pytest.mark.parametrize("epsilon", [0.001, 0.1, 1.0, 4.0, 20.0])
def test_a_window_and_its_way_are_fine_enough_or_refused(epsilon):
    """To 1/4096 of what ε tells: so many cells, and for small ε as many more."""
    accepted = set()
    for exponent in range(-16, 17):
        try:
            channel = ldp.RPWithPrior(interval=(0, 1), zeta=10.0**exponent, epsilon=epsilon).channel
        except ldp.ParameterError as error:
            assert f"too {'small' if exponent < 0 else 'large'}" in str(error)  # noqa: PT017
            continue
        accepted.add(exponent)
        assert channel.window * min(1.0, math.expm1(epsilon)) >= 4096
        assert channel.cells - channel.window >= 4096
        assert 2 * 10.0**exponent == pytest.approx(channel.window / (channel.cells - channel.window), rel=1e-3)
    assert accepted >= set(range(-5, 7))


def test_a_window_of_half_as_many_cells_as_it_takes_is_refused():
    """At ε = 4 and ζ = 1e-12 a window has some 4,400 cells."""
    assert ldp.RPWithPrior(interval=(0, 1), zeta=1e-12, epsilon=4.0).channel.window < 2 * 4096
    with pytest.raises(ldp.ParameterError, match="too small"):
        ldp.RPWithPrior(interval=(0, 1), zeta=6e-13, epsilon=4.0)


@pytest.mark.parametrize(("width", "zeta", "reason"), [(1e-130, 1e308, "large"), (1e130, 1e-300, "small")])
def test_a_window_beyond_all_floats_is_refused_for_what_it_is(width, zeta, reason):
    with pytest.raises(ldp.ParameterError, match=f"too {reason}"):
        ldp.RPWithPrior(interval=(0, width), zeta=zeta, epsilon=1.0)


@pytest.mark.parametrize("epsilon", [0.01, 0.3, 1.0, 5.0])
def test_treads_and_variances_of_stairs_are_the_textbooks(epsilon):
    for minimise in ("absolute", "squared"):
        tread = optimal_tread(epsilon, minimise)
        assert tread == pytest.approx(staircase_gamma(epsilon, minimise), rel=1e-6)
        assert staircase_variance(epsilon, tread) == pytest.approx(textbook_staircase(epsilon, minimise), rel=1e-6)


@pytest.mark.parametrize("delta", [1e-10, 1e-4, 0.3])
@pytest.mark.parametrize("epsilon", [0.01, 1.0, 5.0])
def test_the_analytic_sigma_solves_its_equation_to_the_last_digits(epsilon, delta):
    assert analytic_sigma(epsilon, delta) == pytest.approx(textbook_sigma(epsilon, delta), rel=1e-9)


@pytest.mark.parametrize("epsilon", ["1", None, 0, math.nan])
@pytest.mark.parametrize("name", NOISE)
def test_a_design_for_a_bad_epsilon_is_refused(name, epsilon):
    kind, more, _ = NOISE[name]
    with pytest.raises(ldp.ParameterError, match="epsilon"):
        kind.design(PRIOR, epsilon, **more)
