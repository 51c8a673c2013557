"""The work of a curator's noise does not depend on the noise: words and steps are counted, draw by draw.

A step is one instruction of Python, in whatever function it runs (docs/proofs/noise.md).
"""

import gc
import sys
from fractions import Fraction

import numpy as np
import pytest
from benchmarks.loop_noise import LoopNoise

import labeldp as ldp
from helpers import seeded

DRAWS = 150
LAPLACE = [ldp.exact.DiscreteLaplace(Fraction(scale)) for scale in ("1/5", "1048576/3", "20", "1000000000039/7")]


class Counted:
    """A source that counts its words."""

    def __init__(self, seed):
        self.source, self.words = seeded(seed), 0

    def fill(self, words):
        self.words += words.size
        self.source.fill(words)


def work(noise, size, seed):
    """Return a draw, and the number of words and steps that it took."""
    source, steps = Counted(seed), 0

    def trace(frame, event, _):
        nonlocal steps
        frame.f_trace_opcodes = True
        steps += event == "opcode"
        return trace

    before = sys.gettrace()
    gc.disable()  # what is called back when garbage is collected would count
    sys.settrace(trace)
    try:
        values = noise.sample(size, source)
    finally:
        sys.settrace(before)
        gc.enable()
    return values, source.words, steps


def work_of_draws(noise, size, draws=DRAWS):
    work(noise, size, 0)  # what follows from the scale alone is computed once
    values, words, steps = zip(*(work(noise, size, seed) for seed in range(1, draws + 1)), strict=True)
    assert len({tuple(x) for x in values}) > 1
    return np.array(values), np.array(words), np.array(steps)


@pytest.mark.parametrize("noise", LAPLACE, ids=repr)
def test_every_draw_takes_the_same_work(noise):
    _, words, steps = work_of_draws(noise, 1)
    assert np.ptp(words) == np.ptp(steps) == 0


def test_noise_from_coins_that_stop_early_is_detected():
    _, words, steps = work_of_draws(LoopNoise(LAPLACE[2]), 1, draws=40)
    assert np.ptp(words) + np.ptp(steps) > 0
