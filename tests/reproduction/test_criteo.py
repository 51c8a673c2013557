"""Criteo's log: read as a stream, encoded as promised, and kept in the cache."""

import contextlib
import gzip
import os
import shutil
import sys
import tarfile
from functools import partial
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import helpers
from fuzzing import tries
from labeldp import errors
from reproduction.criteo import CATEGORIES, COLUMNS, load_criteo, reader
from reproduction_cases import line, log, same

python = partial(helpers.python, cwd=Path(__file__).parents[2])  # where `reproduction` can be imported
DATA = os.environ.get("LABELDP_DATA", "nowhere")
PAPERS_ROWS = 1_645_977

pytestmark = pytest.mark.usefixtures("cache")


# ---- what is kept ------------------------------------------------------------------------------------


def test_by_the_text_rows_are_kept_by_the_sale_flag_and_amounts_clipped(twin, raw):
    data = load_criteo(twin)
    amounts = np.array(raw["SalesAmountInEuro"], dtype=float)
    sold = np.array(raw["Sale"]) == "1"
    assert np.array_equal(data.y, np.minimum(amounts[sold], 400))
    assert (amounts > 400).sum() > 10
    assert data.bounds == (0.0, 400.0)
    assert data.columns == ("nb_clicks_1week", "product_price")
    assert np.array_equal(data.X[:, 1], np.array(raw["product_price"], dtype=float)[sold])
    assert any("no line is left out for its amount" in note for note in data.notes)
    assert data.categories == CATEGORIES


def test_by_the_code_rows_are_kept_by_their_label_and_the_notes_say_what_that_means(twin, raw):
    data = load_criteo(twin, protocol="code")
    amounts = np.array(raw["SalesAmountInEuro"], dtype=float)
    kept = (amounts >= 0) & (amounts <= 400)
    assert np.array_equal(data.y, amounts[kept])
    assert data.columns == ("time_delay_for_conversion", "nb_clicks_1week", "product_price")
    assert np.array_equal(data.X[:, 0], np.array(raw["time_delay_for_conversion"], dtype=float)[kept])
    assert any("by their labels" in note for note in data.notes)
    assert any("outcome" in note for note in data.notes)


def test_a_sale_without_an_amount_has_no_label_and_is_left_out(tmp_path):
    path = log(tmp_path, line(amount=-1), line(amount=""), line(amount="nan"), line(amount=5), line(amount=-1.0))
    assert load_criteo(path).y.tolist() == [5.0]


def test_missing_numbers_are_minus_one(tmp_path):
    path = log(tmp_path, line(clicks="", price=""), line(clicks=-1, price="inf"), line(clicks=2, price=0))
    assert load_criteo(path).X.tolist() == [[-1, -1], [-1, -1], [2, 0]]


# ---- the vocabulary ----------------------------------------------------------------------------------


def test_rare_and_missing_values_share_the_number_0_and_frequent_ones_come_first(tmp_path):
    brands = ["B"] * 3 + ["C"] * 4 + ["A"] * 3 + ["rare"] * 2 + ["", "-1"]
    unsold = [line(sale=0, amount=-1, delay=-1, product_brand="rare")] * 9
    path = log(tmp_path, *unsold, *(line(product_brand=brand) for brand in brands))
    data = load_criteo(path, threshold=3)
    where = CATEGORIES.index("product_brand")
    numbers = {"C": 1, "A": 2, "B": 3, "rare": 0, "": 0, "-1": 0}
    assert data.ids[:, where].tolist() == [numbers[brand] for brand in brands]
    assert data.sizes[where] == 4


@pytest.mark.parametrize("threshold", [1, 10])
def test_numbers_agree_with_a_count_by_hand_for_every_category(twin, raw, threshold):
    data = load_criteo(twin, threshold=threshold)
    sold = np.array(raw["Sale"]) == "1"
    for k, name in enumerate(CATEGORIES):
        words = np.array(raw[name])[sold]
        values, where, counts = np.unique(words, return_inverse=True, return_counts=True)
        own = (counts >= threshold) & (values != "") & (values != "-1")
        ids = data.ids[:, k]
        assert data.sizes[k] == own.sum() + 1
        assert ids.max(initial=0) == own.sum()
        assert np.array_equal(ids == 0, ~own[where])
        assert len(set(zip(ids.tolist(), words.tolist(), strict=True))) == np.unique(words).size


def test_numbers_do_not_depend_on_the_order_of_the_lines(tmp_path, twin):
    lines = twin.read_text().splitlines()[:20_000]
    forward = load_criteo(log(tmp_path, *lines), threshold=5)
    backward = load_criteo(log(tmp_path, *lines[::-1], name="back.tsv"), threshold=5)
    assert np.array_equal(forward.ids, backward.ids[::-1])


def test_a_title_is_one_value_not_several_words(tmp_path):
    path = log(tmp_path, *(line(product_title=title) for title in ["A B", "A B", "A C", "A C", "A"]))
    ids = load_criteo(path, threshold=2).ids[:, CATEGORIES.index("product_title")]
    assert ids.tolist() == [1, 1, 2, 2, 0]


# ---- files -------------------------------------------------------------------------------------------


def test_packed_files_read_the_same(tmp_path, twin):
    plain = load_criteo(twin, cache=False)
    packed = tmp_path / "log.tsv.gz"
    packed.write_bytes(gzip.compress(twin.read_bytes(), 1))
    same(load_criteo(packed, cache=False), plain)
    archive = tmp_path / "official.tar.gz"
    with tarfile.open(archive, "w:gz", compresslevel=1) as tar:
        readme = tmp_path / "README.md"
        readme.write_text("about")
        tar.add(readme, "Criteo_Conversion_Search/README.md")
        tar.add(twin, "Criteo_Conversion_Search/CriteoSearchData")
    same(load_criteo(archive, cache=False), plain)


def test_the_log_is_found_in_the_named_folder(tmp_path, twin, monkeypatch):
    shutil.copy(twin, tmp_path / "CriteoSearchData")
    monkeypatch.setenv("LABELDP_DATA", str(tmp_path))
    same(load_criteo(download=False), load_criteo(twin))


def test_a_missing_log_says_how_to_get_it_and_offers_the_twin(tmp_path, monkeypatch):
    with pytest.raises(errors.DataNotFoundError, match="make_criteo_like"):
        load_criteo(download=False)
    with pytest.raises(errors.DataNotFoundError, match="there is no file"):
        load_criteo(tmp_path / "nothing.tsv")
    monkeypatch.setattr(reader, "URL", "http://127.0.0.1:1/log.tar.gz")
    with pytest.raises(errors.DataNotFoundError, match="could not be fetched"):
        load_criteo()


SECRET = 271.83


@pytest.mark.parametrize(
    ("bad", "fault"),
    [
        (line(amount=SECRET) + "\tmore", "line 301 has 24 columns, not 23"),
        (line(amount=SECRET).rsplit("\t", 1)[0], "line 301 has 22 columns, not 23"),
        (line(amount=f"{SECRET} euro"), "line 301 has no number in the column SalesAmountInEuro"),
        (line(amount=SECRET, sale="yes"), "line 301 has no number in the column Sale"),
        (line(amount=SECRET, clicks="few"), "line 301 has no number in the column nb_clicks_1week"),
        (line(amount=SECRET).replace("\t", ","), "line 301 has 1 columns, not 23"),
    ],
)
def test_a_bad_line_is_an_error_with_its_number_and_no_label(tmp_path, bad, fault):
    path = log(tmp_path, *[line()] * 300, bad, line())
    with pytest.raises(errors.DataError, match=fault) as caught:
        load_criteo(path)
    assert str(SECRET) not in str(caught.value)
    assert caught.value.__suppress_context__
    assert str(path) in str(caught.value)


@pytest.mark.parametrize(
    ("content", "fault"),
    [
        ("\t".join(COLUMNS).encode(), "line 1 has no number in the column Sale"),
        (b"", "empty"),
        (line(user_id="@@").encode().replace(b"@@", b"\xff\xfe"), "line 1 is not UTF-8"),
        (line(sale=0, amount=-1).encode(), "1 lines and no sale"),
    ],
)
def test_a_file_that_is_no_log_is_refused(tmp_path, content, fault):
    (tmp_path / "log.tsv").write_bytes(content)
    with pytest.raises(errors.DataError, match=fault):
        load_criteo(tmp_path / "log.tsv")


def test_a_packed_file_that_is_damaged_or_holds_no_log_is_refused(tmp_path, twin):
    packed = gzip.compress(twin.read_bytes()[:1_000_000])
    (tmp_path / "cut.gz").write_bytes(packed[:-5000])
    (tmp_path / "plain.gz").write_bytes(b"not packed")
    (tmp_path / "plain.tar.gz").write_bytes(packed)
    for name in ("cut.gz", "plain.gz", "plain.tar.gz"):
        with pytest.raises(errors.DataError, match="damaged, or cut short"):
            load_criteo(tmp_path / name)
    with tarfile.open(tmp_path / "other.tar.gz", "w:gz") as tar:
        tar.add(tmp_path / "cut.gz", "something")
    with pytest.raises(errors.DataError, match="holds no file CriteoSearchData"):
        load_criteo(tmp_path / "other.tar.gz")


@pytest.mark.parametrize("bad", [{"threshold": 0}, {"protocol": "both"}])
def test_parameters_that_make_no_sense_are_refused(twin, bad):
    with pytest.raises(errors.ParameterError):
        load_criteo(twin, **bad)


@tries(60)
@given(data=st.data())
def test_a_log_of_any_bytes_is_read_or_refused(twin, data, tmp_path_factory):
    with open(twin, "rb") as stream:
        whole = stream.read(4000)
    at, gone = data.draw(st.integers(0, len(whole))), data.draw(st.integers(0, 40))
    ending = data.draw(st.sampled_from([".tsv", ".gz", ".tar.gz"]))
    path = tmp_path_factory.getbasetemp() / f"log{ending}"
    path.write_bytes(whole[:at] + data.draw(st.binary(max_size=20)) + whole[at + gone :])
    with contextlib.suppress(errors.LabelDPError):
        load_criteo(path, cache=False, download=False)


# ---- memory ------------------------------------------------------------------------------------------

PEAK = (
    "import sys\n"
    "from reproduction.criteo import load_criteo, make_criteo_like\n"
    "if sys.argv[1] == 'write': make_criteo_like(int(sys.argv[2]), path=sys.argv[3])\n"
    "else: load_criteo(sys.argv[3], cache=False)\n"
    "import resource; print(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 1024)\n"
)


@pytest.mark.skipif(sys.platform != "linux", reason="measures memory as Linux counts it")
def test_memory_hardly_grows_with_the_file(tmp_path):
    """At 16 million lines, 100 bytes a line would be 1.6 GB above the start: far below 4 GiB."""

    def peak(what, rows):
        done = python(PEAK, what, rows, tmp_path / f"{rows}.tsv", check=True, capture_output=True, text=True)
        return int(done.stdout)

    small, large = 100_000, 600_000
    grown = peak("write", large) - peak("write", small)
    assert grown < 40, f"writing needed {grown} MiB more"
    per_line = (peak("read", large) - peak("read", small)) * 2**20 / (large - small)
    assert per_line < 200, f"reading needed {per_line:.0f} bytes more a line"  # a line itself has 470
    assert peak("read", large) < 2048  # the promise is 4 GiB; how far PyArrow reads ahead depends on the machine


# ---- the real log -----------------------------------------------------------------------------------


@pytest.mark.skipif(
    not any(Path(DATA, name).is_file() for name in reader.NAMES),
    reason="set LABELDP_DATA to a folder with CriteoSearchData",
)
def test_the_real_log_has_the_papers_rows(monkeypatch):
    monkeypatch.setenv("LABELDP_DATA", DATA)
    assert len(load_criteo(protocol="code", cache=False).y) == PAPERS_ROWS
