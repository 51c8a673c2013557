"""The two public tables: looked for, checked, downloaded and preprocessed as promised."""

import gzip
import hashlib
import http.server
import io
import os
import tarfile
import threading
from pathlib import Path

import numpy as np
import pytest
import sklearn.datasets._california_housing as scikit_housing

import labeldp as ldp
from reproduction.datasets import crime, data_files
from reproduction.datasets.crime import load_crime
from reproduction.datasets.housing import load_housing

FOLDER = Path(os.environ.get("LABELDP_DATA", "nowhere"))


def needs(name):
    return pytest.mark.skipif(not (FOLDER / name).exists(), reason=f"set LABELDP_DATA to a folder with {name}")


needs_crime = needs("communities.data.gz")
needs_housing = needs("california_housing.csv.gz")


@pytest.fixture
def served(tmp_path):
    """The folder of a web server, from which both tables are downloaded."""
    folder = tmp_path / "served"
    folder.mkdir()

    class Handler(http.server.SimpleHTTPRequestHandler):
        def __init__(self, *args):
            super().__init__(*args, directory=str(folder))

        def log_message(self, *args):
            pass

    serving = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=serving.serve_forever)
    thread.start()
    host = f"http://127.0.0.1:{serving.server_port}"
    archive = scikit_housing.ARCHIVE._replace(url=f"{host}/housing.tgz")
    before = crime.URL, scikit_housing.ARCHIVE
    crime.URL, scikit_housing.ARCHIVE = f"{host}/communities.data", archive
    yield folder
    crime.URL, scikit_housing.ARCHIVE = before
    serving.shutdown()
    thread.join()
    serving.server_close()


def leftovers(folder):
    return [path.name for path in folder.iterdir()] if folder.exists() else []


# ---- the tables --------------------------------------------------------------------------------------


@needs_crime
def test_crime_has_1994_rows_99_features_and_its_one_gap_filled_with_the_mean():
    data = load_crime(download=False)
    assert (data.X.shape, data.y.shape, len(data.columns)) == ((1994, 99), (1994,), 99)
    assert np.isfinite(data.X).all()
    assert data.bounds == (0.0, 1.0)
    assert 0 <= data.y.min() <= data.y.max() <= 1
    assert not {"state", "fold", "racepctblack", "ViolentCrimesPerPop"} & set(data.columns)
    assert any("racepctblack" in note for note in data.notes), "why it is left out is said"
    other = data.X[:, data.columns.index("OtherPerCap")]
    gap = np.flatnonzero(other != np.round(other, 2))  # the file has two digits
    assert gap.size == 1
    assert other[gap[0]] == pytest.approx(np.delete(other, gap).mean())


@needs_crime
def test_crime_by_the_papers_text_keeps_columns_and_drops_rows():
    data = load_crime(missing="rows", download=False)
    assert data.X.shape == (319, 122)
    assert np.isfinite(data.X).all()
    assert "racepctblack" in data.columns


@needs_housing
def test_housing_has_20640_rows_and_8_raw_features():
    data = load_housing(download=False)
    assert data.X.shape == (20640, 8)
    assert (data.columns[0], data.X[0, 0]) == ("MedInc", 8.3252)
    assert data.bounds == (0.0, 5.0001)
    assert 0 <= data.y.min() <= data.y.max() <= 5.0001
    assert str(data.y[0]) not in repr(data)


# ---- finding files -----------------------------------------------------------------------------------


def test_a_file_is_found_in_the_named_folder_first_and_packed_too(cache, tmp_path):
    cache.mkdir(parents=True)
    (cache / "a.csv").write_text("cached")
    assert data_files.find("a.csv") == cache / "a.csv"
    os.environ["LABELDP_DATA"] = str(tmp_path)  # which the fixture `cache` restores
    assert data_files.find("a.csv") == cache / "a.csv"
    (tmp_path / "a.csv.gz").write_bytes(gzip.compress(b"named"))
    assert data_files.find("a.csv") == tmp_path / "a.csv.gz"
    assert data_files.find("b.csv") is None


@pytest.mark.slow
@needs_crime
@pytest.mark.parametrize("damage", ["changed", "packed, cut short", "not packed"])
def test_a_damaged_copy_is_refused_by_name_and_with_what_to_do(cache, damage):
    cache.mkdir(parents=True)
    content = gzip.decompress((FOLDER / "communities.data.gz").read_bytes())
    if damage == "changed":
        path = cache / "communities.data"
        path.write_bytes(content.replace(b"Lakewoodcity", b"Lakewoodtown"))
    else:
        path = cache / "communities.data.gz"
        path.write_bytes(gzip.compress(content)[:-1000] if "cut" in damage else content)
    with pytest.raises(ldp.errors.DataError, match=r"[Dd]elete it") as caught:
        load_crime()
    assert str(path) in str(caught.value)


@pytest.mark.parametrize("load", [load_crime, load_housing])
def test_without_file_or_network_the_error_says_how_to_get_the_file(cache, load):
    with pytest.raises(ldp.errors.DataNotFoundError, match="LABELDP_DATA") as caught:
        load(download=False)
    assert isinstance(caught.value, ldp.errors.LabelDPError)
    assert isinstance(caught.value, FileNotFoundError)
    assert "by hand" in str(caught.value)


# ---- fetching ----------------------------------------------------------------------------------------


@needs_crime
def test_crime_is_downloaded_checked_kept_and_not_downloaded_again(cache, served):
    content = gzip.decompress((FOLDER / "communities.data.gz").read_bytes())
    (served / "communities.data").write_bytes(content)
    assert load_crime().X.shape == (1994, 99)
    assert leftovers(cache) == ["communities.data"]
    (served / "communities.data").unlink()
    assert load_crime().X.shape == (1994, 99)


def test_a_download_with_the_wrong_checksum_is_refused_and_not_kept(cache, served):
    (served / "communities.data").write_text("something else")
    with pytest.raises(ldp.errors.DataError, match="sha256") as caught:
        load_crime()
    assert not isinstance(caught.value, ldp.errors.DataNotFoundError)
    assert "communities.data" in str(caught.value)
    assert "by hand" in str(caught.value)
    assert leftovers(cache) == []


def archive_of(rows):
    """Return a table of numbers packed as scikit-learn expects California Housing."""
    text = "\n".join(",".join(f"{x:.4f}" for x in row) for row in rows).encode()
    packed = io.BytesIO()
    with tarfile.open(fileobj=packed, mode="w:gz") as archive:
        member = tarfile.TarInfo("CaliforniaHousing/cal_housing.data")
        member.size = len(text)
        archive.addfile(member, io.BytesIO(text))
    return packed.getvalue()


def test_housing_comes_through_scikit_learns_fetcher_and_is_kept(cache, served):
    packed = archive_of(np.random.default_rng(0).uniform(1, 2, (50, 9)))
    (served / "housing.tgz").write_bytes(packed)
    scikit_housing.ARCHIVE = scikit_housing.ARCHIVE._replace(checksum=hashlib.sha256(packed).hexdigest())
    first = load_housing()
    assert first.X.shape == (50, 8)
    assert first.columns[-1] == "Longitude"
    (served / "housing.tgz").unlink()
    assert np.array_equal(load_housing().X, first.X)
