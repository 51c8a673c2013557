"""Rules of a ledger's file hold however it is opened: prepared, pickled, copied, or as a book to read."""

import pickle

import numpy as np
import pytest

import labeldp as ldp
from labeldp import Budget, Ledger
from labeldp.accounts.ledger import open_book
from labeldp.accounts.ledger_chain import Extract
from labeldp.errors import LabelDPError

RULES = {"limit": Budget(1), "unit": "label", "segments": "night"}


@pytest.mark.parametrize("other", [{"limit": Budget(2)}, {"unit": "person"}, {"segments": "hospital"}])
def test_a_file_that_exists_is_not_prepared_with_other_rules(other, tmp_path):
    Ledger.open(tmp_path / "ledger.db", **RULES)
    assert Ledger.prepare(tmp_path / "ledger.db", **RULES).limit == Budget(1)
    with pytest.raises(LabelDPError):
        Ledger.prepare(tmp_path / "ledger.db", **RULES | other)


def test_a_prepared_ledger_keeps_its_rules_in_a_pickle_and_in_the_file_of_its_first_charge(tmp_path):
    rules = {"limit": Budget(2), "unit": "person", "segments": "night"}
    prepared = Ledger.prepare(tmp_path / "ledger.db", **rules)
    for ledger in (prepared, pickle.loads(pickle.dumps(prepared))):
        found = ledger.rules
        assert {"limit": found.limit, "unit": found.unit, "segments": found.segments} == rules


def test_a_pickle_of_a_file_with_a_limit_does_not_open_one_with_another_in_its_place(tmp_path):
    path = tmp_path / "ledger.db"
    kept = pickle.dumps(Ledger.open(path, limit=Budget(1)))
    path.unlink()
    Ledger.open(path, limit=Budget(9))
    with pytest.raises(LabelDPError):
        pickle.loads(kept)


def test_a_person_without_budget_for_a_cost_above_one_is_left_out(tmp_path):
    """The people are looked up whenever the dearest of them could pass the limit with this release."""
    ledger = Ledger.open(tmp_path / "ledger.db", limit=Budget(2.5), unit="person")
    how = {"epsilon": 1.5, "bounds": (0, 1), "mechanism": "two-point", "ledger": ledger}
    ldp.privatize([0.0, 1.0], person=["Ann", "Bo"], **how)
    with pytest.warns(UserWarning, match="stay empty"):
        release = ldp.privatize([0.0, 1.0, 1.0], person=["Ann", "Cy", "Di"], **how)
    assert np.isnan(release.labels).tolist() == [True, False, False]


def test_a_book_is_a_ledger_or_an_extract_and_is_never_made_by_looking(tmp_path):
    ledger = Ledger.open(tmp_path / "ledger.db", limit=Budget(1))
    (tmp_path / "extract.json").write_text(ledger.to_extract(), encoding="utf-8")
    assert isinstance(open_book(tmp_path / "ledger.db"), Ledger)
    assert isinstance(open_book(tmp_path / "extract.json"), Extract)
    with pytest.raises(LabelDPError):
        open_book(tmp_path / "none.db")
    assert not (tmp_path / "none.db").exists()


def test_a_backup_replaces_a_file_at_the_owners_word_alone(tmp_path):
    ledger, copy = Ledger.open(tmp_path / "ledger.db", limit=Budget(1)), tmp_path / "copy.db"
    ledger.backup(copy)
    with pytest.raises(LabelDPError):
        ledger.backup(copy)
    ledger.backup(copy, force=True)
    assert Ledger.open(copy).limit == Budget(1)
