"""From labels to rows: the row that exact arithmetic gives, whatever the interval, and only rows that exist."""

from fractions import Fraction
from math import floor

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from channel_cases import CASES
from helpers import WORDS, Chosen, seeded
from labeldp.channels.domain import CHUNK, Domain, frozen_copy, pieces, select

EVERY = pytest.mark.parametrize("name", CASES)

# ---- the place of a label -----------------------------------------------------------------------------

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


@pytest.mark.parametrize("given_domain", DOMAINS, ids=str)
def test_the_nearest_row_is_that_of_exact_arithmetic(given_domain):
    domain = Domain(*given_domain)
    labels = grid(domain)
    assert domain.nearest(labels, np.empty(labels.size)).tolist() == [round(at(domain, y)) for y in labels]


@pytest.mark.parametrize("given_domain", DOMAINS, ids=str)
@pytest.mark.parametrize("bits", [1 << 23, 1 << 31, 0xC0000000, 0xFF800000])
def test_a_label_is_rounded_up_where_its_rest_and_the_bits_reach_one(given_domain, bits):
    """The bits are no multiple of the grid, so that no sum is a whole number."""
    domain = Domain(*given_domain)
    labels = grid(domain)
    given_bits = np.full(labels.size, bits + 1, dtype=np.uint32)
    rows = domain.rounded(labels, given_bits, np.empty(labels.size)).tolist()
    assert rows == [floor(at(domain, y) + Fraction(bits + 1, 1 << 32)) for y in labels]


@pytest.mark.parametrize("given_domain", DOMAINS, ids=str)
def test_the_piece_is_the_step_that_a_label_lies_in(given_domain):
    domain = Domain(*given_domain)
    labels = grid(domain)
    rows = domain.piece(labels, np.empty(labels.size)).tolist()
    assert rows == [min(floor(at(domain, y)), domain.steps - 1) for y in labels]


@pytest.mark.parametrize("given_domain", DOMAINS, ids=str)
def test_a_split_label_is_the_mean_of_its_two_rows(given_domain):
    domain = Domain(*given_domain)
    labels = grid(domain)
    rows, up = domain.split(labels)
    lower = [min(floor(at(domain, y)), domain.steps - 1) for y in labels]
    assert rows.tolist() == lower
    assert up.tolist() == [at(domain, y) - row for y, row in zip(labels, lower, strict=True)]


@given(st.floats(-1e6, 1e6), st.floats(1e-6, 1e6))
@example(0.0, 1.0)
@example(1.0, 1.0)
@example(0.5, 1.0)
@example(1.5, 1.0)
def test_arithmetic_starts_so_far_from_zero_that_no_label_is_a_subnormal_number(low, width):
    domain = Domain(low, low + width, 7)
    tiny = np.array([5e-324, -5e-324, 1e-310, 0.0])
    scratch = np.empty(tiny.size)
    start = domain.low - domain._lead * (domain.high - domain.low)
    assert abs(start) > 0.49 * (domain.high - domain.low)
    assert np.unique(domain._place(tiny, scratch)).size == 1
    assert domain._lead in (1, 2)


def test_labels_as_far_outside_as_floats_go_raise_no_warning():
    """Warnings are errors in these tests; a warning would tell that a label lies outside."""
    domain = Domain(0.0, 1e-3, 1 << 40)
    far = np.array([-1e308, 1e308])
    assert domain.nearest(far, np.empty(2)).tolist() == [0, domain.steps]
    assert domain.split(far)[0].tolist() == [0, domain.steps - 1]


def test_a_place_that_is_not_a_number_gets_a_row_that_exists():
    """No label is not a number, and no interval that was verified makes one so; but an index is never let off."""
    domain = Domain(0.0, 1.0, 8)
    odd = np.array([np.nan, -np.nan, np.inf, -np.inf])
    for rows in (domain.nearest(odd, np.empty(4)), domain.rounded(odd, np.zeros(4, np.uint32), np.empty(4))):
        assert ((rows >= 0) & (rows <= 8)).all()
    assert ((domain.piece(odd, np.empty(4)) >= 0) & (domain.piece(odd, np.empty(4)) < 8)).all()


# ---- what channels share ------------------------------------------------------------------------------


@pytest.mark.parametrize("size", [0, 1, CHUNK - 1, CHUNK, CHUNK + 1, 3 * CHUNK, 3 * CHUNK + 5])
def test_pieces_cover_every_place_once_and_are_short(size):
    cut = list(pieces(size))
    assert [i for piece in cut for i in range(piece.start, piece.stop)] == list(range(size))
    assert all(piece.stop - piece.start <= CHUNK for piece in cut)
    assert len(cut) == -(-size // CHUNK)


def test_a_frozen_copy_is_nobodys_to_write():
    mine = np.arange(3)
    copy = frozen_copy(mine)
    mine[0] = 9
    assert copy.tolist() == [0, 1, 2]
    with pytest.raises(ValueError, match="read-only"):
        copy[0] = 9


def test_select_takes_each_word_from_where_it_is_told():
    yes = np.array([0, WORDS - 1, 5, 1 << 63], dtype=np.uint64)
    no = np.array([WORDS - 1, 0, 6, 7], dtype=np.uint64)
    chosen = np.array([True, False, True, False])
    assert select(chosen, yes.copy(), no.copy()).tolist() == [0, 0, 5, 7]
    assert select(~chosen, yes.copy(), no.copy()).tolist() == [WORDS - 1, WORDS - 1, 6, 1 << 63]


# ---- long arrays --------------------------------------------------------------------------------------


class Recorded:
    """A source that remembers what it gave."""

    def __init__(self, seed):
        self.source, self.given = seeded(seed), []

    def fill(self, words):
        self.source.fill(words)
        self.given.append(words.copy())


@EVERY
@pytest.mark.parametrize("size", [1, 2, 7, 2 * CHUNK + 5, 2 * CHUNK + 6])
def test_every_label_of_a_long_array_is_randomised_by_words_of_its_own(name, size):
    channel, labels, _, _ = CASES[name]
    rounds = name.startswith(("table", "shift"))
    y = np.random.default_rng(1).uniform(min(labels) - 1, max(labels) + 1, size)
    source, out = Recorded(2), np.full(size, np.nan)
    channel.sample(y, source, out)
    lengths = [piece.stop - piece.start for piece in pieces(size)]
    assert [words.size for words in source.given] == [n + (n + 1) // 2 if rounds else n for n in lengths]
    places = [*range(min(size, 20)), *range(max(0, size - 20), size), *range(CHUNK - 9, CHUNK + 9)]
    for place in (p for p in places if p < size):
        words = source.given[place // CHUNK]
        own = place % CHUNK
        bits = int(words[lengths[place // CHUNK] :].view(np.uint32)[own]) if rounds else 0
        alone = np.empty(1)
        channel.sample(y[[place]], Chosen([words[own]], np.uint64(bits << 32 | bits)), alone)
        assert alone[0] == out[place]


@EVERY
def test_no_labels_are_no_outputs(name):
    channel = CASES[name][0]
    source = Recorded(2)
    channel.sample(np.empty(0), source, np.empty(0))
    assert not source.given


def test_labels_of_32_bits_are_read_as_numbers_of_64_before_anything_is_computed():
    domain = Domain(0.1, 0.9, 1 << 40)
    labels = np.array([0.3, 0.7], dtype=np.float32)
    wide = labels.astype(np.float64)
    assert domain.nearest(labels, np.empty(2)).tolist() == domain.nearest(wide, np.empty(2)).tolist()
