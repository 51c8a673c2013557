"""Design: interval, ζ and mechanism come near the best that a search over the mechanisms themselves finds.

The measure is E[(clip(y) − y)²] + w·E[Var of the unbiased label], with w = 1 for one label and 300/n, at most 1,
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
from labeldp.mechanisms.interval import expected_risk
from labeldp.release.plan import choose_mechanism

pytestmark = pytest.mark.slow

PRIORS = {
    "uniform": ldp.Histogram.from_counts(np.ones(20), (0, 1)),
    "gamma": ldp.Histogram.from_counts(np.diff(stats.gamma(2).cdf(np.linspace(0, 20, 61))), (0, 20)),
    "spike": ldp.Histogram([0, 0.01, 1, 2, 3, 10], [60, 15, 10, 10, 5]),
    "loose": ldp.Histogram.from_counts(np.diff(stats.norm(50, 2).cdf(np.linspace(0, 100, 201))), (0, 100)),
    "two hills": ldp.Histogram([-5, -4, -3, 3, 4, 5], [1, 4, 0, 3, 2]),
}
PAIRS = [("uniform", None), ("gamma", 2000), ("spike", 10**6), ("loose", 2000), ("two hills", None)]
"""A prior and how many rows: each prior, and each number of rows, once at least."""
PURE = ("rp", "laplace", "staircase", "two-point", "unbiased")

each_prior = pytest.mark.parametrize("name", PRIORS)
each_pair = pytest.mark.parametrize(("name", "rows"), PAIRS)


def weight(rows):
    return 1.0 if rows is None else min(1.0, 300 / rows)


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
    """Return the measure for noise whose variance on a range of 1 is known, given the labels' squared distance."""
    labels, mass = points(prior)
    clipped = np.clip(labels, low, high)
    middle = float(mass @ ((clipped - (low + high) / 2) / (high - low)) ** 2)
    return float(mass @ (clipped - labels) ** 2) + weight(rows) * (high - low) ** 2 * variance(middle)


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


# ---- each mechanism against a grid -------------------------------------------------------------------


@each_pair
def test_interval_and_window_are_near_the_best_of_a_grid(name, rows):
    prior, epsilon = PRIORS[name], 0.3 if rows == 2000 else 2.0
    mechanism = ldp.RPWithPrior.design(prior, epsilon, rows=rows)
    ratio = mechanism.zeta / (mechanism.interval[1] - mechanism.interval[0])
    best = min(
        risk(ldp.RPWithPrior(interval=pair, zeta=r * (pair[1] - pair[0]), epsilon=epsilon), prior, rows)
        for pair in intervals(prior, mechanism.interval)
        for r in (0.5 * ratio, 0.8 * ratio, ratio, 1.25 * ratio, 2 * ratio)
    )
    assert risk(mechanism, prior, rows) <= 1.02 * best


@each_prior
def test_designs_for_one_label_and_for_many_differ_and_each_is_best_at_its_own(name):
    """The twin of the test above: a design for the wrong number of rows is far from the best."""
    prior = PRIORS[name]
    one, many = (ldp.RPWithPrior.design(prior, 1.0, rows=rows) for rows in (None, 10**6))
    assert risk(one, prior, 10**6) > 1.5 * risk(many, prior, 10**6)
    assert risk(many, prior, None) > 1.5 * risk(one, prior, None)
    assert np.diff(many.interval) > 1.3 * np.diff(one.interval)


ON_BOUNDS = {
    "laplace": (ldp.Laplace, {}),
    "staircase": (ldp.Staircase, {}),
    "gaussian": (ldp.Gaussian, {"delta": 1e-5}),
    "two-point": (ldp.TwoPoint, {}),
}


@pytest.mark.parametrize("kind", ON_BOUNDS)
@each_pair
def test_noise_is_put_on_bounds_near_the_best_of_a_grid(kind, name, rows):
    prior, (cls, more) = PRIORS[name], ON_BOUNDS[kind]
    mechanism = cls.design(prior, 0.5, rows=rows, **more)
    variance = cls.unit_noise(0.5, **more)
    pairs = intervals(prior, mechanism.bounds, count=16)
    best = min(clipping_risk(prior, *pair, rows, variance) for pair in pairs)
    assert risk(mechanism, prior, rows) <= 1.02 * best


# ---- the unit of labels ------------------------------------------------------------------------------


def moved(prior, scale, shift):
    return ldp.Histogram(scale * prior.nodes + shift, prior.masses)


@pytest.mark.parametrize(("scale", "shift"), [(0.01, 0.0), (1e6, 3e7), (2.0**-60, 0.0)])
@each_prior
def test_labels_in_cents_or_millions_give_the_same_design(name, scale, shift):
    prior = PRIORS[name]
    one, other = (ldp.RPWithPrior.design(some, 0.7, rows=2000) for some in (prior, moved(prior, scale, shift)))
    near = 1e-6 * (prior.bounds[1] - prior.bounds[0])
    assert (np.array(other.interval) - shift) / scale == pytest.approx(one.interval, abs=near)
    assert other.zeta / scale == pytest.approx(one.zeta, abs=near)


# ---- the choice --------------------------------------------------------------------------------------


@pytest.mark.parametrize("rows", [None, 50])
@pytest.mark.parametrize("kind", PURE)
def test_expected_risk_is_what_a_simulation_finds(kind, rows):
    """Two releases of each label: their product of errors is bias², half their squared gap the variance."""
    prior = PRIORS["gamma"]
    mechanism = choose_mechanism(kind, prior, bounds=prior.bounds, epsilon=Fraction(1), rows=rows or 1)
    rng = np.random.default_rng(1)
    labels = np.interp(rng.random(200_000), np.concatenate([[0], np.cumsum(prior.masses)]), prior.nodes)
    one, two = (
        mechanism.debias(mechanism.randomize(labels, random_state=seeded(seed))) - labels for seed in (2, 3)
    )
    errors = one * two + weight(rows) * (one - two) ** 2 / 2
    assert abs(errors.mean() - expected_risk(mechanism, prior, rows)) < 5.5 * errors.std() / math.sqrt(errors.size)


@pytest.mark.parametrize(
    ("name", "rows", "epsilon"),
    [
        ("uniform", None, 0.2),
        ("gamma", 2000, 1.0),
        ("gamma", None, 4.0),
        ("spike", 2000, 1.0),
        ("spike", 10**6, 16.0),
    ],
)
def test_auto_takes_the_mechanism_of_least_expected_risk(name, rows, epsilon):
    prior, budget = PRIORS[name], Fraction(str(epsilon))
    how = {"bounds": prior.bounds, "epsilon": budget, "rows": rows or 1}
    chosen = choose_mechanism("auto", prior, **how)
    others = [choose_mechanism(kind, prior, **how) for kind in PURE[:4]]
    others.append(ldp.Unbiased.design(prior, epsilon, size=40, rows=rows or 1))
    least = min(expected_risk(other, prior, rows) for other in others)
    assert expected_risk(chosen, prior, rows) <= least * (1 + 1e-9)
