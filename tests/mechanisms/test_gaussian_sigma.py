"""The least σ: that of noise on the grid, for a δ that is smaller by just what rounding to words may cost."""

import math
from fractions import Fraction

import numpy as np
import pytest
from scipy import optimize

import labeldp as ldp
from labeldp.mechanisms.gaussian import _weights

STEPS = 256


def grid_sigma(epsilon, delta):
    """Return the least σ, in label ranges, that keeps (ε, δ) on a grid of 256 steps: by definition of δ."""

    def excess(log_sigma):
        noise = np.arange(-40 * STEPS, 40 * STEPS + 1)
        weight = np.exp(-0.5 * (noise / (math.exp(log_sigma) * STEPS)) ** 2)
        share = weight / weight.sum()
        moved = np.concatenate([np.zeros(STEPS), share[:-STEPS]])
        return np.maximum(0.0, share - math.exp(epsilon) * moved).sum() - delta

    return math.exp(optimize.brentq(excess, math.log(0.1), math.log(4.0), xtol=1e-14))


@pytest.mark.parametrize(
    ("epsilon", "delta", "slack"),
    [(0.5, 0.3, 2e-5), (4.0, 1e-3, 2e-5), (16.0, 1e-6, 1e-4), (18.0, 1e-6, 4e-4), (20.0, 3e-6, 9e-4)],
)
def test_the_least_sigma_is_that_of_a_slightly_smaller_delta(epsilon, delta, slack):
    """The counts of the last three do not prove a smaller slack."""
    mechanism = ldp.Gaussian(bounds=(-1, 2), epsilon=epsilon, delta=delta)
    assert mechanism.channel.steps == STEPS
    assert mechanism.sigma / 3 == pytest.approx(grid_sigma(epsilon, delta * (1 - slack)), rel=1e-8)


def test_a_sigma_is_tried_from_a_hundredth_of_a_label_range_on_and_up_to_6500():
    with pytest.raises(ldp.PrivacyProofError, match="delta"):
        ldp.Gaussian(bounds=(1, 3), epsilon=20.0, delta=0.5, sigma=0.02)
    assert ldp.Gaussian(bounds=(1, 3), epsilon=1.0, delta=0.5, sigma=13000).sigma == 13000
    for sigma in (0.0199999, 13000.1):
        with pytest.raises(ldp.ParameterError, match=r"\bsigma\b"):
            ldp.Gaussian(bounds=(1, 3), epsilon=20.0, delta=0.5, sigma=sigma)


@pytest.mark.parametrize("sigma", [0.5, 3.0, 700.0])
def test_weights_are_those_of_the_bell(sigma):
    weights = _weights(Fraction(sigma))
    reach = len(weights) // 2
    assert reach == math.ceil(9.2 * sigma)
    noise = np.arange(-reach, reach + 1)
    shares = [weight / weights[reach] for weight in weights]
    assert shares == pytest.approx(np.exp(-0.5 * (noise / sigma) ** 2), rel=1e-9)
