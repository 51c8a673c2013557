"""A regression table on Spark: that of one machine to the bit, and every refusal before the charge."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest
from pyspark.sql import functions as F  # noqa: N812

import labeldp as ldp
from labeldp.exact.row_ids import Ids, public_places
from labeldp.spark.model_passes import label_summer

pytestmark = pytest.mark.filterwarnings("ignore::labeldp.InsecureRandomnessWarning")
NAMES = {"features": ["a", "b"], "label": "y", "id": "id", "bounds": (0.0, 100.0)}


def rows(count=2500):
    rng = np.random.default_rng(2)
    X = rng.normal(size=(count, 2))
    return X, np.clip(50 + 5 * X[:, 0] + 2 * rng.normal(size=count), 0, 100), np.arange(count) * 3 - 100


def frame(spark, X, y, ids, partitions=3):
    columns = {"a": X[:, 0], "y": y, "id": ids, "b": X[:, 1], "unused": ["text"] * len(y)}
    return spark.createDataFrame(pa.table(columns)).repartition(partitions, "id")


def test_sums_of_a_large_batch_are_made_in_blocks_that_floats_hold_exactly():
    """Spark limits no batch where ``arrow.maxRecordsPerBatch`` is 0."""
    ids, sizes = np.arange((1 << 20) + 5), []

    def count(labels, rows):
        sizes.append(labels.size)
        return np.array([labels.sum(), rows.sum()], dtype=np.int64)

    batch = pa.record_batch({"y": np.ones(ids.size), "id": ids})
    places = np.sort(public_places(Ids("integer", ids))[:, 0])
    total = label_summer(count, places, (0.0, 1.0))(batch)
    assert total.tolist() == [ids.size, ids.sum()]
    assert max(sizes) == 1 << 20
    assert label_summer(count, places, (0.0, 1.0))(batch.slice(0, 0)).tolist() == [0, 0]


@pytest.mark.parametrize(("epsilon", "partitions"), [(20.0, 1), (20.0, 5), (0.2, 3)])
def test_the_table_is_that_of_one_machine_to_the_bit(spark, epsilon, partitions):
    X, y, ids = rows()
    ledger, ask = ldp.Ledger(), {"epsilon": epsilon, "random_state": 3}
    table = ldp.spark.private_ols(frame(spark, X, y, ids, partitions), **NAMES, ledger=ledger, **ask)
    order = np.argsort(public_places(Ids("integer", ids))[:, 0])  # rows come in this order, which is public
    alone = ldp.private_ols(X[order], y[order], bounds=NAMES["bounds"], **ask)
    np.testing.assert_array_equal(table.params, alone.params)
    np.testing.assert_array_equal(table.conf_int(), alone.conf_int())
    assert (table.rsquared, table.fit_pvalue) == (alone.rsquared, alone.fit_pvalue)
    assert (table.fit_pvalue is None) is (epsilon < 1)
    assert table.terms.statistics == alone.terms.statistics
    assert (table.names, table.label) == (["Intercept", "a", "b"], "y")
    assert ledger.total == table.cost == ldp.Budget(epsilon)


def test_a_card_of_the_cluster_is_proven(spark):
    table = ldp.spark.private_ols(frame(spark, *rows(300)), **NAMES, epsilon=3.0)
    assert ldp.verify_card(table.to_card()).holds


def test_what_cannot_be_estimated_costs_nothing(spark, set_constants):
    ledger = ldp.Ledger(limit=ldp.Budget(epsilon=0.1))
    df = frame(spark, *rows(300))

    def refuse(error, df=df, **change):
        with pytest.raises(error):
            ldp.spark.private_ols(df, **{**NAMES, "epsilon": 1.0, "ledger": ledger, **change})
        assert ledger.total == ldp.Budget(epsilon=0.0)

    refuse(ldp.errors.ParameterError, features=["a", "unused"])
    refuse(ldp.errors.ParameterError, features=["a", "y"])
    refuse(ldp.errors.ParameterError, epsilon=0.005)
    refuse(ldp.errors.DataError, df=df.withColumn("b", 2 * df.a))
    refuse(ldp.errors.DataError, df=df.withColumn("id", F.lit(1)))
    refuse(ldp.BudgetError)
    set_constants({"spark.dataframe_ols.MOST_NUMBERS": 500})
    refuse(ldp.errors.DataError)
