"""Labels released in rounds: every row exactly once, around what earlier rounds predict, by a proven mechanism."""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction
from types import SimpleNamespace

import numpy as np
import pytest

import labeldp as ldp
from helpers import seeded
from labeldp.estimators.label_rounds import Round, RowsHere, draw_part, draw_rounds
from labeldp.estimators.label_statistics import LabelBudget, LabelSums
from labeldp.estimators.learner import Knowledge
from labeldp.estimators.round_design import (
    Interval,
    Situation,
    best_unit_mechanism,
    design_interval,
    round_cuts,
    round_sizes,
    unit_design,
)
from labeldp.release.plan import expected_risk
from model_cases import small_table

SPECTRUM = np.geomspace(0.3, 1e-3, 30)
BOUNDS = (1.0, 6.0)
KNOWLEDGE = Knowledge(1.0, 6.0, 3.0, 0.1, 1.0, counted=True)
FLAT = ldp.Histogram([0.0, 1.0], [1.0])
BUDGET = LabelBudget(Fraction(1, 10), Fraction(1, 10), Fraction(2, 3))
TWO_POINT = ldp.TwoPoint(bounds=(0, 1), epsilon=1.0)


# ---- each row once --------------------------------------------------------------------------------------


@pytest.mark.parametrize("fractions", [(1.0,), (0.2, 0.3, 0.5), (0.1, 0.2, 0.3, 0.1, 0.1, 0.1, 0.1), (1e-9, 1.0)])
@pytest.mark.parametrize("count", [1, 2, 7, 300])
def test_every_row_is_in_exactly_one_round(fractions, count):
    rows = RowsHere(small_table(count), np.linspace(0, 7, count), BOUNDS, seeded(1))
    interval, cuts = Interval(1.0, 6.0, 0.0, 1.0, 0.0, FLAT, 1.0), round_cuts(fractions)
    rounds = [
        Round(k, (cuts[k], cuts[k + 1]), interval, TWO_POINT, KNOWLEDGE, None) for k in range(len(fractions))
    ]
    parts = [part for plan in rounds if (part := rows.draw(plan)) is not None]
    assert sorted(np.concatenate([part.private.rows for part in parts]).tolist()) == list(range(count))
    assert cuts[-1] == 1.0, "the last round ends with the last row, whatever floats add up to"


class WatchedRows(RowsHere):
    """Rows that count how often they are summed, and record their rounds."""

    def __init__(self):
        table = small_table(300)
        RowsHere.__init__(self, table, np.clip(3.5 + table.X[:, 0], *BOUNDS), BOUNDS, seeded(9))
        object.__setattr__(self, "rounds", [])
        object.__setattr__(self, "summed", [])

    def sums(self):
        self.summed.append(True)
        return LabelSums.of(self.labels, BOUNDS)

    def draw(self, plan):
        self.rounds.append(plan)
        return RowsHere.draw(self, plan)


def test_labels_are_summed_once_and_every_round_keeps_the_epsilon_of_labels():
    rows, messages = WatchedRows(), []
    parts, knowledge = draw_rounds(rows, BUDGET, (1.0, 1.0, 2.0), seeded(9), SPECTRUM, step=messages.append)
    assert len(rows.summed) == 1
    assert [part.private.rows.size for part in parts] == [75, 75, 150]
    assert all(part.mechanism.verify().epsilon <= 2 / 3 for part in parts)
    assert [plan.blend is None for plan in rows.rounds] == [True, False, False]
    assert messages == ["round 1 of 3", "round 2 of 3", "round 3 of 3"]
    for part in parts:
        assert ((part.low >= BOUNDS[0]) & (part.high <= BOUNDS[1]) & (part.low < part.high)).all()
    widths = [float(np.mean(part.high - part.low)) for part in parts]
    assert widths[2] < widths[0], "later rounds look closer"
    assert knowledge.counted


@pytest.mark.parametrize(
    "break_part",
    [
        lambda part: None,
        lambda part: replace(part, private=part.private.without(part.private.rows[:1])),
        lambda part: replace(part, private=replace(part.private, rows=np.roll(part.private.rows, 1) // 2)),
        lambda part: replace(part, private=replace(part.private, rows=part.private.rows + 300)),
        lambda part: replace(part, observed=SimpleNamespace(count=part.private.rows.size + 1)),
    ],
    ids=["a round lost", "a row lost", "rows twice", "rows that are not there", "more rows than there are"],
)
def test_rows_that_are_not_drawn_exactly_once_release_nothing(break_part, monkeypatch):
    draw = WatchedRows.draw
    monkeypatch.setattr(
        WatchedRows,
        "draw",
        lambda self, plan: draw(self, plan) if plan.number < 1 else break_part(draw(self, plan)),
    )
    with pytest.raises(ldp.PrivacyProofError, match="exactly once"):
        draw_rounds(WatchedRows(), BUDGET, (1.0, 1.0), seeded(9), SPECTRUM)


def test_a_round_without_rows_is_passed_over():
    parts, _ = draw_rounds(WatchedRows(), BUDGET, (1e-9, 1.0), seeded(9), SPECTRUM)
    assert [part.private.round for part in parts] == [1]


def test_a_label_far_from_its_centre_counts_as_the_end_of_its_interval():
    plan = Round(0, (0.0, 1.0), Interval(-1.0, 1.0, 0.0, 1.0, 0.0, FLAT, 1.0), TWO_POINT, KNOWLEDGE, None)
    rows, centre = np.arange(50), np.full(50, 3.0)
    ends = [draw_part(rows, np.full(50, y), centre, plan, seeded(1)).private.labels for y in (1e308, 6.0, 4.0)]
    assert np.array_equal(ends[0], ends[2])
    assert np.array_equal(ends[1], ends[2])


def test_private_labels_are_unbiased_and_as_noisy_as_they_say():
    """Twenty thousand draws: a false alarm beyond five standard errors in a million runs."""
    flat = ldp.Histogram(np.linspace(0, 1, 65), np.ones(64))
    plan = Round(0, (0.0, 1.0), Interval(-1.0, 2.0, 0.0, 1.0, 0.0, flat, 1.0), TWO_POINT, KNOWLEDGE, None)
    labels = np.random.default_rng(1).uniform(2.0, 5.0, 20_000)
    part = draw_part(np.arange(20_000), labels, np.full(20_000, 3.0), plan, seeded(1))
    errors = part.private.labels - labels
    assert abs(errors.mean()) < 5 * np.sqrt(part.private.noise / 20_000)
    assert errors.var() == pytest.approx(part.private.noise, rel=0.05)


def test_rows_in_memory_do_not_show_their_labels():
    rows = RowsHere(small_table(3), np.array([1.25, 2.5, 3.75]), BOUNDS, seeded(1))
    assert repr(rows) == "<3 private labels>"


# ---- the interval -----------------------------------------------------------------------------------------


def test_the_interval_is_no_worse_than_all_of_the_range_and_the_same_in_any_unit():
    rng = np.random.default_rng(3)
    values, masses = np.sort(rng.normal(size=40)), rng.dirichlet(np.ones(40))
    for unit in (1.0, 1e-14, 1e14):
        situation = Situation(SPECTRUM, 0.4 * unit**2, 0.2 * unit**2, 500, 1.0)
        interval = design_interval(values * unit, masses, situation)
        assert values[0] <= interval.low / unit < interval.high / unit <= values[-1]
        if unit == 1.0:
            first = interval
        assert (interval.low / unit, interval.high / unit) == pytest.approx((first.low, first.high))
    assert first.high - first.low < values[-1] - values[0], "rare labels are clipped where noise is large"


@pytest.mark.parametrize("place", [0, 20])
def test_labels_that_are_mostly_in_one_place_have_an_interval(place):
    values, masses = np.linspace(1, 6, 64), np.full(64, 1e-9)
    masses[place] = 1.0
    situation = Situation(SPECTRUM, 0.1, 0.1, 500, 1.0)
    interval = design_interval(values, masses / masses.sum(), situation)
    assert interval.low < interval.high
    with pytest.raises(ldp.ParameterError, match="no interval"):
        design_interval(values, np.eye(64)[20], situation)


# ---- the mechanism ----------------------------------------------------------------------------------------

ENDS = ldp.Histogram([0.0, 0.02, 0.98, 1.0], [1.0, 0.0, 1.0])
MIDDLE = ldp.Histogram([0.0, 0.45, 0.55, 1.0], [0.0, 1.0, 0.0])


@pytest.mark.parametrize("prior", [FLAT, ENDS, MIDDLE])
@pytest.mark.parametrize("epsilon", [0.5, 6.0])
def test_the_better_of_window_and_two_points_is_chosen(prior, epsilon):
    best = expected_risk(unit_design("auto", epsilon)(prior, epsilon), prior)
    both = [unit_design(name, epsilon)(prior, epsilon) for name in ("rp", "two-point")]
    assert best == min(expected_risk(mechanism, prior) for mechanism in both)
    assert best_unit_mechanism(prior, epsilon) in both


@pytest.mark.parametrize("name", ["rp", "two-point", "unbiased", "laplace", "staircase"])
def test_a_round_may_have_any_mechanism_that_is_unbiased_and_keeps_epsilon(name):
    mechanism = unit_design(name, 2.0)(FLAT, 1.5)
    assert mechanism.name == name
    assert mechanism.verify().epsilon <= 1.5


@pytest.mark.parametrize(
    ("mechanism", "match"),
    [
        (lambda prior, epsilon: ldp.Laplace(bounds=(0, 1), epsilon=1.01 * epsilon), "keeps"),
        (lambda prior, epsilon: ldp.Gaussian(bounds=(0, 1), epsilon=epsilon / 2, delta=1e-9), "keeps"),
        (lambda prior, epsilon: ldp.Laplace(bounds=(0, 0.99), epsilon=epsilon), "unbiased"),
        (lambda prior, epsilon: ldp.Laplace(bounds=(0.01, 1), epsilon=epsilon), "unbiased"),
        (lambda prior, epsilon: "laplace", "not a Mechanism"),
        (None, "beforehand"),
        ("gaussian", "delta"),
        ("rr-on-bins", "unbiased label"),
        ("none", "one of"),
    ],
)
def test_any_other_mechanism_is_refused(mechanism, match):
    with pytest.raises(ldp.ParameterError, match=match):
        unit_design(mechanism, 1.0)


def test_a_function_that_keeps_epsilon_at_first_only_is_refused_later():
    def turns(prior, epsilon):
        return ldp.Laplace(bounds=(0, 1), epsilon=epsilon if prior == FLAT else 2 * epsilon)

    design = unit_design(turns, 1.0)
    with pytest.raises(ldp.ParameterError, match="keeps"):
        design(ENDS, 1.0)


# ---- sizes of rounds --------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("rounds", "rows", "sizes"),
    [
        ("auto", 199, (1.0,)),
        ("auto", 200, (0.2, 0.3, 0.5)),
        (np.int64(2), 9, (1.0, 2.0)),
        ([0.5, 2], 9, (0.5, 2.0)),
        ([5e-324], 9, (5e-324,)),
        ([1e308, 7e307], 9, (1e308, 7e307)),
        ([1.0] * 10, 10, (1.0,) * 10),
    ],
)
def test_rounds_have_the_sizes_that_were_asked_for(rounds, rows, sizes):
    assert round_sizes(rounds, rows) == sizes


@pytest.mark.parametrize(
    "rounds",
    [0, 11, -1, True, False, 1.5, None, "3", b"3", [], [0.0], [1, -1], [1.0] * 11, [np.nan], [np.inf], ["a"]],
)
def test_rounds_that_cannot_be_are_refused(rounds):
    with pytest.raises(ldp.ParameterError, match="rounds must be"):
        round_sizes(rounds, 1000)


@pytest.mark.parametrize(
    ("rounds", "rows"),
    [((1e308, 1e308), 1000), ([1e-9, 1.0], 1000), ([1.0, 1e-320], 1000), (10, 9), (2, 1)],
)
def test_rounds_whose_sum_is_infinite_or_that_leave_one_without_a_row_are_refused(rounds, rows):
    with pytest.raises(ldp.ParameterError, match="at least one row"):
        round_sizes(rounds, rows)
