"""Algorithm 1: the interval is as good as that of the paper's quadratic search, in linear time."""

import math

import numpy as np
import pytest

import labeldp as ldp

EXACT = 1e-12


def paper_algorithm_1(nodes, masses, epsilon, zeta):
    """Return f, A1, A2 as the paper's Algorithm 1 finds them: all pairs of bins, and interior points.

    Two slips of the paper are mended: the last branch updates f, and intervals with A1 > A2, which the
    corners of a bin with itself include, are left out.
    """
    n, k = list(nodes), len(masses)
    alpha = [mass / (n[i + 1] - n[i]) for i, mass in enumerate(masses)]
    below = [0.0]
    for mass in masses:
        below.append(below[-1] + mass)
    cost = math.exp(-epsilon)
    best = (0.0, n[0], n[0])

    def value(a1, i, a2, j):
        """Return F for A1 in bin i and A2 in bin j."""
        mass = below[j] + alpha[j] * (a2 - n[j]) - below[i] - alpha[i] * (a1 - n[i])
        return 2 * zeta * mass / (2 * zeta + cost * (a2 - a1))

    def check(pairs, i, j):
        nonlocal best
        values = [(value(a1, i, a2, j), a1, a2) for a1, a2 in pairs if a1 <= a2]
        best = max([best, *values])

    for i in range(k):
        between = 0.0
        for j in range(i, k):
            if j > i + 1:
                between += masses[j - 1]
            left, right = (n[i], n[i + 1]), (n[j], n[j + 1])
            check([(a1, a2) for a1 in left for a2 in right], i, j)
            if alpha[i] == alpha[j]:
                continue  # no critical point
            h = alpha[i] * n[i + 1] + between - alpha[j] * n[j]
            e1 = (2 * zeta * alpha[j] - cost * h) / (cost * (alpha[j] - alpha[i]))
            e2 = (2 * zeta * alpha[i] - cost * h) / (cost * (alpha[j] - alpha[i]))
            if right[0] < e2 < right[1]:
                check([(a1, e2) for a1 in left], i, j)
            if left[0] < e1 < left[1]:
                check([(e1, a2) for a2 in right], i, j)
            if right[0] < e2 < right[1] and left[0] < e1 < left[1]:
                check([(e1, e2)], i, j)
    return best


def value_at_nodes(prior, interval, epsilon, zeta):
    """Return F of an interval, which must end at nodes."""
    i, j = (prior.nodes.tolist().index(end) for end in interval)
    below = np.concatenate([[0.0], np.cumsum(prior.masses)])
    width = interval[1] - interval[0]
    return float(2 * zeta * (below[j] - below[i]) / (2 * zeta + math.exp(-epsilon) * width))


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


@pytest.mark.parametrize(("k", "cases"), [(1, 5), (2, 100), (3, 200), (5, 200), (8, 150), (12, 80), (60, 3)])
def test_finds_the_value_that_the_papers_search_finds(k, cases):
    rng = np.random.default_rng(k)
    for _ in range(cases):
        prior, epsilon, zeta = case(rng, k)
        best, a1, a2 = paper_algorithm_1(prior.nodes.tolist(), prior.masses.tolist(), epsilon, zeta)
        interval = ldp.optimal_interval(prior, epsilon=epsilon, zeta=zeta)
        assert value_at_nodes(prior, interval, epsilon, zeta) == pytest.approx(best, rel=EXACT)
        assert {a1, a2} <= set(prior.nodes.tolist())  # the paper's interior points never win


def test_the_interval_is_obvious_where_it_should_be():
    for zeta in (1e-6, 1.0, 1e6):
        assert ldp.optimal_interval(ldp.Histogram([2.0, 3.5], [7]), epsilon=0.5, zeta=zeta) == (2.0, 3.5)
    equal = ldp.Histogram.from_counts(np.ones(37), (-3, 5))
    assert ldp.optimal_interval(equal, epsilon=0.3, zeta=0.01) == (-3.0, 5.0)
    empty_ends = ldp.Histogram([0, 1, 2, 3, 4, 5], [0, 3, 0, 2, 0])
    assert ldp.optimal_interval(empty_ends, epsilon=1.0, zeta=50.0) == (1.0, 4.0)
    assert ldp.optimal_interval(empty_ends, epsilon=0.01, zeta=0.01) == (1.0, 2.0)


def test_a_million_bins_are_searched_exactly():
    """A plateau, four times as dense as its surroundings, is found to the node, whatever surrounds it."""
    k = 1_000_000
    rng = np.random.default_rng(3)
    masses = np.where(rng.random(k) < 0.1, 0.0, rng.uniform(0.5, 1.0, k))
    masses[300_000:500_000] = 4.0
    prior = ldp.Histogram.from_counts(masses, (0.0, 1.0))
    found = ldp.optimal_interval(prior, epsilon=0.1, zeta=0.001)
    assert found == (prior.nodes[300_000], prior.nodes[500_000])
    everything = ldp.optimal_interval(prior, epsilon=8.0, zeta=10.0)
    assert everything[0] < 1e-4
    assert everything[1] > 1 - 1e-4


@pytest.mark.parametrize(("scale", "shift"), [(1e-6, 0.0), (0.01, -7.25), (2.0**40, 300.0)])
def test_the_unit_and_the_origin_of_labels_do_not_matter(scale, shift):
    rng = np.random.default_rng(4)
    for _ in range(50):
        nodes = np.concatenate([[0.0], np.cumsum(rng.uniform(0.5, 1.5, 20))])
        masses = rng.random(20)
        epsilon, zeta = float(rng.uniform(0.1, 3.0)), float(rng.uniform(0.1, 5.0))
        prior = ldp.Histogram(nodes, masses)
        moved = ldp.Histogram(scale * (nodes + shift), masses)
        i, j = np.searchsorted(nodes, ldp.optimal_interval(prior, epsilon=epsilon, zeta=zeta))
        found = ldp.optimal_interval(moved, epsilon=epsilon, zeta=scale * zeta)
        assert found == (moved.nodes[i], moved.nodes[j])


@pytest.mark.parametrize(
    ("name", "bad"),
    [
        *(("zeta", zeta) for zeta in (0, -1.0, math.nan, math.inf, True, "1", None)),
        *(("epsilon", epsilon) for epsilon in (0, -1.0, math.nan, math.inf, True, "1", None)),
        *(("Histogram", prior) for prior in (None, [0.0, 1.0], ([0, 1], [1]))),
    ],
)
def test_bad_arguments_are_refused_by_name(name, bad):
    how = {"Histogram": ldp.Histogram([0, 1], [1]), "epsilon": 1.0, "zeta": 1.0, name: bad}
    with pytest.raises(ldp.errors.ParameterError, match=name):
        ldp.optimal_interval(how.pop("Histogram"), **how)
