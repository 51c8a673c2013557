"""The ledger in memory: charges add up exactly, and there is no way past the limit."""

import contextlib
import copy
import decimal
import os
import pickle
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.base import BaseEstimator, clone

import labeldp as ldp
from helpers import built_in_choices, posix_only
from labeldp import Budget, BudgetError, Ledger
from labeldp.accounts.budget import new_charge, refuse_overspend
from labeldp.errors import LedgerError, ParameterError
from labeldp.exact.proof import exp_lower, fingerprint

repeatable = settings(max_examples=40, deadline=None, derandomize=True, database=None)
written = st.floats(1e-12, 1e6) | st.integers(1, 10**6).map(lambda k: k / 1000)
LABELS = np.linspace(0.0, 5.0, 300)
BOUNDS, NAN, INFINITE = (0.0, 5.0), float("nan"), float("inf")


class NoWords:
    """A source of randomness that must not be asked."""

    def fill(self, words):
        raise AssertionError("randomness was drawn")


class Noting(Ledger):
    """A ledger that notes what it is asked for and then stops the release."""

    def charge_all(self, charges):
        self.asked = charges
        raise BudgetError("stop here")


def asked_for(labels, **settings):
    """Return the charges that `privatize` asks for."""
    ledger, bounds = Noting(), [BOUNDS] * labels.shape[1]
    with pytest.raises(BudgetError, match="stop here"):
        ldp.privatize(labels, bounds=bounds, ledger=ledger, random_state=NoWords(), **settings)
    return ledger.asked


def as_written(number):
    """Return the decimal that Python prints for a float, by way of another module."""
    return Fraction(decimal.Decimal(repr(number)))


NOT_AMOUNTS = [NAN, -0.1, -INFINITE, Fraction(-1, 2), "0.1", b"1", True, np.True_, None, [1], 1j]
BAD_BUDGETS = [{"epsilon": value} for value in NOT_AMOUNTS]
BAD_BUDGETS += [{"epsilon": 1.0, "delta": value} for value in (*NOT_AMOUNTS, 1.5, INFINITE)]


@pytest.mark.parametrize("amount", BAD_BUDGETS, ids=repr)
def test_what_is_not_an_amount_is_refused_by_name_and_spends_nothing(amount):
    ledger, name = Ledger(), list(amount)[-1]
    with pytest.raises(ParameterError, match=name):
        Budget(**amount)
    with pytest.raises(ParameterError, match=name):
        ledger.charge("labels", **amount)
    assert ledger.charges == ()


def test_ten_charges_of_a_tenth_fit_into_one_and_the_eleventh_spends_nothing():
    ledger = Ledger(limit=Budget(epsilon=1.0, delta=1e-6))
    made = tuple(ledger.charge("labels", epsilon=0.1, delta=1e-7) for _ in range(10))
    for over in ((0.1, 0), (Fraction(1, 10**30), 0), (0, 1e-7), (0, Fraction(1, 10**30))):
        with pytest.raises(BudgetError, match="nothing was spent"):
            ledger.charge("labels", epsilon=over[0], delta=over[1])
    assert ledger.charges == made
    assert (ledger.total, ledger.remaining) == (Budget(1, 1e-6), Budget(0))


@repeatable
@given(st.lists(written, min_size=1, max_size=30))
def test_charges_add_up_to_the_sum_of_the_decimals_and_a_limit_of_that_sum_is_met_exactly(amounts):
    exact = sum(map(as_written, amounts))
    ledger, short = Ledger(limit=Budget(exact)), Ledger(limit=Budget(exact - Fraction(1, 10**40)))
    for amount in amounts[:-1]:
        ledger.charge("labels", epsilon=amount)
        short.charge("labels", epsilon=amount)
    ledger.charge("labels", epsilon=amounts[-1])
    assert (ledger.total, ledger.remaining) == (Budget(exact), Budget(0))
    with pytest.raises(BudgetError):
        short.charge("labels", epsilon=amounts[-1])
    assert short.total.exact_epsilon == exact - as_written(amounts[-1])


def test_charges_made_together_are_all_spent_or_none():
    ledger = Ledger(limit=Budget(1.0))
    some = [new_charge(f"part {i}", Budget(0.4), purpose="other") for i in range(3)]
    with pytest.raises(BudgetError):
        ledger.charge_all(some)
    assert ledger.charges == ()
    assert ledger.charge_all(some[:2]) == range(2)
    assert ledger.charges == tuple(some[:2])


def test_a_ledger_without_limit_counts_and_refuses_nothing():
    ledger = Ledger()
    ledger.charge("labels as they are", epsilon=INFINITE)
    assert (ledger.limit, ledger.remaining, ledger.total) == (None, None, Budget(INFINITE))
    with pytest.raises(ParameterError, match="Budget"):
        Ledger(limit=3.0)


def test_threads_that_race_for_the_last_budget_never_pass_the_limit(monkeypatch):
    def race(_):
        start.wait()
        with contextlib.suppress(BudgetError):
            for _ in range(5):
                won.append(ledger.charge("labels", epsilon=0.1))  # noqa: PERF401 (it ends with an error)

    def slowly(*args):
        refuse_overspend(*args)
        time.sleep(0.001)  # lets others in between the question and the charge, if they can get in

    monkeypatch.setattr("labeldp.accounts.ledger.refuse_overspend", slowly)
    ledger, start, won = Ledger(limit=Budget(1.0)), threading.Barrier(16), []
    with ThreadPoolExecutor(16) as pool:
        list(pool.map(race, range(16)))
    assert len(won) == len(ledger.charges) == 10


def test_copies_and_scikit_learn_clones_are_the_one_ledger():
    class Holder(BaseEstimator):
        def __init__(self, ledger=None):
            self.ledger = ledger

    ledger = Ledger(limit=Budget(1))
    assert copy.copy(ledger) is ledger
    assert copy.deepcopy({"deep": [ledger]})["deep"][0] is ledger
    assert clone(Holder(Holder(ledger))).ledger.ledger is ledger


@pytest.mark.parametrize("limit", [None, Budget(1, 1e-6)])
def test_a_pickle_tells_the_limit_and_what_was_spent_and_takes_no_charge(limit):
    ledger = Ledger(limit=limit)
    assert pickle.loads(pickle.dumps(ledger)).charges == ()
    ledger.charge("labels", epsilon=0.3, delta=1e-7)
    ledger.charge("sick days", epsilon=0.1)
    sent = pickle.loads(pickle.dumps(pickle.loads(pickle.dumps(ledger))))
    assert (sent.limit, sent.total, sent.remaining) == (ledger.limit, ledger.total, ledger.remaining)
    assert "sick days" not in repr(sent.charges), "what was paid for stays here"
    for copied in (sent, copy.deepcopy(sent), copy.copy(sent)):
        with pytest.raises(LedgerError, match=r"Ledger\.open"):
            copied.charge("more", epsilon=0.1)
    ledger.charge("more", epsilon=0.1)


@repeatable
@given(st.integers(1, 40), st.floats(0.001, 3), st.floats(1e-30, 1e-3))
def test_k_rows_a_person_cost_k_epsilon_and_delta_rounded_up(k, epsilon, delta):
    cost = Ledger().charge("labels", epsilon=epsilon, delta=delta, rows_per_person=k)
    assert (cost.rows_per_person, cost.budget.exact_epsilon) == (k, k * as_written(epsilon))
    with decimal.localcontext(prec=100):
        power = (decimal.Decimal(repr(epsilon)) * (k - 1)).exp()
        exact = k * Fraction(power) * as_written(delta)
    error, slack = Fraction(1, 10**90), Fraction(1, 10**25)
    assert min(1, exact * (1 - error)) <= cost.budget.exact_delta <= min(1, exact * (1 + slack))


@pytest.mark.parametrize("mechanism", built_in_choices())
@pytest.mark.parametrize("trust", ["curator", "local"])
def test_a_release_over_budget_draws_no_randomness_and_leaves_the_ledger_as_it_was(mechanism, trust):
    ledger = Ledger(limit=Budget(1.0, 0.1))
    before = ledger.charge("earlier", epsilon=0.5)
    settings = {"bounds": BOUNDS, "ledger": ledger, "trust": trust, "random_state": NoWords()}
    delta = 1e-5 if mechanism == "gaussian" else 0.0
    with pytest.raises(BudgetError, match=r"nothing was spent or\s+released"):
        ldp.privatize(LABELS, epsilon=0.501, mechanism=mechanism, delta=delta, **settings)
    with pytest.raises(BudgetError):
        ldp.estimate_prior(LABELS, epsilon=0.501, **settings)
    assert ledger.charges == (before,)


@repeatable
@given(
    epsilon=st.floats(0.05, 20),
    shape=st.tuples(st.integers(1, 2000), st.integers(1, 6)),
    share=st.none() | st.sampled_from([0, 0.1, 1 / 3]),
    mechanism=st.sampled_from(["auto", "two-point", "gaussian"]),
    trust=st.sampled_from(["curator", "local"]),
)
def test_the_parts_of_a_release_sum_to_epsilon_and_delta_exactly(epsilon, shape, share, mechanism, trust):
    part = None if share is None else share * epsilon
    delta = 1e-5 if mechanism == "gaussian" else 0.0
    settings = {"mechanism": mechanism, "trust": trust, "epsilon_prior": part, "delta": delta}
    charges = asked_for(np.zeros(shape), epsilon=epsilon, **settings)
    assert sum(charge.budget.exact_epsilon for charge in charges) == as_written(epsilon)
    assert sum(charge.budget.exact_delta for charge in charges) == as_written(delta)
    assert all(charge.budget.exact_epsilon > 0 for charge in charges)


@pytest.mark.parametrize("mechanism", built_in_choices())
def test_what_is_proven_never_exceeds_what_was_charged_and_the_charge_names_the_mechanism(mechanism):
    delta = 2e-5 if mechanism == "gaussian" else 0.0
    ledger = Ledger(limit=Budget(1, 1))
    ledger.charge("earlier", epsilon=0)
    labels = np.column_stack([LABELS, LABELS[::-1] / 2, LABELS / 3])
    settings = {"bounds": [BOUNDS, (0, 2.5), (0, 2)], "mechanism": mechanism, "delta": delta}
    release = ldp.privatize(labels, epsilon=1.0, ledger=ledger, **settings)
    assert (release.charges, release.cost) == (ledger.charges[1:], ledger.total)
    assert ledger.remaining.epsilon == 0
    assert ledger.charges[0].mechanism is None
    for column, made in enumerate(release.mechanisms):
        charge, proof = release.charges[column], made.verify()
        assert as_written(proof.epsilon) <= charge.budget.exact_epsilon
        assert as_written(proof.delta) <= charge.budget.exact_delta
        if proof.worst_ratio is not None:
            assert proof.worst_ratio <= exp_lower(charge.budget.exact_epsilon)
        assert charge.mechanism == fingerprint(made.channel)
        assert charge.what == f"labels, column {column}"


@posix_only
def test_a_forked_process_cannot_spend_from_memory():
    ledger = Ledger()
    child = os.fork()
    if not child:
        try:
            ledger.charge("labels", epsilon=1.0)
        except ldp.errors.LedgerError:
            os._exit(7)
        os._exit(0)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 7
    assert ledger.charges == ()
