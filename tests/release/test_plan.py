"""A plan splits the budget exactly, passes on all it is told, and refuses what does not go together."""

from fractions import Fraction

import numpy as np
import pytest

import labeldp as ldp
from helpers import seeded
from labeldp.ledger import Budget
from labeldp.mechanisms.gaussian import SMALLEST_DELTA
from labeldp.priors import histogram_from
from labeldp.release.choice import design
from labeldp.release.plan import Plan, bounds_per_column
from labeldp.release.split import prior_budget

BOUNDS = ((0.0, 5.0),)
THREE = ((0.0, 5.0), (-1.0, 1.0), (10.0, 20.0))
PRIOR = ldp.Histogram([0, 1, 2, 5], [3, 2, 1])
LABELS = np.random.default_rng(1).gamma(2.0, 0.8, 1000)
MADE = ldp.Gaussian(bounds=(0, 5), epsilon=1.0, delta=1e-3)
USUAL = {
    "rows": 1000,
    "bounds": BOUNDS,
    "epsilon": 1.0,
    "epsilon_prior": None,
    "mechanism": "rp",
    "prior": None,
    "zeta": None,
    "delta": 0.0,
    "trust": "curator",
    "method": None,
}


def plan(**how):
    return Plan.make(**{**USUAL, **how})


# ---- the budget -------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("how", "part"),
    [
        ({}, prior_budget(1000, Fraction(1), "curator")),
        ({"mechanism": "auto"}, prior_budget(1000, Fraction(1), "curator")),
        ({"rows": 10**6}, prior_budget(10**6, Fraction(1), "curator")),
        ({"trust": "local"}, prior_budget(1000, Fraction(1), "local")),
        ({"zeta": 0.5}, prior_budget(1000, Fraction(1), "curator")),
        ({"epsilon_prior": 0.1}, Fraction(1, 10)),
        ({"epsilon_prior": 0}, 0),
        ({"epsilon_prior": 0.1, "mechanism": "laplace"}, Fraction(1, 10)),
        ({"mechanism": "laplace"}, 0),
        ({"mechanism": MADE}, 0),
        ({"mechanism": MADE, "epsilon_prior": 0}, 0),
        ({"prior": PRIOR}, 0),
        ({"prior": PRIOR, "epsilon_prior": 0}, 0),
        ({"epsilon_prior": 0.001}, Fraction(1, 1000)),
        ({"epsilon_prior": 0.999}, Fraction(999, 1000)),
    ],
    ids=str,
)
def test_prior_and_labels_share_epsilon_exactly(how, part):
    made = plan(**how)
    assert (made.for_prior, made.for_labels) == (part, 1 - Fraction(part))


def test_columns_share_the_budget_evenly():
    made = plan(bounds=THREE, epsilon=0.1, epsilon_prior=0.01)
    assert (made.for_prior, made.for_labels) == (Fraction(1, 300), Fraction(9, 300))
    normal = plan(bounds=THREE, mechanism="gaussian", delta=1e-5)
    assert (normal.delta, normal.for_labels) == (Fraction(1, 300_000), Fraction(1, 3))
    default = plan(bounds=THREE)
    assert default.for_prior == prior_budget(1000, Fraction(1, 3), "curator")


def test_all_that_is_told_is_kept():
    made = plan(prior=PRIOR, zeta=0.7, trust="local", method="laplace")
    assert (made.rows, made.bounds, made.trust, made.method, made.zeta) == (1000, BOUNDS, "local", "laplace", 0.7)
    assert (made.mechanism, made.priors, made.delta) == ("rp", (PRIOR,), 0)
    assert plan(mechanism="auto", zeta=0.7).mechanism == "rp"
    assert plan(mechanism="auto").mechanism == "auto"
    assert plan(mechanism=MADE).mechanism is MADE
    assert plan(mechanism=MADE).delta == Fraction(1, 1000)  # what a mechanism costs is charged, said or not
    assert plan(mechanism=ldp.TwoPoint(bounds=(0, 5), epsilon=1.0)).delta == 0
    assert plan(bounds=THREE).priors == (None, None, None)


def test_a_known_prior_is_for_its_column_and_cut_to_its_bounds():
    wide = [ldp.Histogram([low - 1, high], [1]) for low, high in THREE]
    made = plan(bounds=THREE, prior=wide)
    assert [prior.bounds for prior in made.priors] == list(THREE)
    assert plan(bounds=THREE, prior=tuple(wide)).priors == made.priors
    for wrong in (wide[:2], wide[0], [wide[0], wide[1], "gamma"], iter(wide), {1: 2}):
        with pytest.raises(ldp.ParameterError):
            plan(bounds=THREE, prior=wrong)


REFUSED = {
    "a part of all": {"epsilon_prior": 1.0},
    "a part of more": {"epsilon_prior": 1.1},
    "a part below nothing": {"epsilon_prior": -0.1},
    "a part for a known prior": {"epsilon_prior": 0.1, "prior": PRIOR},
    "a part for a mechanism made already": {"epsilon_prior": 0.1, "mechanism": MADE},
    "too small a part for the prior": {"epsilon_prior": 0.0009},
    "too small a part for labels": {"epsilon_prior": 0.9995},
    "too small a part of each column": {"bounds": THREE, "epsilon": 0.0029, "mechanism": "laplace"},
    "too small a prior of each column": {"bounds": THREE, "epsilon_prior": 0.0029},
    "too much": {"epsilon": 21.0},
    "an unknown mechanism": {"mechanism": "magic"},
    "no mechanism": {"mechanism": None},
    "a window of no width": {"zeta": 0.0},
    "a window of another mechanism": {"zeta": 0.5, "mechanism": "laplace"},
    "a window of a mechanism made already": {"zeta": 0.5, "mechanism": MADE},
    "a delta for no reason": {"delta": 1e-5},
    "a delta for the best": {"delta": 1e-5, "mechanism": "auto"},
    "no delta": {"mechanism": "gaussian"},
    "all delta": {"mechanism": "gaussian", "delta": 1.0},
    "a delta below nothing": {"mechanism": "gaussian", "delta": -1e-5},
    "a small delta": {"mechanism": "gaussian", "delta": SMALLEST_DELTA * 0.99},
    "a small delta for each": {"mechanism": "gaussian", "delta": SMALLEST_DELTA * 2.99, "bounds": THREE},
    "text for a delta": {"delta": "0"},
    "one mechanism for two columns": {"mechanism": MADE, "bounds": THREE[:2], "epsilon": 2.0},
    "one mechanism for three columns": {"mechanism": MADE, "bounds": THREE, "epsilon": 3.0},
    "a mechanism for more": {"mechanism": MADE, "epsilon": 1.5},
    "a mechanism for less": {"mechanism": MADE, "epsilon": 0.5},
    "no privacy": {"mechanism": ldp.NoPrivacy()},
}


@pytest.mark.parametrize("case", REFUSED)
def test_what_does_not_go_together_is_refused(case):
    with pytest.raises(ldp.ParameterError):
        plan(**REFUSED[case])


def test_the_smallest_parts_there_are_are_taken():
    assert plan(mechanism="gaussian", delta=SMALLEST_DELTA).delta == Fraction(repr(SMALLEST_DELTA))
    assert plan(mechanism="gaussian", delta=SMALLEST_DELTA * 4, bounds=THREE).delta > 0
    assert plan(bounds=THREE, epsilon=0.003, mechanism="laplace").for_labels == Fraction(1, 1000)


def test_a_part_that_is_too_small_is_named_with_its_columns():
    with pytest.raises(ldp.ParameterError, match=r"for the prior is 0\.0009: "):
        plan(epsilon_prior=0.0009)
    with pytest.raises(ldp.ParameterError, match=r"for the labels of each of 2 columns is 0\.00095: "):
        plan(bounds=THREE[:2], epsilon=0.0019, mechanism="laplace")


@pytest.mark.parametrize("name", ["epsilon", "epsilon_prior", "zeta", "delta"])
def test_what_is_no_number_is_named(name):
    for wrong in ("1", float("nan")):
        with pytest.raises(ldp.ParameterError, match=f"^{name} must be a number"):
            plan(**{name: wrong})
    with pytest.raises(ldp.ParameterError, match=r"^epsilon_prior must lie in \[0, epsilon\)"):
        plan(epsilon_prior=1.0)


# ---- what follows from it ---------------------------------------------------------------------------


def test_charges_are_for_labels_first_and_then_for_priors():
    def listed(made, people=1):
        return [(c.what, c.budget, c.rows_per_person, c.mechanism) for c in made.charges(people)]

    assert listed(plan(prior=PRIOR)) == [("labels", Budget(1), 1, None)]
    assert listed(plan(epsilon_prior=0.25, trust="local"), 2) == [
        ("labels", Budget(1.5), 2, None),
        ("prior (local)", Budget(0.5), 2, None),
    ]
    assert listed(plan(bounds=THREE[:2], epsilon_prior=0.25)) == [
        ("labels, column 0", Budget(0.375), 1, None),
        ("labels, column 1", Budget(0.375), 1, None),
        ("prior (curator), column 0", Budget(0.125), 1, None),
        ("prior (curator), column 1", Budget(0.125), 1, None),
    ]
    assert listed(plan(mechanism="gaussian", delta=1e-5)) == [("labels", Budget(1, 1e-5), 1, None)]


@pytest.mark.parametrize(
    "how",
    [
        {"prior": PRIOR},
        {"prior": PRIOR, "zeta": 0.7},
        {"mechanism": "auto", "prior": PRIOR, "rows": 20},
        {"mechanism": "auto", "prior": PRIOR, "rows": 10**7},
        {"mechanism": "gaussian", "delta": 1e-5},
        {"mechanism": "laplace", "prior": PRIOR, "rows": 10**7},
        {"mechanism": "rp", "epsilon_prior": 0},
    ],
    ids=str,
)
def test_what_needs_no_label_is_designed_before_any_is_used(how):
    made, told = plan(**how), {**USUAL, **how}
    names = ("delta", "zeta", "rows")
    by_hand = design(
        told["mechanism"], told["prior"], bounds=BOUNDS[0], epsilon=Fraction(1), **{n: told[n] for n in names}
    )
    assert made.ready() == [by_hand] == [made.design(made.priors[0], BOUNDS[0])]
    assert made.prior(0, LABELS, seeded(1)) is made.priors[0]


def test_each_column_is_designed_for_its_own_prior_and_bounds():
    priors = [ldp.Histogram([low, low + 1, high], [3, 1]) for low, high in THREE]
    for column, mechanism in enumerate(plan(bounds=THREE, prior=priors).ready()):
        low, high = mechanism.interval
        assert THREE[column][0] <= low < high <= THREE[column][1]
    normal = plan(bounds=THREE, mechanism="gaussian", delta=1e-5)
    assert [mechanism.bounds for mechanism in normal.ready()] == list(THREE)
    assert all(Fraction(repr(mechanism.delta)) <= normal.delta for mechanism in normal.ready())
    assert plan(mechanism=MADE).ready() == [MADE]


@pytest.mark.parametrize(
    ("how", "method"),
    [
        ({}, "adaptive"),
        ({"method": "counts"}, "counts"),
        ({"method": "adaptive"}, "adaptive"),
        ({"trust": "local"}, None),
        ({"trust": "local", "method": "laplace"}, "laplace"),
    ],
    ids=str,
)
def test_a_prior_that_is_paid_for_is_made_as_it_was_asked(how, method):
    made = plan(bounds=((-9.0, -8.0), BOUNDS[0]), epsilon_prior=0.5, **how)
    assert made.ready() == []
    trust = how.get("trust", "curator")
    by_hand = histogram_from(LABELS, Fraction(1, 4), BOUNDS[0], seeded(2), trust=trust, method=method)
    assert made.prior(1, LABELS, seeded(2)) == by_hand


# ---- bounds -----------------------------------------------------------------------------------------


def test_bounds_are_a_pair_for_each_column():
    for pair in ((0, 5), [0, 5], np.array([0, 5])):
        assert bounds_per_column(pair, 1, 1) == bounds_per_column(pair, 1, 2) == BOUNDS
    for pairs in ([(0, 5)], ((0, 5),), np.array([[0, 5]])):
        assert bounds_per_column(pairs, 1, 2) == BOUNDS
    for pairs in (THREE, list(THREE), np.array(THREE)):
        assert bounds_per_column(pairs, 3, 2) == THREE


@pytest.mark.parametrize(
    ("bounds", "columns", "ndim"),
    [
        (None, 1, 1),
        ([(0, 5)], 1, 1),
        (None, 1, 2),
        ((0, 5), 2, 2),
        ([(0, 5)], 2, 2),
        ([(0, 5), 7], 2, 2),
        ([(0, 5), [(0, 5)]], 2, 2),
        ([(0, 5), (5, 0)], 2, 2),
        ([(0, 5), (1e9, 1e9 + 1e-3)], 2, 2),
        (iter([(0, 5), (0, 5)]), 2, 2),
        ((1e9, 1e9 + 1e-3), 1, 1),
    ],
    ids=lambda value: "iterator" if hasattr(value, "__next__") else str(value),
)
def test_bounds_that_are_not_are_refused(bounds, columns, ndim):
    with pytest.raises(ldp.ParameterError):
        bounds_per_column(bounds, columns, ndim)


def test_the_column_whose_bounds_are_wrong_is_named():
    with pytest.raises(ldp.ParameterError, match=r"bounds\[1\] must satisfy"):
        bounds_per_column([(0, 5), (5, 0)], 2, 2)
    with pytest.raises(ldp.ParameterError, match=r"^bounds must satisfy"):
        bounds_per_column((5, 0), 1, 1)
