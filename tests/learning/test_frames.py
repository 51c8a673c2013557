"""Data frames straight into both regressors: by name, in any order, whatever library they come from."""

import pickle
import warnings

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from sklearn.dummy import DummyRegressor

import labeldp as ldp
from helpers import seeded

ROWS, BOUNDS = 120, (0.0, 20.0)
REGRESSORS = [ldp.LabelReleaseRegressor, ldp.ModelReleaseRegressor]
both = pytest.mark.parametrize("regressor", REGRESSORS)


def frame(rows=ROWS, seed=0):
    """Return a messy frame of pandas: text, categories of numbers, booleans, dates, gaps, and an index."""
    rng = np.random.default_rng(seed)
    table = pd.DataFrame(
        {
            "area": np.where(rng.random(rows) < 0.1, np.nan, rng.normal(10, 2, rows)),
            "town": rng.choice(["York", "Bath", "Ely"], rows),
            "zone": pd.Categorical(rng.integers(1, 5, rows)),
            "lift": pd.array(rng.random(rows) < 0.5, dtype="boolean"),
            "sold": pd.Timestamp("2020-01-01") + pd.to_timedelta(rng.integers(0, 900, rows), unit="D"),
        },
        index=rng.permutation(rows),
    )
    table.loc[table.index[::9], ["town", "lift", "sold"]] = None
    return table


def labels(table):
    area = table["area"].fillna(10).to_numpy()
    return pd.Series(np.clip(area + 3 * (table["town"] == "York"), *BOUNDS), index=table.index, name="price")


TABLE = frame()
Y = labels(TABLE)
ARROW = pa.Table.from_pandas(TABLE, preserve_index=False)
POLARS = pl.from_arrow(ARROW.set_column(2, "zone", ARROW["zone"].cast(pa.string()).dictionary_encode()))
KINDS = {
    "pandas": (TABLE, Y),
    "polars": (POLARS, pl.Series("price", Y.to_numpy())),
    "arrow table": (ARROW, pa.array(Y.to_numpy())),
    "arrow batch": (ARROW.combine_chunks().to_batches()[0], pa.chunked_array([Y.to_numpy()])),
}


def fit(regressor, X=TABLE, y=Y, **options):
    options = {"epsilon": 0.5, "bounds": BOUNDS, "random_state": 1} | options
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ldp.InsecureRandomnessWarning)
        return regressor(**options).fit(X, y)


@both
def test_frames_of_every_library_are_the_same_to_a_model_and_columns_may_be_in_any_order(regressor):
    model = fit(regressor, *KINDS["polars"])
    assert model.feature_names_in_.tolist() == list(TABLE.columns)
    assert model.n_features_in_ == 5
    expected = fit(regressor).predict(TABLE)
    for X, _ in KINDS.values():
        turned = X[list(TABLE.columns[::-1])] if isinstance(X, pd.DataFrame) else X.select(TABLE.columns[::-1])
        assert np.allclose(model.predict(turned), expected)


@both
def test_new_categories_gaps_and_further_columns_are_fine_and_a_pickle_keeps_the_encoder(regressor):
    model = fit(regressor)
    fresh = frame(5, seed=1).assign(town=["Rome", None, "Bath", "York", "Oslo"], more="?")
    predicted = model.predict(fresh)
    assert np.isfinite(predicted).all()
    assert np.array_equal(pickle.loads(pickle.dumps(model)).predict(fresh), predicted)


BAD = {
    "the name of y": TABLE.assign(price=1.0),
    r"of several types.*'odd'.*astype": TABLE.assign(odd=["a", 3] * (ROWS // 2)),
    "two columns are called 'area'": pd.concat([TABLE, TABLE[["area"]]], axis=1),
    "no rows": TABLE.iloc[:0],
    "inconsistent": TABLE.iloc[:9],
    "collect": POLARS.lazy(),
    "Expected 2D": TABLE["area"],
}


@both
@pytest.mark.parametrize("says", BAD)
def test_frames_that_cannot_be_learnt_from_cost_nothing(regressor, says):
    ledger = ldp.Ledger()
    with pytest.raises(ValueError, match=says):
        regressor(epsilon=1.0, bounds=BOUNDS, ledger=ledger).fit(BAD[says], Y)
    assert not ledger.charges


@both
def test_a_saved_model_keeps_the_encoder_whatever_the_model_was_fitted_to(regressor, tmp_path):
    model = fit(regressor)
    ldp.save_model(model, tmp_path / "frame", label="price")
    again = ldp.load_model(tmp_path / "frame")
    assert again.feature_names_in_ == model.encoder_.names
    for X in (TABLE[list(TABLE.columns[::-1])], POLARS, ARROW):
        assert np.allclose(again.predict(X), model.predict(TABLE), rtol=1e-5)
    X = np.random.default_rng(0).normal(size=(ROWS, 3))
    plain = fit(regressor, X)
    ldp.save_model(plain, tmp_path / "frame", force=True)
    again = ldp.load_model(tmp_path / "frame")
    assert again.feature_names_in_ == ["x0", "x1", "x2"]
    assert np.allclose(again.predict(X), plain.predict(X), rtol=1e-5)


def test_a_saved_model_calls_its_label_as_y_was_called_unless_told_otherwise(tmp_path):
    y = np.full(ROWS, 9.0)
    named = pd.Series(y, TABLE.index, name="income")
    for labels, given, name in ((named, {}, "income"), (named, {"label": "pay"}, "pay"), (y, {}, "label")):
        model = ldp.ModelReleaseRegressor(epsilon=1.0, bounds=BOUNDS).fit(TABLE, labels)
        ldp.save_model(model, tmp_path / "model", force=True, **given)
        assert ldp.load_model(tmp_path / "model").label == name


@both
def test_labels_in_another_order_than_the_rows_are_refused_before_they_are_paid_for(regressor):
    table, ledger = frame(), ldp.Ledger()
    model = regressor(epsilon=1.0, bounds=BOUNDS, ledger=ledger)
    y, fitted = labels(table), DummyRegressor(strategy="constant", constant=1.0).fit([[0]], [0])
    with pytest.raises(ldp.errors.DataError, match=r"give y\.loc\[X\.index\]"):
        model.fit(table, y.sort_index())
    for judge in (ldp.private_score, ldp.private_intervals):
        with pytest.raises(ldp.errors.DataError, match="in another order"):
            judge(fitted, table, y.sort_index(), epsilon=1.0, bounds=BOUNDS, ledger=ledger)
    assert not ledger.charges
    model.fit(table.set_axis([f"row {row}" for row in range(ROWS)]), y)  # another index: as they stand


@both
@pytest.mark.parametrize("columns", [["town"], ["town", "zone"], ["area"], ["area", "town"], ["area", "sold"]])
def test_nothing_that_lay_in_memory_before_enters_a_fit(regressor, columns, monkeypatch):
    """Tables of categories alone had a feature that nobody wrote: true labels may have lain there."""
    table, predicted, empty = frame(), [], np.empty
    for rest in (0.5, np.nan):

        def used(*args, rest=rest, **options):
            array = empty(*args, **options)
            if array.dtype.kind == "f":
                array.fill(rest)
            return array

        monkeypatch.setattr(np, "empty", used)
        model = regressor(epsilon=1.0, bounds=BOUNDS, random_state=seeded(1)).fit(table[columns], labels(table))
        predicted.append(model.predict(table[columns]))
    assert np.array_equal(*predicted)


@both
def test_an_array_with_text_is_refused_with_the_way_out(regressor):
    table, ledger = frame(), ldp.Ledger()
    with pytest.raises(ldp.LabelDPError, match=r"(York|Bath|Ely).*give text in a data frame"):
        regressor(epsilon=1.0, bounds=BOUNDS, ledger=ledger).fit(
            table[["town", "area"]].to_numpy(object), labels(table)
        )
    assert not ledger.total.epsilon
