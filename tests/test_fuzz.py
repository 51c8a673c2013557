"""Whatever bytes come in, what comes out is a value or an error of this package, in little time and memory.

``LABELDP_LONG=1`` tries a hundred times as many.
"""

import contextlib
import json
import os
import zipfile

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import labeldp as ldp
from helpers import python
from labeldp.any_card import read_any_card
from labeldp.datasets import load_criteo
from labeldp.ledger_file import SCHEMA, _hash, _line
from labeldp.verification import verify_card
from labeldp.words.explanation import explain
from test_forged_cards import forged, leaves, put

LONG = bool(os.environ.get("LABELDP_LONG"))


def tries(count):
    return settings(
        max_examples=100 * count if LONG else count,
        deadline=None,
        derandomize=not LONG,
        database=None,
        suppress_health_check=list(HealthCheck),
    )


def _cards():
    labels = np.linspace(1, 4, 60)
    prior = ldp.Histogram([0, 1, 5], [1, 1])
    bounds = (0.0, 5.0)
    fit = ldp.LabelReleaseRegressor(epsilon=4.0, bounds=bounds).fit(labels[:, None], labels)
    return {
        "rp": ldp.RPWithPrior(interval=bounds, zeta=1.0, epsilon=1.0).to_json(),
        "two-point": ldp.TwoPoint(bounds=bounds, epsilon=1.0).to_json(),
        "laplace": ldp.Laplace(bounds=bounds, epsilon=20.0).to_json(),
        "gaussian": ldp.Gaussian(bounds=bounds, epsilon=16.0, delta=0.01).to_json(),
        "rr-on-bins": ldp.RROnBins(edges=[0, 1, 5], outputs=[0.8, 2.1], epsilon=1.0).to_json(),
        "unbiased": ldp.Unbiased.design(prior, 1.0, size=4).to_json(),
        "release": ldp.privatize(labels, epsilon=1.0, bounds=bounds, mechanism="two-point", prior=prior).to_card(),
        "rows": fit.release_.to_card(),
        "model": ldp.ModelReleaseRegressor(epsilon=1.0, bounds=bounds).fit(labels[:, None], labels).to_card(),
    }


CARDS = _cards()
each_card = pytest.mark.parametrize("name", CARDS)

numbers = st.one_of(
    st.sampled_from([0, -1, 1, 2**31, 2**63, 2**64, 10**30, 10**400, 1e-320, 1e-9, 1e9, 1e308, -1e308, 0.1]),
    st.integers(),
    st.floats(allow_nan=False, allow_infinity=False),
)
values = st.recursive(
    st.one_of(st.none(), st.booleans(), numbers, st.text(max_size=5), st.sampled_from(["secure", "1e999", "NaN"])),
    lambda inner: st.one_of(
        st.lists(inner, max_size=4), st.dictionaries(st.sampled_from(["epsilon", "delta", "a"]), inner, max_size=3)
    ),
    max_leaves=8,
)


def survives(text):
    """Read a card in every way there is; return what was read, or None if it was refused."""
    with contextlib.suppress(ldp.LabelDPError):
        ldp.load_mechanism(text)
    verified = verify_card(text)
    try:
        card = read_any_card(text)
    except ldp.LabelDPError:
        assert not verified.holds
        return None
    assert verified.card is not None
    words = explain(card)
    assert words.sections
    return card


def places(content):
    """Return the paths of all branches and leaves."""
    found = list(leaves(content))
    return sorted({path[:k] for path in found for k in range(1, len(path) + 1)}, key=repr)


@each_card
@tries(60)
@given(data=st.data())
def test_a_card_with_any_value_replaced_and_its_checksum_forged_is_read_or_refused(name, data):
    content = json.loads(CARDS[name])
    for _ in range(data.draw(st.integers(1, 2))):
        path = data.draw(st.sampled_from(places(content)))
        content = put(content, path, data.draw(values))
    survives(forged(content))


@each_card
@tries(25)
@given(data=st.data())
def test_the_mechanism_inside_a_card_may_be_hostile_too(name, data):
    content = json.loads(CARDS[name])
    if "mechanisms" not in content:
        return
    inner = json.loads(CARDS[data.draw(st.sampled_from(["rp", "two-point", "rr-on-bins"]))])
    inner = put(inner, data.draw(st.sampled_from(places(inner))), data.draw(values))
    content["mechanisms"][0] = forged(inner)
    survives(forged(content))


@each_card
@tries(40)
@given(data=st.data())
def test_a_card_with_bytes_changed_says_the_same_or_is_refused(name, data):
    text = CARDS[name]
    at, gone = data.draw(st.integers(0, len(text))), data.draw(st.integers(0, 3))
    changed = text[:at] + data.draw(st.text(max_size=3)) + text[at + gone :]
    card = survives(changed)
    assert card is None or json.loads(changed) == json.loads(text)


@tries(300)
@given(text=st.one_of(st.text(), values.map(json.dumps), st.binary().map(lambda data: data.decode("latin-1"))))
def test_what_is_no_card_is_refused(text):
    assert survives(text) is None


def test_the_fuzzer_would_notice_a_reader_that_crashes(monkeypatch):
    monkeypatch.setattr("labeldp.any_card._facts", lambda content: 1 // 0)
    with pytest.raises(ZeroDivisionError):
        survives(CARDS["release"])


# ---- cards that are large on purpose ----------------------------------------------------------------

READER = """
import json, sys, time
from labeldp.any_card import read_any_card
from labeldp.cards import MAX_TEXT
from labeldp.errors import CardError

start = '{"schema":"labeldp.model","version":1,"x":['
def peak():
    lines = open("/proc/self/status").read().splitlines()
    return next(int(line.split()[1]) >> 10 for line in lines if line.startswith("VmHWM"))

before, begun = peak(), time.process_time()
for piece, end in json.loads(sys.argv[1]):
    text = start + piece * ((MAX_TEXT - len(start) - len(end)) // len(piece)) + end
    try:
        read_any_card(text)
    except CardError:
        print(peak() - before, round(time.process_time() - begun, 1))
"""
LARGE = {
    "lists": ("[],", "0]}"),
    "deep": ('{"":', ""),
    "pairs": ('{"":0},', "0]}"),
    "floats": ("1.5,", "0]}"),
    "long ints": ("9" * 4300 + ",", "0]}"),
    "nests": ("[" * 900 + "]" * 900 + ",", "0]}"),
    "letters": ('"\\u00e9",', "0]}"),
}


def test_the_longest_card_there_is_takes_less_than_a_gigabyte():
    """Lists in lists take the most; the other kinds are tried in the long run."""
    tried = list(LARGE.values()) if LONG else [LARGE["lists"], LARGE["deep"]]
    done = python(READER, json.dumps(tried), check=True, capture_output=True, text=True)
    assert len(done.stdout.splitlines()) == len(tried)
    assert max(int(line.split()[0]) for line in done.stdout.splitlines()) < 1024


def test_a_card_of_many_mechanisms_is_refused_before_one_is_built(monkeypatch):
    built = []
    monkeypatch.setattr("labeldp.mechanisms.base.load_mechanism", built.append)
    content = json.loads(CARDS["release"])
    inner = json.loads(content["mechanisms"][0])
    many = [forged(put(inner, ("parameters", "epsilon"), 1 + k / 100)) for k in range(17)]
    with pytest.raises(ldp.CardError, match="17 distinct mechanisms"):
        ldp.read_release_card(forged({**content, "mechanisms": many}))
    assert not built
    with contextlib.suppress(AttributeError, ldp.CardError):
        ldp.read_release_card(forged({**content, "mechanisms": many}), most_mechanisms=17)
    assert len(built) == 17


def test_a_release_of_many_equal_columns_is_read():
    labels = np.tile(np.linspace(1, 4, 10)[:, None], 20)
    bounds = [(0, 5)] * 20
    card = ldp.privatize(labels, epsilon=10.0, bounds=bounds, mechanism="two-point").to_card()
    assert len(read_any_card(card).mechanisms) == 20


# ---- ledgers ----------------------------------------------------------------------------------------


def chained(records):
    """Return a ledger's bytes with the right hashes for whatever its records say."""
    lines, last = [], ""
    for record in records:
        lines.append(_line(record, last))
        last = _hash(record, last)
    return b"".join(lines)


HEADER = {"schema": SCHEMA, "limit": ["3", "0"], "id": "0" * 32}
ENTRY = {"what": "labels", "budget": ["1/10", "0"], "when": "now", "mechanism": None, "rows_per_person": 1}
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
    monkeypatch.setattr("labeldp.ledger_file._well_formed", contextlib.nullcontext)
    (tmp_path / "ledger").write_bytes(chained([HEADER, {"charges": [{}]}]))
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
    with pytest.raises(ldp.LedgerError, match="no charge"):
        ldp.Ledger.open(path).total  # noqa: B018
    path.write_bytes(chained([{**HEADER, "limit": [text, "0"]}]))
    with pytest.raises(ldp.LedgerError, match="no charge"):
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


@tries(60)
@given(data=st.data())
def test_a_log_of_any_bytes_is_read_or_refused(twin, data, tmp_path_factory):
    pytest.importorskip("pyarrow")
    with open(twin, "rb") as stream:
        whole = stream.read(4000)
    at, gone = data.draw(st.integers(0, len(whole))), data.draw(st.integers(0, 40))
    ending = data.draw(st.sampled_from([".tsv", ".gz", ".tar.gz"]))
    path = tmp_path_factory.getbasetemp() / f"log{ending}"
    path.write_bytes(whole[:at] + data.draw(st.binary(max_size=20)) + whole[at + gone :])
    with contextlib.suppress(ldp.LabelDPError):
        load_criteo(path, cache=False, download=False)
