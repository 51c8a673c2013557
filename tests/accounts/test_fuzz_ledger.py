"""Ledgers of any content: used, or refused by an error of this package, and never repaired."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

import labeldp as ldp
from accounts.ledger_cases import ENTRY, HEADER, rows_of, write_ledger
from forged_cards import put
from fuzzing import places, tries, values

RECORDS = [HEADER, {"charges": [ENTRY, ENTRY]}, {"charges": [ENTRY]}]


def spend(path):
    """Use a ledger in every way there is; return what it says is spent, or None if it was refused."""
    before = rows_of(path)
    try:
        ledger = ldp.Ledger.open(path)
        spent = ledger.total
        assert ledger.remaining() is None or ledger.remaining() <= ledger.limit
        ledger.charge("more", epsilon=0.01)
    except ldp.LabelDPError:
        assert rows_of(path) == before
        return None
    assert ldp.Ledger.open(path).total == spent + ldp.Budget(0.01)
    return spent


@tries(50)
@given(data=st.data())
def test_a_ledger_with_any_value_replaced_and_its_hashes_forged_is_read_or_refused(tmp_path_factory, data):
    path = tmp_path_factory.getbasetemp() / "forged-ledger"
    write_ledger(path, *RECORDS)
    assert spend(path) == ldp.Budget(1)
    content = json.loads(json.dumps(RECORDS))
    for _ in range(data.draw(st.integers(1, 2))):
        place, value = data.draw(st.sampled_from(places(content))), data.draw(values)
        content = put(content, place, value)
    if all(isinstance(record, dict) for record in content):
        write_ledger(path, *content)
        spend(path)


def test_the_fuzzer_would_notice_a_ledger_that_crashes(tmp_path, monkeypatch):
    monkeypatch.setattr("labeldp.accounts.ledger_chain.read", lambda hint, record, where: record)
    write_ledger(tmp_path / "ledger", HEADER, {})
    with pytest.raises(AttributeError):
        spend(tmp_path / "ledger")
