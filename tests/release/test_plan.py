"""A plan splits the budget exactly, passes on all it is told, and refuses what does not go together."""

from fractions import Fraction

import numpy as np
import pytest

import labeldp as ldp
from labeldp.accounts.scope import Scope
from labeldp.errors import ParameterError
from labeldp.release.plan import Plan, prior_budget

BOUNDS = (0.0, 5.0)
PRIOR = ldp.Histogram([0, 1, 2, 5], [3, 2, 1])
LABELS = np.random.default_rng(1).gamma(2.0, 0.8, 1000)
MADE = ldp.Laplace(bounds=(0, 5), epsilon=1.0)


def request(**how):
    return ldp.release.Request(**{"bounds": BOUNDS, "epsilon": 1.0, "mechanism": "rp", **how})


def plan(rows=1000, **how):
    return request(**how).plan(rows)


# ---- the budget -------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("how", "part"),
    [
        ({}, prior_budget(1000, Fraction(1), "curator")),
        ({"mechanism": "auto"}, prior_budget(1000, Fraction(1), "curator")),
        ({"trust": "local"}, prior_budget(1000, Fraction(1), "local")),
        ({"epsilon_prior": 0.1}, Fraction(1, 10)),
        ({"epsilon_prior": 0.1, "mechanism": "laplace"}, Fraction(1, 10)),
        ({"mechanism": "laplace"}, 0),
        ({"mechanism": MADE, "epsilon_prior": 0}, 0),
        ({"prior": PRIOR}, 0),
        ({"epsilon_prior": 0.999}, Fraction(999, 1000)),
    ],
    ids=str,
)
def test_prior_and_labels_share_epsilon_exactly(how, part):
    made = plan(**how)
    assert (made.for_prior, made.for_labels) == (part, 1 - Fraction(part))


def test_a_known_prior_is_cut_to_the_bounds_with_a_warning():
    with pytest.warns(UserWarning, match=r"prior lies on \(-1, 5\)"):
        assert plan(prior=ldp.Histogram([-1, 5], [1])).request.prior.bounds == BOUNDS
    for wrong in ("gamma", [PRIOR], {1: 2}):
        with pytest.raises(ParameterError):
            plan(prior=wrong)


REFUSED = {
    "a part for a known prior": {"epsilon_prior": 0.1, "prior": PRIOR},
    "a part for a mechanism made already": {"epsilon_prior": 0.1, "mechanism": MADE},
    "too small a part for labels": {"epsilon_prior": 0.9995},
    "too small a part for the prior": {"epsilon_prior": 0.0009},
    "a part below nothing": {"epsilon_prior": -0.1},
    "a window of another mechanism": {"zeta": 0.5, "mechanism": "laplace"},
    "a window of a mechanism made already": {"zeta": 0.5, "mechanism": MADE},
    "a mechanism with a delta, by name": {"mechanism": "gaussian"},
    "a mechanism with a delta": {"mechanism": ldp.Gaussian(bounds=BOUNDS, epsilon=1.0, delta=1e-3)},
    "a mechanism for more": {"mechanism": MADE, "epsilon": 1.5},
    "a mechanism for less": {"mechanism": MADE, "epsilon": 0.5},
}


@pytest.mark.parametrize("case", REFUSED)
def test_what_does_not_go_together_is_refused_before_any_label_is_read(case):
    """Single values that are refused are in `test_options` and `test_privatize`."""
    with pytest.raises(ParameterError):
        request(**REFUSED[case])


# ---- what follows from it ---------------------------------------------------------------------------


def test_charges_are_for_labels_first_and_then_for_priors():
    def listed(made):
        return [(c.description, c.budget, c.rows_per_person, c.mechanism) for c in made.charges()]

    assert listed(plan(prior=PRIOR)) == [("labels", ldp.Budget(1), 1, None)]
    assert listed(plan(epsilon_prior=0.25, trust="local", scope=Scope.parse(2))) == [
        ("labels", ldp.Budget(1.5), 2, None),
        ("prior (local)", ldp.Budget(0.5), 2, None),
    ]


def test_epsilon_that_sums_leave_to_labels_costs_nothing_more():
    planned = Plan(request(), 100, Fraction(1, 4), for_sums=Fraction(3, 4))
    moved = planned.give_to_labels(Fraction(1, 2))
    assert (moved.for_labels, moved.for_sums) == (Fraction(3, 4), Fraction(1, 4))
    assert (moved.request, moved.rows) == (planned.request, planned.rows)


@pytest.mark.parametrize("trust", ["curator", "local"])
def test_a_prior_alone_is_charged_for_the_rows_of_a_person_and_their_segment(trust):
    ledger = ldp.Ledger()
    how = {"epsilon": 0.5, "bounds": BOUNDS, "rows_per_person": 3, "segment": "May", "trust": trust}
    prior = ldp.estimate_prior(np.linspace(*BOUNDS, 400), ledger=ledger, **how)
    (charge,) = ledger.charges
    assert charge.budget == ldp.Budget(1.5)
    assert charge.segments.names == ("May",)
    assert prior.origin.charge == charge
    ldp.estimate_prior(np.linspace(*BOUNDS, 400), ledger=ledger, **how | {"segment": "June"})
    assert ledger.total == ldp.Budget(1.5)  # a label is in one segment
    assert bool(prior.origin.statistics) == (trust == "curator")


def test_a_prior_alone_is_on_the_account_of_each_person(tmp_path):
    ledger = ldp.Ledger.open(tmp_path / "ledger.db", limit=ldp.Budget(2), unit="person")
    people = ["Ann", "Ann", *(f"person {row}" for row in range(398))]
    how = {"epsilon": 0.5, "bounds": BOUNDS, "ledger": ledger}
    ldp.estimate_prior(np.linspace(*BOUNDS, 400), person=people, **how)
    totals = [ledger.total_of_person(person) for person in ("Ann", "person 1", "nobody")]
    assert totals == [ldp.Budget(1.0), ldp.Budget(0.5), ldp.Budget(0)]
