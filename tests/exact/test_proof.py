"""The arithmetic that every guarantee rests on: bounds of e^x, alias tables, worst cases over rows."""

import math
from decimal import Context, Decimal
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

import labeldp as ldp
from helpers import WORDS
from labeldp.errors import PrivacyProofError
from labeldp.exact import Promise, sampling
from labeldp.exact import proof as proofs
from labeldp.exact.shift import _hockey_stick
from labeldp.mechanisms import exp_lower

PRECISE = Context(prec=120, Emin=-(10**6), Emax=10**6)
"""Decimals with 120 digits: wrong by far less than 2^-300."""


def exp(x):
    """Return e^x to 110 digits."""
    value = PRECISE.exp(PRECISE.divide(Decimal(x.numerator), Decimal(x.denominator)))
    return Fraction(value)


# ---- e^x ------------------------------------------------------------------------------------------


@given(st.fractions(0, 20))
@example(Fraction(0))
@example(Fraction(20))
@example(Fraction(1, 10**40))
@example(Fraction(0.1))
def test_exp_lower_is_below_the_exponential_and_within_two_to_the_minus_100(x):
    true = exp(x)
    assert true * (1 - Fraction(1, 1 << 100)) <= exp_lower(x) <= true * (1 + Fraction(1, 10**110))


RATIOS = st.integers(1, WORDS - 1).flatmap(
    lambda small: st.integers(small, WORDS).map(lambda large: Fraction(large, small))
)


@given(RATIOS)
@example(Fraction(WORDS - 1, WORDS - 2))
@example(Fraction(2))
@example(Fraction(WORDS - 1, 1))
def test_epsilon_of_is_the_smallest_float_that_covers_the_ratio(ratio):
    epsilon = proofs.epsilon_of(ratio)
    assert exp_lower(Fraction(epsilon)) >= ratio
    assert epsilon == 0 or exp(Fraction(math.nextafter(epsilon, 0))) < ratio * (1 + Fraction(1, 1 << 99))


@pytest.mark.parametrize("epsilon", [Fraction(1, 3), Fraction(2, 3), Fraction(3, 10), Fraction(1)])
def test_a_promise_that_is_used_up_is_kept_and_its_float_does_not_claim_less(epsilon):
    """Of 1/3 and 2/3 one float lies below, the other above."""
    bound = exp_lower(epsilon)
    proof = proofs.prove_pure([bound.as_integer_ratio()], Promise(epsilon))
    assert proof == ldp.exact.Proof(proofs.epsilon_of(bound), 0.0, bound)
    assert exp(Fraction(proof.epsilon)) >= bound
    with pytest.raises(PrivacyProofError, match="must not be used"):
        proofs.prove_pure([(bound + Fraction(1, 1 << 192)).as_integer_ratio()], Promise(epsilon))


@given(st.fractions(0, 100))
@example(Fraction(0))
@example(Fraction(1, 10**320))
def test_float_above_is_the_next_float_that_is_not_below(value):
    number = proofs.float_above(value)
    assert Fraction(number) >= value
    assert number == 0 or Fraction(math.nextafter(number, 0)) < value


def test_a_promise_is_the_smaller_of_the_decimal_and_the_binary_number():
    assert Promise.of(0.5) == Promise(Fraction(1, 2), Fraction(0))
    assert Promise.of(0.3) == Promise(Fraction(0.3)) != Promise(Fraction(3, 10))
    assert Promise.of(0.1, 0.1) == Promise(Fraction(1, 10), Fraction(1, 10))
    assert Promise.of(1.0, 0.3).delta == Fraction(0.3)


@given(st.integers(1, 20_000))
@example(300)  # the float 0.3 lies below 3/10
def test_a_proven_epsilon_is_neither_below_the_exact_loss_nor_above_what_was_requested(thousandths):
    """Two points come within 2^-60 of e^ε: closer than ε as a decimal is to ε as a float."""
    epsilon = thousandths / 1000
    proof = ldp.TwoPoint(bounds=(0, 1), epsilon=epsilon).verify()
    assert exp(Fraction(proof.epsilon)) >= proof.worst_ratio
    assert proof.epsilon <= epsilon


# ---- alias tables ---------------------------------------------------------------------------------


@st.composite
def rows(draw):
    """Counts that sum to 2^64: zeros, one or several huge, any number of outputs."""
    size = draw(st.integers(2, 40))
    weight = st.one_of(st.just(0), st.integers(0, 5), st.integers(0, WORDS), st.just(1 << 63))
    counts, left = [], WORDS
    for _ in range(size - 1):
        counts.append(min(left, draw(weight) >> draw(st.sampled_from([0, 3, 6, 40]))))
        left -= counts[-1]
    counts.append(left)
    order = draw(st.permutations(range(size)))
    return [counts[i] for i in order]


def recounted(row):
    """Return the counts that `recount` reads, as integers; all of 2^64 shows as 0."""
    return sampling.recount(row).tolist()


@given(rows())
@example([WORDS - 1, 1])
@example([1, *[0] * 30, WORDS - 1])
@example([WORDS // 4] * 4)
@example([0, WORDS])
def test_recount_gives_back_the_counts_that_a_table_was_built_from(counts):
    table = sampling.alias_tables([counts])[0]
    assert recounted(table) == [n % WORDS for n in counts] + [0] * (table.size - len(counts))


@given(rows())
@example([WORDS - 1, 1])
@example([WORDS // 4] * 4)
@settings(deadline=None)
def test_draw_maps_as_many_words_to_each_output_as_recount_claims(counts):
    """Every column is probed at its first and last word and around its threshold; between those
    words a comparison with one number cannot change its result.
    """
    table = sampling.alias_tables([counts])[0]
    bits = sampling.bits_of(table)
    capacity = WORDS >> bits
    total = [0] * table.size
    for column, entry in enumerate(table.tolist()):
        kept = min(entry >> bits, capacity)
        places = sorted({p for p in (0, kept - 1, kept, kept + 1, capacity - 1) if 0 <= p < capacity})
        words = np.array([column * capacity + p for p in places], dtype=np.uint64)
        results = sampling.draw(table, None, words).tolist()
        ends = [*places[1:], capacity]
        for place, end, result, following in zip(places, ends, results, [*results[1:], None], strict=True):
            # A change may only happen right at a probe that follows its predecessor directly.
            assert end - place == 1 or following in (result, None)
            total[result] += end - place
    assert [n % WORDS for n in total] == recounted(table)


@pytest.mark.parametrize(
    "counts",
    [
        [WORDS - 1],
        [WORDS // 2, WORDS // 2 + 1],
        [WORDS + 1, -1],
        [0, 0],
        [WORDS >> 18] * (1 << 18),
        [],
        [2.0**63, 2.0**63],
    ],
    ids=["short", "long", "negative", "zeros", "too many", "none", "floats"],
)
def test_a_table_is_only_built_from_integer_counts_that_sum_to_all_words(counts):
    with pytest.raises(PrivacyProofError):
        sampling.alias_tables([counts])[0]


@pytest.mark.parametrize(
    "row",
    [
        np.zeros((4, 1), dtype=np.uint64),
        np.zeros(3, dtype=np.uint64),
        np.zeros(4, dtype=np.int64),
    ],
    ids=lambda row: f"{row.shape} {row.dtype}",
)
@pytest.mark.parametrize("dimensions", [1, 2])
def test_what_is_no_packed_row_is_not_proven(row, dimensions):
    with pytest.raises(PrivacyProofError, match="packed as"):
        sampling.verified_counts(row, dimensions, 2)


# ---- worst cases over rows ------------------------------------------------------------------------


def hockey_stick(counts, shift, bound):
    """Return Σ max(0, P(o) − bound·P(o − shift)), output by output, in fractions."""
    here = dict(enumerate(counts))
    there = {o + shift: n for o, n in here.items()}
    gaps = (here.get(o, 0) - bound * there.get(o, 0) for o in {*here, *there})
    return sum((max(Fraction(0), Fraction(gap)) for gap in gaps), Fraction(0)) / WORDS


@given(
    st.lists(st.one_of(st.just(0), st.integers(0, 9), st.integers(0, WORDS - 1)), min_size=1, max_size=20),
    st.integers(1, 25),
    st.fractions(Fraction(1, 1000), 20),
)
def test_hockey_stick_is_exact_for_any_counts(counts, shift, epsilon):
    bound = exp_lower(epsilon)
    got = _hockey_stick(np.array(counts, dtype=np.uint64), shift, bound)
    assert got == hockey_stick(counts, shift, bound)


@given(st.integers(1 << 50, 1 << 62), st.integers(-3, 3), st.fractions(Fraction(1, 1000), 1))
def test_hockey_stick_is_exact_where_floats_cannot_tell_the_counts_apart(small, off, epsilon):
    bound = exp_lower(epsilon)
    counts = [math.floor(bound * small) + off, 7, small]
    for way, shift in ((counts, 2), (counts[::-1], 2), (counts, 1)):
        got = _hockey_stick(np.array(way, dtype=np.uint64), shift, bound)
        assert got == hockey_stick(way, shift, bound)
