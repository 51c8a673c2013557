"""`Histogram`, compared with exact fractions, and what it refuses."""

from __future__ import annotations

from fractions import Fraction
from itertools import pairwise

import numpy as np
import pytest

import labeldp as ldp

NODES = [-1.0, 0.5, 1.0, 3.0, 7.0]
MASSES = [1.0, 0.0, 5.0, 2.0]
PRIOR = ldp.Histogram(NODES, MASSES)


def below(point):
    """Return P(label ≤ point), exactly."""
    point, total = Fraction(point), Fraction(0)
    for low, high, mass in zip(NODES, NODES[1:], MASSES, strict=False):
        part = (point - Fraction(low)) / (Fraction(high) - Fraction(low))
        total += Fraction(mass) * min(max(part, Fraction(0)), Fraction(1))
    return total / 8


# ---- what it is built from -----------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("nodes", "masses"),
    [
        ([0], [1]),
        ([0, 1, 0.5], [1, 1]),
        ([0, 1, 1], [1, 1]),
        ([0, np.inf], [1]),
        ([-1.1e300, 1.1e300], [1]),
        (["a", "b"], [1]),
        ([0, 1], [1, 1]),
        ([0, 1], [-1e-300]),
        ([0, 1], [0]),
        ([0, 1], [np.nan]),
        ([0, 1], None),
    ],
    ids=str,
)
def test_nodes_and_masses_that_make_no_histogram_are_refused(nodes, masses):
    with pytest.raises(ldp.errors.ParameterError):
        ldp.Histogram(nodes, masses)


def test_it_cannot_be_changed_and_does_not_hold_what_it_was_given():
    nodes, masses = np.array(NODES), np.array(MASSES)
    prior = ldp.Histogram(nodes, masses)
    nodes[0], masses[0] = -5.0, 100.0
    assert prior == PRIOR
    for array in (prior.nodes, prior.masses):
        with pytest.raises(ValueError, match="read-only"):
            array[0] = 0.0


# ---- what it says -------------------------------------------------------------------------------------


def test_moments_are_those_of_a_density_that_is_flat_in_each_bin():
    masses = [Fraction(m) / 8 for m in MASSES]
    ends = [(Fraction(a), Fraction(b)) for a, b in pairwise(NODES)]
    mean = sum(m * (a + b) / 2 for m, (a, b) in zip(masses, ends, strict=True))
    square = sum(m * (a * a + a * b + b * b) / 3 for m, (a, b) in zip(masses, ends, strict=True))
    assert PRIOR.mean == pytest.approx(float(mean))
    assert PRIOR.variance == pytest.approx(float(square - mean**2))
    assert PRIOR.density.tolist() == pytest.approx(
        [float(m / (b - a)) for m, (a, b) in zip(masses, ends, strict=True)]
    )
    points = [-9, -1, 0.25, 0.7, 1, 2.5, 6, 7, 99]
    assert PRIOR.cumulative(points) == pytest.approx([float(below(p)) for p in points])


@pytest.mark.parametrize(
    ("low", "high"), [(-1, 3), (0, 5), (0.75, 9), (1.0, 1.5), (-1, 7), (6.9, 7.5), (-9, 0.25)]
)
def test_clipping_moves_what_lies_outside_to_the_ends(low, high):
    clipped = PRIOR.restricted(low, high)
    first, last = max(low, -1.0), min(high, 7.0)
    assert clipped.nodes.tolist() == [first, *(n for n in NODES if first < n < last), last]
    inner = [0.0, *(float(below(n)) for n in clipped.nodes[1:-1]), 1.0]
    assert clipped.masses == pytest.approx(np.diff(inner), abs=1e-12)
