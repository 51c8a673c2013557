"""Criteo's log: read as a stream, encoded as promised, kept in the cache; and a synthetic twin of it."""

import os
from functools import partial
from pathlib import Path

import numpy as np
import pytest

import helpers
import labeldp as ldp
from reproduction.criteo import CATEGORIES, COLUMNS, load_criteo, make_criteo_like, reader

python = partial(helpers.python, cwd=Path(__file__).parents[2])  # where `reproduction` can be imported
DATA = os.environ.get("LABELDP_DATA", "nowhere")
REAL_LINES, PAPERS_ROWS = 15_995_634, 1_645_977

pytestmark = pytest.mark.usefixtures("cache")


@pytest.fixture(scope="session")
def twin(tmp_path_factory):
    """A synthetic log of Criteo's format, of 60,000 lines."""
    return make_criteo_like(60_000, seed=3, path=tmp_path_factory.mktemp("twin") / "twin.tsv")


@pytest.fixture(scope="session")
def raw(twin):
    """The twin's fields, read with no help of the library: {column: list of text}."""
    rows = [line.split("\t") for line in twin.read_text().splitlines()]
    return dict(zip(COLUMNS, zip(*rows, strict=True), strict=True))


def line(sale=1, amount=10.0, delay=60, clicks=3, price=9.5, **categories):
    """Return one line of a log."""
    fields = [sale, amount, delay, 1_600_000_000, clicks, price]
    return "\t".join(map(str, fields + [categories.get(name, "A" * 32) for name in CATEGORIES]))


def log(tmp_path, *lines, name="log.tsv"):
    """Write a log and return its path."""
    path = tmp_path / name
    path.write_text("\n".join(lines) + "\n")
    return path


def same(a, b):
    """Assert that two encoded logs are equal."""
    for name in ("X", "y", "ids"):
        assert np.array_equal(getattr(a, name), getattr(b, name))
        assert getattr(a, name).dtype == getattr(b, name).dtype
    for name in ("columns", "categories", "sizes", "bounds", "notes"):
        assert getattr(a, name) == getattr(b, name)


# ---- what is kept ------------------------------------------------------------------------------------


@pytest.mark.slow
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


def test_a_sale_without_an_amount_is_left_out_and_missing_numbers_are_minus_one(tmp_path):
    left_out = [line(amount=amount) for amount in (-1, "", "nan", -1.0)]
    kept = [line(amount=5, clicks="", price=""), line(clicks=-1, price="inf"), line(clicks=2, price=0)]
    data = load_criteo(log(tmp_path, *left_out, *kept))
    assert data.y.tolist() == [5.0, 10.0, 10.0]
    assert data.X.tolist() == [[-1, -1], [-1, -1], [2, 0]]


# ---- the vocabulary ----------------------------------------------------------------------------------


@pytest.mark.slow
def test_numbers_agree_with_a_count_by_hand_for_every_category(twin, raw):
    data = load_criteo(twin, threshold=10)
    sold = np.array(raw["Sale"]) == "1"
    for k, name in enumerate(CATEGORIES):
        words = np.array(raw[name])[sold]
        values, where, counts = np.unique(words, return_inverse=True, return_counts=True)
        own = (counts >= 10) & (values != "") & (values != "-1")
        ids = data.ids[:, k]
        assert data.sizes[k] == own.sum() + 1
        assert ids.max(initial=0) == own.sum()
        assert np.array_equal(ids == 0, ~own[where])
        assert len(set(zip(ids.tolist(), words.tolist(), strict=True))) == np.unique(words).size


# ---- files -------------------------------------------------------------------------------------------


SECRET = 271.83


@pytest.mark.parametrize(
    ("bad", "fault"),
    [
        (line(amount=SECRET) + "\tmore", "line 301 has 24 columns, not 23"),
        (line(amount=f"{SECRET} euro"), "line 301 has no number in the column SalesAmountInEuro"),
        (line(amount=SECRET, clicks="few"), "line 301 has no number in the column nb_clicks_1week"),
        (line(amount=SECRET).replace("\t", ","), "line 301 has 1 columns, not 23"),
    ],
)
def test_a_bad_line_is_an_error_with_its_number_and_no_label(tmp_path, bad, fault):
    path = log(tmp_path, *[line()] * 300, bad, line())
    with pytest.raises(ldp.errors.DataError, match=fault) as caught:
        load_criteo(path)
    assert str(SECRET) not in str(caught.value)
    assert caught.value.__suppress_context__
    assert str(path) in str(caught.value)


# ---- the cache ------------------------------------------------------------------------------------------


def test_the_encoded_table_is_kept_and_used_again(cache, twin):
    first = load_criteo(twin)
    kept = list(cache.iterdir())
    assert len(kept) == 1
    if os.name == "posix":
        assert kept[0].stat().st_mode & 0o077 == 0, "others can read the labels"
    content, time = twin.read_bytes(), twin.stat().st_mtime_ns
    twin.write_bytes(bytes(len(content)))  # would be refused if it were read again
    os.utime(twin, ns=(time, time))
    try:
        same(load_criteo(twin), first)
    finally:
        twin.write_bytes(content)
        os.utime(twin, ns=(time, time))


# ---- the twin -------------------------------------------------------------------------------------------


def test_a_twin_is_the_same_each_time_and_a_smaller_one_is_its_beginning(tmp_path, twin):
    whole = twin.read_bytes()
    assert make_criteo_like(60_000, 3, tmp_path / "again.tsv").read_bytes() == whole
    few = make_criteo_like(1_234, 3, tmp_path / "few.tsv").read_bytes()
    assert whole.startswith(few)
    assert few.count(b"\n") == 1_234
    assert make_criteo_like(1_234, 4, tmp_path / "other.tsv").read_bytes() != few


# ---- the real log -----------------------------------------------------------------------------------


@pytest.mark.skipif(
    not any(Path(DATA, name).is_file() for name in reader.NAMES),
    reason="set LABELDP_DATA to a folder with CriteoSearchData",
)
def test_the_real_log_has_the_papers_rows():
    os.environ["LABELDP_DATA"] = DATA  # which the fixture `cache` restores
    assert len(load_criteo(protocol="code", cache=False).y) == PAPERS_ROWS
