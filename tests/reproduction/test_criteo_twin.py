"""The synthetic twin of Criteo's log: the right format, the right shares, and something to learn."""

import gzip

import numpy as np
import pytest
from scipy import sparse
from sklearn.linear_model import Ridge
from sklearn.preprocessing import OneHotEncoder

from labeldp import errors
from reproduction.criteo import CATEGORIES, load_criteo, make_criteo_like

REAL_LINES, PAPERS_ROWS = 15_995_634, 1_645_977

pytestmark = pytest.mark.usefixtures("cache")


def test_a_twin_is_of_exactly_the_format(raw):
    assert len(raw["Sale"]) == 60_000
    none = np.array(raw["Sale"]) == "0"
    assert set(np.array(raw["SalesAmountInEuro"])[none]) == {"-1"}
    assert set(np.array(raw["time_delay_for_conversion"])[none]) == {"-1"}
    assert all(float(x) >= 0 for x in np.array(raw["SalesAmountInEuro"])[~none])
    hexadecimal = set("0123456789ABCDEF")
    marks = set()
    for name in CATEGORIES:
        words = set(raw[name])
        marks |= words & {"", "-1"}
        parts = {part for word in words - {"", "-1"} for part in word.split(" ")}
        assert all(len(part) == 32 and set(part) <= hexadecimal for part in parts)
        assert name == "product_title" or all(" " not in word for word in words)
    assert marks == {"", "-1"}
    assert {title.count(" ") + 1 for title in raw["product_title"] if title} == {2, 3, 4, 5}


def test_a_twin_has_the_logs_share_of_sales_and_a_tail_above_400(raw):
    amounts = np.array(raw["SalesAmountInEuro"], dtype=float)
    share = np.mean((amounts >= 0) & (amounts <= 400))
    # standard deviation 0.00124 at 60,000 lines: fails by chance less than once in 10^6 seeds
    assert share == pytest.approx(PAPERS_ROWS / REAL_LINES, abs=0.007)
    assert 0.005 < np.mean(amounts[amounts >= 0] > 400) < 0.05


def test_a_twins_categories_have_heavy_tails(raw):
    for name in ("product_id", "product_brand", "partner_id"):
        words = [word for word in raw[name] if word not in ("", "-1")]
        counts = np.sort(np.unique(words, return_counts=True)[1])[::-1]
        top = counts[: max(1, counts.size // 10)].sum() / counts.sum()
        assert top > 0.3, f"a tenth of the values of {name} have {top:.0%} of the lines"


def test_a_twin_is_the_same_each_time_and_a_smaller_one_is_its_beginning(tmp_path, twin):
    whole = twin.read_bytes()
    assert make_criteo_like(60_000, 3, tmp_path / "again.tsv").read_bytes() == whole
    few = make_criteo_like(1_234, 3, tmp_path / "few.tsv").read_bytes()
    assert whole.startswith(few)
    assert few.count(b"\n") == 1_234
    assert make_criteo_like(1_234, 4, tmp_path / "other.tsv").read_bytes() != few


def test_a_twin_does_not_depend_on_where_its_chunks_end(tmp_path):
    long = make_criteo_like(70_000, 1, tmp_path / "long.tsv").read_bytes()
    assert long.startswith(make_criteo_like(65_537, 1, tmp_path / "more.tsv").read_bytes())


def test_a_twin_can_be_packed_and_without_a_path_is_kept_in_the_cache(tmp_path, cache):
    packed = make_criteo_like(500, 1, tmp_path / "twin.tsv.gz")
    plain = make_criteo_like(500, 1)
    assert plain.parent == cache
    assert gzip.decompress(packed.read_bytes()) == plain.read_bytes()
    before = plain.stat().st_mtime_ns
    assert make_criteo_like(500, 1) == plain
    assert plain.stat().st_mtime_ns == before


@pytest.mark.parametrize("bad", [(0, 0), (10, -1)])
def test_a_twin_without_rows_or_with_a_negative_seed_is_refused(bad):
    with pytest.raises(errors.ParameterError, match="rows >= 1"):
        make_criteo_like(*bad)


def test_a_twins_amounts_can_be_learnt_from_its_features(tmp_path):
    data = load_criteo(make_criteo_like(250_000, 5, tmp_path / "twin.tsv"), cache=False)
    few = [k for k, name in enumerate(CATEGORIES) if name not in ("user_id", "product_id", "product_title")]
    words = OneHotEncoder(handle_unknown="ignore").fit_transform(data.ids[:, few])
    numbers = np.column_stack([np.log1p(np.maximum(data.X, 0)), data.X < 0])
    features = sparse.hstack([words, sparse.csr_matrix(numbers)]).tocsr()
    half = len(data.y) // 2
    model = Ridge(5.0, solver="lsqr").fit(features[:half], data.y[:half])
    explained = model.score(features[half:], data.y[half:])
    assert 0.4 < explained < 0.65, f"{explained:.2f} of the variance"
