"""Reconstruction from timing: the time of a release is the same for labels at both ends of the bounds.

Pairs of calls, one with each label, in an order that a coin decides, through one and the same buffer. If time does
not depend on the label, either call is the slower one with probability ½, whatever else the machine does. So a
sign test is exact on a noisy machine too. What a label does to shared caches it cannot see, and no test can prove
that there is nothing: see docs/limitations.md.
"""

import time

import numpy as np
import pytest
from scipy import stats

from helpers import NAMES, mechanisms

PAIRS = 400
ROWS = 4000
FALSE_ALARM = 1e-9
"""Of each test; there are fewer than 50 of them here."""


def slower(call, one, other, pairs=PAIRS):
    """Return the differences in seconds between calls with two labels, ``one`` less ``other``."""
    rng = np.random.default_rng(1)
    buffer = np.empty(ROWS)
    differences = np.empty(pairs)
    for k in range(-20, pairs):
        took = {}
        for label in (one, other) if rng.random() < 0.5 else (other, one):
            buffer.fill(label)
            start = time.perf_counter_ns()
            call(buffer)
            took[label] = time.perf_counter_ns() - start
        if k >= 0:  # the first ones warm up
            differences[k] = (took[one] - took[other]) * 1e-9
    return differences


def pvalue(differences):
    told = differences[differences != 0]
    return stats.binomtest(int((told > 0).sum()), told.size).pvalue if told.size else 1.0


def would_show(differences):
    """Return the delay in seconds that, added to one label, this test would have found."""
    needed = int(stats.binom.isf(FALSE_ALARM / 2, differences.size, 0.5)) + 1
    return float(np.sort(-differences)[needed - 1])


@pytest.mark.parametrize("labels", [(0.0, 1.0), (0.3, 1e300), (0.2, 0.21)], ids=str)
@pytest.mark.parametrize("name", NAMES)
def test_the_time_of_a_release_does_not_tell_the_label(name, labels):
    mechanism = mechanisms(1.0)[name]
    differences = slower(mechanism.randomize, *labels)
    print(f"{name}, {labels}: a delay of {would_show(differences) * 1e6:.2f} µs in {ROWS} labels would have shown")
    assert pvalue(differences) > FALSE_ALARM


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


@pytest.mark.parametrize("call", [rejecting, branching])
def test_a_loop_or_a_branch_that_depends_on_the_label_is_found(call):
    assert pvalue(slower(call, 0.0, 1.0)) < FALSE_ALARM


def test_the_stated_delay_is_what_the_test_finds():
    """Differences with that delay taken off one label are found, and with a tenth of it are not."""
    differences = np.random.default_rng(3).normal(0, 1e-6, PAIRS)
    delay = would_show(differences)
    assert delay > 0
    assert pvalue(differences + delay * 1.0001) < FALSE_ALARM
    assert pvalue(differences + delay / 10) > FALSE_ALARM
