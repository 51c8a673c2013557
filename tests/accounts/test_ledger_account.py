"""Budgets, prices and charges held to a plain account of them, case by case."""

from datetime import UTC, datetime, timedelta
from fractions import Fraction
from itertools import product

import numpy as np
import pytest

from labeldp import Budget, BudgetError, Ledger
from labeldp.accounts.budget import Charge, group_budget, new_charge, total_of
from labeldp.errors import LedgerError, ParameterError

INFINITE = float("inf")
AMOUNTS = list(product([0, Fraction(1, 3), 2, INFINITE], [0, Fraction(1, 4), Fraction(4, 5), 1]))


def test_sums_differences_and_order_are_those_of_numbers_with_infinity():
    for one, other in product(AMOUNTS, repeat=2):
        left, right = Budget(*one), Budget(*other)
        assert left + right == Budget(one[0] + other[0], min(1, one[1] + other[1]))
        rest = INFINITE if one[0] == INFINITE else max(0, one[0] - other[0])
        assert left.minus(right) == Budget(0 if rest == -INFINITE else rest, max(0, one[1] - other[1]))
        assert (left <= right) == (one[0] <= other[0] and one[1] <= other[1])
    assert total_of(new_charge("a", Budget(*amount), purpose="other") for amount in AMOUNTS[:6]) == Budget(
        Fraction(2, 3), 1
    )
    assert total_of([]) == Budget(0)


def test_a_budget_is_told_in_few_digits_and_shown_in_all():
    assert [str(Budget(1 / 3)), str(Budget(2, 1 / 3)), str(Budget(INFINITE))] == [
        "ε = 0.333334",
        "ε = 2 and δ = 0.334",
        "ε = inf",
    ]
    assert repr(Budget(1 / 3)) == "Budget(epsilon=0.3333333333333333)"
    assert repr(Budget(2, 1 / 3)) == "Budget(epsilon=2.0, delta=0.3333333333333333)"
    assert (
        repr(Budget(Fraction(1, 3))) == "Budget(epsilon=0.33333333333333337)"
    )  # the float below is less than it is
    assert len({Budget(0.1), Budget(np.float64(0.1)), Budget(Fraction(1, 10)), Budget(0.1, 0.0)}) == 1
    assert Budget(0.1) != Budget(0.1, 1e-9)
    ledger = Ledger(limit=Budget(2))
    ledger.charge("labels", epsilon=0.5)
    assert repr(ledger) == "<Ledger spent=ε = 0.5 limit=ε = 2>"


def test_a_group_pays_for_each_of_its_rows():
    assert group_budget(Budget(0.5, 1e-6), 1) == Budget(0.5, 1e-6)
    assert group_budget(Budget(0.5), np.int64(4)) == Budget(2)
    assert group_budget(Budget(INFINITE, 0.1), 4) == Budget(INFINITE, 0.1)
    assert group_budget(Budget(0, 0.1), 4) <= Budget(0, Fraction(2, 5) * (1 + Fraction(1, 1 << 80)))
    assert not group_budget(Budget(0, 0.1), 4) <= Budget(0, Fraction(2, 5) * (1 - Fraction(1, 1 << 80)))
    assert group_budget(Budget(0.001, 0.5), 4) == Budget(0.004, 1)
    assert group_budget(Budget(10**9, 0.5), 10**6) == Budget(10**15, 1)  # e^(10^15) is never written out


@pytest.mark.parametrize("people", [0, -1, 1.0, 2.5, True, "2", None])
def test_a_group_is_an_integer_number_of_rows(people):
    ledger = Ledger()
    with pytest.raises(ParameterError) as caught:
        ledger.charge("labels", epsilon=0.5, rows_per_person=people)
    assert (caught.value.option, ledger.charges) == ("rows_per_person", ())


def test_a_new_charge_says_what_when_and_for_how_many_rows():
    before = datetime.now(UTC) - timedelta(seconds=1)
    charge = Ledger().charge(
        "labels", epsilon=0.5, purpose="labels", mechanism="sha256:0123", rows_per_person=np.int64(3)
    )
    when = datetime.fromisoformat(charge.when)
    assert before <= when <= datetime.now(UTC)
    assert (when.utcoffset(), len(charge.when)) == (timedelta(0), len("2026-01-01T00:00:00+00:00"))
    assert charge == Charge("labels", Budget(1.5), charge.when, "sha256:0123", 3, "labels")
    assert type(charge.rows_per_person) is int
    plain = new_charge("prior", Budget(0.5), purpose="prior", column=2)
    assert plain == Charge("prior", Budget(0.5), plain.when, None, 1, "prior", 2)


def test_a_ledger_keeps_what_it_is_told_and_where():
    ledger = Ledger(limit=Budget(3, 0.1))
    first = ledger.charge("labels", epsilon=0.5, delta=0.01, purpose="labels", mechanism="sha256:0123")
    assert first == Charge("labels", Budget(0.5, 0.01), first.when, "sha256:0123", 1, "labels")
    assert ledger.charge_all([new_charge("more", Budget(0.1), purpose="other")] * 2) == range(1, 3)
    ledger.describe(0, "sha256:4567")
    ledger.describe(2, "sha256:89ab")
    for place in (-1, 3, 4):
        with pytest.raises(LedgerError):
            ledger.describe(place, "sha256:nowhere")
    assert [charge.mechanism for charge in ledger.charges] == ["sha256:4567", None, "sha256:89ab"]
    assert [charge.what for charge in ledger.charges] == ["labels", "more", "more"]
    assert (ledger.total, ledger.remaining) == (Budget(0.7, 0.01), Budget(2.3, 0.09))
    with pytest.raises(
        BudgetError, match=r"cost ε = 2\.31, and of ε = 3 and δ = 0\.1 only ε = 2\.3 and δ = 0\.09"
    ):
        ledger.charge("too much", epsilon=2.31)
