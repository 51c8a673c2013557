"""The design of rounds, held to plain loops: the interval, its mechanism, and how many rows."""

from __future__ import annotations

import math

import numpy as np
import pytest

import labeldp as ldp
from labeldp.estimators.round_design import (
    Situation,
    best_unit_mechanism,
    design_interval,
    round_sizes,
    unit_design,
)
from labeldp.mechanisms.rp_with_prior import window_noise
from labeldp.release.choice import expected_risk

SPECTRUM = np.geomspace(0.3, 1e-3, 30)


# ---- the interval -------------------------------------------------------------------------------------

LOWER = (0.005, 0.02, 0.05, 0.1, 0.15, 0.2, 0.3, 0.4, 0.5)
UPPER = (0.5, 0.6, 0.7, 0.8, 0.85, 0.9, 0.95, 0.98, 0.995)


def quantile(values, masses, p):
    total = 0.0
    for value, mass in zip(values, masses, strict=True):
        total += mass
        if total >= p:
            return value
    return values[-1]


def best_interval(values, masses, now):
    """Return low, high, shift, slope, hidden and risk of the best interval, by trying all."""
    found = []
    lows = {values[0], *(quantile(values, masses, p) for p in LOWER)}
    highs = {values[-1], *(quantile(values, masses, p) for p in UPPER)}
    total = float(sum(now.spectrum)) * now.signal
    for low in sorted(lows):
        for high in sorted(highs):
            if high <= low:
                continue
            clipped = [min(max(v, low), high) for v in values]

            def mean(items):
                return sum(m * i for m, i in zip(masses, items, strict=True))

            middle, centre = mean(clipped), mean(values)
            variance = mean([(c - middle) ** 2 for c in clipped])
            if variance <= 0:
                continue
            slope = mean([(v - centre) * (c - middle) for v, c in zip(values, clipped, strict=True)]) / variance
            shift = centre - slope * middle
            hidden = mean([(v - shift - slope * c) ** 2 for v, c in zip(values, clipped, strict=True)])
            q = mean([((c - low) / (high - low) - 0.5) ** 2 for c in clipped])
            window = float(window_noise(now.epsilon, np.array([q]))[0][0])
            noise = min(window, 1 / math.tanh(now.epsilon / 2) ** 2 / 4 - q)
            level = (noise * slope**2 * (high - low) ** 2 + now.rest) / now.rows
            lost = sum(now.signal * s * level / (now.signal * s + level) for s in now.spectrum)
            learnt = 1 - lost / total if total > 0 else 1.0
            found.append((lost + 0.5 * hidden * learnt, low, high, shift, slope, hidden))
    return min(found)


@pytest.mark.parametrize(
    ("epsilon", "rows", "signal"),
    [(0.3, 300, 0.4), (1.0, 5000, 0.4), (4.0, 300, 0.1), (8.0, 100_000, 0.3), (1.0, 99, 0.0)],
)
@pytest.mark.parametrize("seed", [1, 2])
def test_the_interval_of_least_risk_is_found(epsilon, rows, signal, seed):
    rng = np.random.default_rng(seed)
    values = np.sort(rng.normal(size=40)) * 2 + 1
    masses = rng.dirichlet(np.ones(40))
    now = Situation(SPECTRUM, signal, 0.2, rows, epsilon)
    found = design_interval(values, masses, now)
    risk, low, high, shift, slope, hidden = best_interval(values.tolist(), masses.tolist(), now)
    assert (found.low, found.high) == (low, high)
    np.testing.assert_allclose(
        [found.risk, found.shift, found.slope, found.hidden], [risk, shift, slope, hidden], rtol=1e-9, atol=1e-12
    )
    expected = np.zeros(64)
    for value, mass in zip(values, masses, strict=True):
        expected[min(int((min(max(value, low), high) - low) / (high - low) * 64), 63)] += mass
    np.testing.assert_allclose(found.unit_prior.masses, expected, rtol=1e-9, atol=1e-12)
    assert found.unit_prior.nodes.tolist() == np.linspace(0, 1, 65).tolist()


@pytest.mark.parametrize("unit", [1e-14, 1e14])
def test_the_interval_is_the_same_in_any_unit(unit):
    rng = np.random.default_rng(3)
    values, masses = np.sort(rng.normal(size=40)), rng.dirichlet(np.ones(40))
    one = design_interval(values, masses, Situation(SPECTRUM, 0.4, 0.2, 500, 1.0))
    other = design_interval(values * unit, masses, Situation(SPECTRUM, 0.4 * unit**2, 0.2 * unit**2, 500, 1.0))
    assert (other.low / unit, other.high / unit) == pytest.approx((one.low, one.high))


def test_labels_that_are_mostly_the_lowest_have_an_interval():
    masses = np.full(41, 0.0025)
    masses[0] = 0.9
    found = design_interval(np.linspace(1, 6, 41), masses, Situation(SPECTRUM, 0.4, 0.2, 500, 1.0))
    assert found.low == 1.0
    assert found.high > 1.0


def test_labels_in_one_place_still_have_an_interval():
    values = np.linspace(1, 6, 64)
    masses = np.full(64, 1e-9)
    masses[20] = 1.0
    found = design_interval(values, masses / masses.sum(), Situation(SPECTRUM, 0.1, 0.1, 500, 1.0))
    assert found.low < found.high
    with pytest.raises(ldp.ParameterError, match="no interval"):
        design_interval(values, np.eye(64)[20], Situation(SPECTRUM, 0.1, 0.1, 500, 1.0))


# ---- the mechanism ------------------------------------------------------------------------------------

FLAT = ldp.Histogram([0.0, 1.0], [1.0])
ENDS = ldp.Histogram([0.0, 0.02, 0.98, 1.0], [1.0, 0.0, 1.0])
MIDDLE = ldp.Histogram([0.0, 0.45, 0.55, 1.0], [0.0, 1.0, 0.0])


@pytest.mark.parametrize("prior", [FLAT, ENDS, MIDDLE])
@pytest.mark.parametrize("epsilon", [0.5, 2.0, 6.0])
def test_the_better_of_window_and_two_points_is_taken(prior, epsilon):
    q = sum(m * (c - 0.5) ** 2 for m, c in zip(prior.masses, prior.centers, strict=True))
    zeta = float(window_noise(epsilon, np.array([q]))[1][0])
    window = ldp.RPWithPrior(interval=(0.0, 1.0), zeta=zeta, epsilon=epsilon)
    both = [window, ldp.TwoPoint(bounds=(0.0, 1.0), epsilon=epsilon)]
    risks = [expected_risk(mechanism, prior) for mechanism in both]
    assert best_unit_mechanism(prior, epsilon) == both[int(np.argmin(risks))]
    assert unit_design("auto", epsilon)(prior, epsilon) == best_unit_mechanism(prior, epsilon)
    assert unit_design("rp", epsilon)(prior, epsilon) == window


def test_a_round_may_have_any_mechanism_that_is_unbiased_and_keeps_epsilon():
    for name in ("rp", "two-point", "unbiased", "laplace", "staircase"):
        made = unit_design(name, 2.0)(FLAT, 1.5)
        assert made.name == name
        assert made.verify().epsilon <= 1.5


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
def test_any_other_is_refused_before_anything_is_spent(mechanism, match):
    with pytest.raises(ldp.ParameterError, match=match):
        unit_design(mechanism, 1.0)


def test_what_is_refused_later_is_refused_too():
    def turns(prior, epsilon):
        return ldp.Laplace(bounds=(0, 1), epsilon=epsilon if prior == FLAT else 2 * epsilon)

    design = unit_design(turns, 1.0)
    with pytest.raises(ldp.ParameterError, match="keeps"):
        design(ENDS, 1.0)


@pytest.mark.parametrize(
    ("rounds", "rows", "sizes"),
    [
        ("auto", 199, (1.0,)),
        ("auto", 200, (0.2, 0.3, 0.5)),
        (1, 9, (1.0,)),
        (3, 9, (1.0, 2.0, 3.0)),
        (np.int64(2), 9, (1.0, 2.0)),
        (10, 99, tuple(float(k) for k in range(1, 11))),
        ([0.5, 2], 9, (0.5, 2.0)),
        ([1e-9], 9, (1e-9,)),
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
    [((1e308, 1e308), 1000), ([1e-9, 1.0], 1000), ([1.0, 1e-320], 1000), (10, 9), ([1.0] * 10, 9), (2, 1)],
)
def test_rounds_whose_sum_is_infinite_or_that_leave_one_without_a_row_are_refused(rounds, rows):
    with pytest.raises(ldp.ParameterError, match="at least one row"):
        round_sizes(rounds, rows)
