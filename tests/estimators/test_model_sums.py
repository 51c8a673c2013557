"""A model from noisy sums, held to an account of it: the split, what is summed, and what is made of it."""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction

import numpy as np
import pytest

import labeldp as ldp
from helpers import seeded
from labeldp.estimators import sums as room
from labeldp.estimators.bayes import fit_linear, unknown_variance
from labeldp.estimators.designs import PublicGeometry, choose_design
from labeldp.estimators.sums import Stage, SumBudget, SumPlan, _reach, _updated_prior, fit_sums
from labeldp.noise import DiscreteGaussian, DiscreteLaplace, LatticeNorm
from model_cases import small_table

BOUNDS = (1.0, 6.0)
ROWS = 300
TABLE = small_table(ROWS)
LABELS = 3.5 + 3 * TABLE.X[:, 0] + np.random.default_rng(1).normal(size=ROWS)
LABELS[:3] = [-1e300, 1e300, 5e-324]
MEAN_EXPLAINED = (0.0006 + 0.0025 + 0.01 + 0.04) / 4


# ---- the budget ---------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("epsilon", "rows", "rough"),
    [
        ("1", 59, "0"),
        ("1", 60, "0.35"),
        ("1", 100, "0.35"),
        ("1", 200, "0.25"),
        ("1", 1000, "0.2"),
        ("0.3", 200, "0.105"),
        ("0.3", 500, "0.1"),
        ("3", 10_000, "0.4"),
        ("1.7", 10_000, "0.34"),
        ("0.123456", 10**6, "0.02469"),
    ],
)
def test_the_rough_model_gets_a_fifth_and_more_where_that_is_little(epsilon, rows, rough):
    delta = Fraction(1, 1000)
    for given in (Fraction(0), delta):
        plan = SumBudget.plan(Fraction(epsilon), rows, given)
        assert plan.rough == Fraction(rough)
        assert plan.rough + plan.fine == Fraction(epsilon)
        assert plan.rough_delta + plan.fine_delta == given
        assert plan.rough_delta == (given / 2 if plan.rough else 0)
    parts = plan.parts()
    assert list(parts) == (["rough sums", "sums"] if plan.rough else ["sums"])
    assert parts["sums"] == ldp.Budget(plan.fine, plan.fine_delta)
    assert parts.get("rough sums", ldp.Budget(0)) == ldp.Budget(plan.rough, plan.rough_delta)
    assert SumBudget.plan(Fraction(epsilon), rows).fine_delta == 0


@pytest.mark.parametrize(
    ("epsilon", "reach"), [(0.001, 0.2), (0.999, 0.2), (1.0, 0.25), (2.999, 0.25), (3.0, 0.3), (20.0, 0.3)]
)
def test_the_more_noise_the_more_residuals_are_clipped(epsilon, reach):
    assert _reach(epsilon) == reach


# ---- what is summed -----------------------------------------------------------------------------------


def by_loops(design, places, rows):
    found = [0] * design.count
    for place, row in zip(places, rows, strict=True):
        step = round(min(max(place, 0.0), 1.0) * 65_536)
        for k in range(design.count):
            found[k] += step * (
                int(design.group[row] == k) if design.weights is None else int(design.weights[row, k])
            )
    return found


@pytest.mark.parametrize("epsilon", ["1/20", "4"])
def test_a_label_counts_by_its_place_in_the_bounds_or_its_clipped_distance_from_a_guess(epsilon):
    design = SumPlan.make(TABLE, BOUNDS, Fraction(epsilon), Fraction(0)).design
    some = np.random.default_rng(2).permutation(ROWS)[:100]
    stage = Stage(design, BOUNDS)
    assert stage.width == 5.0
    places = (np.clip(LABELS, 1, 6) - 1) / 5
    assert stage.sums(LABELS).tolist() == by_loops(design, places, range(ROWS))
    assert stage.sums(LABELS[some], some).tolist() == by_loops(design, places[some], some)

    guess = np.random.default_rng(3).uniform(1, 6, ROWS)
    stage = Stage(design, BOUNDS, guess, 1.25)
    assert stage.width == 2.5
    places = [
        (min(max(min(max(y, 1.0), 6.0) - g, -1.25), 1.25) + 1.25) / 2.5
        for y, g in zip(LABELS.tolist(), guess.tolist(), strict=True)
    ]
    assert stage.sums(LABELS).tolist() == by_loops(design, places, range(ROWS))
    assert stage.sums(LABELS[some], some).tolist() == by_loops(design, [places[r] for r in some], some)


# ---- the plan -----------------------------------------------------------------------------------------


FIRST = np.array([*(np.array([0.35, 0.35, 0.3, 0.2, 0.15]) * MEAN_EXPLAINED * 25), 25 / 12])


@pytest.mark.parametrize(("epsilon", "spent"), [("1/10", "1/10"), ("1", "0.2")])
def test_the_first_stage_is_designed_for_its_own_part_of_the_budget(epsilon, spent, monkeypatch):
    asked = []
    monkeypatch.setattr(room, "choose_design", lambda *a, **k: asked.append((a, k)) or choose_design(*a, **k))
    delta = Fraction(1, 500)
    plan = SumPlan.make(TABLE, BOUNDS, Fraction(epsilon), delta)
    (table, geometry), how = asked[0]
    prior = how.pop("prior")
    np.testing.assert_allclose(prior, FIRST, rtol=1e-12)
    part = Fraction(spent)
    extra = delta if epsilon == "1/10" else delta / 2
    assert how == {"rest": 0.5, "known": None, "width": 5.0, "epsilon": part, "delta": extra}
    expected = PublicGeometry.of(TABLE, FIRST)
    np.testing.assert_allclose(geometry.places, expected.places, rtol=1e-6, atol=1e-9)
    assert table is plan.table is TABLE
    assert plan.geometry is geometry
    assert plan.bounds == BOUNDS
    assert plan.noise == plan.design.noise(part, extra)
    if isinstance(plan.noise, DiscreteGaussian):
        assert plan.budget == SumBudget.plan(Fraction(epsilon), ROWS, delta)
    else:
        assert plan.budget == SumBudget.plan(Fraction(epsilon), ROWS)


@pytest.mark.parametrize("gaussian", [True, False])
def test_delta_is_kept_for_gaussian_noise_and_given_up_for_any_other(gaussian, monkeypatch):
    kind = DiscreteGaussian(Fraction(9)) if gaussian else LatticeNorm(Fraction(9))
    monkeypatch.setattr(room.Design, "noise", lambda self, epsilon, delta=0: kind if delta else None)
    for epsilon in (Fraction(1, 10), Fraction(1)):
        plan = SumPlan.make(TABLE, BOUNDS, epsilon, Fraction(1, 1000))
        budget = plan.budget
        assert budget.rough_delta + budget.fine_delta == (Fraction(1, 1000) if gaussian else 0)
        assert budget.rough + budget.fine == epsilon
        assert plan.noise is kind


# ---- the model ----------------------------------------------------------------------------------------


def mean_of(design, values):
    """Return averages of values with a design's weights, by loops."""
    if design.weights is None:
        return np.array([np.mean(values[design.group == k]) for k in range(design.count)])
    return np.array([sum(w * v for w, v in zip(column, values, strict=True)) for column in design.weights.T]) / (
        4096 * len(values)
    )


def released(stage, noise, source):
    """Return the noisy averages of what a stage sums."""
    noisy = stage.sums(LABELS) + noise.sample(stage.design.count, source)
    scale = stage.design.sizes if stage.design.weights is None else 4096 * ROWS
    return noisy / scale * (stage.width / 65_536)


def learnt(observations):
    return fit_linear(
        observations, TABLE.public.block, mean=3.5, mean_variance=25 / 12, choices=unknown_variance(5.0)
    )


@pytest.mark.parametrize(("epsilon", "delta"), [("1/10", "0"), ("1", "0"), ("4", "0"), ("1/2", "1/10")])
def test_the_model_is_what_its_account_says(epsilon, delta):
    plan = SumPlan.make(TABLE, BOUNDS, Fraction(epsilon), Fraction(delta))
    stages, said = [], []

    def add_up(stage):
        stages.append(stage)
        return stage.sums(LABELS)

    model, noise = fit_sums(plan, add_up, seeded(4), said.append)
    assert list(noise) == list(plan.budget.parts())
    assert len(stages) == len(noise), "labels are asked for once a stage"

    source = seeded(4)
    assert stages[0].design is plan.design
    assert stages[0].guess is None
    assert next(iter(noise.values())) is plan.noise
    averages = released(Stage(plan.design, BOUNDS), plan.noise, source)
    averages = averages - mean_of(plan.design, np.full(ROWS, 2.5))
    first = plan.design.observations(averages, plan.design.variance(plan.noise, 5.0))
    expected = learnt([first])
    if plan.budget.rough:
        stage = stages[1]
        np.testing.assert_allclose(stage.guess, np.clip(TABLE._kept @ expected.weights + 3.5, 1, 6), rtol=1e-5)
        assert stage.reach == _reach(float(plan.budget.fine)) * 5
        assert stage.bounds == BOUNDS
        assert noise["sums"] == stage.design.noise(plan.budget.fine, plan.budget.fine_delta)
        averages = released(stage, noise["sums"], source)
        averages = averages + mean_of(stage.design, stage.guess - 3.5 - stage.reach)
        second = stage.design.observations(averages, stage.design.variance(noise["sums"], 2 * stage.reach))
        expected = learnt([first, second])
        assert said == ["rough sums", "sums of residuals", "model"]
    else:
        assert said == ["sums"]
    np.testing.assert_allclose(model.weights, expected.weights, rtol=1e-3, atol=1e-5)
    assert model.mean == 3.5


def kept_epsilon(design, noise):
    """Return the ε of a stage's noise, by the largest change that one label can make."""
    if isinstance(noise, DiscreteLaplace):
        return noise.epsilon(65_536)
    largest = max(sum(int(w) ** 2 for w in row) for row in design.weights)
    return Fraction(float(np.sqrt(largest))) * 65_536 / noise.scale


@pytest.mark.parametrize("epsilon", ["1/50", "1/10", "1", "4"])
def test_both_stages_together_keep_what_is_charged(epsilon):
    plan, stages = SumPlan.make(TABLE, BOUNDS, Fraction(epsilon), Fraction(0)), []
    _, noise = fit_sums(plan, lambda stage: stages.append(stage) or stage.sums(LABELS), seeded(5))
    kept = sum(kept_epsilon(stage.design, each) for stage, each in zip(stages, noise.values(), strict=True))
    assert float(kept) == pytest.approx(float(Fraction(epsilon)), rel=1e-9)
    assert sum(part.exact_epsilon for part in plan.budget.parts().values()) == Fraction(epsilon)


def test_the_second_stage_is_designed_by_what_the_first_one_told(monkeypatch):
    asked = []
    monkeypatch.setattr(room, "choose_design", lambda *a, **k: asked.append((a, k)) or choose_design(*a, **k))
    plan = SumPlan.make(TABLE, BOUNDS, Fraction(2), Fraction(1, 10))
    rough = []
    monkeypatch.setattr(room, "fit_linear", lambda *a, **k: rough.append((a, fit_linear(*a, **k))) or rough[-1][1])
    fit_sums(plan, lambda stage: stage.sums(LABELS), seeded(6))
    (table, geometry), how = asked[1]
    (observations, _), model = rough[0]
    first = observations[0]
    assert table is TABLE
    assert geometry is plan.geometry
    level = first.share * model.rest + first.noise
    np.testing.assert_allclose(how.pop("known"), first.gram / level, rtol=1e-5)
    np.testing.assert_allclose(
        how.pop("prior"), _updated_prior(model.likely, unknown_variance(5.0), TABLE.public.block, 5.0)
    )
    width = 2 * _reach(float(plan.budget.fine)) * 5
    budget = plan.budget
    assert how == {"rest": model.rest, "width": width, "epsilon": budget.fine, "delta": budget.fine_delta}


def test_each_stage_gets_noise_for_its_own_part_of_epsilon_and_delta(monkeypatch):
    asked, original = [], room.Design.noise
    plan = SumPlan.make(TABLE, BOUNDS, Fraction(2), Fraction(0))
    plan = replace(plan, budget=SumBudget.plan(Fraction(2), ROWS, Fraction(1, 10)))
    monkeypatch.setattr(room.Design, "noise", lambda self, *how: asked.append(how) or original(self, *how))
    fit_sums(plan, lambda stage: stage.sums(LABELS), seeded(6))
    assert asked[-1] == (plan.budget.fine, Fraction(1, 20))


def test_the_prior_after_the_first_stage_is_the_average_of_what_is_likely():
    block = TABLE.public.block
    likely = (((0.5, 0.5, 0.0, 0.0), 0.2, 0.1), ((0.1, 0.2, 0.3, 0.4), 0.001, 0.1))
    least = 0.0006 * 25
    strength = [
        max((0.5 * 0.2 + 0.1 * least) / 2, 0.0025),
        max((0.5 * 0.2 + 0.2 * least) / 2, 0.0025),
        max(0.3 * least / 2, 0.0025),
        max(0.4 * least / 2, 0.0025),
    ]
    found = _updated_prior(likely, unknown_variance(5.0), block, 5.0)
    np.testing.assert_allclose(found, [*np.array(strength)[block], 25 / 12])
    choices = unknown_variance(5.0)
    np.testing.assert_array_equal(
        _updated_prior((), choices, block, 5.0), _updated_prior(choices[:5], choices, block, 5.0)
    )
