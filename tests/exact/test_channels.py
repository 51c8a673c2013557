"""Channels: the sampler gives every output exactly the words that the proof and the moments read."""

from dataclasses import fields
from fractions import Fraction

import numpy as np
import pytest

import labeldp as ldp
from exact.channel_cases import CASES, MIXED, worst
from helpers import WORDS, Chosen, measure, respond, seeded
from labeldp.exact.sampling import CHUNK, pieces

EVERY = pytest.mark.parametrize("name", CASES)


def moments(values, row):
    """Return the exact mean and variance of one row."""
    share = [Fraction(n, WORDS) for n in row]
    mean = sum(p * Fraction(v) for p, v in zip(share, values, strict=True))
    return mean, sum(p * (Fraction(v) - mean) ** 2 for p, v in zip(share, values, strict=True))


# ---- exactly the claimed words --------------------------------------------------------------------


@EVERY
def test_the_sampler_gives_every_output_exactly_its_words(name):
    channel, labels, values, rows = CASES[name]
    for label, row in zip(labels, rows, strict=True):
        assert measure(channel, label) == dict(zip(values, row, strict=True))


@EVERY
def test_the_proven_ratio_is_the_largest_over_all_pairs_of_rows_and_outputs(name):
    channel, _, _, rows = CASES[name]
    proof = channel.verify()
    assert proof.worst_ratio == worst(rows)
    assert proof.delta == 0.0


@pytest.mark.parametrize("name", [name for name in CASES if not name.endswith("spread outside")])
def test_labels_outside_the_interval_are_treated_as_its_ends(name):
    channel, _, values, rows = CASES[name]
    for far in (1e-9, 1.0, 1e300, np.finfo(float).max / 2):
        assert measure(channel, channel.low - far) == dict(zip(values, rows[0], strict=True))
        assert measure(channel, channel.high + far) == dict(zip(values, rows[-1], strict=True))


def test_spreading_starts_right_outside_the_interval():
    channel, labels, values, rows = CASES["window, spread outside"]
    low, high = channel.low, channel.high
    for label in (np.nextafter(low, -9), np.nextafter(high, 9), -1e300, 1e300):
        assert measure(channel, label) == dict(zip(values, rows[-1], strict=True))
    for label in (low, high):
        assert measure(channel, label) == dict(zip(values, rows[labels.index(label)], strict=True))


@pytest.mark.parametrize("up", [0.25, 0.5, 0.8125])
@pytest.mark.parametrize("name", MIXED)
def test_a_label_between_two_rows_is_rounded_up_by_its_share_of_the_rounding_bits(name, up):
    channel, labels, _, rows = CASES[name]
    words = (np.arange(64, dtype=np.uint64) << np.uint64(58)) + np.uint64(12345)
    for k in range(len(rows) - 1):
        label = (1 - up) * labels[k] + up * labels[k + 1]
        lower, upper = (respond(channel, labels[r], words) for r in (k, k + 1))
        assert (lower != upper).any()
        turn = round((1 - up) * 2**32)
        for bits, answer in ((turn - 2, lower), (turn + 2, upper), (1, lower), (2**32 - 1, upper)):
            both = np.uint64(bits << 32 | bits)
            assert respond(channel, label, words, both).tolist() == answer.tolist()


class Recorded:
    """A source that remembers its words."""

    def __init__(self, seed):
        self.source, self.fills = seeded(seed), []

    def fill(self, words):
        self.source.fill(words)
        self.fills.append(words.copy())


@EVERY
@pytest.mark.parametrize("size", [0, 1, 2, 7, 2 * CHUNK + 5, 2 * CHUNK + 6])
def test_every_label_of_a_long_array_is_randomised_by_words_of_its_own(name, size):
    channel, labels, _, _ = CASES[name]
    y = np.random.default_rng(1).uniform(min(labels) - 1, max(labels) + 1, size)
    source, out = Recorded(2), np.full(size, np.nan)
    channel.sample(y, source, out)
    lengths = [piece.stop - piece.start for piece in pieces(size)]
    rounds = name in MIXED
    assert [words.size for words in source.fills] == [n + (n + 1) // 2 if rounds else n for n in lengths]
    places = [*range(min(size, 20)), *range(max(0, size - 20), size), *range(CHUNK - 9, CHUNK + 9)]
    for place in (p for p in places if p < size):
        words = source.fills[place // CHUNK]
        own = place % CHUNK
        bits = int(words[lengths[place // CHUNK] :].view(np.uint32)[own]) if rounds else 0
        alone = np.empty(1)
        channel.sample(y[[place]], Chosen([words[own]], np.uint64(bits << 32 | bits)), alone)
        assert alone[0] == out[place]


@EVERY
def test_a_channels_arrays_cannot_be_written_to(name):
    channel = CASES[name][0]
    arrays = [getattr(channel, field.name) for field in fields(channel)]
    arrays = [array for array in arrays if isinstance(array, np.ndarray)]
    assert arrays or name.startswith("window")
    for array in arrays:
        for view in (array, array.base, array.reshape(-1), array.view(np.uint8)):
            with pytest.raises(ValueError, match="WRITEABLE"):
                view.flags.writeable = True


# ---- moments and probabilities --------------------------------------------------------------------


def assert_account(channel, label, values, row):
    """Compare mean, variance and cumulative probabilities with exact sums over a row's counts."""
    mean, variance = moments(values, row)
    label = np.array([label], dtype=np.float64)
    assert channel.mean(label)[0] == pytest.approx(float(mean), rel=1e-13, abs=1e-13)
    assert channel.variance(label)[0] == pytest.approx(float(variance), rel=1e-12)
    values = np.array(values)
    points = np.unique([*values, *(values + 0.01), *(values - 0.01), -99.0, 99.0])
    below = [float(sum(n for v, n in zip(values, row, strict=True) if v <= point) / WORDS) for point in points]
    np.testing.assert_allclose(channel.cumulative(label[0], points), below, rtol=1e-13, atol=1e-15)


@EVERY
def test_moments_and_probabilities_are_those_of_the_exact_counts(name):
    channel, labels, values, rows = CASES[name]
    for label, row in zip(labels, rows, strict=True):
        assert_account(channel, label, values, row)


@pytest.mark.parametrize("up", [Fraction(1, 4), Fraction(1, 2), Fraction(13, 16)])
@pytest.mark.parametrize("name", MIXED)
def test_a_label_between_two_rows_is_a_mixture_of_them(name, up):
    channel, labels, values, rows = CASES[name]
    for k in range(len(rows) - 1):
        mixed = [(1 - up) * a + up * b for a, b in zip(rows[k], rows[k + 1], strict=True)]
        assert_account(channel, float((1 - up) * labels[k] + up * labels[k + 1]), values, mixed)


@EVERY
def test_debiased_outputs_average_to_the_label_or_the_channel_says_that_they_cannot(name):
    channel, labels, values, rows = CASES[name]
    outputs = np.array(values, dtype=np.float64)
    if not name.startswith("window") or name.endswith(("listed", "below zero", "outside")):
        with pytest.raises(ldp.errors.NotUnbiasedError):
            channel.debias(outputs)
        return
    means = [moments(channel.debias(outputs), row)[0] for row in rows]
    np.testing.assert_allclose([float(mean) for mean in means], labels, rtol=1e-13, atol=1e-13)


@pytest.mark.parametrize("low", [0.0, 0.3, 1e6])
def test_cumulative_counts_a_released_value_as_released_however_far_from_zero(low):
    """P(z ≤ z₀) jumps at each released value, by the words that lead to it."""
    channel = ldp.Laplace(bounds=(low, low + 1e-3), epsilon=1.0).channel
    words = np.random.default_rng(1).integers(0, WORDS, 5000, dtype=np.uint64)
    released = np.unique(respond(channel, low, words))
    jump = channel.cumulative(low, released) - channel.cumulative(low, np.nextafter(released, -np.inf))
    assert (jump > 0).all()
