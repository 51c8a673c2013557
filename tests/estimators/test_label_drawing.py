"""Labels drawn in rounds, held to plain loops: which rows, around what, from which interval, and once."""

from __future__ import annotations

import math
from dataclasses import replace
from fractions import Fraction
from itertools import pairwise
from types import SimpleNamespace

import numpy as np
import pytest

import labeldp as ldp
from helpers import seeded
from labeldp.estimators.label_rounds import (
    Round,
    RowsHere,
    _usual_residuals,
    blend_of,
    draw_labels,
    draw_part,
    draw_rounds,
)
from labeldp.estimators.label_statistics import LabelBudget, LabelSums, knowledge_of
from labeldp.estimators.learner import Knowledge
from labeldp.estimators.round_design import Interval, Situation, best_unit_mechanism, design_interval
from model_cases import small_table

SPECTRUM = np.geomspace(0.3, 1e-3, 30)
BOUNDS = (1.0, 6.0)


# ---- rows of a round ----------------------------------------------------------------------------------


class Halfway:
    """A mechanism that moves every label a little, and says so."""

    def __init__(self):
        self.seen = []

    def randomize(self, labels, *, random_state):
        self.seen.append((labels.copy(), random_state))
        return labels + 1

    def debias(self, labels):
        return labels * 3

    def unbiased_variance(self, labels):
        return 1 + labels


KNOWN = Knowledge(1.0, 6.0, 3.0, 0.1, 1.0, counted=True)
UNIT = ldp.Histogram([0.0, 0.5, 1.0], [1.0, 3.0])


def test_each_label_is_clipped_to_its_own_interval_inside_the_bounds_and_drawn_once():
    interval = Interval(-1.0, 2.0, 0.3, 0.9, 0.07, UNIT, 1.0)
    mechanism, source = Halfway(), object()
    rows = np.array([3, 5, 7, 8, 11])
    labels = np.array([2.0, -1e300, 1e300, 5.5, 4.0])
    centre = np.array([3.0, 1.2, 5.5, 9.0, -5.0])
    now = Round(2, (0.0, 1.0), interval, mechanism, KNOWN, None)
    drawn = draw_part(rows, labels, centre, now, source)
    assert len(mechanism.seen) == 1
    asked, used = mechanism.seen[0]
    assert used is source
    for k, (y, c) in enumerate(zip(labels, centre, strict=True)):
        low, high = max(1.0, c - 1.0), min(6.0, c + 2.0)
        high = max(high, low + 5e-6)
        width = high - low
        unit = (min(max(y, 1.0), 6.0) - low) / width
        assert asked[k] == pytest.approx(unit, rel=1e-9)
        assert (drawn.low[k], drawn.high[k]) == (low, high)
        offset, scale = c + 0.3 + 0.9 * (low - c), 0.9 * width
        assert drawn.offset[k] == pytest.approx(offset)
        assert drawn.scale[k] == pytest.approx(scale)
        assert drawn.private.labels[k] == pytest.approx(offset + scale * 3 * (unit + 1))
        assert drawn.noise[k] == pytest.approx((0.25 * 1.25 + 0.75 * 1.75) * scale**2)
    assert drawn.private.rows is rows
    assert drawn.private.noise == pytest.approx(drawn.noise.mean())
    assert drawn.private.round == 2
    assert (drawn.mechanism, drawn.hidden, drawn.observed) == (mechanism, 0.07, None)


def test_labels_outside_their_interval_are_the_mechanisms_to_clip():
    """What goes beyond [0, 1] the mechanism clips: a label far from its centre counts as the interval's end."""
    interval = Interval(-1.0, 1.0, 0.0, 1.0, 0.0, UNIT, 1.0)
    two = ldp.TwoPoint(bounds=(0, 1), epsilon=1.0)
    now = Round(0, (0.0, 1.0), interval, two, KNOWN, None)
    far, end = (
        draw_part(np.arange(50), np.full(50, y), np.full(50, 3.0), now, seeded(1)).private.labels
        for y in (6.0, 4.0)
    )
    np.testing.assert_array_equal(far, end)


@pytest.mark.parametrize("fractions", [(1.0,), (0.2, 0.3, 0.5), (1.0, 2.0, 3.0, 4.0), (1e-9, 1.0)])
@pytest.mark.parametrize("count", [1, 2, 7, 300])
def test_every_row_is_drawn_once_in_one_round(fractions, count):
    table = small_table(count)
    rows = RowsHere(table, np.linspace(0, 7, count), BOUNDS, seeded(1))
    cuts = np.cumsum([0.0, *fractions]) / sum(fractions)
    interval = Interval(1.0, 6.0, 0.0, 1.0, 0.0, UNIT, 1.0)
    mechanism = ldp.TwoPoint(bounds=(0, 1), epsilon=1.0)
    parts = [
        rows.draw(Round(k, (cuts[k], cuts[k + 1]), interval, mechanism, KNOWN, None))
        for k in range(len(fractions))
    ]
    drawn = [part.private.rows for part in parts if part is not None]
    assert all((np.diff(some) > 0).all() for some in drawn)
    assert sorted(np.concatenate(drawn).tolist()) == list(range(count))
    for part, low, high in zip(parts, cuts, cuts[1:], strict=False):
        size = round(high * count) - round(low * count)
        assert (0 if part is None else part.private.rows.size) == size
    assert rows.count == count
    assert rows.all_here


def test_labels_are_in_no_repr():
    rows = RowsHere(small_table(3), np.array([1.25, 2.5, 3.75]), BOUNDS, None)
    assert repr(rows) == "<3 private labels>"
    assert "2.5" not in f"{rows} {[rows]!r}"


def test_sums_are_over_all_labels():
    labels = np.linspace(1, 6, 60)
    rows = RowsHere(small_table(60), labels, BOUNDS, None)
    assert rows.add_up(SimpleNamespace(sums=lambda given: given is labels))
    assert rows.sums().total == LabelSums.of(labels, BOUNDS).total


def test_rows_in_memory_do_not_show_their_labels():
    shown = repr(RowsHere(small_table(3), np.array([1.25, 2.5, 4.75]), BOUNDS, seeded(1)))
    assert "array" not in shown
    assert not [label for label in ("1.25", "2.5", "4.75") if label in shown]


def test_a_round_draws_the_labels_of_its_rows_around_what_is_predicted():
    table, labels, halfway = small_table(60), np.linspace(1, 6, 60), Halfway()
    source = object()
    blend = SimpleNamespace(predict=lambda given, rows: 2 + 0.05 * rows)
    interval = Interval(-1.0, 2.0, 0.0, 1.0, 0.0, UNIT, 1.0)
    part = RowsHere(table, labels, BOUNDS, source).draw(Round(1, (0.25, 0.75), interval, halfway, KNOWN, blend))
    some = part.private.rows
    order = np.random.default_rng(0).permutation(60)
    assert some.tolist() == sorted(order[15:45].tolist())
    low = np.maximum(1.0, 1 + 0.05 * some)
    np.testing.assert_allclose(part.low, low)
    asked, used = halfway.seen[0]
    np.testing.assert_allclose(asked, (labels[some] - low) / (part.high - low))
    assert used is source
    without = Round(0, (0.0, 1.0), interval, halfway, KNOWN, None)
    assert without.centre(table, some).tolist() == [0.0] * 30


# ---- all rounds ---------------------------------------------------------------------------------------

BUDGET = LabelBudget(Fraction(1, 10), Fraction(1, 10), Fraction(2, 3))


class Watched:
    """Rows that keep what is asked of them."""

    count, bounds = 300, BOUNDS

    def __init__(self):
        self.table, self.rounds, self.asked = small_table(300), [], 0
        self.labels = np.clip(3.5 + self.table.X[:, 0], *BOUNDS)

    def sums(self):
        self.asked += 1
        return LabelSums.of(self.labels, BOUNDS)

    def draw(self, now):
        self.rounds.append(now)
        return RowsHere(self.table, self.labels, BOUNDS, seeded(now.number)).draw(now)


def test_each_round_is_designed_by_what_is_known_and_around_what_was_drawn():
    rows, told, priors = Watched(), [], []

    def two_point(prior, epsilon):
        priors.append((prior, epsilon))
        return ldp.TwoPoint(bounds=(0, 1), epsilon=epsilon)

    parts, known = draw_rounds(rows, BUDGET, (1.0, 1.0, 2.0), seeded(9), SPECTRUM, two_point, told.append)
    assert rows.asked == 1, "labels are summed once"
    expected, values, masses = knowledge_of(rows.sums, BOUNDS, BUDGET, seeded(9))
    assert known == expected
    assert told == ["round 1 of 3", "round 2 of 3", "round 3 of 3"]
    assert [now.number for now in rows.rounds] == [0, 1, 2]
    assert [now.share for now in rows.rounds] == [(0.0, 0.25), (0.25, 0.5), (0.5, 1.0)]
    assert [part.private.round for part in parts] == [0, 1, 2]
    assert [epsilon for _, epsilon in priors] == [0.6666666666666666] * 3, "no more than was paid for"
    rest, blend = known.variance / 2, None
    for k, now in enumerate(rows.rounds):
        if k:
            blend = blend_of(rows.table, parts[:k], known, SPECTRUM, draft=True)
            rest = blend.rest
            values, masses = _usual_residuals(blend.error, 5.0)
            points = np.arange(300)
            np.testing.assert_allclose(
                now.blend.predict(rows.table, points), blend.predict(rows.table, points), rtol=1e-6
            )
        assert (now.blend is None) == (k == 0)
        interval = design_interval(values, masses, Situation(SPECTRUM, known.variance / 2, rest, 300, 2 / 3))
        np.testing.assert_allclose([now.interval.low, now.interval.high], [interval.low, interval.high], rtol=1e-6)
        assert now.interval.risk == pytest.approx(interval.risk, rel=1e-6)
        assert now.known is known
        assert priors[k][0] == now.interval.unit_prior


@pytest.mark.parametrize(
    "wrong",
    [
        lambda part: None,
        lambda part: replace(part, private=part.private.without(part.private.rows[:1])),
        lambda part: replace(part, private=replace(part.private, rows=np.roll(part.private.rows, 1) // 2)),
        lambda part: replace(part, private=replace(part.private, rows=part.private.rows + 300)),
        lambda part: replace(part, observed=SimpleNamespace(count=part.private.rows.size + 1)),
    ],
    ids=["a round lost", "a row lost", "rows twice", "rows that are not there", "more rows than there are"],
)
def test_rows_that_are_not_drawn_exactly_once_release_nothing(wrong, monkeypatch):
    rows = Watched()
    draw = rows.draw
    monkeypatch.setattr(rows, "draw", lambda now: draw(now) if now.number < 2 else wrong(draw(now)))
    with pytest.raises(ldp.PrivacyProofError, match="exactly once"):
        draw_rounds(rows, BUDGET, (1.0, 1.0, 2.0), seeded(9), SPECTRUM)


def test_the_last_round_ends_with_the_last_row_whatever_floats_add_up_to():
    rows = Watched()
    draw_rounds(rows, BUDGET, (0.1, 0.2, 0.3, 0.1, 0.1, 0.1, 0.1), seeded(9), SPECTRUM)
    assert rows.rounds[-1].share[1] == 1.0


def test_a_round_without_rows_is_passed_over():
    rows = Watched()
    parts, _ = draw_rounds(rows, BUDGET, (1e-9, 1.0, 1e-9), seeded(9), SPECTRUM)
    assert [part.private.round for part in parts] == [1]
    assert rows.rounds[1].blend is None
    assert rows.rounds[2].blend is not None


def test_labels_in_memory_are_drawn_as_any_others():
    table = small_table(300)
    labels = np.clip(3.5 + table.X[:, 0], *BOUNDS)
    told, made = [], []

    def design(prior, epsilon):
        made.append(epsilon)
        return best_unit_mechanism(prior, epsilon)

    parts, known = draw_labels(
        table, labels, BOUNDS, BUDGET, (1.0, 3.0), seeded(9), SPECTRUM, unit_design=design, step=told.append
    )
    assert [part.private.rows.size for part in parts] == [75, 225]
    assert len(told) == len(made) == 2
    source = seeded(9)
    again, known_again = draw_rounds(RowsHere(table, labels, BOUNDS, source), BUDGET, (1.0, 3.0), source, SPECTRUM)
    assert known_again == known
    for one, other in zip(parts, again, strict=True):
        np.testing.assert_array_equal(one.private.labels, other.private.labels)


def test_a_sample_is_learnt_from_with_the_statistics_of_all_rows(monkeypatch):
    asked = []
    monkeypatch.setattr(drawing, "fit_blend", lambda *a, **k: asked.append((a, k)))
    parts = [SimpleNamespace(private=k, observed=o) for k, o in ((1, None), (2, "all"), (3, "more"))]
    blend_of("table", parts, "known", "spectrum", draft=True)
    blend_of("table", parts[:1], "known", "spectrum")
    assert asked == [
        (("table", [1, 2, 3], "known", "spectrum"), {"draft": True, "observed": ["all", "more"]}),
        (("table", [1], "known", "spectrum"), {"draft": False, "observed": None}),
    ]


@pytest.mark.parametrize("variance", [0.01, 0.5, 4.0])
def test_usual_residuals_are_between_a_bell_and_a_double_exponential(variance):
    values, masses = _usual_residuals(variance, 5.0)
    reach = min(5.0, 6 * math.sqrt(variance))
    edges = [reach * math.sinh(3 * (k / 20 - 1)) / math.sinh(3) for k in range(41)]
    expected = []
    for low, high in pairwise(edges):
        x = (low + high) / 2
        bell = math.exp(-x * x / 2 / variance) / math.sqrt(2 * math.pi * variance)
        rate = math.sqrt(2 / variance)
        expected.append((bell / 2 + rate / 2 * math.exp(-abs(x) * rate) / 2) * (high - low))
    np.testing.assert_allclose(values, [(a + b) / 2 for a, b in pairwise(edges)], atol=1e-12)
    np.testing.assert_allclose(masses, np.array(expected) / sum(expected), rtol=1e-9)
