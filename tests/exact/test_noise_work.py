"""The work of a curator's noise does not depend on the noise: words and steps are counted, draw by draw.

A step is one instruction of Python, in whatever function it runs (docs/proofs/noise.md).
"""

import gc
import sys
from fractions import Fraction
from functools import partial
from types import SimpleNamespace

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
    """Return a draw, and how many words and steps it took."""
    return counted(lambda source: noise.sample(size, source), seed)


def counted(call, seed):
    """Return what a call with a source returns, and how many words and steps it took."""
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
        result = call(source)
    finally:
        sys.settrace(before)
        gc.enable()
    return result, source.words, steps


def work_of_draws(noise, size, draws=DRAWS):
    work(noise, size, 0)  # what follows from the scale alone is computed once
    values, words, steps = zip(*(work(noise, size, seed) for seed in range(1, draws + 1)), strict=True)
    assert len({tuple(x) for x in values}) > 1
    return np.array(values), np.array(words), np.array(steps)


@pytest.mark.parametrize("noise", LAPLACE, ids=repr)
def test_every_draw_takes_the_same_work(noise):
    _, words, steps = work_of_draws(noise, 1)
    assert np.ptp(words) == np.ptp(steps) == 0


def scores_and_steps(seeds):
    """Return private scores, each with its noise, and the steps that they took."""
    model = SimpleNamespace(predict=lambda X: np.zeros(len(X)))
    score = partial(ldp.private_score, model, np.zeros((20, 1)), np.full(20, 0.5), epsilon=3.0, bounds=(0, 1))
    runs = [counted(lambda source: score(random_state=source).mse, seed) for seed in seeds]
    return [mse for mse, _, _ in runs], {steps for _, _, steps in runs[2:]}  # the first two fill caches


def test_every_private_score_takes_the_same_steps(monkeypatch):
    scores, steps = scores_and_steps(range(50))
    assert len(set(scores)) == 50
    assert len(steps) == 1
    monkeypatch.setattr(ldp.exact.DiscreteLaplace, "sample", lambda self, *how: LoopNoise(self).sample(*how))
    assert len(scores_and_steps(range(50))[1]) > 10, "coins that stop early are not detected"


def test_noise_from_coins_that_stop_early_is_detected():
    _, words, steps = work_of_draws(LoopNoise(LAPLACE[2]), 1, draws=40)
    assert np.ptp(words) + np.ptp(steps) > 0
