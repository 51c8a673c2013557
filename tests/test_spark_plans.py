"""What a plan shows: frames that change, columns and places that carry labels along, messages that quote them."""

from __future__ import annotations

import numpy as np
import pytest

import labeldp as ldp
from labeldp.errors import DataError
from labeldp.spark import estimate_prior, fit_model, privatize, randomize
from labeldp.spark.repeatable import held

pytestmark = pytest.mark.xdist_group("spark")

MECHANISM = ldp.TwoPoint(bounds=(0, 5), epsilon=1.0)
LEDGER = ldp.Ledger()


@pytest.fixture(scope="module")
def df(spark, tmp_path_factory):
    """A table in a file: id, x, y."""
    import pyarrow as pa

    path = str(tmp_path_factory.mktemp("plans") / "t")
    table = pa.table({"id": range(500), "x": range(500), "y": np.random.default_rng(2).uniform(0, 5, 500)})
    spark.createDataFrame(table).write.parquet(path)
    read = spark.read.parquet(path)
    read.createOrReplaceTempView("plans_t")
    return read


def refused(df, match, **change):
    with pytest.raises(DataError, match=match):
        randomize(df, "y", MECHANISM, id="id", ledger=LEDGER, **change)
    assert LEDGER.total == ldp.Budget(epsilon=0.0)


@pytest.mark.parametrize(
    "changing",
    [
        "select concat(current_timestamp(), id) id, y from plans_t",
        "select id, least(5, unix_timestamp() % 7 + y) y from plans_t",
        "select id, y, now() seen from plans_t",
        "select id, y, current_user() who from plans_t",
    ],
)
def test_what_depends_on_the_time_is_refused(spark, df, changing):
    refused(spark.sql(changing), "depends on the time")


@pytest.mark.parametrize(
    ("hidden", "why"),
    [
        ("select id, y from plans_t where id in (select id from plans_t limit 100)", "Limit"),
        ("select id, y / (select sum(y) from plans_t) y from plans_t", "Aggregate"),
        ("select id, y from plans_t where y > (select rand())", "not deterministic"),
    ],
)
def test_queries_inside_expressions_are_looked_into(spark, df, hidden, why):
    refused(spark.sql(hidden), why)


def test_named_queries_are_accepted(spark, df):
    named = spark.sql("with a as (select id, y, x from plans_t) select id, y, x + 1 x from a where x > 3")
    assert randomize(named, "y", MECHANISM, id="id").terms.rows == 496
    copied = "with a as (select id, y from plans_t) select a.id, a.y, b.y copy from a join a b on a.id = b.id"
    refused(spark.sql(copied), "'copy'")


def test_copies_of_the_label_are_found_wherever_they_come_from(spark, df):
    from pyspark.sql import Window
    from pyspark.sql import functions as F  # noqa: N812

    copy = df.select("id", F.col("y").alias("copy"))
    refused(df.join(copy, "id"), "'copy'")
    again = spark.read.parquet(*df.inputFiles()).select("id", F.col("y").alias("copy"))
    refused(df.join(again, "id"), "'copy'")
    windowed = F.max("y").over(Window.partitionBy("id"))
    refused(df.withColumn("copy", windowed), "'copy'", materialize=True)
    refused(df.withColumn("copy", F.explode(F.array("y"))), "'copy'", materialize=True)
    refused(df.withColumn("id", F.row_number().over(Window.orderBy("y"))), "'id'", materialize=True)
    sub = spark.sql("select id, y, (select max(y) from plans_t) copy from plans_t")
    refused(sub, "'copy'", materialize=True)
    # Related only through an id, or through a column that the label is not made of: not refused.
    fine = df.join(df.select("id", (F.col("x") * 2).alias("z")), "id")
    assert randomize(fine, "y", MECHANISM, id="id").terms.rows == 500
    ids = df.withColumn("id", (F.col("y") * 1e15).cast("long"))
    with pytest.raises(DataError, match="'id'"):
        fit_model(ids, features=["x"], label="y", id="id", epsilon=1.0, bounds=(0, 5), ledger=LEDGER)
    assert LEDGER.total == ldp.Budget(epsilon=0.0)


def test_places_that_follow_from_the_label_are_refused(spark, df, tmp_path):
    where = "where a row lies depends on its label"
    for placed in (
        df.orderBy("y"),
        df.repartitionByRange(4, "y"),
        df.repartition(3, "y"),
        df.repartition(3),
        df.distinct(),
        df.sortWithinPartitions("y"),
        df.orderBy("y").repartition(3, "id"),
        df.distinct().orderBy("x"),
        df.join(df.select("y", "id"), ["id", "y"]),
    ):
        refused(placed, where)
    for fine in (
        df.coalesce(1),
        df.repartition(3, "id"),
        df.orderBy("x"),
        df.orderBy("y").orderBy("id"),
        df.distinct().orderBy("id").where("x > 3"),
    ):
        assert randomize(fine, "y", MECHANISM, id="id").terms.rows > 400
    df.withColumn("y", df.x % 3).write.partitionBy("y").parquet(str(tmp_path / "by"))
    refused(spark.read.parquet(str(tmp_path / "by")), "folders named by the label")


def test_no_message_quotes_a_label(spark, df):
    text = df.selectExpr("id", "concat(cast(y as string), 'x') y")
    cast = text.withColumn("y", text.y.cast("double"))
    with pytest.raises(Exception, match=r"The value '\d\.\d+x'"):
        cast.collect()
    for ask in (
        lambda: randomize(cast, "y", MECHANISM, id="id"),
        lambda: randomize(cast, "y", MECHANISM, id="id", materialize=True),
        lambda: estimate_prior(cast, label="y", epsilon=1.0, bounds=(0, 5)),
        lambda: privatize(cast, label="y", id="id", epsilon=1.0, bounds=(0, 5)),
    ):
        with pytest.raises(DataError, match=r"cannot compute these rows \(CAST_INVALID_INPUT") as told:
            ask()
        assert "x'" not in str(told.value)
        assert told.value.__cause__ is told.value.__context__ is None  # Spark's own message does not come along


def test_a_prior_needs_a_frame_that_repeats_and_leaves_nothing_behind(spark, df):
    from pyspark.sql import functions as F  # noqa: N812

    changing = df.withColumn("y", F.rand())
    ask = {"label": "y", "epsilon": 1.0, "bounds": (0, 5)}
    with pytest.raises(DataError, match="may not be the same"):
        estimate_prior(changing, **ask)
    before = spark.sparkContext._jsc.getPersistentRDDs().size()
    assert estimate_prior(changing, materialize=True, **ask).bounds == (0.0, 5.0)
    kept = held(changing, True)
    assert spark.sparkContext._jsc.getPersistentRDDs().size() == before + 1  # what would be left behind
    kept.drop()
    assert spark.sparkContext._jsc.getPersistentRDDs().size() == before
    holes = df.withColumn("y", F.when(df.x > 4, df.y))
    with pytest.raises(ldp.LabelError, match=r"^5 of 500 labels"):
        estimate_prior(holes, **ask)
