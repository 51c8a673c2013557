"""Where to clip: moments against integrals in fractions, and intervals that no other beats."""

import math
from fractions import Fraction
from itertools import pairwise

import numpy as np
import pytest

import labeldp as ldp
from labeldp.mechanisms.clipping import ClippedPrior, best_interval, mean_square, noise_weight

PRIORS = {
    "uniform": ldp.Histogram([0, 1], [1]),
    "uneven": ldp.Histogram([2, 3, 3.5, 10], [5, 1, 4]),
    "gap": ldp.Histogram([-4, -3, 1, 4], [1, 0, 2]),
    "long tail": ldp.Histogram([0, 1, 2, 4, 8, 16, 100], [32, 16, 8, 4, 2, 1]),
}
each_prior = pytest.mark.parametrize("prior", PRIORS.values(), ids=PRIORS.keys())


def integral(prior, function, low, high):
    """Return ∫ function(y) dP(y) over [low, high], exact for a quadratic: Simpson's rule in fractions."""
    total = Fraction(0)
    nodes = [Fraction(float(node)) for node in prior.nodes]
    for (left, right), mass in zip(pairwise(nodes), prior.masses, strict=True):
        a, b = max(left, low), min(right, high)
        if a < b:
            mean = (function(a) + 4 * function((a + b) / 2) + function(b)) / 6
            total += Fraction(float(mass)) * (b - a) / (right - left) * mean
    return total


def measures(prior, low, high):
    """Return E[(clip(y) − y)²] and E[(clip(y) − m)²] in squared label ranges and interval widths."""
    low, high = Fraction(low), Fraction(high)
    first, last = (Fraction(bound) for bound in prior.bounds)
    middle, width = (low + high) / 2, high - low
    bias = integral(prior, lambda y: (low - y) ** 2, first, low)
    bias += integral(prior, lambda y: (high - y) ** 2, high, last)
    spread = integral(prior, lambda y: (y - middle) ** 2, low, high)
    spread += integral(prior, lambda _: (width / 2) ** 2, first, low)
    spread += integral(prior, lambda _: (width / 2) ** 2, high, last)
    return float(bias / (last - first) ** 2), float(spread / width**2)


def cost(prior, low, high, weight, noise):
    bias, q = measures(prior, low, high)
    width = (high - low) / (prior.bounds[1] - prior.bounds[0])
    return bias + weight * width**2 * noise(q)


@each_prior
def test_bias_and_spread_are_their_integrals(prior):
    first, last = prior.bounds
    ends = [first + (last - first) * part for part in (0.0, 0.03125, 0.25, 0.375, 0.5, 0.75, 1.0)]
    ends += prior.nodes[1:-1].tolist()
    pairs = [(a, b) for a in ends for b in ends if a < b]
    low, high = ((np.array(side) - first) / (last - first) for side in zip(*pairs, strict=True))
    found = ClippedPrior.of(prior).risks(low, high)
    expected = np.array([measures(prior, *pair) for pair in pairs]).T
    assert found[0] == pytest.approx(expected[0], rel=1e-9, abs=1e-14)
    assert found[1] == pytest.approx(expected[1], rel=1e-9, abs=1e-12)


@pytest.mark.parametrize(("rows", "weight"), [(None, 1), (1, 1), (20, 1), (21, 20 / 21), (np.int64(4000), 0.005)])
def test_noise_weighs_twenty_over_the_rows_but_no_more_than_for_one_label(rows, weight):
    assert noise_weight(rows) == weight


@pytest.mark.parametrize("rows", [None, 100, 10**5])
@pytest.mark.parametrize("variance", [0.1, 2.0, 50.0])
def test_a_uniform_prior_is_clipped_where_calculus_says(variance, rows):
    """J = 2a³/3 + wv(1 − 2a)² is least where a² + 4wva − 2wv = 0."""
    wv = noise_weight(rows) * variance
    a = math.sqrt(4 * wv**2 + 2 * wv) - 2 * wv
    low, high = best_interval(ldp.Histogram([3, 7], [1]), lambda q: np.full_like(q, variance), rows)
    assert ((low - 3) / 4, (7 - high) / 4) == pytest.approx((a, a), abs=2e-5)
    q = mean_square(ldp.Histogram([3, 7], [1]), (low, high))
    assert q == pytest.approx(measures(ldp.Histogram([3, 7], [1]), low, high)[1], rel=1e-9)


NOISES = {"constant": lambda q: 2.0 + 0 * q, "falling": lambda q: 1.0 - q, "growing": lambda q: 0.1 + 3 * q}


@pytest.mark.parametrize("rows", [None, 400, 10**6])
@pytest.mark.parametrize("noise", NOISES.values(), ids=NOISES.keys())
@each_prior
def test_no_other_interval_is_better(prior, noise, rows):
    low, high = best_interval(prior, noise, rows)
    weight = noise_weight(rows)
    first, last = prior.bounds
    found = cost(prior, low, high, weight, noise)
    assert first <= low < high <= last
    q = mean_square(prior, (low, high))
    assert q == pytest.approx(measures(prior, low, high)[1], rel=1e-9)
    ends = np.linspace(first, last, 25)
    others = [(a, b) for a in ends for b in ends if a < b]
    for far in (1e-1, 1e-2, 1e-3):
        moves = (-far * (high - low), 0.0, far * (high - low))
        others += [(max(first, low + a), min(last, high + b)) for a in moves for b in moves]
    assert found <= min(cost(prior, *pair, weight, noise) for pair in others) * (1 + 1e-8)


def test_candidates_are_equally_spaced_and_equally_likely_places_and_the_tails():
    prior = ldp.Histogram([0, 0.1, 0.3, 0.6, 0.9, 1], [0.0005, 0.5, 0.2, 0.2495, 0.05])
    edges, masses = prior.nodes.tolist(), prior.masses.tolist()

    def quantile(p):
        for (left, right), mass in zip(pairwise(edges), masses, strict=True):
            if p <= mass:
                return left + (right - left) * p / mass
            p -= mass
        return edges[-1]

    parts = [k / 64 for k in range(65)]
    tails = [1e-4, 1e-3, 5e-3, 1 - 5e-3, 1 - 1e-3, 1 - 1e-4]
    expected = sorted({*parts, *map(quantile, parts), *map(quantile, tails)})
    found = ClippedPrior.of(prior).candidates()
    assert all(np.abs(found - place).min() < 1e-12 for place in expected)
    assert all(np.abs(np.array(expected) - place).min() < 1e-12 for place in found)


@pytest.mark.parametrize("rows", [0, -1, True, 2.5, 0.5, "3"])
def test_a_number_of_rows_is_a_whole_number(rows):
    with pytest.raises(ldp.ParameterError, match="integer"):
        noise_weight(rows)
