"""Every mechanism proves the ε that was requested, never more and at most 0.1 % less, or refuses clearly."""

import math

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import labeldp as ldp
from helpers import EVERY, MAKERS
from labeldp.errors import ParameterError
from mechanism_cases import BOUNDS, at_most, make, output_range, rp_share

EPSILONS = (0.001, 0.1, 1, 4, 20)
each_epsilon = pytest.mark.parametrize("epsilon", EPSILONS)

PURE = [name for name in EVERY if not make(name, 1).delta]
UNBIASED = [name for name in EVERY if type(make(name, 1)).unbiased and name != "rp, uniform outside"]


@st.composite
def bounds(draw):
    """Draw bounds from 1e-12 to 1e12 wide, at zero, around it or far away."""
    width = 10 ** draw(st.floats(-12, 12))
    low = draw(st.sampled_from([0.0, -width / 3, -width, 1e-9, 1.0, -1e3, 1e6, -1e9, 1e12]))
    return low, low + width


def assert_proven(mechanism, epsilon):
    proof = mechanism.verify()
    assert 0.999 * mechanism.delta <= proof.delta <= mechanism.delta
    assert 0.999 * epsilon <= proof.epsilon <= epsilon


def assert_debiased(mechanism, ends):
    """Rounding to float64 is no bias: a few ulps are allowed, and a trace of the noise, which is clamped."""
    low, high = ends
    y = np.array([low, low + 0.3 * (high - low), high])
    error = np.abs(mechanism.debias(mechanism.mean(y)) - y)
    rounding = 16 * math.ulp(max(abs(low), abs(high), *map(abs, output_range(mechanism))))
    assert (error <= 1e-4 * np.sqrt(mechanism.unbiased_variance(y)) + rounding).all()


# ---- every mechanism -----------------------------------------------------------------------------------


@each_epsilon
@pytest.mark.parametrize("name", PURE)
def test_the_requested_epsilon_is_proven_and_labels_can_be_debiased(name, epsilon):
    assert_proven(make(name, epsilon), epsilon)
    if name in UNBIASED and epsilon < 20:
        assert_debiased(make(name, epsilon), BOUNDS)


@pytest.mark.slow
@pytest.mark.parametrize("name", EVERY)
@given(
    epsilon=st.floats(0.01, 10) | st.floats(-7, 3).map(lambda x: min(max(math.exp(x), 0.001), 20)), ends=bounds()
)
@settings(max_examples=12, deadline=None, derandomize=True, database=None, suppress_health_check=list(HealthCheck))
def test_mechanisms_are_proven_for_any_epsilon_and_bounds_or_refused(name, epsilon, ends):
    """Refusing is allowed only for bounds that floats cannot resolve, and a δ that 2^64 words cannot show."""
    low, high = ends
    try:
        mechanism = MAKERS[name](epsilon, ends)
    except ParameterError as error:
        unresolved = high - low < 2000 * math.ulp(max(abs(low), abs(high)))
        assert unresolved or ("delta" in str(error) and epsilon >= 12)  # noqa: PT017
    else:
        assert_proven(mechanism, epsilon)
        assert np.isfinite(mechanism.randomize([low, low + (high - low) / 2, high, -1e300, 1e300])).all()
        if name in UNBIASED and epsilon < 16:
            assert_debiased(mechanism, ends)


# ---- one mechanism ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("epsilon", [0.003, 0.03, 0.3])
def test_the_table_that_stands_in_where_no_programme_is_exact_satisfies_epsilon_however_it_is_read(
    epsilon, set_constants
):
    """0.03 is a little less as a binary number than as it is written; the counts must keep the smaller one."""
    set_constants({"mechanisms.unbiased.SLACKS": ()})
    mechanism = ldp.Unbiased.design(ldp.Histogram([1, 4], [1]), epsilon, size=24)
    assert_proven(mechanism, epsilon)
    assert mechanism.mean([1.0, 2.1, 4.0]) == pytest.approx([1.0, 2.1, 4.0], abs=1e-9)


# ---- (ε, δ) --------------------------------------------------------------------------------------------


@pytest.mark.slow
@pytest.mark.parametrize("delta", [1e-10, 1e-6, 0.1])
@each_epsilon
def test_gaussian_proves_the_requested_delta(epsilon, delta):
    try:
        assert_proven(ldp.Gaussian(bounds=BOUNDS, epsilon=epsilon, delta=delta), epsilon)
    except ParameterError as error:  # a word of 2^64 weighs e^ε/δ too much to show δ to 0.1 %
        assert epsilon >= 12 and delta <= 1e-6 and "delta" in str(error)  # noqa: PT017, PT018


def test_gaussian_with_a_larger_sigma_proves_a_smaller_delta_and_with_a_smaller_one_is_refused():
    least = ldp.Gaussian(bounds=BOUNDS, epsilon=1, delta=1e-5)
    more = ldp.Gaussian(bounds=BOUNDS, epsilon=1, delta=1e-5, sigma=1.2 * least.sigma)
    assert more.verify().delta < 0.2 * least.verify().delta
    with pytest.raises(ldp.errors.PrivacyProofError):
        ldp.Gaussian(bounds=BOUNDS, epsilon=1, delta=1e-5, sigma=0.999 * least.sigma)


# ---- noise no larger than it must be, at every ε ---------------------------------------------------------


@pytest.mark.parametrize("zeta", [1e-9, 1e-4, 0.27, 1e3, 1e5, 1e300])
@pytest.mark.parametrize("epsilon", [0.001, 1, 20])
def test_rp_meets_zeta_at_every_epsilon_or_refuses_it_at_once(epsilon, zeta):
    """E[z²] of a label in the middle of [−½, ½] is ρζ²/3 + (1 − ρ)L²/12."""
    try:
        with at_most(2):
            mechanism = ldp.RPWithPrior(interval=(-0.5, 0.5), zeta=zeta, epsilon=epsilon)
    except ParameterError as error:
        assert not 1e-5 < zeta < 1e5, error  # noqa: PT017
        assert f"too {'small' if zeta < 1 else 'large'}" in str(error)  # noqa: PT017
    else:
        rho = rp_share(1.0, zeta, epsilon)
        expected = rho * zeta**2 / 3 + (1 - rho) * (1 + 2 * zeta) ** 2 / 12
        assert mechanism.variance([0.0])[0] == pytest.approx(expected, rel=3e-3)
        assert np.ptp(mechanism.mean([-0.5, 0.5])) == pytest.approx(rho, rel=3e-3)
        assert_proven(mechanism, epsilon)
