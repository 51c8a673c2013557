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


# ---- what is kept ------------------------------------------------------------------------------------


@pytest.mark.slow
def test_by_the_private_protocol_rows_are_kept_by_the_sale_flag_and_amounts_clipped(twin, raw):
    data = load_criteo(twin, protocol="private")
    amounts = np.array(raw["SalesAmountInEuro"], dtype=float)
    sold = np.array(raw["Sale"]) == "1"
    assert np.array_equal(data.y, np.minimum(amounts[sold], 400))
    assert (amounts > 400).sum() > 10
    assert data.bounds == (0.0, 400.0)
    assert data.columns == ("nb_clicks_1week", "product_price")
    assert np.array_equal(data.X[:, 1], np.array(raw["product_price"], dtype=float)[sold])
    assert any("no line is left out for its amount" in note for note in data.notes)
    assert data.categories == CATEGORIES


@pytest.mark.parametrize(
    ("protocol", "labels", "numbers", "places"),
    [
        ("text", [10, 400], 3, 1),
        ("code", [10, 400], 3, 2),
        ("private", [10, 400, 400], 2, 1),
    ],
)
def test_text_and_code_choose_rows_by_their_labels_and_our_own_protocol_does_not(
    tmp_path, protocol, labels, numbers, places
):
    lines = [line(amount=10.0, partner_id="B")] * 7
    path = log(tmp_path, *lines, line(amount=400.0), line(amount=401.0), line(sale=0, amount=-1))
    data = load_criteo(path, protocol=protocol, cache=False)
    assert data.y.tolist() == [10] * 6 + labels
    assert data.X.shape[1] + len(data.categories) == 17 + numbers
    assert ("time_delay_for_conversion" in data.columns) == (protocol != "private")
    assert data.sizes[data.categories.index("partner_id")] == places  # a value that 7 lines have


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


# ---- the real log -----------------------------------------------------------------------------------


@pytest.mark.skipif(
    not any(Path(DATA, name).is_file() for name in reader.NAMES),
    reason="set LABELDP_DATA to a folder with CriteoSearchData",
)
def test_the_real_log_has_the_papers_rows():
    os.environ["LABELDP_DATA"] = DATA  # which the fixture `cache` restores
    assert len(load_criteo(protocol="code", cache=False).y) == PAPERS_ROWS
