"""What leaves a mechanism is distributed as promised: by its counts, by formulas and by peers.

Tests of fit have a false-alarm rate of 1e-9 each (`ALPHA`), below 1e-6 for all of them together.
"""

import math

import numpy as np
import opendp.prelude as dp
import pytest
from scipy import stats

import labeldp as ldp
from helpers import EVERY
from mechanism_cases import (
    ALPHA,
    BOUNDS,
    HIGH,
    LABELS,
    LOW,
    WIDTH,
    ZETA,
    chi_square,
    draw,
    kolmogorov,
    less_noise,
    make,
    output_range,
    rp_cdf,
    staircase_cdf,
)

pytestmark = [pytest.mark.slow, pytest.mark.statistical]

EPSILONS = (0.3, 4.0)
SIZE = 400_000

each_epsilon = pytest.mark.parametrize("epsilon", EPSILONS)
each_label = pytest.mark.parametrize("label", LABELS.values(), ids=LABELS.keys())
each_name = pytest.mark.parametrize("name", EVERY)


# ---- against the mechanism's own exact probabilities -------------------------------------------------


@each_label
@each_epsilon
@each_name
def test_released_values_have_their_exact_shares_mean_and_variance(name, epsilon, label):
    """Moments are off by 6.5 standard errors with probability below 1e-10: sees 1 % of a deviation in the mean."""
    mechanism = make(name, epsilon)
    z = draw(mechanism, label, SIZE, seed=1)
    assert chi_square(mechanism, label, z) > ALPHA
    assert kolmogorov(lambda x: mechanism.channel.cumulative(label, x), z) > ALPHA
    mean, variance = mechanism.mean([label])[0], mechanism.variance([label])[0]
    assert abs(z.mean() - mean) <= 6.5 * math.sqrt(variance / SIZE) + 1e-12
    squares = (z - mean) ** 2
    assert abs(squares.mean() - variance) <= 6.5 * squares.std() / math.sqrt(SIZE) + 1e-12
    if type(mechanism).unbiased and name != "rp, uniform outside":
        debiased = mechanism.debias(z)
        error = abs(debiased.mean() - min(max(label, LOW), HIGH))
        assert error <= 6.5 * debiased.std() / math.sqrt(SIZE) + 1e-12
    assert mechanism.bias([label])[0] == mean - label
    low, high = output_range(mechanism)
    slack = 1e-6 * (high - low)
    assert low - slack <= z.min() <= z.max() <= high + slack
    inside = np.diff(mechanism.channel.cumulative(label, np.array([low - slack, high + slack])))
    assert inside == pytest.approx([1.0], abs=1e-12)


@each_epsilon
@each_name
def test_five_percent_less_noise_is_noticed(name, epsilon):
    mechanism = make(name, epsilon)
    z = less_noise(mechanism, 1.23456789, draw(mechanism, 1.23456789, 1_000_000, seed=3))
    assert chi_square(mechanism, 1.23456789, z) < ALPHA
    if isinstance(mechanism.channel, ldp.exact.ShiftChannel):
        assert kolmogorov(lambda x: mechanism.channel.cumulative(1.23456789, x), z) < ALPHA


# ---- against formulas and peers -----------------------------------------------------------------------


TEXTBOOK = {
    "rp": lambda m, x, y: rp_cdf(x, y, BOUNDS, ZETA, m.epsilon),
    "rp, uniform outside": lambda m, x, y: rp_cdf(x, y, BOUNDS, ZETA, m.epsilon, "uniform"),
    "laplace": lambda m, x, y: stats.laplace.cdf(x, loc=min(y, HIGH), scale=WIDTH / m.epsilon),
    "gaussian": lambda m, x, y: stats.norm.cdf(x, loc=min(y, HIGH), scale=m.sigma),
    "staircase": lambda m, x, y: staircase_cdf((x - min(y, HIGH)) / WIDTH, m.epsilon, "absolute"),
    "staircase, squared": lambda m, x, y: staircase_cdf((x - min(y, HIGH)) / WIDTH, m.epsilon, "squared"),
}
"""The distribution function of a label's release at x, for mechanisms that a textbook or the paper has."""


@each_label
@each_epsilon
@pytest.mark.parametrize("name", TEXTBOOK)
def test_distribution_is_the_textbooks_to_the_resolution_of_the_grid(name, epsilon, label):
    """Rounded labels are up to one step away, cells half a step wide, a tread an integer number of steps."""
    ours, cdf = make(name, epsilon), TEXTBOOK[name]
    step = 1e-7 * WIDTH if name.startswith("rp") else 2.5 * WIDTH / ours.channel.steps
    low, high = output_range(ours)
    x = np.linspace(low + step, high - 2 * step, 1001)
    cumulative = ours.channel.cumulative(label, x)
    assert (cdf(ours, x - step, label) - 2e-6 <= cumulative).all()
    assert (cumulative <= cdf(ours, x + step, label) + 2e-6).all()
    assert step <= 0.15 * WIDTH / epsilon, "a grid this coarse would make the comparison empty"


@pytest.mark.parametrize("name", ["laplace", "gaussian"])
def test_opendp_draws_from_the_same_distribution(name):
    """20,000 draws of theirs against 400,000 of ours: finds a scale that is off by 15 %."""
    ours = make(name, 1.0)
    dp.enable_features("contrib")
    numbers = dp.vector_domain(dp.atom_domain(T=float, nan=False))
    if name == "laplace":
        theirs = dp.m.make_laplace(numbers, dp.l1_distance(T=float), scale=WIDTH)
    else:
        theirs = dp.m.make_gaussian(numbers, dp.l2_distance(T=float), scale=ours.sigma)
    peer = np.array(theirs([2.0] * 20_000))
    z = draw(ours, 2.0, SIZE, seed=6)
    assert stats.ks_2samp(z, peer, method="asymp").pvalue > ALPHA
    assert stats.ks_2samp(2.0 + 0.8 * (z - 2.0), peer, method="asymp").pvalue < ALPHA
