"""The parts of the unbiased table, each held to a plain account: outputs, masses, programme, and exact counts."""

import math
from fractions import Fraction

import numpy as np
import pytest

import labeldp as ldp
from helpers import WORDS
from labeldp.channels.proof import exp_lower
from labeldp.mechanisms import unbiased
from labeldp.mechanisms.unbiased import TOLERANCE, UNIT, _exact, _output_grid, _row_masses, _settle, _solve


@pytest.mark.parametrize("size", [2, 3, 4, 12])
@pytest.mark.parametrize("epsilon", [0.01, 1.0, 5.0, 5.001, 12.0])
def test_outputs_are_equally_spaced_and_those_of_two_points_are_among_them(epsilon, size):
    far, near = 1 / (math.exp(epsilon / 2) - 1), 1 / (math.exp(epsilon) - 1)
    many = size if epsilon > 5 else max(2, size - 2)
    expected = [-far + k * (1 + 2 * far) / (many - 1) for k in range(many)]
    if epsilon <= 5:
        expected = sorted([*expected, -near, 1 + near])
    assert _output_grid(epsilon, size) == pytest.approx(expected, rel=1e-9, abs=1e-12)


def hat_masses(prior, low, high, size):
    """Return each row's share of labels, rounded at random: integrals of hats, in fractions."""
    masses = [Fraction(0)] * size
    step = Fraction(high - low) / (size - 1)
    slices = 32 * (size - 1)  # a hat is straight inside each
    for mass, left, right in zip(prior.masses, prior.nodes[:-1], prior.nodes[1:], strict=True):
        for k in range(slices):
            y = Fraction(float(left)) + Fraction(float(right - left)) * (2 * k + 1) / (2 * slices)
            place = (min(max(y, Fraction(low)), Fraction(high)) - Fraction(low)) / step
            row = min(math.floor(place), size - 2)
            masses[row] += Fraction(float(mass)) / slices * (1 - (place - row))
            masses[row + 1] += Fraction(float(mass)) / slices * (place - row)
    return [float(mass) for mass in masses]


def test_row_masses_are_integrals_of_hats_and_count_what_is_clipped():
    prior = ldp.Histogram([0.0, 1.0, 2.0, 4.0], [1, 5, 2])
    for low, high in ((0.0, 4.0), (0.5, 2.5), (1.0, 3.0)):
        found = _row_masses(prior, low, high, 3)
        assert found == pytest.approx(hat_masses(prior, low, high, 3), abs=1e-9)
        assert found.sum() == pytest.approx(1.0)


@pytest.mark.parametrize("epsilon", [0.1, 1.0, 4.0])
def test_a_solution_is_unbiased_and_keeps_epsilon(epsilon):
    labels, masses = np.linspace(0, 1, 6), np.array([0.3, 0.2, 0.2, 0.1, 0.1, 0.1])
    outputs = _output_grid(epsilon, 6)
    base, own = _solve(labels, masses, outputs, epsilon)
    table = base[None, :] + own
    assert table.sum(axis=1) == pytest.approx(np.ones(6), abs=1e-7)
    assert table @ outputs == pytest.approx(labels, abs=1e-6)
    assert (own >= -1e-9).all()
    assert (own <= math.expm1(epsilon) * base[None, :] + 1e-7).all()


def account(words, room, places, spare, moment):
    """Whether the words are what `_settle` says that they are."""
    fits = all(0 <= n <= most for n, most in zip(words, room, strict=True))
    error = abs(moment - sum(p * n for p, n in zip(places, words, strict=True)))
    return fits and sum(words) == spare and error <= TOLERANCE * UNIT * WORDS


def test_settling_tells_truly_whether_it_did():
    rng = np.random.default_rng(4)
    seen = set()
    for _ in range(400):
        cells = int(rng.integers(2, 7))
        room = [int(r) << 58 for r in rng.integers(1, 30, cells)]
        places = sorted(int(p) << 50 for p in rng.integers(-2000, 3000, cells))
        target = [int(share * most) for share, most in zip(rng.random(cells), room, strict=True)]
        off = rng.integers(-(2**50), 2**50, cells).tolist()
        words = [min(most, max(0, n + d)) for n, most, d in zip(target, room, off, strict=True)]
        far = int(rng.choice([0, 0, 0, 1 << 124]))
        moment = sum(p * n for p, n in zip(places, target, strict=True)) + far
        settled = _settle(words, room, places, sum(target), moment)
        assert settled == account(words, room, places, sum(target), moment)
        seen.add((settled, bool(far)))
    assert {(True, False), (False, True)} <= seen


def test_words_that_cannot_be_placed_are_not_settled():
    words, room = [5, 5], [6, 6]
    assert not _settle(words, room, [0, 1], 13, 0)
    assert words == [6, 6]
    assert _settle([5, 5], room, [0, 1], 11, 0)


def test_exact_counts_have_a_common_floor_and_keep_the_odds():
    labels, epsilon = np.linspace(0, 1, 5), Fraction(1)
    outputs = _output_grid(0.9999, 5)
    counts = _exact(labels, outputs, *_solve(labels, np.full(5, 0.2), outputs, 0.9999), epsilon)
    for column in zip(*counts, strict=True):
        assert max(column) <= exp_lower(epsilon) * min(column)
    for label, row in zip(labels, counts, strict=True):
        assert sum(row) == WORDS
        mean = sum(Fraction(n, WORDS) * Fraction(float(o)) for n, o in zip(row, outputs, strict=True))
        assert float(mean) == pytest.approx(label, abs=2e-12)


def test_a_table_that_cannot_be_made_exact_is_none():
    labels, outputs = np.linspace(0, 1, 3), np.array([-1.0, 2.0])
    assert _exact(labels, outputs, np.full(2, 0.4), np.full((3, 2), 0.1), Fraction(1, 100)) is None


@pytest.mark.parametrize("size", [2, 3, 24])
def test_the_table_of_two_outputs_is_two_point_with_rows_between(size, monkeypatch):
    monkeypatch.setattr(unbiased, "SLACKS", ())
    made = ldp.Unbiased.design(ldp.Histogram([1, 4], [1]), 0.7, size=size)
    two = ldp.TwoPoint(bounds=(1, 4), epsilon=0.7)
    assert made.outputs == tuple(two.channel.values.tolist())
    lie, truth = sorted(two.channel.counts()[0].tolist())
    ups = [row[1] for row in made.counts]
    assert (ups[0], ups[-1]) == (lie, truth)
    for row, up in enumerate(ups):
        assert abs(up - (lie + Fraction((truth - lie) * row, size - 1))) <= Fraction(1, 2)
        assert sum(made.counts[row]) == WORDS


def test_a_table_of_256_rows_is_tried():
    class TriedError(Exception):
        pass

    def tried(labels, masses, outputs, epsilon):
        assert labels.size == masses.size == 256
        raise TriedError

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(unbiased, "_solve", tried)
        with pytest.raises(TriedError):
            ldp.Unbiased.design(ldp.Histogram([0, 1], [1]), 1.0, size=256)


HALF = WORDS // 2


@pytest.mark.parametrize(
    ("outputs", "counts"),
    [
        ((0.5,), ((WORDS,), (WORDS,))),
        ((0, 1), ((HALF, HALF),)),
        ((0, 1), ((HALF, HALF), (HALF, HALF, 0))),
        ((0, 1), ((HALF, HALF), (WORDS,))),
        ((0, math.nan), ((HALF, HALF), (HALF, HALF))),
        (((0, 1), (0, 1)), ((HALF, HALF), (HALF, HALF))),
    ],
)
def test_tables_of_wrong_shape_are_refused_as_parameters(outputs, counts):
    with pytest.raises(ldp.ParameterError, match=r"outputs|counts"):
        ldp.Unbiased(bounds=(0, 1), outputs=outputs, counts=counts, epsilon=1.0)


def test_a_table_has_at_most_as_many_entries_as_are_proven_in_a_moment(monkeypatch):
    rows = ((HALF, HALF),) * 4
    monkeypatch.setattr(unbiased, "MOST_ENTRIES", 8)
    assert len(ldp.Unbiased(bounds=(0, 1), outputs=(0, 1), counts=rows, epsilon=1.0).counts) == 4
    with pytest.raises(ldp.ParameterError, match="more than 8 entries"):
        ldp.Unbiased(bounds=(0, 1), outputs=(0, 1), counts=(*rows, rows[0]), epsilon=1.0)


@pytest.mark.parametrize("outputs", [[0.0, math.nan], [0.0, math.inf], [[0.0, 1.0], [1.0, 2.0]], [0.0], []])
def test_outputs_are_at_least_two_finite_numbers(outputs):
    half = WORDS // 2
    with pytest.raises(ldp.ParameterError, match="outputs must be"):
        ldp.Unbiased(bounds=(0, 1), epsilon=1.0, outputs=outputs, counts=[[half, half], [half, half]])
