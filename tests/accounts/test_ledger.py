"""Budgets, charges and the ledger in memory: exact sums, no way past a limit, and each release is paid for."""

import contextlib
import copy
import decimal
import os
import pickle
import sys
import threading
import warnings
from concurrent.futures import ThreadPoolExecutor
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.base import BaseEstimator, clone
from sklearn.dummy import DummyRegressor

import labeldp as ldp
from accounts.ledger_cases import charge
from helpers import built_in_choices, posix_only
from labeldp import Budget, BudgetError, Ledger
from labeldp.errors import LedgerError, ParameterError

repeatable = settings(max_examples=40, deadline=None, derandomize=True, database=None)
written = st.floats(1e-12, 1e6) | st.integers(1, 10**6).map(lambda k: k / 1000)
LABELS = np.linspace(0.0, 5.0, 300)
BOUNDS, NAN, INFINITE = (0.0, 5.0), float("nan"), float("inf")


def as_written(number):
    """Return the decimal that Python prints for a float, by way of another module."""
    return Fraction(decimal.Decimal(repr(number)))


# ---- amounts ------------------------------------------------------------------------------------------

NOT_AMOUNTS = [NAN, -0.1, INFINITE, -INFINITE, Fraction(-1, 2), "0.1", b"1", True, np.True_, None, [1], 1j]
BAD_BUDGETS = [{"epsilon": value} for value in NOT_AMOUNTS]
BAD_BUDGETS += [{"epsilon": 1.0, "rows_per_person": value} for value in (0, -1, 1.0, 2.5, True, "2", None)]


@pytest.mark.parametrize("amount", BAD_BUDGETS, ids=repr)
def test_what_is_not_an_amount_is_refused_by_name_and_spends_nothing(amount):
    ledger = Ledger()
    with pytest.raises(ParameterError) as caught:
        ledger.charge("labels", **amount)
    assert (caught.value.option, ledger.charges) == (list(amount)[-1], ())


# ---- charges ------------------------------------------------------------------------------------------


def test_ten_charges_of_a_tenth_fit_into_one_and_the_eleventh_spends_nothing():
    ledger = Ledger(limit=Budget(epsilon=1.0))
    made = tuple(ledger.charge("labels", epsilon=0.1) for _ in range(10))
    for over in (0.1, Fraction(1, 10**30)):
        with pytest.raises(BudgetError, match="Nothing was spent"):
            ledger.charge("labels", epsilon=over)
    assert ledger.charges == made
    assert (ledger.total, ledger.remaining()) == (Budget(1), Budget(0))


@repeatable
@given(st.lists(written, min_size=1, max_size=30))
def test_charges_add_up_to_the_sum_of_the_decimals_and_a_limit_of_that_sum_is_met_exactly(amounts):
    exact = sum(map(as_written, amounts))
    ledger, short = Ledger(limit=Budget(exact)), Ledger(limit=Budget(exact - Fraction(1, 10**40)))
    for amount in amounts[:-1]:
        ledger.charge("labels", epsilon=amount)
        short.charge("labels", epsilon=amount)
    ledger.charge("labels", epsilon=amounts[-1])
    assert (ledger.total, ledger.remaining()) == (Budget(exact), Budget(0))
    with pytest.raises(BudgetError):
        short.charge("labels", epsilon=amounts[-1])
    assert short.total.exact_epsilon == exact - as_written(amounts[-1])


def test_charges_made_together_are_all_spent_or_none():
    ledger, some = Ledger(limit=Budget(1.0)), [charge(f"part {k}", 0.4) for k in range(3)]
    with pytest.raises(BudgetError):
        ledger.charge_all(some)
    assert ledger.charges == ()
    ledger.charge_all(some[:2])
    assert ledger.charges == tuple(some[:2])


def test_threads_that_race_for_the_last_budget_never_pass_the_limit():
    ledger, start, won = Ledger(limit=Budget(1.0)), threading.Barrier(16), []

    def race(_):
        start.wait()
        with contextlib.suppress(BudgetError):
            for _ in range(5):
                won.append(ledger.charge("labels", epsilon=0.1))  # noqa: PERF401 (it ends with an error)

    interval = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)  # lets others in between the question and the charge, if they can get in
    try:
        with ThreadPoolExecutor(16) as pool:
            list(pool.map(race, range(16)))
    finally:
        sys.setswitchinterval(interval)
    assert len(won) == len(ledger.charges) == 10


# ---- one ledger ---------------------------------------------------------------------------------------


def test_copies_and_scikit_learn_clones_are_the_one_ledger():
    class Holder(BaseEstimator):
        def __init__(self, ledger=None):
            self.ledger = ledger

    ledger = Ledger(limit=Budget(1))
    assert copy.copy(ledger) is ledger
    assert copy.deepcopy({"deep": [ledger]})["deep"][0] is ledger
    assert clone(Holder(Holder(ledger))).ledger.ledger is ledger


@pytest.mark.parametrize("limit", [None, Budget(1)])
def test_a_pickle_has_the_limit_and_what_was_spent_and_takes_no_charge(limit):
    ledger = Ledger(limit=limit)
    assert pickle.loads(pickle.dumps(ledger)).charges == ()
    ledger.charge("labels", epsilon=0.3)
    ledger.charge("sick days", epsilon=0.1)
    sent = pickle.loads(pickle.dumps(pickle.loads(pickle.dumps(ledger))))
    assert (sent.limit, sent.total, sent.remaining()) == (ledger.limit, ledger.total, ledger.remaining())
    assert "sick days" not in repr(sent.charges), "what was paid for stays here"
    for copied in (sent, copy.deepcopy(sent), copy.copy(sent)):
        with pytest.raises(LedgerError, match=r"Ledger\.open"):
            copied.charge("more", epsilon=0.1)
    ledger.charge("more", epsilon=0.1)


@posix_only
def test_a_forked_process_cannot_spend_from_memory():
    ledger = Ledger()
    child = os.fork()
    if not child:
        try:
            ledger.charge("labels", epsilon=1.0)
        except LedgerError:
            os._exit(7)
        os._exit(0)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 7
    assert ledger.charges == ()


@pytest.mark.parametrize("mechanism", ["gaussian", ldp.Gaussian(bounds=BOUNDS, epsilon=1.0, delta=1e-5)])
def test_a_mechanism_with_a_delta_is_refused_before_anything_is_charged_or_read(mechanism):
    ledger, how = Ledger(), {"epsilon": 1.0, "bounds": BOUNDS, "mechanism": mechanism}
    with pytest.raises(ParameterError) as caught:
        ldp.privatize(LABELS, ledger=ledger, **how)
    assert (caught.value.option, ledger.charges) == ("mechanism", ())


# ---- releases -----------------------------------------------------------------------------------------


class NoWords:
    """A source of randomness that must not be asked."""

    def fill(self, words):
        raise AssertionError("randomness was drawn")


class Noting(Ledger):
    """A ledger that notes what it is asked for and then stops the release."""

    def charge_all(self, charges, scope=None):
        self.asked = charges
        raise BudgetError("stop here")


@pytest.mark.parametrize("mechanism", built_in_choices())
@pytest.mark.parametrize("trust", ["curator", "local"])
def test_a_release_over_budget_draws_no_randomness_and_leaves_the_ledger_as_it_was(mechanism, trust):
    ledger = Ledger(limit=Budget(1.0))
    before = ledger.charge("earlier", epsilon=0.5)
    shared = {"bounds": BOUNDS, "ledger": ledger, "trust": trust, "random_state": NoWords()}
    with pytest.raises(BudgetError, match="Nothing was spent"):
        ldp.privatize(LABELS, epsilon=0.501, mechanism=mechanism, purpose="values", **shared)
    with pytest.raises(BudgetError):
        ldp.estimate_prior(LABELS, epsilon=0.501, **shared)
    assert ledger.charges == (before,)


@repeatable
@given(
    epsilon=st.floats(0.1, 20),
    rows=st.integers(1, 2000),
    share=st.none() | st.sampled_from([0, 0.1, 1 / 3]),
    mechanism=st.sampled_from(["auto", "two-point", "laplace"]),
    trust=st.sampled_from(["curator", "local"]),
)
def test_the_parts_of_a_release_sum_to_epsilon_exactly(epsilon, rows, share, mechanism, trust):
    part = None if share is None else share * epsilon
    how = {"mechanism": mechanism, "trust": trust, "epsilon_prior": part}
    ledger, words = Noting(), NoWords()
    with pytest.raises(BudgetError, match="stop here"):
        ldp.privatize(np.zeros(rows), epsilon=epsilon, bounds=BOUNDS, ledger=ledger, random_state=words, **how)
    assert sum(one.budget.exact_epsilon for one in ledger.asked) == as_written(epsilon)
    assert all(one.budget.exact_epsilon > 0 for one in ledger.asked)


@pytest.mark.parametrize("mechanism", built_in_choices())
def test_what_is_proven_never_exceeds_what_was_charged_and_the_charge_names_the_mechanism(mechanism):
    ledger = Ledger(limit=Budget(1))
    ledger.charge("earlier", epsilon=0)
    how = {"bounds": BOUNDS, "mechanism": mechanism, "purpose": "values"}
    release = ldp.privatize(LABELS, epsilon=1.0, ledger=ledger, **how)
    assert (release.charges, release.cost) == (ledger.charges[1:], ledger.total)
    assert ledger.remaining().epsilon == 0
    paid, proof = release.charges[0], release.mechanism.verify()
    assert as_written(proof.epsilon) <= paid.budget.exact_epsilon
    assert proof.worst_ratio <= ldp.mechanisms.exp_lower(paid.budget.exact_epsilon)
    assert paid.mechanism == ldp.mechanisms.base.fingerprint(release.mechanism.channel)


# ---- the same labels again ----------------------------------------------------------------------------

HOW = {"epsilon": 1.0, "bounds": BOUNDS, "mechanism": "two-point"}


def score(labels, **how):
    model = DummyRegressor(strategy="constant", constant=1.0).fit([[0]], [0])
    return ldp.private_score(model, np.zeros((labels.size, 1)), labels, **how)


@pytest.mark.filterwarnings("error::labeldp.errors.RepeatedReleaseWarning")
@pytest.mark.parametrize("first", [ldp.privatize, ldp.estimate_prior])
@pytest.mark.parametrize("second", [ldp.privatize, ldp.estimate_prior, score])
def test_a_second_release_without_a_ledger_is_warned_of_and_one_with_a_ledger_is_not(first, second):
    labels, how = np.linspace(0, 5, 300), {"epsilon": 1.0, "bounds": BOUNDS}
    for _ in range(2):  # a ledger counts: no warning
        first(labels, ledger=ldp.Ledger(), **how)
    first(labels, **how)
    with pytest.warns(ldp.errors.RepeatedReleaseWarning, match="released before") as caught:
        second(labels, **how)
    assert [one.filename for one in caught] == [__file__]
    first(labels.copy(), **how)


def test_labels_that_are_gone_are_forgotten_and_never_taken_for_others():
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        for _ in range(200):  # memory is used again: the same identity, and other labels
            ldp.privatize(np.linspace(0, 5, 300), **HOW)
        for _ in range(2):
            ldp.privatize([1.0, 2.0], **HOW)  # a list cannot be remembered without being kept
