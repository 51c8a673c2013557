"""Algorithm 1: no interval is better, between nodes or inside bins; `reproduction` has the paper's own search."""

import math

import numpy as np
import pytest

import labeldp as ldp


def value(prior, low, high, epsilon, zeta):
    """Return F of intervals."""
    mass = prior.cumulative(high) - prior.cumulative(low)
    return 2 * zeta * mass / (2 * zeta + math.exp(-epsilon) * (high - low))


def case(rng, k):
    """Return a histogram with empty bins, spikes, ties or unequal widths, ε and ζ."""
    widths = [
        np.ones(k),
        rng.uniform(0.1, 1.0, k),
        rng.lognormal(0.0, 3.0, k),
        rng.integers(1, 4, k).astype(float),
    ][rng.integers(4)]
    masses = [
        np.ones(k),
        rng.random(k),
        rng.integers(0, 3, k).astype(float),
        rng.random(k) * (rng.random(k) < 0.3),
        rng.random(k) ** 20,
        rng.lognormal(0.0, 4.0, k),
    ][rng.integers(6)]
    if not masses.any():
        masses[rng.integers(k)] = 1.0
    nodes = rng.normal(0.0, 10.0) + np.concatenate([[0.0], np.cumsum(widths)])
    zeta = (nodes[-1] - nodes[0]) * 10 ** rng.uniform(-3, 1)
    return ldp.Histogram(nodes, masses), float(10 ** rng.uniform(-2, 1)), float(zeta)


@pytest.mark.parametrize(("k", "cases"), [(1, 5), (2, 100), (5, 200), (12, 80), (60, 3)])
def test_no_interval_is_better(k, cases):
    rng = np.random.default_rng(k)
    for _ in range(cases):
        prior, epsilon, zeta = case(rng, k)
        found = np.array(ldp.optimal_interval(prior, epsilon=epsilon, zeta=zeta))
        assert set(found) <= set(prior.nodes)
        ends = np.concatenate([prior.nodes, rng.uniform(*prior.bounds, 30)])
        low, high = (end.ravel() for end in np.meshgrid(ends, ends))
        others = value(prior, low[low < high], high[low < high], epsilon, zeta)
        assert value(prior, *found, epsilon, zeta) >= others.max() * (1 - 1e-12)
