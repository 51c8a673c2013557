"""What a mechanism gives out is possible, and what lies between two outputs is not."""

import numpy as np
import pytest

from helpers import NAMES, make, seeded
from labeldp.accounts.accuracy import is_possible

MAPS = {"plain": (0.0, 1.0), "moved": (-3e5, 0.37), "tiny": (2.5, 1e-9)}


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("at", MAPS)
def test_every_output_is_possible_after_any_map(name, at):
    mechanism, (offset, scale) = make(name, 1.0), MAPS[at]
    outputs = mechanism.randomize(np.linspace(-0.5, 1.5, 5000), random_state=seeded(0))
    mapped = offset + scale * outputs
    assert is_possible(mapped, mechanism, debiased=False, offset=offset, scale=scale).all()
    assert np.array_equal(mechanism.channel.nearest_output(outputs), outputs)


@pytest.mark.parametrize("name", NAMES)
def test_numbers_between_outputs_or_beyond_them_are_impossible(name):
    mechanism = make(name, 1.0)
    first, last = mechanism.channel.nearest_output(np.array([-np.inf, np.inf]))
    strange = np.array([first - 1e-6, last + 1e-6, np.nan, np.inf, -np.inf])
    assert not is_possible(strange, mechanism, debiased=False).any()
    between = np.random.default_rng(1).uniform(first, last, 2000)
    assert is_possible(between, mechanism, debiased=False).mean() < 0.1


def test_of_a_scale_of_nothing_only_the_offset_is_possible():
    mechanism = make("rp", 1.0)
    possible = is_possible(np.array([2.0, 2.1]), mechanism, debiased=True, offset=2.0, scale=np.zeros(2))
    assert possible.tolist() == [True, False]
