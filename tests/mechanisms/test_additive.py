"""Counts of periodic noise: in proportion to the density, as far out as words can show it."""

from fractions import Fraction

import pytest

from labeldp.channels.proof import exp_lower
from labeldp.mechanisms.additive import SCALE
from labeldp.mechanisms.laplace import _period


@pytest.mark.parametrize("steps", [1, 2, 7, 4096])
def test_a_period_of_laplace_noise_has_a_weight_a_step(steps):
    epsilon = Fraction(3, 2)
    weights = _period(steps, epsilon)
    assert len(weights) == steps
    for step in (0, steps // 2, steps - 1):
        exact = SCALE / exp_lower(epsilon * step / steps)
        assert abs(weights[step] - exact) <= steps + SCALE / Fraction(2) ** 96
