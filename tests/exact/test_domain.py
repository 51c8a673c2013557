"""From labels to rows: the row that exact arithmetic gives, whatever the interval, and only rows that exist."""

from fractions import Fraction
from math import floor

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

import labeldp as ldp
from helpers import WORDS, respond
from labeldp.exact.sampling import Domain

DOMAINS = [
    (0.0, 1.0, 1),
    (0.0, 1.0, 8),
    (-3.0, 5.0, 4),
    (4.0, 8.0, 64),
    (6.0, 8.0, 2),
    (2.0, 4.0, 1),
    (-1.0, 0.0, 16),
]
"""Low, high and steps such that floats are exact for labels on a fine binary grid."""


def at(domain, label):
    """Return the exact place of a label, in steps."""
    low, high = Fraction(domain.low), Fraction(domain.high)
    return (min(max(Fraction(label), low), high) - low) / (high - low) * domain.steps


def grid(domain):
    """Return labels in, around and far outside the interval, 2^10 to a step."""
    edges = np.arange(-2, domain.steps + 3) * 1024
    places = np.concatenate([edges - 1, edges, edges + 1, edges[:-1] + 512, edges[:-1] + 300])
    near = domain.low + places / 1024 * domain.step
    return np.concatenate([near, [-1e300, -1e30, 1e30, 1e300]])


@pytest.mark.parametrize("numbers", DOMAINS, ids=str)
def test_rows_and_pieces_of_labels_are_those_of_exact_arithmetic(numbers):
    """The rounding bits are no multiple of the grid, so that no sum is an integer."""
    domain = Domain(*numbers)
    labels = grid(domain)
    places, scratch = [at(domain, y) for y in labels], np.empty(labels.size)
    lower = [min(floor(place), domain.steps - 1) for place in places]
    assert domain.nearest(labels, scratch).tolist() == [round(place) for place in places]
    assert domain.piece(labels, scratch).tolist() == lower
    for bits in (1 << 23, 1 << 31, 0xC0000000, 0xFF800000):
        rounding = np.full(labels.size, bits + 1, dtype=np.uint32)
        rows = domain.rounded(labels, rounding, scratch).tolist()
        assert rows == [floor(place + Fraction(bits + 1, 1 << 32)) for place in places]
    rows, up = domain.split(labels)
    assert rows.tolist() == lower
    assert up.tolist() == [place - row for place, row in zip(places, lower, strict=True)]


@given(st.floats(-1e6, 1e6), st.floats(1e-6, 1e6))
@example(0.0, 1.0)
@example(1.0, 1.0)
@example(0.5, 1.0)
@example(1.5, 1.0)
def test_arithmetic_starts_so_far_from_zero_that_no_label_is_a_subnormal_number(low, width):
    """The time of a product with a subnormal number would differ."""
    domain = Domain(low, low + width, 7)
    tiny = np.array([5e-324, -5e-324, 1e-310, 0.0])
    assert np.unique(domain._position(tiny, np.empty(tiny.size))).size == 1
    assert abs(domain.low - domain._lead * (domain.high - domain.low)) > 0.49 * (domain.high - domain.low)


@given(st.floats(allow_nan=False, allow_infinity=False), st.integers(1, 1 << 51), st.integers(0, 2**32 - 1))
@example(np.finfo(float).max, 1, 0)
@example(5e-324, 7, 2**32 - 1)
def test_every_label_has_a_row_that_exists(label, steps, bits):
    labels, domain = np.array([label]), Domain(-3.0, 5.0, steps)
    with np.errstate(all="ignore"):
        rows = [
            domain.nearest(labels, np.empty(1))[0],
            domain.rounded(labels, np.array([bits], dtype=np.uint32), np.empty(1))[0],
        ]
    assert all(0 <= row <= steps for row in rows)


# ---- where a label's window is, seen through the sampler -----------------------------------------------


def last_cell(channel, label):
    """Return the value of the window's last cell: the very last word of all leads there."""
    return respond(channel, label, np.array([WORDS - 1], dtype=np.uint64))[0]


EDGES = st.lists(st.integers(1, 4095), min_size=1, max_size=12, unique=True).map(sorted)


@given(EDGES, st.sampled_from([1.0, 0.1, 1e-12, 1e9]), st.sampled_from([0.0, -0.3, 1e6]))
@example([16, 48], 1.0, 0.0)  # the first and the third of 256 pieces start here
@example([1, 4095], 256.0, 347149.0)
def test_an_edge_belongs_to_the_bin_on_its_right_and_the_float_before_it_does_not(inner, width, low):
    low *= width if width < 1 else 1.0  # floats must tell the edges apart
    edges = [low, *(low + width * k / 4096 for k in inner), low + width]
    mech = ldp.RROnBins(edges=edges, outputs=range(len(edges) - 1), epsilon=3.0)
    for i, edge in enumerate(edges[1:-1]):
        assert last_cell(mech.channel, edge) == mech.outputs[i + 1]
        assert last_cell(mech.channel, np.nextafter(edge, -np.inf)) == mech.outputs[i]
        assert last_cell(mech.channel, (edges[i] + edge) / 2) == mech.outputs[i]
