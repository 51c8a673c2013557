"""The two public tables: looked for, checked and preprocessed as promised."""

import os
from pathlib import Path

import numpy as np
import pytest

import labeldp as ldp
from reproduction.datasets.crime import load_crime
from reproduction.datasets.housing import load_housing

FOLDER = Path(os.environ.get("LABELDP_DATA", "nowhere"))


def needs(name):
    return pytest.mark.skipif(not (FOLDER / name).exists(), reason=f"set LABELDP_DATA to a folder with {name}")


needs_crime = needs("communities.data.gz")
needs_housing = needs("california_housing.csv.gz")


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


@needs_housing
def test_housing_has_20640_rows_and_8_raw_features():
    data = load_housing(download=False)
    assert data.X.shape == (20640, 8)
    assert (data.columns[0], data.X[0, 0]) == ("MedInc", 8.3252)
    assert data.bounds == (0.0, 5.0001)
    assert 0 <= data.y.min() <= data.y.max() <= 5.0001
    assert str(data.y[0]) not in repr(data)


# ---- finding files -----------------------------------------------------------------------------------


@pytest.mark.parametrize("load", [load_crime, load_housing])
def test_without_file_or_network_the_error_says_how_to_get_the_file(cache, load):
    with pytest.raises(ldp.errors.DataNotFoundError, match="LABELDP_DATA") as caught:
        load(download=False)
    assert isinstance(caught.value, ldp.errors.LabelDPError)
    assert isinstance(caught.value, FileNotFoundError)
    assert "by hand" in str(caught.value)
