"""The encoder as a step of a scikit-learn pipeline."""

import numpy as np
import pandas as pd
import polars as pl
import pytest
from sklearn.base import clone
from sklearn.compose import make_column_transformer
from sklearn.exceptions import NotFittedError
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.utils.estimator_checks import parametrize_with_checks

import labeldp as ldp
from labeldp.tables.transformer import TableTransformer

FRAME = pd.DataFrame({"size": [1.0, 2.0, None] * 50, "town": ["York", "Bath", None] * 50, "code": [7, 8, 7] * 50})
NAMES = ["size", "size is missing", "town=Bath", "town=York", "town is missing"]
UNSUITABLE = {
    "check_fit2d_1sample": "one row has no column that differs",
}


@parametrize_with_checks([TableTransformer()], expected_failed_checks=lambda _: UNSUITABLE)
def test_it_is_a_scikit_learn_transformer(estimator, check):
    check(estimator)


def test_every_number_has_a_name_and_new_values_have_none():
    encode = TableTransformer(categories=["code"])
    with pytest.raises(NotFittedError):
        encode.get_feature_names_out()
    encode = clone(encode).fit(FRAME)
    assert encode.get_feature_names_out().tolist() == [*NAMES, "code=7", "code=8"]
    assert encode.get_feature_names_out(FRAME.columns).shape == (7,)
    with pytest.raises(ldp.errors.ParameterError, match="feature_names_in_"):
        encode.get_feature_names_out(["a", "b", "c"])
    fresh = pl.DataFrame({"code": [9], "town": ["Ely"], "size": [4.0]})
    assert encode.transform(fresh).tolist() == [[4.0, 0, 0, 0, 0, 0, 0]]
    many = TableTransformer().fit(pd.DataFrame({"zip": [f"z{k % 30}" for k in range(300)]}))
    assert many.get_feature_names_out()[-9:].tolist() == ["zip frequency", *(f"zip hash {k}" for k in range(8))]
    assert many.get_feature_names_out().size == many.encoder_.width


def test_it_works_in_pipelines_and_in_column_transformers_and_keeps_names_there():
    y = np.arange(150.0) % 3
    model = ldp.ModelReleaseRegressor(epsilon=2.0, bounds=(0, 2))
    pipe = make_pipeline(TableTransformer(), StandardScaler(), model).fit(FRAME[["size", "town"]], y)
    assert pipe[:-1].get_feature_names_out().tolist() == NAMES
    assert pipe.predict(FRAME[["town", "size"]]).shape == (150,)
    parts = make_column_transformer(
        (TableTransformer(), ["town"]), (StandardScaler(), ["code"]), verbose_feature_names_out=False
    )
    out = parts.set_output(transform="pandas").fit_transform(FRAME)
    assert list(out.columns) == ["town=Bath", "town=York", "town is missing", "code"]
    assert clone(pipe).fit(out, y).predict(out[out.columns[::-1]]).shape == (150,)
