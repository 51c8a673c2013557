"""The smallest, largest and closest channels: what is just allowed is, and one word or one row more is not."""

from dataclasses import replace
from fractions import Fraction

import numpy as np
import pytest

import labeldp as ldp
from exact.channel_cases import CASES
from helpers import WORDS, measure
from labeldp.errors import NotUnbiasedError
from labeldp.exact import Promise, ShiftChannel, WindowChannel, sampling

ANY = Promise(Fraction(45))
"""Above 64·ln 2: every ratio of counts keeps it."""

EVERY = pytest.mark.parametrize("name", CASES)


def refused(match):
    return pytest.raises(ldp.errors.PrivacyProofError, match=match)


# ---- windows --------------------------------------------------------------------------------------------

THIRD = (WORDS - 1) // 3


@pytest.mark.parametrize(
    ("numbers", "options", "match"),
    [
        ((2, 1, 1, WORDS), {}, "too large"),
        (((1 << 51) + 1, 1, 1, WORDS - 1), {}, "too large"),
        ((1, 1, 1, WORDS - 1), {}, "no room"),
        ((2, 1, WORDS, 1), {}, "do not fit"),
        ((2, 1, 1, WORDS - 1), {"cuts": np.array([0.5])}, "one value a cell"),
        ((4, 2, 1, WORDS - 1), {"cuts": [0.2, 0.7], "values": np.zeros(4)}, "windows of one cell"),
        (((1 << 63), (1 << 63) - 5, 1, WORDS - 1), {}, "too large"),
    ],
)
def test_windows_that_are_just_impossible_are_refused(numbers, options, match):
    with refused(match):
        WindowChannel(0.0, 1.0, *numbers, ANY, **options)


def test_a_window_of_fewer_words_than_a_cell_may_take_is_proven_by_its_words():
    """Two words are left over, and a cell may have a thousand."""
    channel = WindowChannel(0.0, 1.0, 2, 1, WORDS // 2 - 1, 1000, ANY)
    assert channel.verify().worst_ratio == Fraction(WORDS // 2 + 1, WORDS // 2 - 1)
    assert measure(channel, 0.0) == {0.0: WORDS // 2 + 1, 1.0: WORDS // 2 - 1}


@EVERY
def test_an_interval_that_gives_a_label_no_row_is_refused(name):
    """Not a number has bits too, and they are the number of a row far outside the table."""
    channel = CASES[name][0]
    for low, high in ((np.nan, 1.0), (0.0, np.inf), (1.0, 1.0), (1.0, 0.0), (0.0, 1e-300), ("0", 1.0)):
        with pytest.raises(ldp.LabelDPError, match="low and high"):
            replace(channel, low=low, high=high)


@pytest.mark.parametrize(
    ("epsilon", "delta"),
    [
        (Fraction(-1), Fraction(0)),
        (1.0, Fraction(0)),
        (Fraction(1), 0.5),
        (Fraction(1), Fraction(3, 2)),
    ],
)
def test_a_promise_that_no_counts_could_break_is_refused(epsilon, delta):
    with pytest.raises(ldp.errors.ParameterError, match="epsilon must not be negative, and delta"):
        Promise(epsilon, delta)


# ---- tables ---------------------------------------------------------------------------------------------

HALF = WORDS // 2


def table(*rows, values=None, low=0.0, high=1.0):
    values = np.arange(len(rows[0])) if values is None else values
    return ldp.exact.TableChannel.from_counts(low, high, values, rows, ANY)


def test_tables_that_say_too_little_are_refused():
    with refused("two rows"):
        table([HALF, HALF])
    with refused("does not exist"):
        table([HALF, HALF], [HALF, HALF], values=np.empty(0))
    with refused("sum to 2"):
        table([WORDS], [WORDS])  # one output: its 2^64 words are no 64-bit number
    with refused("does not exist"):
        table([HALF, HALF - 1, 1], [HALF, HALF, 0], values=np.zeros(2))


def test_a_single_word_under_one_label_and_none_under_another_is_refused():
    with refused("possible under one label"):
        table([1, HALF, HALF - 1], [0, HALF, HALF])
    assert table([0, HALF, HALF], [0, HALF, HALF]).verify().worst_ratio == 1  # possible under none
    assert table([1, HALF, HALF - 1], [2, HALF, HALF - 2]).verify().worst_ratio == 2


@pytest.mark.parametrize(("low", "high", "reach"), [(0.0, 1.0, 2.0), (-1.0, 3.0, 8.0)])
@pytest.mark.parametrize("row", [0, 1])
def test_a_table_is_unbiased_if_its_rows_average_to_their_labels(low, high, reach, row):
    """A millionth of the width off is a bias; what rounding to words leaves is none."""
    for off, unbiased in ((0, True), (1e-6, False), (-1e-6, False)):
        means = [Fraction(low), Fraction(high)]
        means[row] += Fraction(off * (high - low))
        upper = [round((1 + mean / Fraction(reach)) / 2 * WORDS) for mean in means]
        channel = table(*([WORDS - n, n] for n in upper), values=[-reach, reach], low=low, high=high)
        outputs = np.array([-reach, reach])
        if unbiased:
            assert channel.slope() == 1.0
            assert channel.debias(outputs).tolist() == outputs.tolist()
            assert channel.debias(outputs) is not outputs
        else:
            with pytest.raises(NotUnbiasedError):
                channel.debias(outputs)


# ---- shifts ---------------------------------------------------------------------------------------------

THREE = [WORDS // 4, WORDS // 2, WORDS // 4]


def test_shifts_that_are_just_possible_are_built_and_others_refused():
    promise = Promise(Fraction(1), Fraction(99, 100))
    for margin in (0, 1):
        assert ShiftChannel.from_counts(0.0, 1.0, 1, margin, THREE, promise).verify().delta <= 0.99
    assert ShiftChannel.from_counts(0.0, 1.0, 1, 0, THREE, ANY).verify().worst_ratio == 3
    for steps, margin in ((0, 0), (1, 2), (1, -1)):
        with refused("must be positive"):
            ShiftChannel.from_counts(0.0, 1.0, steps, margin, THREE, promise)
    with refused("must be positive"):
        ShiftChannel(0.0, 1.0, 1, 0, 0, sampling.alias_tables([[HALF, HALF]])[0], promise)
    with refused("does not reach"):
        ShiftChannel.from_counts(0.0, 1.0, 1, 1, THREE, ANY)
    with refused("does not exist"):
        ShiftChannel(0.0, 1.0, 1, 1, 2, sampling.alias_tables([THREE])[0], promise)
    with refused("does not exist"):
        ShiftChannel(0.0, 1.0, 1, 1, 1, sampling.alias_tables([[*THREE[:2], WORDS // 4 - 1, 1]])[0], promise)
    with refused("sum to 2"):
        ShiftChannel.from_counts(0.0, 1.0, 1, 1, [0, WORDS, 0], promise)
    with refused("one row"):
        ShiftChannel(0.0, 1.0, 1, 0, 1, sampling.alias_tables([THREE])[0][None, :], ANY)


def test_a_shift_that_moves_words_to_nowhere_is_refused():
    with refused("possible under one label"):
        ShiftChannel.from_counts(0.0, 1.0, 1, 1, [1, 0, WORDS - 3, 1, 1], ANY)
    five = [1, 2, WORDS - 8, 3, 2]
    assert ShiftChannel.from_counts(0.0, 1.0, 1, 1, five, ANY).verify().worst_ratio == (WORDS - 8) // 2


@pytest.mark.parametrize("side", [-1, 1])
@pytest.mark.parametrize(("clamped", "unbiased"), [(1e-7, True), (1e-3, False)])
def test_a_shift_is_unbiased_if_clamping_moves_no_mean_by_more_than_a_trace(side, clamped, unbiased):
    """Noise of ±1, and of 3 on one side in a few words, which the margin of 2 makes 2 for one of the rows."""
    few = round(clamped * WORDS)
    more = (WORDS - 5 - few) // 2 + 3 * few // 2  # on the other side, so that the noise has mean 0
    counts = [1, 1, more, 1, WORDS - 4 - few - more, 1, few][::side]
    channel = ShiftChannel.from_counts(0.0, 1.0, 1, 2, counts, ANY)
    outputs = np.array([0.0, 1.0])
    if unbiased:
        assert channel.debias(outputs).tolist() == [0.0, 1.0]
        assert channel.debias(outputs) is not outputs
        assert channel.slope() == 1.0
    else:
        with pytest.raises(NotUnbiasedError):
            channel.debias(outputs)
