"""Names are output: no label's name reads as a value, and a label without a name is called "label"."""

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
from labeldp.release import names
from labeldp.tables import text_types

NUMBERS = [
    *("66993", "66993.5", "66993,5", "66,993.50", "66.993,50", "66\u202f993", "66'993", "66.993,00 €", "$51,234"),
    *("6.6993e4", "\u00a0 66993\t", "６６９９３", "٦٦٩٩٣", "\u221266993", "nan", "-inf", "66993.5.1"),
    *("66993 EUR", "EUR 66993", "66.993 usd", "66,993 %", "R$ 66.993", "-$66,993"),
    *("($66,993)", "(66,993)", "66_993"),
    *("66,993-", "kr. 66993", "66993 Kč", "< 66993", "US$66993", "66993 руб.", "66993EUR", "kr.66993"),
    *(66993, 66993.5, np.float64(66993.5), b"66993"),
]
NAMES = [
    *("price", "x1", "y_2019", "price 2019", "PM2.5", "Item 12", "_c0", "Preis (€)", "2nd", "T_0.5", "価格"),
    *("50 %-quantile", "2019-2020", "3 months", "2019_01", "5 years", "EUR", "EUR 2019 net", "%", "$", "(a)"),
    *("5k", "FT4", "RM1"),
]


@pytest.mark.parametrize("name", [*NUMBERS, *NAMES], ids=repr)
def test_numbers_of_every_dialect_read_as_numbers_and_names_do_not(name):
    assert names.reads_as_value(name) == (name not in NAMES)


def test_no_level_of_a_header_is_a_number():
    for name in (("price", "66993"), ("66993", "")):
        with pytest.raises(ldp.errors.ParameterError, match="reads as a value"):
            ldp.privatize(pd.Series([1.0, 2.0], name=name), epsilon=1.0, bounds=(0, 5))


@tries(200)
@given(
    st.floats(allow_nan=False, allow_infinity=False) | st.integers(-(10**30), 10**30),
    st.sampled_from(["{}", " {}", "{} ", "${}", "{} €", "+{}", "{:,}", "{:e}", "{:.2f}"]),
    st.sampled_from([{}, {"thousands": ","}, {"decimal": ","}, {"thousands": "."}]),
)
def test_whatever_is_read_as_a_label_reads_as_a_number(value, form, dialect):
    text, dialect = form.format(value), ldp.tables.Dialect(**dialect)
    values, wrong = text_types.parse_labels(pa.array([text]), dialect)
    if wrong is None:
        assert math.isfinite(values[0].as_py())
        assert names.reads_as_value(text)


def test_most_names_decide_whether_a_header_is_missing():
    headers = ["oak", "51234", "20"], ["oak", "51234"], ["", "51234"], []
    assert [names.look_like_values(header) for header in headers] == [True, False, True, False]


# ---- arrays and regressors ----------------------------------------------------------------------------------

ROWS = 60
Y = np.random.default_rng(0).uniform(0, 5, ROWS)
X = pd.DataFrame({"a": np.arange(ROWS) * 1.0, "b": np.arange(ROWS) % 7 * 1.0})
HOW = {"epsilon": 1.0, "bounds": (0, 5)}
SERIES = {
    "pandas": lambda name: pd.Series(Y, name=name),
    "polars frame": lambda name: pl.DataFrame({str(name): Y}),
    "arrow": lambda name: pa.table({str(name): Y}),
}
REGRESSORS = {
    "label release": lambda y, ledger, X=X: ldp.LabelReleaseRegressor(**HOW, ledger=ledger).fit(X, y),
    "model release": lambda y, ledger, X=X: ldp.ModelReleaseRegressor(**HOW, ledger=ledger).fit(X, y),
}
ENTRIES = {**REGRESSORS, "privatize": lambda y, ledger: ldp.privatize(y, **HOW, ledger=ledger)}


def refused(entry, match, *given):
    """Return what is said of labels that are refused before the charge."""
    ledger = ldp.Ledger()
    with pytest.raises(ldp.LabelDPError, match=match) as caught:
        ENTRIES[entry](given[0], ledger, *given[1:])
    assert ledger.charges == ()
    return str(caught.value)


@pytest.mark.parametrize("entry", ENTRIES)
@pytest.mark.parametrize("source", SERIES)
def test_a_label_whose_name_reads_as_a_number_or_is_long_is_refused_before_the_charge(entry, source):
    for name in ("66993", " 66,993.5 €", "６６９９３"):
        assert name not in refused(entry, "reads as a value", SERIES[source](name))
    assert len(refused(entry, "more than 1,000 characters", SERIES[source]("y" * 1001))) < 200


SAME_NAME, SEVERAL = "which is the name of y", "one column of labels, got the shape"
REFUSED = [
    *(("reads as a value", "a", pd.Series(Y, name=name)) for name in (66993, 66993.0, -1)),
    (SAME_NAME, "label", Y),
    (SAME_NAME, "LABEL ", pd.Series(Y)),
    (SAME_NAME, "label", pl.Series(Y)),
    (SAME_NAME, "label", pd.DataFrame(Y)),
    (SAME_NAME, "label", pd.Series(Y, name="Label")),
    (SAME_NAME, "Pay", pd.Series(Y, name="pay\u200b")),
    (SAME_NAME, "pay.1", pd.Series(Y, name="pay")),
    *((SEVERAL, "a", y) for y in (pd.DataFrame({"y": Y, "z": Y}), np.column_stack([Y, Y]), Y.reshape(-1, 1, 1))),
]
"""What is said, the name of a feature, and labels."""


@pytest.mark.parametrize("entry", REGRESSORS)
@pytest.mark.parametrize(("match", "feature", "y"), REFUSED)
def test_labels_with_no_name_of_their_own_and_several_columns_are_refused_by_a_regressor(entry, match, feature, y):
    refused(entry, match, y, X.rename(columns={"a": feature}))
