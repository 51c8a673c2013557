"""What is spent before labels are drawn, held to plain arithmetic: the split, the sums, and what is known."""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np
import pytest
from scipy.stats import beta

import labeldp as ldp
from helpers import seeded
from labeldp.estimators.label_statistics import LabelBudget, LabelSums, first_knowledge, knowledge_of, private_mean
from labeldp.mechanisms.base import fingerprint
from labeldp.noise import DiscreteLaplace, IntegerNoise

GRID = 1_048_576
BOUNDS = (1.0, 6.0)
SPECTRUM = np.geomspace(0.3, 1e-3, 50)
SHARES = (0.02, 0.03, 0.05, 0.08, 0.12, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9, 0.97)


# ---- the split ----------------------------------------------------------------------------------------


def split(epsilon, rows):
    """Return the shares for mean and prior, of least expected risk, by trying all."""
    prior = epsilon / 20 if epsilon / 20 * rows >= 800 else 0.0
    risks = {}
    for share in SHARES:
        left = epsilon * (1 - share) - prior
        if left >= 0.001:
            noise = 0.52**2 / math.tanh(left / 2) ** 2 / 4
            level = (noise + 0.02) / rows
            signal = [0.02 * value for value in SPECTRUM]
            risks[share] = 2 / (rows * share * epsilon) ** 2 + sum(s * level / (s + level) for s in signal)
    return min(risks, key=risks.get), prior


@pytest.mark.parametrize("rows", [20, 300, 3000, 16_000, 160_000])
@pytest.mark.parametrize("epsilon", [0.002, 0.01, 0.1, 0.5, 1.0, 4.0, 20.0])
def test_the_split_is_the_one_of_least_risk_and_sums_to_epsilon(epsilon, rows):
    exact = Fraction(repr(epsilon))
    budget = LabelBudget.plan(exact, rows, SPECTRUM, "curator")
    share, prior = split(epsilon, rows)
    assert float(budget.mean) == pytest.approx(share * epsilon, rel=1e-3)
    assert float(budget.prior) == pytest.approx(prior, rel=1e-3)
    assert budget.mean + budget.prior + budget.labels == exact
    assert budget.labels > 0
    assert LabelBudget.plan(exact, rows, SPECTRUM, "local") == LabelBudget(Fraction(0), Fraction(0), exact)


@pytest.mark.parametrize(
    ("epsilon", "rows", "best"),
    [
        (0.5, 160_000, 0.02),
        (0.5, 16_000, 0.03),
        (1.0, 3000, 0.05),
        (1.0, 1000, 0.08),
        (1.0, 300, 0.12),
        (2.0, 60, 0.2),
        (3.0, 30, 0.3),
        (4.0, 20, 0.4),
        (0.002, 5, 0.5),
        (0.003, 5, 0.6),
        (0.005, 5, 0.7),
        (0.01, 3, 0.8),
        (0.02, 5, 0.9),
        (0.1, 1, 0.97),
    ],
)
def test_the_fewer_rows_the_more_goes_to_the_mean(epsilon, rows, best):
    assert split(epsilon, rows)[0] == best
    budget = LabelBudget.plan(Fraction(repr(epsilon)), rows, SPECTRUM, "curator")
    assert float(budget.mean) == pytest.approx(best * epsilon, rel=1e-3)


def test_a_prior_is_counted_from_800_rows_times_its_epsilon_on():
    assert LabelBudget.plan(Fraction(1), 15_999, SPECTRUM, "curator").prior == 0
    assert LabelBudget.plan(Fraction(1), 16_000, SPECTRUM, "curator").prior == Fraction(1, 20)
    assert LabelBudget.plan(Fraction("1.23456"), 20_000, SPECTRUM, "curator").prior == Fraction("0.06173")


def test_labels_always_keep_enough_for_a_mechanism():
    with pytest.raises(ldp.ParameterError, match="too small to be split"):
        LabelBudget.plan(Fraction(1, 1000), 100, SPECTRUM, "curator")
    tight = LabelBudget.plan(Fraction("0.00103"), 100, SPECTRUM, "curator")
    assert tight.labels >= Fraction(1, 1000)


def test_what_was_spent_is_named_part_by_part():
    budget = LabelBudget(Fraction(1, 3), Fraction(1, 7), Fraction(2))
    assert budget.parts() == {
        "labels": ldp.Budget(Fraction(2)),
        "mean": ldp.Budget(Fraction(1, 3)),
        "prior": ldp.Budget(Fraction(1, 7)),
    }
    assert budget.mean_noise() == DiscreteLaplace(Fraction(3 * GRID))
    assert budget.prior_noise() == DiscreteLaplace(Fraction(14))
    used = [ldp.TwoPoint(bounds=(0, 1), epsilon=2.0), ldp.Laplace(bounds=(0, 1), epsilon=2.0)]
    one, two = (fingerprint(mechanism.channel) for mechanism in used)
    assert budget.mechanisms(used) == {
        "labels": f"round 1: {one}; round 2: {two}",
        "mean": str(DiscreteLaplace(Fraction(3 * GRID))),
        "prior": str(DiscreteLaplace(Fraction(14))),
    }
    local = LabelBudget(Fraction(0), Fraction(0), Fraction(2))
    assert local.parts() == {"labels": ldp.Budget(Fraction(2))}
    assert local.mechanisms(used[:1]) == {"labels": one}


# ---- sums ---------------------------------------------------------------------------------------------

LABELS = np.array([-1e308, 1.0, 1.0781, 1.078125, 3.3, 5.921875, 5.93, 6.0, 1e308, 5e-324])


def places(labels):
    return [(min(max(y, 1.0), 6.0) - 1.0) / 5.0 for y in labels.tolist()]


def test_sums_are_exact_and_add_up_from_parts():
    sums = LabelSums.of(LABELS, BOUNDS)
    assert sums.rows == 10
    assert sums.total == sum(round(place * GRID) for place in places(LABELS))
    counts = [0] * 64
    for place in places(LABELS):
        counts[min(int(place * 64), 63)] += 1
    assert sums.counts.tolist() == counts
    assert sums.counts.dtype == np.int64
    parts = LabelSums.of(LABELS[:3], BOUNDS) + LabelSums.of(LABELS[3:], BOUNDS)
    assert (parts.rows, parts.total, parts.counts.tolist()) == (10, sums.total, counts)
    assert repr(sums) == "<10 labels, summed>", "no sum is shown before it has its noise"


def test_exact_sums_are_never_python_integers(monkeypatch):
    """The time and memory of those depend on their size: small ones are shared, large ones have more digits."""
    monkeypatch.setattr(np, "count_nonzero", lambda *given, **more: pytest.fail("counts as a Python integer"))
    sums = LabelSums.of(LABELS, BOUNDS) + LabelSums.of(LABELS[:0], BOUNDS)
    assert (type(sums.total), sums.total.dtype, sums.total.shape) == (np.ndarray, np.int64, (1,))
    assert (type(sums.counts), sums.counts.dtype, sums.counts.shape) == (np.ndarray, np.int64, (64,))


def test_no_label_however_far_out_warns():
    sums = LabelSums.of(np.array([-1e308, 1e308, 0.25]), (0.0, 0.5))
    assert (sums.total, sums.counts[0], sums.counts[-1]) == (GRID + GRID // 2, 1, 1)


class Fixed(IntegerNoise):
    """Noise that is always the same."""

    def __init__(self, value):
        self.value = value

    def sample(self, size, source):
        return np.full(size, self.value)

    def variance(self, size=1):
        return 3.0


def test_the_mean_is_the_noisy_sum_over_the_rows_inside_the_bounds():
    total = sum(round(place * GRID) for place in places(LABELS))
    mean, variance = private_mean(LABELS, BOUNDS, Fixed(777), None)
    assert mean == pytest.approx(float(1 + Fraction((total + 777) * 5, GRID * 10)), rel=1e-14)
    assert variance == pytest.approx(3.0 * (5 / GRID / 10) ** 2)
    assert private_mean(LABELS, BOUNDS, Fixed(10**9), None)[0] == 6.0
    assert private_mean(LABELS, BOUNDS, Fixed(-(10**9)), None)[0] == 1.0


# ---- what is known ------------------------------------------------------------------------------------

VALUES = np.array([1.0, *(1 + 5 * (k + 0.5) / 64 for k in range(1, 63)), 6.0])
MANY = np.random.default_rng(1).gamma(2.0, 1.0, 2000)


def spread(masses):
    mean = sum(m * v for m, v in zip(masses, VALUES, strict=True))
    return sum(m * (v - mean) ** 2 for m, v in zip(masses, VALUES, strict=True))


def test_where_nobody_may_look_nothing_is_known_and_no_sum_is_made():
    budget = LabelBudget(Fraction(0), Fraction(0), Fraction(1))
    known, values, masses = knowledge_of(pytest.fail, BOUNDS, budget, None)
    assert (known.low, known.high, known.mean, known.counted) == (1.0, 6.0, 3.5, False)
    assert (known.mean_variance, known.variance) == (25 / 12, 25 / 20)
    np.testing.assert_allclose(values, VALUES, rtol=1e-14)
    assert masses.tolist() == [1 / 64] * 64


def noisy_mean(budget, source):
    total = LabelSums.of(MANY, BOUNDS).total + int(DiscreteLaplace(GRID / budget.mean).sample(1, source)[0])
    return min(max(1 + 5 * total / GRID / 2000, 1.0), 6.0)


@pytest.mark.parametrize("prior", ["3.9", "4", "5"])
def test_counts_get_their_noise_and_are_smoothed_where_they_are_few(prior):
    budget = LabelBudget(Fraction(1, 50), Fraction(prior), Fraction(1))
    known, values, masses = first_knowledge(MANY, BOUNDS, budget, seeded(1))
    source = seeded(1)
    assert known.mean == pytest.approx(noisy_mean(budget, source), rel=1e-12)
    noise = DiscreteLaplace(2 / budget.prior).sample(64, source)
    noisy = [int(c) + int(e) for c, e in zip(LabelSums.of(MANY, BOUNDS).counts, noise, strict=True)]
    if 2000 * float(budget.prior) < 8000:
        ends = [noisy[0], *noisy, noisy[-1]]
        noisy = [(ends[k] + 2 * ends[k + 1] + ends[k + 2]) / 4 for k in range(64)]
    kept = [max(0.0, c) + 1e-12 for c in noisy]
    np.testing.assert_allclose(masses, np.array(kept) / sum(kept), rtol=1e-9)
    np.testing.assert_allclose(values, VALUES, rtol=1e-14)
    assert known.variance == pytest.approx(spread(masses))
    assert known.mean_variance == pytest.approx(budget.mean_noise().variance() * (5 / GRID / 2000) ** 2)
    assert known.counted
    assert (known.low, known.high) == BOUNDS


@pytest.mark.parametrize("mean", ["1/100", "1/10000"])
def test_without_counts_a_bump_of_usual_width_is_taken(mean):
    budget = LabelBudget(Fraction(mean), Fraction(0), Fraction(1))
    known, _, masses = first_knowledge(MANY, BOUNDS, budget, seeded(2))
    assert known.mean == pytest.approx(noisy_mean(budget, seeded(2)), rel=1e-12)
    middle = min(max((known.mean - 1) / 5, 0.05), 0.95)
    sharp = 1 / 0.22 - 1
    edges = np.linspace(0, 1, 65)
    np.testing.assert_allclose(
        masses, np.diff(beta.cdf(edges, middle * sharp, (1 - middle) * sharp)), rtol=1e-9, atol=1e-15
    )
    assert not known.counted
    assert known.variance == pytest.approx(spread(masses))


@pytest.mark.parametrize(("label", "middle"), [(-9.0, 0.05), (99.0, 0.95)])
def test_a_bump_keeps_away_from_the_bounds(label, middle):
    budget = LabelBudget(Fraction(20), Fraction(0), Fraction(1))
    _, _, masses = first_knowledge(np.full(5000, label), BOUNDS, budget, seeded(3))
    sharp = 1 / 0.22 - 1
    first = beta.cdf(1 / 64, middle * sharp, (1 - middle) * sharp)
    assert masses[0] == pytest.approx(first, rel=1e-9)
