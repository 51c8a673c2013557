"""Rows of a cluster on the driver: their sample and order follow from ids, and models are those of one machine."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest
from pyspark.sql import functions as F  # noqa: N812

import labeldp as ldp
from labeldp.exact.row_ids import Ids, public_places

ASK = {"features": ["a", "kind"], "label": "y", "id": "id"}
ROWS = 400
RNG = np.random.default_rng(2)
A = RNG.normal(size=ROWS)
TABLE = pa.table(
    {
        "a": A,
        "y": np.clip(2.5 + A + 0.3 * RNG.normal(size=ROWS), 0, 5),
        "id": np.arange(ROWS) * 3 - 100,
        "kind": ["north", None, "south", "west"] * (ROWS // 4),
        "unused": [[1.0]] * ROWS,
    }
)


def frame(spark, partitions=3):
    return spark.createDataFrame(TABLE).repartition(partitions, "a")


@pytest.mark.parametrize("partitions", [1, 5])
def test_all_rows_come_in_an_order_that_follows_from_their_ids(spark, partitions):
    X, y = ldp.spark.collect_rows(frame(spark, partitions), **ASK)
    order = np.argsort(public_places(Ids("integer", TABLE["id"].to_numpy()))[:, 0])
    assert X.to_pylist() == TABLE.take(order).select(ASK["features"]).to_pylist()
    assert y.to_pylist() == TABLE.take(order)["y"].to_pylist()
    ask = {"epsilon": 0.5, "bounds": (0, 5)}
    model = ldp.ModelReleaseRegressor(**ask).fit(X, y)
    assert model.terms_.rows == ROWS
    assert ldp.verify_card(ldp.private_ols(X.select(["a"]), y, **ask).to_card()).holds


def test_the_sample_of_a_larger_frame_follows_from_ids_alone(spark):
    """300 of 400 rows by a hash: fewer than 230 or more than 370 have a probability below 1e-13."""
    one, _ = ldp.spark.collect_rows(frame(spark), **ASK, rows=300)
    other = frame(spark, 5).withColumn("y", F.lit(-1e300))
    again, labels = ldp.spark.collect_rows(other, **ASK, rows=300)
    assert one.equals(again)
    assert 230 < one.num_rows < 370
    assert set(labels.to_pylist()) == {-1e300}


def test_what_cannot_be_used_is_refused(spark):
    df = frame(spark)

    def refuse(error, option=None, df=df, **change):
        with pytest.raises(error) as refused:
            ldp.spark.collect_rows(df, **{**ASK, **change})
        assert option is None or refused.value.option == option

    for features in ("a", [], ["a", "unused"], ["a", "y"], ["a", "id"], ["a", "a"], ["aa"]):
        refuse(ldp.errors.ParameterError, "features", features=features)
    refuse(ldp.errors.ParameterError, "rows", rows=0)
    refuse(ldp.errors.ParameterError, "id", id="y")
    refuse(ldp.errors.LabelError, "label", label="kind")
    refuse(ldp.errors.DataError, df=df.withColumn("id", F.when(df.a > 0, df.id)))
    refuse(ldp.errors.DataError, df=df.withColumn("id", F.least(df.id, F.lit(1000))))


def test_no_message_quotes_a_label(spark):
    text = frame(spark).selectExpr("id", "a", "kind", "cast(concat(cast(y as string), 'x') as double) y")
    with pytest.raises(ldp.errors.DataError, match=r"\(CAST_INVALID_INPUT") as refused:
        ldp.spark.collect_rows(text, **ASK)
    assert "x'" not in str(refused.value)
    assert refused.value.__cause__ is refused.value.__context__ is None
