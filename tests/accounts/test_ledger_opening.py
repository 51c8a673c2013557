"""How a ledger is opened, and what it does for whoever pays in several steps."""

import os
import pickle

import pytest

from labeldp import Budget, BudgetError, Ledger
from labeldp.accounts.budget import new_charge
from labeldp.errors import LedgerError, ParameterError


def late(path, limit=None):
    return Ledger.open(path, limit=limit, create="late")


def test_a_late_ledger_is_created_with_the_first_charge_that_is_accepted(path):
    ledger = late(path, Budget(1))
    assert (ledger.charges, ledger.total, ledger.remaining) == ((), Budget(0), Budget(1))
    with pytest.raises(BudgetError, match="nothing was spent"):
        ledger.charge("too much", epsilon=1.1)
    assert os.listdir(path.parent) == []
    ledger.charge("labels", epsilon=0.4)
    assert (Ledger.open(path).limit, Ledger.open(path).total) == (Budget(1), Budget(0.4))
    path.unlink()
    with pytest.raises(LedgerError, match="cannot open"):
        ledger.charge("more", epsilon=0.1)
    assert not path.exists(), "one that is gone is not created again"


def test_a_late_ledger_uses_a_file_that_another_created_meanwhile_unless_its_limit_is_another(path):
    ledgers = [late(path), late(path, Budget(1)), late(path, Budget(2)), pickle.loads(pickle.dumps(late(path)))]
    Ledger.open(path, limit=Budget(1)).charge("another's", epsilon=0.5)
    for ledger in (ledgers[0], ledgers[1], ledgers[3]):
        ledger.charge("labels", epsilon=0.1)
        assert ledger.limit == Budget(1)
    for _ in range(2):
        with pytest.raises(LedgerError, match="has the limit"):
            ledgers[2].charge("labels", epsilon=0.1)
    assert Ledger.open(path).total == Budget(0.8)
    with pytest.raises(LedgerError, match="has the limit"):
        late(path, Budget(2))
    for ledger in (
        lambda: Ledger.open(path.with_name("none"), create="never"),
        lambda: Ledger.open(path, create="x"),
    ):
        with pytest.raises((LedgerError, ParameterError)):
            ledger()
    assert os.listdir(path.parent) == ["ledger"]


def test_a_ledger_knows_its_own_charges_and_keeps_room_for_those_that_follow(path):
    ledger, other = Ledger.open(path, limit=Budget(1)), Ledger.open(path)
    with ledger.reserve([new_charge("score", Budget(0.5), purpose="score")]):
        with pytest.raises(BudgetError, match="nothing was spent"):
            ledger.charge("model", epsilon=0.6)
        ledger.charge("model", epsilon=0.3)
    other.charge("between", epsilon=0.2)
    ledger.charge("score", epsilon=0.5)
    ledger.describe(2, "sha256:0123")
    assert ledger.own_charges == (ledger.charges[0], ledger.charges[2])
    assert ledger.own_charges[1].mechanism == "sha256:0123"


def test_a_refusal_for_delta_says_how_a_limit_for_delta_is_set():
    for ledger in (Ledger(limit=Budget(1)), Ledger(limit=Budget(1, 1e-6))):
        with pytest.raises(BudgetError, match=r"limit=Budget\(epsilon, delta\)"):
            ledger.charge("labels", epsilon=0.5, delta=1e-5)
        with pytest.raises(BudgetError, match=r"released$"):
            ledger.charge("labels", epsilon=1.5)
