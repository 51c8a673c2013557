"""Every mechanism proves what was asked, never more and at most 0.1 % less, or refuses clearly."""

import math

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import labeldp as ldp
from mechanism_cases import BOUNDS, LISTED, MAKERS, NAMES, PURE, at_most, make, rp_share, staircase_variance

EPSILONS = (0.001, 0.01, 0.1, 0.5, 1, 2, 4, 8, 12, 16, 20)
DELTAS = (1e-10, 1e-6, 1e-4, 0.1)

epsilons = st.floats(0.001, 20) | st.floats(math.log(0.001), math.log(20)).map(
    lambda x: min(max(math.exp(x), 0.001), 20)
)


@st.composite
def bounds(draw):
    """Draw bounds from 1e-12 to 1e12 wide, at zero, around it or far away."""
    width = 10 ** draw(st.floats(-12, 12))
    low = draw(st.sampled_from([0.0, -width / 3, -width, 1e-9, 1.0, -1e3, 1e6, -1e9, 1e12]))
    return low, low + width


def few(examples):
    """Return settings for tests that build a mechanism in each of a few repeatable examples."""
    return settings(
        max_examples=examples,
        deadline=None,
        derandomize=True,
        database=None,
        suppress_health_check=list(HealthCheck),
    )


def assert_proven(mechanism, epsilon):
    proof = mechanism.verify()
    assert proof.delta == 0
    assert 0.999 * epsilon <= proof.epsilon <= epsilon
    assert proof.checked


def assert_proven_or_refused(make, epsilon, **parameters):
    """Refusing is allowed only for bounds that floats cannot resolve, or a ζ that cells cannot."""
    low, high = parameters.get("bounds") or parameters["interval"]
    unresolved = high - low < 2000 * math.ulp(max(abs(low), abs(high)))
    try:
        mechanism = make(epsilon=epsilon, **parameters)
    except ldp.ParameterError as error:
        assert unresolved or "zeta" in str(error)  # noqa: PT017
    else:
        assert_proven(mechanism, epsilon)
        middle = low + (high - low) / 2
        assert np.isfinite(mechanism.randomize([low, middle, high, -1e300, 1e300])).all()


# ---- pure ε --------------------------------------------------------------------------------------------


@pytest.mark.parametrize("epsilon", EPSILONS)
@pytest.mark.parametrize("name", PURE)
def test_proven_epsilon_is_what_was_asked(name, epsilon):
    assert_proven(make(name, epsilon), epsilon)


@given(epsilon=epsilons, bounds=bounds())
@few(25)
def test_laplace_is_proven_for_any_epsilon_and_bounds(epsilon, bounds):
    assert_proven_or_refused(ldp.Laplace, epsilon, bounds=bounds)


@given(epsilon=epsilons, bounds=bounds(), minimise=st.sampled_from(["absolute", "squared"]))
@few(25)
def test_staircase_is_proven_for_any_epsilon_and_bounds(epsilon, bounds, minimise):
    assert_proven_or_refused(ldp.Staircase, epsilon, bounds=bounds, minimise=minimise)


@given(epsilon=epsilons, bounds=bounds())
@few(200)
def test_two_point_is_proven_for_any_epsilon_and_bounds(epsilon, bounds):
    assert_proven_or_refused(ldp.TwoPoint, epsilon, bounds=bounds)


@given(
    epsilon=epsilons,
    interval=bounds(),
    zeta_over_width=st.floats(-6, 6).map(lambda x: 10**x),
    outside=st.sampled_from(["project", "uniform"]),
)
@few(300)
def test_rp_is_proven_for_any_epsilon_interval_and_zeta(epsilon, interval, zeta_over_width, outside):
    zeta = (interval[1] - interval[0]) * zeta_over_width or 1e-12
    assert_proven_or_refused(ldp.RPWithPrior, epsilon, interval=interval, zeta=zeta, outside=outside)


@given(
    epsilon=epsilons,
    low=st.sampled_from([0.0, -1e6, 1e9]),
    cuts=st.lists(st.floats(0.001, 1), min_size=1, max_size=12),
    width=st.floats(-4, 12).map(lambda x: 10**x),
)
@few(100)
def test_rr_on_bins_is_proven_for_any_bins(epsilon, low, cuts, width):
    edges = np.unique(low + width * np.concatenate([[0.0], np.cumsum(cuts)]))
    if edges.size < 3:
        return
    outputs = (edges[1:] + edges[:-1]) / 2
    try:
        mechanism = ldp.RROnBins(edges=edges, outputs=outputs, epsilon=epsilon)
    except ldp.ParameterError as error:
        assert "close" in str(error)  # noqa: PT017 (refusing is only one of two good ends)
    else:
        assert_proven(mechanism, epsilon)


@given(
    epsilon=epsilons,
    masses=st.lists(st.floats(0, 1), min_size=1, max_size=6).filter(lambda m: max(m) > 0),
    size=st.sampled_from([4, 6, 8, 10, 14]),
)
@few(25)
def test_unbiased_is_proven_for_any_epsilon_and_prior(epsilon, masses, size):
    mechanism = ldp.Unbiased.design(spread(masses), epsilon, size=size)
    assert_proven(mechanism, epsilon)
    assert mechanism.mean([-2.0, 0.1, 7.0]) == pytest.approx([-2.0, 0.1, 7.0], abs=1e-9)


@pytest.mark.parametrize("masses", [[1], [1, 0], [0, 1, 0]])
@pytest.mark.parametrize("size", [3, 5, 13])
@pytest.mark.parametrize("epsilon", [0.001, 0.01, 17])
def test_unbiased_is_proven_where_the_programme_is_degenerate(epsilon, size, masses):
    assert_proven(ldp.Unbiased.design(spread(masses), epsilon, size=size), epsilon)


def spread(masses):
    return ldp.Histogram(np.linspace(-2, 7, len(masses) + 1), masses)


@pytest.mark.parametrize("epsilon", [0.1, 1, 4])
def test_unbiased_with_two_outputs_uses_all_of_epsilon_or_is_refused(epsilon):
    try:
        mechanism = ldp.Unbiased.design(spread([1]), epsilon, size=2)
    except ldp.ParameterError as error:
        assert "size" in str(error)  # noqa: PT017
    else:
        assert_proven(mechanism, epsilon)


@pytest.mark.parametrize("epsilon", [0.001, 1, 20])
def test_one_output_proves_that_nothing_is_revealed(epsilon):
    proof = ldp.RROnBins(edges=[0, 5], outputs=[2.0], epsilon=epsilon).verify()
    assert (proof.epsilon, proof.delta) == (0, 0)


# ---- (ε, δ) --------------------------------------------------------------------------------------------


def assert_gaussian(epsilon, delta, bounds=BOUNDS):
    proof = ldp.Gaussian(bounds=bounds, epsilon=epsilon, delta=delta).verify()
    assert proof.epsilon == epsilon
    assert 0.999 * delta <= proof.delta <= delta


@pytest.mark.parametrize("delta", DELTAS)
@pytest.mark.parametrize("epsilon", EPSILONS)
def test_gaussian_proves_the_delta_that_was_asked(epsilon, delta):
    try:
        assert_gaussian(epsilon, delta)
    except ldp.ParameterError as error:  # a word of 2^64 weighs e^ε/δ too much to show δ to 0.1 %
        assert epsilon >= 12 and delta <= 1e-6 and "delta" in str(error)  # noqa: PT017, PT018


@given(epsilon=st.floats(0.01, 10), exponent=st.floats(-9, -0.1), bounds=bounds())
@few(15)
def test_gaussian_is_proven_for_any_epsilon_delta_and_bounds(epsilon, exponent, bounds):
    low, high = bounds
    if high - low > 2000 * math.ulp(max(abs(low), abs(high))):
        assert_gaussian(epsilon, 10**exponent, bounds)


def test_gaussian_with_a_larger_sigma_proves_a_smaller_delta():
    least = ldp.Gaussian(bounds=BOUNDS, epsilon=1, delta=1e-5)
    more = ldp.Gaussian(bounds=BOUNDS, epsilon=1, delta=1e-5, sigma=1.2 * least.sigma)
    assert more.verify().delta < 0.2 * least.verify().delta
    with pytest.raises(ldp.PrivacyProofError):
        ldp.Gaussian(bounds=BOUNDS, epsilon=1, delta=1e-5, sigma=0.999 * least.sigma)


@pytest.mark.parametrize("sigma", [1e-300, 1e-9, 1e-3, 1e6, 1e9, 1e300])
def test_gaussian_refuses_an_absurd_sigma_at_once(sigma):
    with at_most(2), pytest.raises(ldp.LabelDPError):
        ldp.Gaussian(bounds=BOUNDS, epsilon=1, delta=1e-5, sigma=sigma)


# ---- no privacy ------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", MAKERS)
@pytest.mark.parametrize("epsilon", [math.inf, 1e300, 20.000001, 0.000999])
def test_an_epsilon_that_protects_nothing_or_cannot_be_proven_is_refused(name, epsilon):
    with pytest.raises(ldp.ParameterError, match="epsilon"):
        MAKERS[name](epsilon)


@pytest.mark.parametrize("name", MAKERS)
def test_infinite_epsilon_points_to_the_mechanism_that_says_so(name):
    with pytest.raises(ldp.ParameterError, match="NoPrivacy"):
        MAKERS[name](math.inf)


def test_no_privacy_releases_labels_and_says_so():
    mechanism = ldp.NoPrivacy()
    y = np.array([[1.5, -2e300], [5e-324, 7.0]])
    proof = mechanism.verify()
    assert (mechanism.randomize(y) == y).all()
    assert mechanism.epsilon == proof.epsilon == math.inf
    assert "NOT PRIVATE" in proof.checked
    assert (mechanism.mean(y) == y).all()
    assert (mechanism.debias(y) == y).all()
    assert not mechanism.variance(y).any()
    assert not mechanism.bias(y).any()


def test_no_privacy_does_not_hand_out_the_labels_themselves():
    y = np.array([1.5, 2.5])
    assert not np.shares_memory(ldp.NoPrivacy().randomize(y), y)


# ---- at the ends of the range of ε -----------------------------------------------------------------------


@pytest.mark.parametrize("zeta", [1e-9, 1e-6, 1e-4, 0.02, 0.27, 3.0, 1e3, 1e4, 1e5, 1e6, 1e9, 1e300])
@pytest.mark.parametrize("epsilon", EPSILONS)
def test_rp_meets_zeta_at_every_epsilon_or_refuses_it_at_once(epsilon, zeta):
    """E[z²] of a label in the middle of [−½, ½] is ρζ²/3 + (1 − ρ)L²/12."""
    try:
        with at_most(2):
            mechanism = ldp.RPWithPrior(interval=(-0.5, 0.5), zeta=zeta, epsilon=epsilon)
    except ldp.ParameterError as error:
        assert not 1e-5 < zeta < 1e5, error  # noqa: PT017
    else:
        rho = rp_share(1.0, zeta, epsilon)
        expected = rho * zeta**2 / 3 + (1 - rho) * (1 + 2 * zeta) ** 2 / 12
        assert mechanism.variance([0.0])[0] == pytest.approx(expected, rel=3e-3)
        assert np.ptp(mechanism.mean([-0.5, 0.5])) == pytest.approx(rho, rel=3e-3)
        assert_proven(mechanism, epsilon)


@pytest.mark.parametrize("epsilon", EPSILONS)
@pytest.mark.parametrize("name", ["laplace", "staircase-absolute", "staircase-squared"])
def test_additive_noise_is_no_larger_than_the_textbooks_at_any_epsilon(name, epsilon):
    mechanism = make(name, epsilon)
    minimise = name.removeprefix("staircase-")
    textbook = 2 / epsilon**2 if name == "laplace" else staircase_variance(epsilon, minimise)
    variance = mechanism.variance(np.linspace(*BOUNDS, 1000)).mean() / (BOUNDS[1] - BOUNDS[0]) ** 2
    assert variance <= 1.1 * textbook


@pytest.mark.parametrize("epsilon", EPSILONS[:-1])
@pytest.mark.parametrize("name", [name for name in NAMES if name not in ("rp-uniform", "rr-on-bins")])
def test_labels_can_be_debiased_at_every_epsilon(name, epsilon):
    mechanism = make(name, epsilon)
    y = np.array([1.0, 1.7, 4.0])
    noise = np.sqrt(mechanism.variance(y))
    assert (np.abs(mechanism.debias(mechanism.mean(y)) - y) <= 1e-4 * noise + 1e-9).all()


# ---- far from zero -------------------------------------------------------------------------------------


@pytest.mark.parametrize("low", [0.0, 1e6, -1e8, 1e9, 1e12])
@pytest.mark.parametrize("name", ["rp", "laplace", "gaussian", "two-point", "unbiased"])
def test_debiasing_works_far_from_zero(name, low):
    """Rounding a value to float64 is no bias: a few ulps of 1e12 are allowed, no more."""
    high = low + 8.0
    mechanism = {
        "rp": lambda: ldp.RPWithPrior(interval=(low, high), zeta=2, epsilon=1),
        "laplace": lambda: ldp.Laplace(bounds=(low, high), epsilon=1),
        "gaussian": lambda: ldp.Gaussian(bounds=(low, high), epsilon=1, delta=1e-5),
        "two-point": lambda: ldp.TwoPoint(bounds=(low, high), epsilon=1),
        "unbiased": lambda: ldp.Unbiased.design(ldp.Histogram([low, high], [1]), 1.0, size=8),
    }[name]()
    y = np.array([low, low + 3, high])
    ulps = 8 * math.ulp(high)
    assert mechanism.debias(mechanism.mean(y)) == pytest.approx(y, rel=0, abs=1e-6 + ulps)


def test_mechanisms_with_listed_outputs_release_nothing_else():
    for name in LISTED:
        mechanism = MAKERS[name](1.0)
        z = mechanism.randomize(np.linspace(-1, 9, 20_000))
        listed = getattr(mechanism, "outputs", None) or mechanism.channel.values
        assert set(z.tolist()) == set(np.asarray(listed).tolist())
