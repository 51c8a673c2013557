"""Design: interval, ζ and mechanism come near the best that a search over the mechanisms themselves finds.

The measure is E[(clip(y) − y)²] + w·E[Var of the unbiased label], with w = 1 for a single label and 20/n
for a learner on n rows. Here it is taken from each mechanism's own mean and variance.
"""

import math
from fractions import Fraction
from functools import cache

import numpy as np
import pytest
from scipy import stats

import labeldp as ldp
from helpers import seeded
from labeldp.mechanisms.staircase import optimal_tread, staircase_variance
from labeldp.release.choice import design, expected_risk

PRIORS = {
    "uniform": ldp.Histogram.from_counts(np.ones(20), (0, 1)),
    "gamma": ldp.Histogram.from_distribution(stats.gamma(2), (0, 20), bins=60),
    "spike": ldp.Histogram([0, 0.01, 1, 2, 3, 10], [60, 15, 10, 10, 5]),
    "loose": ldp.Histogram.from_distribution(stats.norm(50, 2), (0, 100), bins=200),
    "two hills": ldp.Histogram([-5, -4, -3, 3, 4, 5], [1, 4, 0, 3, 2]),
}
ROWS = [None, 2000, 10**6]
PURE = ("rp", "laplace", "staircase", "two-point", "unbiased")

each_prior = pytest.mark.parametrize("name", PRIORS)
each_rows = pytest.mark.parametrize("rows", ROWS)
each_epsilon = pytest.mark.parametrize("epsilon", [0.2, 1.0, 4.0])


def weight(rows):
    return 1.0 if rows is None else 20 / rows


@cache
def points(prior):
    """Return labels that stand for the prior, and their weights: a dozen in each bin."""
    inside = (np.arange(12) + 0.5) / 12
    labels = (prior.nodes[:-1, None] + prior.widths[:, None] * inside).ravel()
    return labels, np.repeat(prior.masses / 12, 12)


def risk(mechanism, prior, rows):
    """Return the measure, from the mechanism's own mean and variance."""
    labels, mass = points(prior)
    bias = mechanism.debias(mechanism.mean(labels)) - labels
    return float(mass @ (bias**2 + weight(rows) * mechanism.unbiased_variance(labels)))


def clipping_risk(prior, low, high, rows, variance):
    """Return the measure for additive noise whose variance on a range of 1 is known."""
    labels, mass = points(prior)
    bias = float(mass @ (np.clip(labels, low, high) - labels) ** 2)
    return bias + weight(rows) * (high - low) ** 2 * variance


def intervals(prior, near, count=8):
    """Return intervals to try: between equally spaced and equally likely ends, and around ``near``."""
    total = np.concatenate([[0.0], np.cumsum(prior.masses)])
    likely = np.interp(np.linspace(0, 1, count), total + 1e-12 * np.arange(total.size), prior.nodes)
    ends = np.unique(np.concatenate([np.linspace(*prior.bounds, count), likely]))
    low, high = prior.bounds
    step = near[1] - near[0]
    around = [(near[0] + a * step, near[1] + b * step) for a in (-0.1, 0, 0.1) for b in (-0.1, 0, 0.1)]
    pairs = [(a, b) for i, a in enumerate(ends) for b in ends[i + 1 :] if b - a > 1e-3 * (high - low)]
    return pairs + [(max(a, low), min(b, high)) for a, b in around]


# ---- RPWithPrior -------------------------------------------------------------------------------------


@each_prior
@pytest.mark.parametrize("zeta", [0.05, 0.7, 20.0])
def test_with_zeta_the_interval_is_that_of_algorithm_1(name, zeta):
    prior = PRIORS[name]
    made = ldp.RPWithPrior.design(prior, 1.0, zeta=zeta, outside="uniform")
    assert made.interval == ldp.optimal_interval(prior, epsilon=1.0, zeta=zeta)
    assert (made.zeta, made.outside) == (zeta, "uniform")


@each_rows
@each_prior
def test_without_zeta_interval_and_window_are_near_the_best_of_a_grid(name, rows):
    prior = PRIORS[name]
    for epsilon in (0.3, 2.0):
        made = ldp.RPWithPrior.design(prior, epsilon, rows=rows)
        ratio = made.zeta / (made.interval[1] - made.interval[0])
        best = min(
            risk(ldp.RPWithPrior(interval=pair, zeta=r * (pair[1] - pair[0]), epsilon=epsilon), prior, rows)
            for pair in intervals(prior, made.interval)
            for r in (0.8 * ratio, ratio, 1.25 * ratio)
        )
        assert risk(made, prior, rows) <= 1.02 * best


@each_epsilon
@each_prior
def test_the_window_is_near_the_best_for_its_interval(name, epsilon):
    prior = PRIORS[name]
    made = ldp.RPWithPrior.design(prior, epsilon)
    tries = made.zeta * np.geomspace(0.05, 20, 60)
    best = min(risk(ldp.RPWithPrior(interval=made.interval, zeta=z, epsilon=epsilon), prior, None) for z in tries)
    assert risk(made, prior, None) <= 1.001 * best


@each_prior
def test_the_search_tells_designs_for_one_label_and_for_many_apart(name):
    """The twin of the tests above: a design for the wrong number of rows is far from the best."""
    prior = PRIORS[name]
    made = {rows: ldp.RPWithPrior.design(prior, 1.0, rows=rows) for rows in (None, 10**6)}
    assert risk(made[None], prior, 10**6) > 1.5 * risk(made[10**6], prior, 10**6)
    assert risk(made[10**6], prior, None) > 1.5 * risk(made[None], prior, None)


@each_prior
def test_more_rows_clip_less(name):
    widths = []
    for rows in (None, 100, 1000, 10**4, 10**6, 10**8):
        low, high = ldp.RPWithPrior.design(PRIORS[name], 1.0, rows=rows).interval
        widths.append(high - low)
    assert (np.diff(widths) >= -1e-6 * widths[-1]).all()
    assert widths[-1] > 1.3 * widths[0]


# ---- the unit of labels ------------------------------------------------------------------------------


def moved(prior, scale, shift):
    return ldp.Histogram(scale * prior.nodes + shift, prior.masses)


@pytest.mark.parametrize(("scale", "shift"), [(0.01, 0.0), (1e6, 0.0), (1.0, -40.0), (1e6, 3e7), (2.0**-60, 0.0)])
@each_prior
def test_labels_in_cents_or_millions_give_the_same_design(name, scale, shift):
    prior = PRIORS[name]
    for rows in (None, 2000):
        for maker in (ldp.RPWithPrior, ldp.TwoPoint):
            one = maker.design(prior, 0.7, rows=rows)
            other = maker.design(moved(prior, scale, shift), 0.7, rows=rows)
            ends = [getattr(m, "interval", None) or m.bounds for m in (one, other)]
            near = 1e-6 * (prior.bounds[1] - prior.bounds[0])
            assert (np.array(ends[1]) - shift) / scale == pytest.approx(ends[0], abs=near)
            if maker is ldp.RPWithPrior:
                assert other.zeta / scale == pytest.approx(one.zeta, abs=near)


@pytest.mark.parametrize("scale", [1e-100, 1e100, 1e130, 1e-130])
def test_the_choice_of_mechanism_does_not_depend_on_the_unit(scale):
    prior = PRIORS["spike"]
    for epsilon in (Fraction(1, 5), Fraction(2)):
        one, other = (
            design("auto", some, bounds=some.bounds, epsilon=epsilon, rows=2000)
            for some in (prior, moved(prior, scale, 0.0))
        )
        assert one.name == other.name


def test_a_prior_of_many_unequal_bins_is_used_in_full():
    nodes = np.concatenate([[-1e4], np.linspace(-5, 5, 5001), [1e4]])
    prior = ldp.Histogram(nodes, np.concatenate([[0.0], np.diff(stats.norm.cdf(nodes[1:-1])), [0.0]]))
    few = ldp.Histogram.from_distribution(stats.norm(), (-5, 5), bins=500)
    for rows in ROWS:
        made, reference = (ldp.RPWithPrior.design(some, 1.0, rows=rows) for some in (prior, few))
        assert risk(made, few, rows) <= 1.02 * risk(reference, few, rows)


# ---- the other mechanisms ----------------------------------------------------------------------------


@each_rows
@each_prior
def test_two_point_is_near_the_best_of_a_grid(name, rows):
    prior = PRIORS[name]
    made = ldp.TwoPoint.design(prior, 0.5, rows=rows)
    tries = intervals(prior, made.bounds)
    best = min(risk(ldp.TwoPoint(bounds=pair, epsilon=0.5), prior, rows) for pair in tries)
    assert risk(made, prior, rows) <= 1.02 * best


ADDITIVE = {
    "laplace": lambda prior, rows: ldp.Laplace.design(prior, 1.0, rows=rows),
    "staircase": lambda prior, rows: ldp.Staircase.design(prior, 1.0, rows=rows),
    "gaussian": lambda prior, rows: ldp.Gaussian.design(prior, 1.0, delta=1e-5, rows=rows),
}


@pytest.mark.parametrize("kind", ADDITIVE)
@pytest.mark.parametrize("rows", [None, 2000])
def test_additive_noise_is_put_on_bounds_near_the_best_of_a_grid(kind, rows):
    for name in ("gamma", "two hills"):
        prior = PRIORS[name]
        made = ADDITIVE[kind](prior, rows)
        low, high = made.bounds
        on_one = float(made.unbiased_variance([(low + high) / 2])[0]) / (high - low) ** 2
        tries = intervals(prior, made.bounds, count=24)
        best = min(clipping_risk(prior, *pair, rows, on_one) for pair in tries)
        assert risk(made, prior, rows) <= 1.02 * best


@pytest.mark.parametrize("rows", [2000, 10**6])
def test_the_unbiased_table_is_put_on_bounds_near_the_best_of_a_grid(rows):
    prior = PRIORS["gamma"]
    made = ldp.Unbiased.design(prior, 2.0, size=16, rows=rows)
    low, high = made.bounds

    def on(a, b):
        """Return the best table on [a, b]: all mass beyond is moved to thin bins at its ends."""
        nodes = np.unique(
            np.concatenate([[a, a + 1e-6], prior.nodes[(prior.nodes > a) & (prior.nodes < b)], [b - 1e-6, b]])
        )
        total = prior.cumulative(nodes)
        total[0], total[-1] = 0.0, 1.0
        return ldp.Unbiased.design(ldp.Histogram(nodes, np.diff(total)), 2.0, size=16)

    tries = [on(max(low + a, 0), min(high + b, 20)) for a in (-0.5, 0, 0.5) for b in (-2, -1, 0, 1, 2)]
    assert risk(made, prior, rows) <= 1.05 * min(risk(table, prior, rows) for table in tries)


@pytest.mark.parametrize("epsilon", [0.05, 0.5, 1.0, 4.0, 10.0])
def test_the_formula_for_staircase_variance_is_that_of_the_channel(epsilon):
    for minimise in ("absolute", "squared"):
        channel = ldp.Staircase(bounds=(0, 1), epsilon=epsilon, minimise=minimise)
        formula = staircase_variance(epsilon, optimal_tread(epsilon, minimise))
        assert formula == pytest.approx(channel.variance([0.5])[0], rel=0.01)


# ---- the choice --------------------------------------------------------------------------------------


@pytest.mark.parametrize("rows", [None, 50])
@pytest.mark.parametrize("kind", PURE)
def test_expected_risk_is_what_a_simulation_finds(kind, rows):
    """Two releases of each label: their product of errors is bias², half their squared gap the variance."""
    prior = PRIORS["gamma"]
    made = design(kind, prior, bounds=prior.bounds, epsilon=Fraction(1), rows=rows)
    rng = np.random.default_rng(1)
    labels = np.interp(rng.random(200_000), np.concatenate([[0], np.cumsum(prior.masses)]), prior.nodes)
    one, two = (made.debias(made.randomize(labels, random_state=seeded(seed))) - labels for seed in (2, 3))
    found = one * two + weight(rows) * (one - two) ** 2 / 2
    error = found.std() / math.sqrt(found.size)
    assert abs(found.mean() - expected_risk(made, prior, rows)) < 5.5 * error
    assert expected_risk(made, prior, rows) == pytest.approx(risk(made, prior, rows), rel=2e-3)


@pytest.mark.parametrize(("rows", "epsilon"), [(None, 0.2), (None, 4.0), (2000, 1.0), (10**6, 2.0)])
@pytest.mark.parametrize("name", ["gamma", "spike"])
def test_auto_takes_the_mechanism_of_least_expected_risk(name, rows, epsilon):
    prior, budget = PRIORS[name], Fraction(str(epsilon))
    chosen = design("auto", prior, bounds=prior.bounds, epsilon=budget, rows=rows)
    least = expected_risk(chosen, prior, rows)
    for kind in ("rp", "laplace", "staircase", "two-point"):
        other = design(kind, prior, bounds=prior.bounds, epsilon=budget, rows=rows)
        assert least <= expected_risk(other, prior, rows) * (1 + 1e-9)
    table = ldp.Unbiased.design(prior, epsilon, size=40, rows=rows or 1)
    assert least <= expected_risk(table, prior, rows) * (1 + 1e-9)


@pytest.mark.parametrize("epsilon", [8.0, 16.0])
def test_auto_is_no_worse_than_any_other_at_large_budgets(epsilon):
    prior, budget = PRIORS["uniform"], Fraction(str(epsilon))
    chosen = design("auto", prior, bounds=prior.bounds, epsilon=budget, rows=10**6)
    other = design("staircase", prior, bounds=prior.bounds, epsilon=budget, rows=10**6)
    assert expected_risk(chosen, prior, 10**6) <= expected_risk(other, prior, 10**6)


@pytest.mark.parametrize("rows", [0, -3, 2.5, "many", True])
def test_rows_must_be_a_whole_number(rows):
    for maker in (ldp.RPWithPrior, ldp.TwoPoint, ldp.Laplace, ldp.Staircase, ldp.Unbiased):
        with pytest.raises(ldp.ParameterError, match="rows"):
            maker.design(PRIORS["uniform"], 1.0, rows=rows)
