"""Ledgers and files of any bytes: read, or refused by an error of this package."""

import contextlib
import json
import os
import zipfile

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import labeldp as ldp
from forged_cards import forged, put
from fuzzing import places, tries, values
from labeldp.ledger.file import SCHEMA, _hash, _line

# ---- ledgers ----------------------------------------------------------------------------------------


def chained(records):
    """Return a ledger's bytes with the right hashes for whatever its records say."""
    lines, last = [], ""
    for record in records:
        lines.append(_line(record, last))
        last = _hash(record, last)
    return b"".join(lines)


HEADER = {"schema": SCHEMA, "limit": ["3", "0"], "id": "0" * 32}
ENTRY = {
    "what": "labels",
    "budget": ["1/10", "0"],
    "when": "now",
    "mechanism": None,
    "rows_per_person": 1,
    "purpose": "labels",
    "column": None,
}
RECORDS = [HEADER, {"charges": [ENTRY, ENTRY]}, {"describes": 0, "mechanism": "sha256:0"}]
fractions = st.sampled_from(
    ["1e999999999", "1_0", " 1", "-1", "1/0", "0.5", "9" * 5000, "nan", "inf", "٣", "1/-3"]
)


def spend(path):
    """Use a ledger in every way there is; return what it says is spent, or None if it was refused."""
    before = path.read_bytes()
    try:
        ledger = ldp.Ledger.open(path)
        spent = ledger.total
        assert ledger.remaining is None or ledger.remaining <= ledger.limit
        ledger.charge("more", epsilon=0.01)
    except ldp.LabelDPError:
        assert path.read_bytes() in (before, before[: before.rfind(b"\n") + 1])
        return None
    assert ldp.Ledger.open(path).total == spent + ldp.Budget(0.01)
    return spent


def test_a_ledger_made_by_hand_is_one(tmp_path):
    path = tmp_path / "ledger"
    path.write_bytes(chained(RECORDS))
    assert spend(path) == ldp.Budget(0.2)


@tries(300)
@given(data=st.data())
def test_a_ledger_with_any_value_replaced_and_its_hashes_forged_is_read_or_refused(tmp_path_factory, data):
    path = tmp_path_factory.getbasetemp() / "forged-ledger"
    content = json.loads(json.dumps(RECORDS))
    for _ in range(data.draw(st.integers(1, 2))):
        content = put(content, data.draw(st.sampled_from(places(content))), data.draw(values | fractions))
    if all(isinstance(record, dict) for record in content):
        path.write_bytes(chained(content))
        spend(path)


def test_the_fuzzer_would_notice_a_ledger_that_crashes(tmp_path, monkeypatch):
    monkeypatch.setattr("labeldp.ledger.file._well_formed", contextlib.nullcontext)
    (tmp_path / "ledger").write_bytes(chained([HEADER, {}]))
    with pytest.raises(KeyError):
        spend(tmp_path / "ledger")


@tries(200)
@given(text=st.binary(max_size=300))
def test_bytes_that_are_no_ledger_are_refused_and_left_alone(tmp_path_factory, text):
    path = tmp_path_factory.getbasetemp() / "no-ledger"
    path.write_bytes(text)
    assert spend(path) is None
    assert path.read_bytes() == text


@pytest.mark.parametrize("text", ["1e999999999", "9" * 100_000, "1/0", "-1", "", "½", "0x10"])
def test_a_number_that_would_take_all_memory_is_refused_at_once(tmp_path, text):
    path = tmp_path / "ledger"
    path.write_bytes(chained([HEADER, {"charges": [{**ENTRY, "budget": [text, "0"]}]}]))
    with pytest.raises(ldp.LedgerError, match="not valid"):
        ldp.Ledger.open(path).total  # noqa: B018
    path.write_bytes(chained([{**HEADER, "limit": [text, "0"]}]))
    with pytest.raises(ldp.LedgerError, match="not valid"):
        ldp.Ledger.open(path)


def test_a_ledger_of_a_terabyte_is_refused_unread(tmp_path):
    path = tmp_path / "ledger"
    path.write_bytes(chained(RECORDS))
    os.truncate(path, 1 << 40)
    with pytest.raises(ldp.LedgerError, match="longer"):
        ldp.Ledger.open(path)


# ---- files ------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def saved(tmp_path_factory):
    labels = np.linspace(1, 4, 60)
    path = tmp_path_factory.mktemp("rows") / "rows.npz"
    ldp.LabelReleaseRegressor(epsilon=4.0, bounds=(0, 5)).fit(labels[:, None], labels).release_.save(path)
    return path


@tries(150)
@given(data=st.data())
def test_a_saved_release_with_bytes_changed_is_the_same_or_refused(saved, data):
    whole = saved.read_bytes()
    at, gone = data.draw(st.integers(0, len(whole))), data.draw(st.integers(0, 4))
    other = saved.with_name("changed.npz")
    other.write_bytes(whole[:at] + data.draw(st.binary(max_size=4)) + whole[at + gone :])
    with contextlib.suppress(ldp.LabelDPError):
        assert np.array_equal(ldp.RowRelease.load(other).labels, ldp.RowRelease.load(saved).labels)


@tries(60)
@given(data=st.data())
def test_a_saved_release_with_a_forged_card_is_read_or_refused(saved, data):
    with np.load(saved) as stored:
        arrays = dict(stored)
    content = json.loads(str(arrays["card"]))
    for _ in range(data.draw(st.integers(1, 2))):
        content = put(content, data.draw(st.sampled_from(places(content))), data.draw(values))
    other = saved.with_name("forged.npz")
    with open(other, "wb") as stream:
        np.savez(stream, **{**arrays, "card": np.array(forged(content))})
    with contextlib.suppress(ldp.LabelDPError):
        ldp.RowRelease.load(other)


def test_a_small_file_that_unpacks_to_much_memory_is_refused(saved):
    other = saved.with_name("bomb.npz")
    with zipfile.ZipFile(saved) as old, zipfile.ZipFile(other, "w", zipfile.ZIP_DEFLATED) as new:
        for name in old.namelist():
            new.writestr(name, old.read(name))
        with new.open("more.npy", "w") as member:
            for _ in range(300):
                member.write(bytes(1 << 20))
    with pytest.raises(ldp.CardError, match="unpack"):
        ldp.RowRelease.load(other)


@pytest.fixture(scope="module")
def tables(tmp_path_factory):
    """A folder with the same small table in every format."""
    from labeldp.files import TableWriter, open_table

    folder = tmp_path_factory.mktemp("tables")
    (folder / "a.csv").write_text("id,price,word\n" + "".join(f"{k},{k / 7},w{k % 3}\n" for k in range(40)))
    table = open_table(folder / "a.csv")
    for ending in ("tsv", "csv.gz", "parquet", "arrow", "feather"):
        with TableWriter(str(folder / f"a.{ending}"), table.schema) as writer:
            for batch in table.batches():
                writer.write(batch)
            writer.finish()
    return folder


@pytest.mark.parametrize("ending", ["csv", "tsv", "csv.gz", "parquet", "arrow", "feather"])
@tries(60)
@given(data=st.data())
def test_a_table_of_any_bytes_is_read_or_refused(tables, tmp_path_factory, ending, data):
    from labeldp.files import open_table

    whole = (tables / f"a.{ending}").read_bytes()
    at, gone = data.draw(st.integers(0, len(whole))), data.draw(st.integers(0, 12))
    path = tmp_path_factory.getbasetemp() / f"table.{ending}"
    path.write_bytes(whole[:at] + data.draw(st.binary(max_size=12)) + whole[at + gone :])
    with contextlib.suppress(ldp.LabelDPError):
        for batch in open_table(path).batches():
            assert batch.num_columns >= 1
