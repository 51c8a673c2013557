"""Labels released a second time without a ledger: whoever does so is warned, and nothing of labels is kept."""

import gc
import warnings

import numpy as np
import pytest

import labeldp as ldp
from labeldp.accounts import ledger as ledger_module
from labeldp.accounts.ledger import warn_if_seen

HOW = {"epsilon": 1.0, "bounds": (0, 5)}


@pytest.fixture(autouse=True)
def seen(monkeypatch):
    monkeypatch.setattr(ledger_module, "_seen", {})
    return ledger_module._seen


@pytest.fixture
def labels():
    return np.linspace(0, 5, 300)


def warned(labels):
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        warn_if_seen(labels, stacklevel=2)
    assert all(one.category is ldp.errors.RepeatedReleaseWarning for one in caught)
    return len(caught)


def test_the_same_labels_are_noticed_and_their_equals_are_not(labels):
    assert [warned(labels) for _ in range(3)] == [0, 1, 0]
    assert warned(labels.copy()) == 0
    listed = [1.0]
    assert [warned(listed) for _ in range(2)] == [0, 0]  # a list cannot be remembered without being kept


def test_labels_that_are_gone_are_forgotten_and_never_taken_for_others(seen):
    labels, others = np.ones(5), np.ones(5)
    for one in (labels, others):
        warned(one)
    assert set(seen) == {id(labels), id(others)}
    stale = seen[id(labels)]
    del labels, one
    gc.collect()
    assert stale() is None
    new = np.ones(5)
    seen[id(new)] = stale  # memory is used again: the same place, and other labels
    assert warned(new) == 0
    assert set(seen) == {id(others), id(new)}
    assert seen[id(new)]() is new
    assert warned(new) == 1


@pytest.mark.filterwarnings("error::labeldp.errors.RepeatedReleaseWarning")
@pytest.mark.parametrize("first", [ldp.privatize, ldp.estimate_prior])
@pytest.mark.parametrize("second", [ldp.privatize, ldp.estimate_prior])
def test_a_second_release_warns_whoever_makes_it_and_one_with_a_ledger_does_not(first, second, labels, seen):
    for _ in range(2):  # a ledger counts: no warning
        first(labels, ledger=ldp.Ledger(), **HOW)
    assert seen == {}
    first(labels, **HOW)
    assert [other() is labels for other in seen.values()] == [True]
    with pytest.warns(ldp.errors.RepeatedReleaseWarning, match="released before") as caught:
        second(labels, **HOW)
    assert [one.filename for one in caught] == [__file__]
