"""Names are output: no label's name reads as a number, and a label without a name is called "label"."""

import math

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

import labeldp as ldp
from fuzzing import tries
from labeldp.errors import ParameterError
from labeldp.release.names import look_like_values, reads_as_number
from labeldp.tables.dialect import Dialect
from labeldp.tables.text_types import LabelText

TRUE_LABEL = "66993"
NUMBERS = {
    "plain": "66993",
    "point": "66993.5",
    "comma": "66993,5",
    "thousands": "66,993.50",
    "points for thousands": "66.993,50",
    "blanks for thousands": "66\u202f993",
    "apostrophes": "66'993",
    "currency": "€66993",
    "currency after it": "66.993,00 €",
    "currency of letters": "US$ 66993",
    "currency by its code": "66993 EUR",
    "percent": "66993 %",
    "scientific": "6.6993e4",
    "scientific in Fortran": "6.6993D+04",
    "as a product": "6.6993 x 10^4",
    "blanks around": "\u00a0 66993\t",
    "full width": "６６９９３",
    "another script": "٦٦٩٩٣",
    "parentheses": "(66,993)",
    "a minus sign": "\u221266993",
    "hexadecimal": "0x105B1",
    "underscores": "66_993",
    "an integer": 66993,
    "a float": 66993.5,
    "of NumPy": np.float64(66993.5),
    "a fraction": "66993/2",
    "bytes": b"66993",
    "a currency of few letters": "66 993 Kč",
    "a unit": "66993 m²",
    "thousands in a letter": "66k",
}
NAMES = [
    "price",
    "x1",
    "y_2019",
    "price 2019",
    "2nd",
    "PM2.5",
    "CO2",
    "Q1",
    "v201",
    "day 1",
    "_c0",
    "Preis (€)",
    "価格",
]


@pytest.mark.parametrize("kind", NUMBERS)
def test_numbers_of_every_format_read_as_numbers(kind):
    assert reads_as_number(NUMBERS[kind])


@pytest.mark.parametrize("name", NAMES)
def test_names_with_words_do_not(name):
    assert not reads_as_number(name)


@pytest.mark.parametrize(
    "name", ["Rp66993", "R 66 993", "66,993 korun a year", "$66 per year", ("price", TRUE_LABEL), (TRUE_LABEL, "")]
)
def test_no_letters_before_a_number_and_no_level_of_a_header_makes_it_a_name(name):
    with pytest.raises(ParameterError, match="reads as a number"):
        ldp.privatize(pd.Series([1.0, 2.0], name=name), epsilon=1.0, bounds=(0, 5))


@tries(200)
@given(
    st.floats(allow_nan=False, allow_infinity=False) | st.integers(-(10**30), 10**30),
    st.sampled_from(["{}", " {}", "{} ", "${}", "{} €", "+{}", "{:,}", "{:e}", "{:.2f}"]),
    st.sampled_from([Dialect(), Dialect(thousands=","), Dialect(decimal=","), Dialect(thousands=".")]),
)
def test_whatever_is_read_as_a_label_reads_as_a_number(value, form, dialect):
    text = form.format(value)
    try:
        number = LabelText("y", dialect).parse(pa.array([text]))[0].as_py()
    except ldp.errors.LabelError:
        return
    assert number is not None
    assert math.isfinite(number)
    assert reads_as_number(text)


def test_most_names_decide_whether_a_header_is_missing():
    assert look_like_values(["oak", "51234", "20"])
    assert not look_like_values(["oak", "51234"])
    assert look_like_values(["", "51234"])
    assert not look_like_values([])


# ---- arrays and regressors ----------------------------------------------------------------------------------

ROWS = 60
Y = np.random.default_rng(0).uniform(0, 5, ROWS)
X = pd.DataFrame({"a": np.arange(ROWS) * 1.0, "b": np.arange(ROWS) % 7 * 1.0})
HOW = {"epsilon": 1.0, "bounds": (0, 5)}
SERIES = {
    "pandas": lambda name: pd.Series(Y, name=name),
    "pandas frame": lambda name: pd.DataFrame({name: Y}),
    "polars": lambda name: pl.Series(str(name), Y),
    "polars frame": lambda name: pl.DataFrame({str(name): Y}),
    "arrow": lambda name: pa.table({str(name): Y}),
}
ENTRIES = {
    "privatize": lambda y, ledger: ldp.privatize(y, **HOW, ledger=ledger),
    "label release": lambda y, ledger: ldp.LabelReleaseRegressor(**HOW, ledger=ledger).fit(X, y),
    "model release": lambda y, ledger: ldp.ModelReleaseRegressor(**HOW, ledger=ledger).fit(X, y),
}


@pytest.mark.parametrize("entry", ENTRIES)
@pytest.mark.parametrize("source", SERIES)
@pytest.mark.parametrize("name", ["66993", " 66,993.5 €", "６６９９３"])
def test_a_label_whose_name_reads_as_a_number_is_refused_before_the_charge(entry, source, name):
    ledger = ldp.Ledger()
    with pytest.raises(ParameterError, match="reads as a number") as caught:
        ENTRIES[entry](SERIES[source](name), ledger)
    assert name not in str(caught.value)
    assert ledger.charges == ()


@pytest.mark.parametrize("regressor", [ldp.LabelReleaseRegressor, ldp.ModelReleaseRegressor])
def test_a_number_that_is_no_position_in_the_frame_of_features_is_refused(regressor):
    for y in (pd.Series(Y, name=66993), pd.Series(Y, name=66993.0), pd.Series(Y, name=-1)):
        with pytest.raises(ParameterError, match="reads as a number"):
            regressor(**HOW).fit(X, y)


def test_a_frame_with_no_names_but_its_own_numbering_has_a_label_called_label(tmp_path):
    frame = pd.DataFrame(np.column_stack([X, Y]))
    model = ldp.ModelReleaseRegressor(**HOW).fit(frame[[0, 1]], frame[2])
    ldp.save_model(model, tmp_path / "model")
    assert ldp.load_model(tmp_path / "model").label == "label"
    with pytest.raises(ParameterError, match="X has a column"):
        ldp.ModelReleaseRegressor(**HOW).fit(frame, frame[2])


def test_private_labels_in_a_series_have_no_number_for_a_name():
    release = ldp.privatize(Y, **HOW)
    assert release.to_series(like=pd.Series(Y, name=66993)).name == "label"
    assert release.to_series(like=pd.Series(Y)).name is None
    assert release.to_series(like=pl.Series(Y)).name == ""
    with pytest.raises(ParameterError, match="reads as a number"):
        release.to_series(like=pd.Series(Y, name="66993"))
    both = ldp.privatize(np.column_stack([Y, Y]), epsilon=1.0, bounds=[(0, 5)] * 2)
    assert list(both.to_series(like=pd.DataFrame(np.column_stack([Y, Y]))).columns) == [0, 1]


def test_a_model_is_not_saved_under_a_number(tmp_path):
    model = ldp.ModelReleaseRegressor(**HOW).fit(X, Y)
    with pytest.raises(ParameterError, match="reads as a number"):
        ldp.save_model(model, tmp_path / "model", label=TRUE_LABEL)
    assert not (tmp_path / "model").exists()


@pytest.mark.parametrize("regressor", [ldp.LabelReleaseRegressor, ldp.ModelReleaseRegressor])
@pytest.mark.parametrize(
    ("feature", "y"),
    [
        ("label", Y),
        ("LABEL ", pd.Series(Y)),
        ("label", pl.Series(Y)),
        ("label", pd.DataFrame(Y)),
        ("label", pd.Series(Y, name="Label")),
        ("Pay", pd.Series(Y, name="pay\u200b")),
    ],
)
def test_a_feature_with_the_name_of_the_label_is_refused_before_the_charge(regressor, feature, y):
    ledger = ldp.Ledger()
    with pytest.raises(ParameterError, match="which is the name of y"):
        regressor(**HOW, ledger=ledger).fit(X.rename(columns={"a": feature}), y)
    assert ledger.charges == ()


@pytest.mark.parametrize("regressor", [ldp.LabelReleaseRegressor, ldp.ModelReleaseRegressor])
@pytest.mark.parametrize("y", [pd.DataFrame({"y": Y, "z": Y}), np.column_stack([Y, Y]), Y.reshape(-1, 1, 1)])
def test_several_columns_of_labels_are_refused_by_a_regressor_with_their_shape(regressor, y):
    ledger = ldp.Ledger()
    with pytest.raises(ldp.errors.LabelError, match="one column of labels, got the shape"):
        regressor(**HOW, ledger=ledger).fit(X, y)
    assert ledger.charges == ()


@pytest.mark.parametrize("entry", ENTRIES)
@pytest.mark.parametrize("source", SERIES)
def test_the_name_of_a_label_has_at_most_a_thousand_characters(entry, source):
    ledger = ldp.Ledger()
    with pytest.raises(ParameterError, match="has 1,001 characters") as caught:
        ENTRIES[entry](SERIES[source]("y" * 1001), ledger)
    assert len(str(caught.value)) < 200
    assert ledger.charges == ()


def test_the_column_of_a_frame_without_names_is_called_label():
    release = ldp.privatize(Y, **HOW)
    frames = (pd.DataFrame(Y), pd.DataFrame({"0": Y}), pl.DataFrame({"0": Y}), pl.DataFrame({"": Y}))
    assert [list(release.to_series(like=frame).columns) for frame in frames] == [["label"]] * 4
    assert release.to_series(like=pa.table({"0": Y})).column_names == ["label"]
    assert release.to_series(like=pa.table({"pay": Y})).column_names == ["pay"]
