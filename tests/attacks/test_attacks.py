"""Floating-point attacks: they tell labels apart through plain floats, and not through any mechanism here.

Two labels, 0.20 and 0.21, at ε = 0.05: whoever sees one output may guess right with probability
(e^ε + δ)/(e^ε + 1), about 51.2 %, and no better. METHODS §3 says how far plain float64 is from that. The reason,
that all labels lead to the same floats, is tested word by word in tests/exact/test_possible.py.
"""

import math

import numpy as np
import pytest

import broken
import labeldp as ldp
from helpers import NAMES, mechanisms, most_successes, seeded

pytestmark = [pytest.mark.slow, pytest.mark.statistical]

EPSILON, DELTA = 0.05, 1e-5
ZETA, SCALE = 0.5, 1 / EPSILON
LABELS = (0.20, 0.21)
SAMPLES = 400_000
GUARANTEE = (math.exp(EPSILON) + DELTA) / (math.exp(EPSILON) + 1)

# ---- what not to do: plain float64 ----------------------------------------------------------------


def float_rp(label, seed):
    return broken.float_rp(seed, ZETA, EPSILON)(np.full(SAMPLES, label))


def float_laplace(label, seed):
    """Laplace noise by inversion."""
    rng = np.random.default_rng(seed)
    sign = np.where(rng.random(SAMPLES) < 0.5, -1.0, 1.0)
    return label + sign * SCALE * -np.log(1 - rng.random(SAMPLES))


FLOATS = {"float rp": float_rp, "float laplace": float_laplace}


def draw(name, label, seed):
    """Return outputs for one label, of a float implementation or of a mechanism."""
    if name in FLOATS:
        return FLOATS[name](label, seed)
    return mechanisms(EPSILON)[name].randomize(np.full(SAMPLES, label), random_state=seeded(seed))


# ---- attack 1: which outputs can a label lead to at all? -------------------------------------------
# A uniform float is k/2^53. For an output z and a label, solve for k, and see whether that k, or one
# near it, gives exactly z: rounding leaves gaps, and the gaps lie elsewhere for another label.


def near(k, steps=4):
    """Return the uniform floats around k/2^53."""
    return [(np.rint(k) + d) * 2.0**-53 for d in range(-steps, steps + 1)]


def reached_by_rp(z, label):
    reached = np.zeros(z.shape, dtype=bool)
    for u in near((z - label + ZETA) / (2 * ZETA) * 2.0**53):
        reached |= (label - ZETA + 2 * ZETA * u == z) & (u >= 0) & (u < 1)
    for u in near((z + ZETA) * 2.0**53):
        reached |= (u - ZETA == z) & (u >= 0) & (u - ZETA < label - ZETA)
    for u in near((z - ZETA) * 2.0**53):
        reached |= ((u - ZETA) + 2 * ZETA == z) & (u < 1) & (u - ZETA >= label - ZETA)
    return reached


def reached_by_laplace(z, label):
    reached, sign = np.zeros(z.shape, dtype=bool), np.sign(z - label)
    for u in near(np.exp(-np.abs(z - label) * EPSILON) * 2.0**53):
        reached |= label + sign * SCALE * -np.log(np.maximum(u, 2.0**-53)) == z
    return reached


REACHED = {"rp": reached_by_rp, "laplace": reached_by_laplace}


def successes_by_reach(attack, name, seed):
    """Return how often the attack names the label of one output, of 2 · SAMPLES; ties by a coin."""
    coin = np.random.default_rng(seed)
    right = 0
    for this, other in (LABELS, LABELS[::-1]):
        z = draw(name, this, seed)
        mine, others = REACHED[attack](z, this), REACHED[attack](z, other)
        guess = np.where(mine == others, coin.random(z.size) < 0.5, mine)
        right += int(np.count_nonzero(guess))
        seed += 1
    return right


@pytest.mark.parametrize("attack", REACHED)
def test_reachable_floats_tell_labels_apart_in_plain_float64(attack):
    """69 % (RPWithPrior) and 82 % (Laplace) where 51.2 % are allowed."""
    assert successes_by_reach(attack, f"float {attack}", seed=1) > 0.65 * 2 * SAMPLES


@pytest.mark.parametrize("attack", REACHED)
@pytest.mark.parametrize("name", NAMES)
def test_reachable_floats_tell_nothing_about_a_mechanisms_labels(name, attack):
    """False alarm 1e-6; finds an attack that is right 51.8 % of the time or more."""
    assert successes_by_reach(attack, name, seed=2) <= most_successes(2 * SAMPLES, GUARANTEE)


# ---- attack 2: learn from examples which bits favour which label -----------------------------------


@pytest.mark.parametrize("labels", [LABELS, (0.0, 1.0), (0.0, 5e-324)], ids=str)
@pytest.mark.parametrize("name", NAMES)
def test_nothing_learned_from_examples_beats_the_guarantee(name, labels):
    """By an audit, which detects plain floats and noise that is added in floating point: tests/evidence."""
    mechanism = mechanisms(EPSILON)[name]
    assert not ldp.audit(mechanism, labels=labels, samples=SAMPLES // 4, random_state=seeded(10)).detected
