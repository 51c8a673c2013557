"""Channels: the sampler gives every output exactly the words that the proof and the moments read."""

from fractions import Fraction

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

import labeldp as ldp
from channel_cases import CASES, MIXED, worst
from helpers import WORDS, measure, respond
from labeldp.channels import alias
from labeldp.channels.domain import Domain

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
    assert channel.verify().worst_ratio == worst(rows)


@EVERY
def test_labels_outside_the_interval_are_treated_as_its_ends(name):
    channel, _, values, rows = CASES[name]
    if name.endswith("spread outside"):
        pytest.skip("this channel treats them otherwise, see below")
    for far in (1e-9, 1.0, 1e9, 1e300, np.finfo(float).max / 2):
        assert measure(channel, channel.low - far) == dict(zip(values, rows[0], strict=True))
        assert measure(channel, channel.high + far) == dict(zip(values, rows[-1], strict=True))


def test_spreading_starts_right_outside_the_interval():
    channel, labels, values, rows = CASES["window, spread outside"]
    low, high = channel.low, channel.high
    for label in (np.nextafter(low, -9), np.nextafter(high, 9), -1e300, 1e300):
        assert measure(channel, label) == dict(zip(values, rows[-1], strict=True))
    assert measure(channel, low) == dict(zip(values, rows[0], strict=True))
    assert measure(channel, high) == dict(zip(values, rows[labels.index(high)], strict=True))


@EVERY
def test_debiased_outputs_average_to_the_label_or_the_channel_says_that_they_cannot(name):
    channel, labels, values, rows = CASES[name]
    outputs = np.array(values, dtype=np.float64)
    if not name.startswith("window") or name.endswith(("listed", "below zero", "cut", "outside")):
        with pytest.raises(ldp.NotUnbiasedError):
            channel.debias(outputs)
        return
    means = [moments(channel.debias(outputs), row)[0] for row in rows]
    np.testing.assert_allclose([float(mean) for mean in means], labels, rtol=1e-13, atol=1e-13)


# ---- moments and probabilities --------------------------------------------------------------------


@EVERY
def test_mean_and_variance_are_those_of_the_exact_counts(name):
    channel, labels, values, rows = CASES[name]
    exact = [moments(values, row) for row in rows]
    given_labels = np.array(labels, dtype=np.float64)
    np.testing.assert_allclose(channel.mean(given_labels), [float(m) for m, _ in exact], rtol=1e-13, atol=1e-13)
    np.testing.assert_allclose(channel.variance(given_labels), [float(v) for _, v in exact], rtol=1e-12)


@EVERY
def test_cumulative_is_the_sum_of_the_counts_up_to_a_point(name):
    channel, labels, values, rows = CASES[name]
    values = np.array(values)
    points = np.unique([*values, *(values + 0.01), *(values - 0.01), -99.0, 99.0])
    for label, row in zip(labels, rows, strict=True):
        exact = [sum(n for v, n in zip(values, row, strict=True) if v <= point) / WORDS for point in points]
        np.testing.assert_allclose(channel.cumulative(label, points), exact, rtol=1e-13, atol=1e-15)


@pytest.mark.parametrize("low", [0.0, 0.3, 1e6])
def test_cumulative_counts_a_released_value_as_released_however_far_from_zero(low):
    channel = ldp.Laplace(bounds=(low, low + 1e-3), epsilon=1.0).channel
    words = np.random.default_rng(1).integers(0, WORDS, 5000, dtype=np.uint64)
    z = respond(channel, low, words)
    cell = np.maximum(alias.draw(channel.table, None, words.copy()), channel.reach - channel.margin)
    exact = np.cumsum(channel.counts() / WORDS)[cell]
    np.testing.assert_allclose(channel.cumulative(low, z), exact, atol=1e-12)


@pytest.mark.parametrize("up", [0.25, 0.5, 0.8125])
@pytest.mark.parametrize("name", MIXED)
def test_a_label_between_two_rows_is_a_mixture_of_them(name, up):
    channel, labels, values, rows = CASES[name]
    for k in range(len(rows) - 1):
        label = np.array([(1 - up) * labels[k] + up * labels[k + 1]])
        part = Fraction(up)
        mixed = [(1 - part) * a + part * b for a, b in zip(rows[k], rows[k + 1], strict=True)]
        mean, variance = moments(values, mixed)
        assert channel.mean(label)[0] == pytest.approx(float(mean), rel=1e-13, abs=1e-13)
        assert channel.variance(label)[0] == pytest.approx(float(variance), rel=1e-12)
        below = channel.cumulative(label[0], np.array([values[1]]))[0]
        assert below == pytest.approx(float((mixed[0] + mixed[1]) / WORDS), rel=1e-13)


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


def test_the_mean_of_labels_outside_is_exact_however_few_words_are_spread():
    """At ε = 20 with a narrow window each cell gets few words on top, so rounding shows."""
    mech = ldp.RPWithPrior(interval=(0, 1), zeta=2.0**-20, epsilon=20.0, outside="uniform")
    channel = mech.channel
    spare = WORDS - channel.cells * channel.background
    each = -(-spare // channel.cells)
    full, rest = divmod(spare, each)
    place = Fraction(each * full * (full - 1) // 2 + rest * full, spare)
    share = Fraction(spare, WORDS)
    middle = Fraction(channel.cells - 1, 2)
    shift = float(share * (place - middle) / (channel.cells - channel.window))
    assert mech.mean([7.0])[0] == pytest.approx(0.5 + shift, abs=1e-9)


# ---- from labels to rows --------------------------------------------------------------------------

REALS = st.floats(allow_nan=False, allow_infinity=False)


@given(REALS, st.integers(1, 1 << 51), st.integers(0, 2**32 - 1))
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


@pytest.mark.parametrize("zeta", [1e-12, 1e-10, 1e-6, 1e-3, 0.5, 1e3])
@pytest.mark.parametrize("epsilon", [0.001, 1.0, 20.0])
def test_a_labels_window_is_where_the_label_is(zeta, epsilon):
    """The last word of all is the window's last cell: its value is y + ζ, or a cell less."""
    try:
        mech = ldp.RPWithPrior(interval=(0, 1), zeta=zeta, epsilon=epsilon)
    except ldp.ParameterError:
        pytest.skip("refused, with reasons")
    for label in (0.0, 0.1, 0.5, 0.9, 1.0):
        end = respond(mech.channel, label, np.array([WORDS - 1], dtype=np.uint64))[0]
        assert end == pytest.approx(label + zeta, abs=0.002 * zeta + 1e-9)


def same_bin(mech, label, expected):
    """Whether the own output's word, the very last, leads to the expected output."""
    return respond(mech.channel, label, np.array([WORDS - 1], dtype=np.uint64))[0] == mech.outputs[expected]


EDGES = st.lists(st.integers(1, 4095), min_size=1, max_size=12, unique=True).map(sorted)


@given(EDGES, st.sampled_from([1.0, 0.1, 1e-3, 1e9]), st.sampled_from([0.0, -0.3, 1e6]))
@example([16, 48], 1.0, 0.0)  # the first and the third of 256 pieces start here
def test_an_edge_belongs_to_the_bin_on_its_right_and_the_float_before_it_does_not(inner, width, low):
    edges = [low, *(low + width * k / 4096 for k in inner), low + width]
    mech = ldp.RROnBins(edges=edges, outputs=range(len(edges) - 1), epsilon=3.0)
    for i, edge in enumerate(edges[1:-1]):
        assert same_bin(mech, edge, i + 1)
        assert same_bin(mech, np.nextafter(edge, -np.inf), i)
        assert same_bin(mech, (edges[i] + edge) / 2, i)


@pytest.mark.parametrize("low", [0.0, -7.0, 1e6, -1e12])
def test_released_values_grow_with_their_cell(low):
    mech = ldp.RPWithPrior(interval=(low, low + 1), zeta=0.3, epsilon=1.0)
    channel = mech.channel
    cells = np.sort(np.random.default_rng(1).integers(0, channel.cells, 5000)).astype(np.uint64)
    assert (np.diff(respond(channel, low, cells * np.uint64(channel.background))) >= 0).all()
