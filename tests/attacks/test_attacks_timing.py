"""Reconstruction from timing: a sampler takes the same time whatever the labels are.

Pairs of calls, one with each set of labels, in an order that a coin decides, through one and the same buffer. If
time does not depend on labels, either call is the slower one with probability ½, and either is further from the
median of all calls with probability ½, whatever else the machine does. So two sign tests, one of shifts and one of
spread, are exact on a noisy machine too. What labels do to shared caches they cannot see, and no test can prove
that there is nothing. Of all other code no time is promised: see docs/threat-model.md.
"""

import time

import numpy as np
import pytest
from scipy import stats

from helpers import NAMES, mechanisms
from labeldp.exact.sampling import Domain
from labeldp.exact.word_sources import resolve_source

pytestmark = [pytest.mark.slow, pytest.mark.statistical, pytest.mark.real_words]

PAIRS = 400
ROWS = 4000
FALSE_ALARM = 1e-9
"""Of each test; there are fewer than 200 of them here."""


def times(call, one, other):
    """Return the seconds of calls with two sets of labels, a row for each pair."""
    rng = np.random.default_rng(1)
    sets = np.array([np.broadcast_to(labels, ROWS) for labels in (one, other)])
    buffer = np.empty(ROWS)
    took = np.empty((PAIRS, 2))
    order = [0, 1]
    for k in range(-20, PAIRS):  # the first ones warm up
        if rng.random() < 0.5:  # the sets change places, as some addresses are faster
            sets[:], order = sets[::-1].copy(), order[::-1]
        for row in (0, 1) if rng.random() < 0.5 else (1, 0):
            which = order[row]
            buffer[:] = sets[row]
            start = time.perf_counter_ns()
            call(buffer)
            took[max(k, 0), which] = (time.perf_counter_ns() - start) * 1e-9
    return took


def sign_test(differences):
    told = differences[differences != 0]
    return stats.binomtest(int((told > 0).sum()), told.size).pvalue if told.size else 1.0


def shift_and_spread(took):
    """Return for each pair the delay of the first, and its larger distance from the median of all calls."""
    return took[:, 0] - took[:, 1], -np.diff(np.abs(took - np.median(took)), axis=1)[:, 0]


def pvalue(took):
    """Return the smaller p-value of both tests, doubled for there being two."""
    return min(1.0, 2 * min(map(sign_test, shift_and_spread(took))))


@pytest.mark.parametrize("labels", [(0.0, 1.0), (0.3, 1e300)], ids=str)
@pytest.mark.parametrize("name", NAMES)
def test_the_time_of_a_release_does_not_tell_the_label(name, labels):
    assert pvalue(times(mechanisms(1.0)[name].randomize, *labels)) > FALSE_ALARM


FAR = np.array([-1.7e308, -1e300, -5e-324, 0.0, 5e-324, 2e-308, 0.3, 1.0, 1e16, 1e300, 1.7e308])


def flags(name):
    """Randomise labels near and far; raise if one sets a flag of the processor, about which NumPy asks further."""
    with np.errstate(all="raise"):
        mechanisms(1.0)[name].channel.sample(FAR, resolve_source(None), np.empty(FAR.size))


@pytest.mark.parametrize("name", NAMES)
def test_no_label_sets_a_flag_of_floating_point(name):
    flags(name)


def test_a_position_that_overflows_is_found(monkeypatch):
    def unclipped(domain, labels, out):
        return np.multiply(labels - domain.low, domain.steps / (domain.high - domain.low), out=out)

    monkeypatch.setattr(Domain, "_position", unclipped)
    with pytest.raises(FloatingPointError):
        flags("rp")


SPREAD = np.random.default_rng(4).random(ROWS)


@pytest.mark.parametrize("name", ["rp", "laplace", "staircase", "gaussian"])
def test_the_time_of_a_release_does_not_tell_how_labels_are_spread(name):
    """Where no table is looked up by the label, for such a table may be in the cache or not."""
    randomize = mechanisms(1.0)[name].randomize
    assert pvalue(times(randomize, 0.5, SPREAD)) > FALSE_ALARM
    assert pvalue(times(randomize, SPREAD, np.sort(SPREAD))) > FALSE_ALARM


def rejecting(labels):
    """Noise by rejection: the closer the label to the end, the more draws are thrown away."""
    rng = np.random.default_rng(2)
    waiting = labels
    while waiting.size:
        waiting = waiting[np.abs(waiting - rng.random(waiting.size)) > 0.3 * (1 + waiting)]


def branching(labels):
    """The same noise for all, and a copy more for large labels."""
    mechanism = mechanisms(1.0)["rp"]
    mechanism.randomize(labels)
    if labels[0] > 0.5:
        mechanism.randomize(labels)


def unsteady(labels):
    """As much work for all on average: large labels get three times as much, or none, by a coin."""
    rng = np.random.default_rng()
    for _ in range(rng.choice([0, 6]) if labels[0] > 0.5 else 3):
        mechanisms(1.0)["rp"].randomize(labels)


@pytest.mark.parametrize("call", [rejecting, branching, unsteady])
def test_a_loop_or_a_branch_that_depends_on_the_label_is_found(call):
    assert pvalue(times(call, 0.0, 1.0)) < FALSE_ALARM
