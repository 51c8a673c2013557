"""The curator's histogram, held to an account of it in plain loops: which bins, which noise, what is cut off."""

import math
from fractions import Fraction
from itertools import pairwise

import numpy as np
import pytest

from helpers import seeded
from labeldp.noise import DiscreteLaplace
from labeldp.priors.curator import FINE, _onto_simplex, _without_empty_ends, adaptive_histogram, bins_for, count


@pytest.mark.parametrize(
    ("budget", "bins"),
    [
        (1, 10),
        (138, 10),
        (139, 20),
        (555, 20),
        (556, 40),
        (2222, 40),
        (2223, 80),
        (145_635_555, 10_240),
        (10**12, 10_240),
    ],
)
def test_bins_are_the_power_of_two_nearest_to_what_is_wished(budget, bins):
    """In logarithms: the wish 1.2 √(nε) / 10 is rounded at √2 times a power of two."""
    assert bins_for(budget, 1.0) == bins_for(10 * budget, 0.1) == bins


def test_counts_are_whole_numbers_and_no_warning_tells_of_labels_far_outside():
    labels = np.array([-1e308, 0.0, 0.1e-9, 2.5e-9, 4.99e-9, 5e-9, 1e308])
    counts = count(labels, (0.0, 5e-9), 4)
    assert counts.dtype == np.int64
    assert counts.tolist() == [3, 0, 1, 3]


def nearest(counts, total):
    """Return counts less one threshold, cut at zero, that sum to ``total``, by bisection."""
    low, high = min(counts) - total - 1, max(counts)
    for _ in range(200):
        middle = (low + high) / 2
        low, high = (middle, high) if sum(max(0.0, c - middle) for c in counts) > total else (low, middle)
    return [max(0.0, c - high) for c in counts]


@pytest.mark.parametrize("seed", range(20))
def test_counts_are_moved_to_the_nearest_that_can_be(seed):
    rng = np.random.default_rng(seed)
    counts = rng.integers(-20, 60, rng.integers(1, 30)).astype(float)
    total = int(rng.integers(1, 500))
    moved = _onto_simplex(counts, total)
    assert moved.sum() == pytest.approx(total)
    np.testing.assert_allclose(moved, nearest(counts.tolist(), total), atol=1e-9)


def test_ends_are_cut_below_two_thirds_of_a_deviation_and_kept_above():
    epsilon = 0.65 * math.sqrt(8)  # then that is 1
    kept = _without_empty_ends(np.array([1.03, 5.0, 2.0, 1.03]), epsilon, 1000)
    assert (kept > 0).all()
    cut = _without_empty_ends(np.array([0.97, 5.0, 2.0, 0.97]), epsilon, 1000)
    assert (cut > 0).tolist() == [False, True, True, False]
    assert cut.sum() == kept.sum() == 1000
    one = _without_empty_ends(np.array([5.0, 0.0, 0.0, 9.0, 0.5]), epsilon, 14)
    assert (one > 0).tolist() == [True, False, False, True, False]


def test_where_nothing_but_noise_is_seen_nothing_is_cut():
    np.testing.assert_allclose(_without_empty_ends(np.array([-1.0, -2.0, -1.0]), 1.0, 5), [2.0, 1.0, 2.0])


def by_hand(fine, epsilon, bounds, source):
    """Return nodes and masses as the docstrings tell them; noise is drawn in the same order."""
    rows, third = int(fine.sum()), epsilon / 3

    def noisy(edges, budget):
        counts = np.array([fine[a:b].sum() for a, b in pairwise(edges)])
        return counts + DiscreteLaplace(scale=2 / budget).sample(counts.size, source)

    bins = bins_for(rows, float(third))
    edges = [math.floor(k * (FINE / bins)) for k in range(bins)] + [FINE]
    coarse = _without_empty_ends(noisy(edges, third).astype(float), float(third), rows)
    padded = [0.0, *coarse, 0.0]
    blurred = [(padded[k] + 2 * padded[k + 1] + padded[k + 2]) / 4 for k in range(bins)]
    share = [0.95 * value / sum(blurred) + 0.05 / bins for value in blurred]
    reached = [sum(share[:k]) for k in range(bins + 1)]
    fine_bins = bins_for(rows, float(epsilon - third))
    places = [np.interp(k * reached[-1] / fine_bins, reached, edges) for k in range(fine_bins + 1)]
    nodes = sorted({round(float(place)) for place in places[1:-1]} | {0, FINE})
    masses = _without_empty_ends(noisy(nodes, epsilon - third).astype(float), float(epsilon - third), rows)
    low, high = bounds
    return low + np.array(nodes) / FINE * (high - low), masses / masses.sum()


@pytest.mark.parametrize(("rows", "epsilon"), [(300, "1/2"), (5000, "1/10"), (40_000, "1")])
def test_the_prior_is_what_its_account_says(rows, epsilon):
    labels = np.random.default_rng(rows).lognormal(0.3, 0.6, rows)
    fine = count(labels, (0.0, 20.0), FINE)
    made = adaptive_histogram(fine, Fraction(epsilon), (0.0, 20.0), seeded(7))
    nodes, masses = by_hand(fine, Fraction(epsilon), (0.0, 20.0), seeded(7))
    np.testing.assert_allclose(made.nodes, nodes, rtol=1e-12)
    np.testing.assert_allclose(made.masses, masses, rtol=1e-9, atol=1e-15)
