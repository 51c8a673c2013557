"""Random words at length: none repeats, and tests of NIST SP 800-22 (package nistrng) find nothing."""

import numpy as np
import pytest
from nistrng import SP800_22R1A_BATTERY

from helpers import seeded
from labeldp.exact.word_sources import SecureWords

WORDS = 10_000_000
BITS = 1 << 17
ALPHA = 1e-9
"""Of each test on fresh secure words; 6 of them."""


def repeats(source, count=WORDS):
    """Return how many of ``count`` words occurred before."""
    words = np.empty(count, dtype=np.uint64)
    source.fill(words)
    words.sort()
    return int(np.count_nonzero(words[1:] == words[:-1]))


@pytest.mark.slow
@pytest.mark.statistical
def test_of_ten_million_words_none_repeats():
    """Uniform words repeat n²/2^65 = 2.7e-6 times on average; twice or more with probability 4e-12."""
    assert repeats(SecureWords()) <= 1


def test_a_source_that_starts_over_is_found():
    class Restarts:
        """A counter that is set back now and then, as a restored snapshot would."""

        def fill(self, words):
            half = words.size // 2
            seeded(1).fill(words[:half])
            seeded(1).fill(words[half : half + 1000])
            seeded(2).fill(words[half + 1000 :])

    assert repeats(Restarts(), 1_000_000) >= 1000


def bits_of(source):
    words = np.empty(BITS // 64, dtype=np.uint64)
    source.fill(words)
    return np.unpackbits(words.view(np.uint8)).astype(np.int64)


def score(name, bits):
    test = SP800_22R1A_BATTERY[name]
    assert test.is_eligible(bits)
    result, _ = test.run(bits)
    return result.score


PLACE = np.arange(BITS)
BROKEN = {
    "monobit": lambda bits, odd: bits | (odd < 0.03),
    "frequency_within_block": lambda bits, odd: np.where(odd < 0.2, PLACE // 6000 % 2, bits),
    "runs": lambda bits, odd: np.where(odd < 0.05, np.roll(bits, 1), bits),
    "longest_run_ones_in_a_block": lambda bits, odd: bits | (PLACE % 128 < 10),
    "binary_matrix_rank": lambda bits, odd: np.tile(bits[:64], BITS // 64),
    "dft": lambda bits, odd: np.tile(bits[:64], BITS // 64),
}
"""Test of the battery: a flaw that it must find, such as too many ones or a bit that follows itself.

Left out are tests that take seconds or more bits, and one that does not run with this NumPy.
"""


@pytest.mark.statistical
@pytest.mark.parametrize("name", BROKEN)
def test_nist_finds_nothing_in_secure_words_and_a_flaw_where_there_is_one(name):
    assert score(name, bits_of(SecureWords())) > ALPHA
    bits = BROKEN[name](bits_of(seeded(4)), np.random.default_rng(1).random(BITS)).astype(np.int64)
    assert score(name, bits) < ALPHA
