"""The curator's coins: bounds contain the true probability, a coin compares with it, noise consists of such coins.

True powers of e are those of `decimal`, to 300 digits. Nothing here is left to chance.
"""

import math
from decimal import Decimal, localcontext
from fractions import Fraction

import numpy as np
import pytest

from labeldp.exact import probabilities
from labeldp.exact.integers import Coins

BITS = 192
RATES = ["1/1000000000000000000000000000000000000000", "1/3", "1", "7/2", "13", "40", "133", "1000", "1e30"]


def real(function, *fractions):
    """Return a function of exact fractions, to 300 digits."""
    with localcontext(prec=300):
        return Fraction(function(*(Decimal(x.numerator) / Decimal(x.denominator) for x in fractions)))


def exp_minus(rate):
    return real(lambda x: (-x).exp() if x < 3000 else Decimal(0), rate)


# ---- probabilities --------------------------------------------------------------------------------------


@pytest.mark.parametrize("rate", RATES)
def test_bounds_contain_the_probability(rate):
    """Of a number that is not 0, or where the scale leaves it room, of its first bit."""
    scale = 1 / Fraction(rate)
    power = exp_minus(Fraction(rate))
    has_bits = places_of(scale) > 0
    probability = power / (1 + power) if has_bits else power
    for bits in (64, BITS, BITS + 64, 448):
        low, high = probabilities.bit_probability(scale, 0, bits)
        assert 0 <= low < high <= low + 2
        assert low - Fraction(1, 10**150) <= probability * 2**bits <= high + Fraction(1, 10**150)


# ---- one coin -------------------------------------------------------------------------------------------


class Script:
    """A source of words from a list, which must not run out."""

    def __init__(self, words):
        self.words = list(words)

    def fill(self, words):
        words[:] = self.words[: words.size]
        del self.words[: words.size]


def as_words(number, count=3):
    """Return words, the highest first."""
    return [number >> 64 * k & (1 << 64) - 1 for k in reversed(range(count))]


THIRD = (1 << 64) // 3
LOW = (1 << BITS) // 3


@pytest.mark.parametrize(
    ("words", "heads"),
    [
        ([0, 0, 0], True),
        (as_words(LOW - 1), True),
        (as_words(LOW + 1), False),
        ([(1 << 64) - 1] * 3, False),
        ([THIRD - 1, (1 << 64) - 1, (1 << 64) - 1], True),
        ([THIRD + 1, 0, 0], False),
        ([*as_words(LOW), THIRD - 1], True),
        ([*as_words(LOW), THIRD + 1], False),
        ([*as_words(LOW), THIRD, THIRD - 1], True),
        ([*as_words(LOW), THIRD, THIRD, THIRD + 1], False),
    ],
)
def test_a_coin_compares_a_uniform_number_with_its_probability_until_it_is_decided(words, heads):
    """The probability is a third, whose bits are 0101…"""
    source = Script(words)
    assert Coins(source).toss(lambda bits: ((1 << bits) // 3, (1 << bits) // 3 + 1)) is heads
    assert not source.words


def test_a_number_that_is_exactly_the_probability_is_tails():
    """Of 2^192 numbers as many are below it as it says, and the first of the others is it."""
    half = 1 << (BITS - 1)
    below, at = (Script(as_words(number)) for number in (half - 1, half))
    assert Coins(below).toss(lambda bits: (1 << (bits - 1), 1 << (bits - 1)))
    assert not Coins(at).toss(lambda bits: (1 << (bits - 1), 1 << (bits - 1)))


# ---- Laplace noise --------------------------------------------------------------------------------------

SCALES = [Fraction(scale) for scale in ("1/500", "1/96", "1/4", "1", "43/32", "2000/17", "1000000000039/7")]


def places_of(scale):
    return next(k for k in range(200) if 2**k >= 96 * scale)


def threshold(scale, place, bits=BITS):
    """Return the bits of the probability of a 1: r^(2^i)/(1 + r^(2^i)), and r^(2^i) after the last place."""
    power = exp_minus(2**place / scale)
    return math.floor((power / (1 + power) if place < places_of(scale) else power) * 2**bits)


def words_for(scale, numbers):
    """Return the words of geometric numbers: each bit's number is next to its threshold, as close as can be."""
    places = range(places_of(scale) + 1)
    bits = [
        as_words(max(0, threshold(scale, place) + (-1 if x >> place & 1 else 1)))
        for x in numbers
        for place in places
    ]
    return [words[k] for k in range(3) for words in bits]


@pytest.mark.parametrize("scale", SCALES, ids=str)
@pytest.mark.parametrize(("x", "y"), [(0, 0), (1, 0), (0, 1), (0b1011, 0b110), (37, 37)])
def test_noise_is_the_difference_of_two_numbers_whose_bits_are_coins(scale, x, y):
    x, y = x % 2 ** places_of(scale), y % 2 ** places_of(scale)
    source = Script(words_for(scale, [x, y]))
    assert Coins(source).laplace(scale, 1).tolist() == [x - y]
    assert not source.words


@pytest.mark.parametrize("place", [0, 7])
@pytest.mark.parametrize(("less", "bit"), [(1, 1), (-1, 0)])
def test_a_bit_in_doubt_is_decided_by_more_words(place, less, bit):
    """Three more. Place 7 tells that there is more; were it a bit, its probability would differ at the 277th."""
    scale = Fraction(4, 3)  # then 2^7 = 96 · scale
    words = words_for(scale, [0, 0])
    first, following = divmod(threshold(scale, place, BITS + 192), 2**192)
    words[place : len(words) : 2 * (places_of(scale) + 1)] = as_words(first)
    tails = as_words(2**BITS - 1) if bit and place == 7 else []
    source = Script([*words, *as_words(following - less), *tails])
    assert Coins(source).laplace(scale, 1).tolist() == [bit << place]
    assert not source.words


@pytest.mark.parametrize("more", [0, 1, 4])
def test_beyond_the_last_bit_coins_are_tossed_until_one_fails(more):
    scale = Fraction(4, 3)  # then 2^7 = 96 · scale
    places = places_of(scale)
    heads, tails = as_words(threshold(scale, places) - 1), as_words(threshold(scale, places) + 1)
    source = Script([*words_for(scale, [5, 3 + 2**places]), *heads * more, *tails])
    assert Coins(source).laplace(scale, 1).tolist() == [2 - 2**places * (1 + more)]
    assert not source.words


@pytest.mark.parametrize("size", [0, 1, 1000, 5000])
def test_every_draw_has_words_of_its_own(size):
    """Words that differ in every block give draws that differ, and none is left out."""
    fills = []

    class Source:
        def fill(self, words):
            fills.append(words.size)
            words[:] = np.random.default_rng(len(fills)).integers(0, 1 << 64, words.size, dtype=np.uint64)

    draws = Coins(Source()).laplace(Fraction(1 << 40), size)
    assert np.unique(draws).size == draws.size == size
    assert sum(fills) == size * 2 * 3 * (places_of(1 << 40) + 1)
