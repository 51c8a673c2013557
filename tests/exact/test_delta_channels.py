"""Additive noise with a δ: it need not reach every output from every label, and shifts both ways count."""

from fractions import Fraction
from itertools import permutations

import numpy as np
import pytest

import labeldp as ldp
from exact.channel_cases import NOISE, shift_rows
from helpers import WORDS
from labeldp.exact import Promise, shift
from labeldp.mechanisms import exp_lower

COMB = [n << 56 for n in (1, 60, 1, 60, 2, 60, 1, 60, 1)]
COMB[4] = WORDS - sum(COMB) + COMB[4]
"""Odd noise is likelier: a shift by one is worse than a shift by two."""

NOISES = {"uneven": NOISE, "mirrored": NOISE[::-1], "comb": COMB}


def delta_channel(noise, steps, margin, promise):
    """Return the channel from 1 on, two to a step."""
    return ldp.exact.ShiftChannel.from_counts(1.0, 1.0 + 2 * steps, steps, margin, noise, promise)


def exact(noise, steps, epsilon):
    """Return δ over all pairs of rows, before clamping."""
    bound = exp_lower(epsilon)
    return max(
        sum(max(Fraction(0), n - bound * m) for n, m in zip(one, other, strict=True)) / WORDS
        for one, other in permutations(shift_rows(noise, steps, len(noise) // 2), 2)
    )


@pytest.mark.parametrize("epsilon", [Fraction(1, 3), Fraction(1, 2), Fraction(2, 3)])
@pytest.mark.parametrize("steps", [1, 2, 3])
@pytest.mark.parametrize("name", NOISES)
def test_delta_is_that_of_the_worst_pair_of_rows_either_way_and_no_float_claims_less(name, steps, epsilon):
    delta = exact(NOISES[name], steps, epsilon)
    proof = delta_channel(NOISES[name], steps, 4, Promise(epsilon, delta)).verify()
    assert delta <= Fraction(proof.delta) <= delta * (1 + Fraction(1, 2**52))
    assert Fraction(np.nextafter(proof.epsilon, 0)) < epsilon <= Fraction(proof.epsilon)
    assert proof.worst_ratio is None
    with pytest.raises(ldp.errors.PrivacyProofError, match="must not be used"):
        delta_channel(NOISES[name], steps, 4, Promise(epsilon, delta - Fraction(1, 1 << 70)))


# ---- shifts that a quick bound leaves out ---------------------------------------------------------------

SEEDS = range(8)


def random_counts(seed):
    """Return counts that sum to 2^64, of one of several kinds: even, steep, with holes, or with spikes."""
    rng = np.random.default_rng(seed)
    size = 2 * int(rng.integers(20, 200)) + 1
    weights = [
        np.ones(size),
        np.exp(-np.abs(np.arange(size) - size // 2) * rng.uniform(0.01, 2)),
        rng.random(size) * (rng.random(size) < 0.3),
        rng.pareto(0.5, size),
    ][seed % 4]
    weights[size // 2] += 1
    parts = [int(w * 2**40) << 20 for w in weights / weights.sum()]
    parts[size // 2] += WORDS - sum(parts)
    return np.array(parts, dtype=np.uint64)


@pytest.mark.parametrize("seed", SEEDS)
def test_the_quick_bound_is_never_below_the_exact_sum(seed):
    counts = random_counts(seed)
    for epsilon in ("0.001", "0.7", "5", "20"):
        bound = exp_lower(Fraction(epsilon))
        for step in (1, 2, counts.size // 3, counts.size - 1):
            assert shift._hockey_stick_below(counts, step, bound) >= shift._hockey_stick(counts, step, bound)


def agrees(seed, steps=4, epsilon=Fraction(7, 10)):
    """Return whether the proof has the δ of the definition: every pair of rows, in fractions."""
    noise = random_counts(seed).tolist()
    proven = delta_channel(noise, steps, len(noise) // 2, Promise(epsilon, Fraction(1))).verify().delta
    delta = exact(noise, steps, epsilon)
    return delta <= Fraction(proven) <= delta * (1 + Fraction(1, 1 << 50))


def test_shifts_are_left_out_only_where_they_do_not_matter(monkeypatch):
    assert all(agrees(seed) for seed in SEEDS)
    monkeypatch.setattr(shift, "_hockey_stick_below", lambda *_: Fraction(-1))
    assert not all(agrees(seed) for seed in SEEDS), "a bound that is too small is not found"
