"""The curator's coins, one by one: given the coins that it is made of, each has its probability exactly.

Coins are told what the coins below them show, and asked which they tossed. A run's probability is e to a sum of
fractions: exponents are compared, exactly, and nothing here is left to chance.
"""

import math
from collections import Counter
from fractions import Fraction
from itertools import product

import numpy as np
import pytest

from helpers import seeded
from labeldp.channels.noise import _BATCH, DiscreteGaussian, DiscreteLaplace, LatticeNorm, _Coins, _root_bounds


class Counting:
    """A source of the words 0, 1, 2 …"""

    def __init__(self):
        self.next = 0

    def fill(self, words):
        words[:] = np.arange(self.next, self.next + words.size, dtype=np.uint64)
        self.next += words.size


class UsedUp(Exception):  # noqa: N818 (no error: the coin asks for more than it was told)
    pass


def told(answers, *names):
    """Return coins whose methods of these names answer as told, and the list of what they were asked."""
    coins, left, asked = _Coins(Counting()), list(answers), []

    def answer(name, arguments):
        if not left:
            raise UsedUp(*arguments)
        asked.append(arguments if len(names) == 1 else (name, *arguments))
        return left.pop(0)

    for name in names:
        setattr(coins, name, lambda *arguments, name=name: answer(name, arguments))
    return coins, asked


# ---- uniform integers ---------------------------------------------------------------------------------


def test_no_word_is_used_twice_and_none_is_left_out():
    coins = _Coins(Counting())
    assert sorted(coins._word() for _ in range(3 * _BATCH)) == list(range(3 * _BATCH))


@pytest.mark.parametrize("bound", [1, 2, 3, 4, 5, 8, 9, 1000])
def test_each_integer_below_a_bound_has_one_word_in_a_power_of_two_and_other_words_are_thrown_away(bound):
    above = 0xABCDEF << 40  # bits that do not matter
    size = 1 << math.ceil(math.log2(bound))
    first = [told([above + word, above], "_word")[0].below(bound) for word in range(size)]
    assert first == [word if word < bound else 0 for word in range(size)]


@pytest.mark.parametrize("bound", [(1 << 64) - 1, 1 << 64, (1 << 64) + 1, (1 << 128) + 5, 10**40])
def test_a_large_integer_is_put_together_from_as_many_words_as_it_needs(bound):
    words = [0x0123456789ABCDEF, 0xFEDCBA9876543210, 0x1122334455667788, 0, 6, 7]
    bits = (bound - 1).bit_length()
    each = -(-bits // 64)
    numbers = [
        sum(word << 64 * place for place, word in enumerate(words[i : i + each][::-1])) % 2**bits
        for i in range(0, len(words), each)
    ]
    kept = next(i for i, number in enumerate(numbers) if number < bound)
    coins, asked = told(words, "_word")
    assert coins.below(bound) == numbers[kept]
    assert len(asked) == each * (kept + 1)


# ---- e to minus a fraction ----------------------------------------------------------------------------


def outcomes(coin, depth):
    """Return the exact probability of each outcome, over every run of at most ``depth`` integers."""
    total = Counter()
    runs = [()]
    while runs:
        script = runs.pop()
        coins, asked = told(script, "below")
        try:
            total[coin(coins)] += Fraction(1, math.prod(bound for (bound,) in asked))
        except UsedUp as more:
            if len(script) == depth:
                total["undecided"] += Fraction(1, math.prod(bound for (bound,) in asked))
            else:
                runs += [(*script, value) for value in range(more.args[0])]
    return total


@pytest.mark.parametrize(("top", "bottom", "depth"), [(0, 1, 3), (1, 1, 7), (1, 2, 6), (2, 3, 5), (1, 5, 5)])
def test_coin_shows_heads_with_probability_e_to_minus_a_fraction_exactly(top, bottom, depth):
    """All runs of the coin are walked through: what they leave open is the exponential series' rest."""
    exact = outcomes(lambda coins: coins.exp_minus(top, bottom), depth)
    rate = Fraction(top, bottom)
    decided = depth if depth % 2 else depth - 1
    assert exact[True] == sum((-rate) ** k / math.factorial(k) for k in range(decided + 1))
    assert exact["undecided"] == rate**depth / math.factorial(depth)
    assert exact[True] + exact[False] + exact["undecided"] == 1


@pytest.mark.parametrize("rate", ["0", "1/3", "1", "4/3", "7/2", "5"])
def test_a_rate_above_one_is_a_sum_of_rates_up_to_one(rate):
    rate = Fraction(rate)
    parts = math.ceil(rate) or 1
    coins, asked = told([True] * parts, "_exp_minus_up_to_one")
    assert coins.exp_minus(rate.numerator, rate.denominator) is True
    assert sum(Fraction(*question) for question in asked) == rate
    assert all(Fraction(*question) <= 1 for question in asked)
    for tails in range(parts):
        coins, asked = told([True] * tails + [False], "_exp_minus_up_to_one")
        assert coins.exp_minus(rate.numerator, rate.denominator) is False
        assert len(asked) == tails + 1


# ---- e to minus a root --------------------------------------------------------------------------------


@pytest.mark.parametrize("square", [0, 1, 2, 9, 10**9 + 7, 1 << 130])
@pytest.mark.parametrize("bits", [0, 1, 40])
def test_a_root_lies_between_its_bounds(square, bits):
    low, high = _root_bounds(square, bits)
    assert low**2 <= square < high**2
    assert high - low == Fraction(1, 1 << bits)


RATES = [
    (0, Fraction(3), Fraction(0)),
    (2, Fraction(3), Fraction(0)),
    (2, Fraction(1, 10**6), Fraction(1414211)),
    (49, Fraction(2, 3), Fraction(1, 7)),
    (49, Fraction(2), Fraction(7, 2)),
    (10**12 + 1, Fraction(10**5, 3), Fraction(21, 2)),
    (2, Fraction(1), Fraction(math.isqrt(2 << 200) + 1, 1 << 100) - 1),  # γ is the least bit below 1
]


@pytest.mark.parametrize(("square", "scale", "less"), RATES)
def test_a_rate_with_a_root_is_a_sum_of_ones_and_of_two_halves_of_the_rest(square, scale, less):
    """The rest is bracketed: for γ = √square/scale − less, n + 2·low ≤ γ ≤ n + 2·high."""
    whole = next(n for n in range(99) if ((n + 1 + less) * scale) ** 2 > square)
    coins, asked = told([True] * (whole + 2), "_exp_minus_up_to_one", "_exp_minus_bracketed")
    assert coins.exp_minus_root(square, scale, less) is True
    assert asked[:whole] == [("_exp_minus_up_to_one", 1, 1)] * whole
    assert [name for name, _ in asked[whole:]] == ["_exp_minus_bracketed"] * 2
    for _, bracket in asked[whole:]:
        for bits in (20, 64, 300):
            low, high = bracket(bits)
            assert ((whole + 2 * low + less) * scale) ** 2 <= square < ((whole + 2 * high + less) * scale) ** 2
            assert high - low == 1 / (2 * scale * 2**bits)
            assert high <= 1, "a coin of this rate would not be one"
    for tails in range(whole + 2):
        coins, asked = told([True] * tails + [False], "_exp_minus_up_to_one", "_exp_minus_bracketed")
        assert coins.exp_minus_root(square, scale, less) is False
        assert len(asked) == tails + 1


@pytest.mark.parametrize("heads", range(5))
def test_a_bracketed_coin_shows_heads_if_the_first_part_to_fail_is_odd(heads):
    bracket = object()
    coins, asked = told([True] * heads + [False], "_below_bracketed")
    assert coins._exp_minus_bracketed(bracket) is (heads % 2 == 0)
    assert asked == [(bracket, k) for k in range(1, heads + 2)]


HALF = 1 << 63
THIRD = (1 << 64) // 3  # its bits are those of 1/3: 0101…


@pytest.mark.parametrize(
    ("rate", "k", "words", "below"),
    [
        (Fraction(1, 2), 1, [HALF - 1], True),
        (Fraction(1, 2), 1, [HALF], False),
        (Fraction(1), 2, [HALF - 1], True),
        (Fraction(1), 2, [HALF], False),
        (Fraction(1), 3, [THIRD - 1], True),
        (Fraction(1), 3, [THIRD + 1], False),
        (Fraction(1), 3, [THIRD, THIRD - 1], True),
        (Fraction(1), 3, [THIRD, THIRD + 1], False),
        (Fraction(1), 3, [THIRD, THIRD, 0], True),
        (Fraction(1), 3, [THIRD, THIRD, THIRD + 1], False),
        (Fraction(0), 1, [0], False),
    ],
)
def test_a_uniform_number_is_compared_bit_by_bit_until_it_is_decided(rate, k, words, below):
    coins, asked = told(words, "_word")
    precisions = []

    def exact(bits):
        precisions.append(bits)
        return rate, rate

    assert coins._below_bracketed(exact, k) is below
    assert len(asked) == len(words)
    assert precisions == [64 * n + 32 for n in range(1, len(words) + 1)]


def test_a_rate_that_is_not_yet_known_well_enough_decides_nothing():
    """The number's first 64 bits are below the upper bound, and not below the lower one."""
    brackets = {96: (Fraction(1, 4), Fraction(3, 4)), 160: (Fraction(2, 5), Fraction(3, 5))}
    for first, second, below in ((HALF >> 1, 0, True), (3 * (HALF >> 1) - 1, 0, False)):
        coins, asked = told([first, second], "_word")
        assert coins._below_bracketed(brackets.__getitem__, 1) is below
        assert len(asked) == 2


# ---- noise --------------------------------------------------------------------------------------------


@pytest.mark.parametrize("scale", ["1", "3", "1/4", "3/2", "5/3", "7/10"])
def test_laplace_runs_have_exactly_the_exponents_of_the_distribution(scale):
    """Runs that end in x have rates (|x|·s + i)/t, i < s: together a multiple of e^(−|x|/scale)."""
    scale = Fraction(scale)
    t, s, most = scale.numerator, scale.denominator, 12
    seen = {}
    for u, v, sign in product(range(t), range(most), (0, 1)):
        coins, asked = told([u, True, *[True] * v, False, sign], "below", "exp_minus")
        try:
            x = coins.laplace(scale)
        except UsedUp:
            x = "again"
        assert asked[0] == ("below", t)
        assert asked[-1] == ("below", 2)
        assert asked[1] == ("exp_minus", u, t)
        assert asked[2:-1] == [("exp_minus", 1, 1)] * (v + 1)
        rate = sum(Fraction(*question[1:]) for question in asked[1:-2])
        seen.setdefault(x, []).append(rate)
    whole = [x for x in seen if x != "again" and (abs(x) + 1) * s <= t * most]
    assert {-1, 0, 1} <= set(whole)
    for x in whole:
        assert sorted(seen[x]) == [Fraction(abs(x) * s + i, t) for i in range(s)]
    assert sorted(seen["again"]) == sorted(seen[0]), "minus zero is drawn again, or zero came twice"


def test_a_laplace_run_that_fails_starts_again():
    coins, asked = told([2, False, 1, True, True, False, 1], "below", "exp_minus")
    assert coins.laplace(Fraction(3)) == -4
    assert asked[:4] == [("below", 3), ("exp_minus", 2, 3), ("below", 3), ("exp_minus", 1, 3)]


@pytest.mark.parametrize("variance", ["1/5", "1", "10/3", "9", "5000/7"])
def test_gaussian_runs_have_exactly_the_exponents_of_the_distribution(variance):
    """|y|/t for the Laplace draw and the rate of the coin that keeps it, less the same at 0: y²/(2σ²)."""
    variance = Fraction(variance)
    t = math.floor(math.sqrt(variance)) + 1
    exponents = {}
    for y in range(-30, 31):
        coins, asked = told([y, True], "laplace", "exp_minus")
        assert coins.gaussian(variance) == y
        assert asked[0] == ("laplace", t)
        exponents[y] = Fraction(abs(y), t) + Fraction(*asked[1][1:])
        assert asked[1][1] >= 0
    assert all(exponents[y] - exponents[0] == y**2 / (2 * variance) for y in exponents)
    coins, asked = told([4, False, -1, True], "laplace", "exp_minus")
    assert coins.gaussian(variance) == -1


@pytest.mark.parametrize("vector", [(0,), (-3,), (0, 0), (3, -4), (1, 0, -2, 5, 1)])
@pytest.mark.parametrize("scale", [Fraction(8, 5), Fraction(1, 7)])
def test_vectors_are_kept_by_what_their_length_weighs_more_than_their_coordinates(vector, scale):
    size = len(vector)
    other = [9] * size
    coins, asked = told([*other, False, *vector, True], "laplace", "exp_minus_root")
    assert coins.norm_noise(scale, size) == list(vector)
    wide = asked[0][1]
    assert (wide / scale) ** 2 >= size > (wide / scale - Fraction(1, 1 << 31)) ** 2
    assert asked == [
        *[("laplace", wide)] * size,
        ("exp_minus_root", 81 * size, scale, 9 * size / wide),
        *[("laplace", wide)] * size,
        ("exp_minus_root", sum(x * x for x in vector), scale, sum(map(abs, vector)) / wide),
    ]


@pytest.mark.parametrize(
    ("noise", "coin"),
    [(DiscreteLaplace(Fraction(5, 3)), "laplace"), (DiscreteGaussian(Fraction(5, 3)), "gaussian")],
)
def test_draws_are_those_of_the_coins(noise, coin):
    coins = _Coins(seeded(3))
    one_by_one = [getattr(coins, coin)(Fraction(5, 3)) for _ in range(20)]
    assert noise.sample(20, seeded(3)).tolist() == one_by_one
    assert noise.sample(20, seeded(3)).dtype == np.int64


def test_a_vector_is_that_of_the_coins():
    drawn = LatticeNorm(Fraction(5, 3)).sample(3, seeded(3))
    assert drawn.tolist() == _Coins(seeded(3)).norm_noise(Fraction(5, 3), 3)
    assert drawn.dtype == np.int64
