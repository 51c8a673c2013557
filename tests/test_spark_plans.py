"""What a plan shows: frames that change, columns and rows that carry labels along, messages that quote them."""

from __future__ import annotations

import numpy as np
import pytest

import labeldp as ldp
from labeldp.errors import DataError
from labeldp.spark import estimate_prior, fit_model, privatize, randomize
from labeldp.spark.repeatable import stable_frame

pytestmark = [
    pytest.mark.xdist_group("spark"),
    pytest.mark.filterwarnings("ignore::labeldp.InsecureRandomnessWarning"),
]

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


def persistent(spark):
    """Return the ids of what Spark keeps, which may become fewer at any time."""
    return set(spark.sparkContext._jsc.getPersistentRDDs())


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
        ("select id, y, (select x from plans_t limit 1) z from plans_t", "Limit"),
        ("select id, y / (select sum(y) from plans_t) y from plans_t", "Aggregate"),
        ("select id, y + (select rand()) y from plans_t", "not deterministic"),
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


def rows_of(df, **change):
    return randomize(df, "y", MECHANISM, id="id", **change).terms.rows


def test_rows_that_are_chosen_or_merged_by_the_label_are_refused(spark, df):
    from pyspark.sql import functions as F  # noqa: N812

    chosen = "which rows there are follows from the same data as the label"
    for wrong in (
        df.where("y > 3"),
        df.where("y > 3 and x > 3"),
        df.where("y is null or y > 3"),
        df.where(F.when(F.col("y") > 3, 1).isNotNull()),
        df.where(F.col("y").try_cast("tinyint").isNotNull()),
        df.withColumn("flag", F.when(F.col("y") > 3, 1)).where("flag is not null").drop("flag"),
        df.withColumn("flag", F.when(F.col("y") > 3, 1)).dropna().drop("flag"),
        df.distinct(),
        df.union(df).distinct(),
        df.intersect(df.where("x > 3")),
        df.exceptAll(df.where("x > 3")),
        df.join(df.select("y", "id"), ["id", "y"]),
        df.join(df.where("y > 3").select("id"), "id"),
        df.join(df.select(F.col("y").cast("long").alias("n")).distinct(), F.col("x") == F.col("n"), "left_semi"),
        spark.sql("select id, y from plans_t where id in (select id from plans_t where y > 3)"),
        spark.sql(
            "select id, y from plans_t t where exists (select 1 from plans_t s where s.x < t.y and s.id = t.id)"
        ),
    ):
        refused(wrong, chosen)
    for kept in (
        df.where("x > (select max(y) from plans_t)"),
        df.withColumn("more", F.explode(F.sequence(F.lit(1), F.col("y").cast("int") + 1))).drop("more"),
        df.groupBy("y").agg(F.max("id").alias("id")),
        df.orderBy("y").limit(10),
        df.mapInArrow(lambda batches: batches, "id long, x long, y double"),
    ):
        refused(kept, "follows from|is computed from", materialize=True)
    with pytest.raises(DataError, match=chosen):
        estimate_prior(df.where("y > 3"), label="y", epsilon=1.0, bounds=(0, 5), ledger=LEDGER)
    assert LEDGER.total == ldp.Budget(epsilon=0.0)


def test_rows_may_be_chosen_by_public_columns_and_by_whether_the_label_is_missing(spark, df):
    from pyspark.sql import functions as F  # noqa: N812

    infinite = float("inf")
    holes = df.withColumn("y", F.when(F.col("id") > 3, F.col("y")))
    text = df.select("id", F.col("y").cast("string").alias("t")).where("t is not null")
    for fine in (
        df.where("x > 3"),
        df.where("x > 3 or y is null"),
        df.where("y is not null and not isnan(y) and x > 3"),
        df.where((F.abs("y") < infinite) & ~F.col("y").isin(infinite, -infinite, float("nan"))),
        df.dropna(),
        df.dropna(subset=["y"]),
        df.where("y is not null").union(df.withColumn("id", df.id + 500).where("y is not null")),
        df.join(df.where("x > 3").select("id"), "id"),
        df.join(df.select("x").distinct(), "x"),
        text.withColumn("y", F.col("t").try_cast("double")).where("y is not null").drop("t"),
        spark.sql(
            "with a as (select id, y from plans_t where y is not null) select id, y from a where not isnan(y)"
        ),
    ):
        assert rows_of(fine) >= 496
    assert rows_of(holes.where("y is not null"), allow_related=["id"]) == 496
    # What a column that may be public is computed from may choose rows, too.
    sales = df.withColumn("sales", F.exp("y")).where("sales > 3")
    refused(sales, "'sales'")
    assert rows_of(sales, allow_related=["sales"]) < 500


def test_what_follows_from_where_rows_lie_is_refused(spark, df):
    from pyspark.sql import Window
    from pyspark.sql import functions as F  # noqa: N812

    place = "where rows lie, as the labels' bytes decide"
    for column in (
        F.monotonically_increasing_id(),
        F.spark_partition_id(),
        F.rand(7),
        F.input_file_block_start(),
        F.col("_metadata.file_size"),
        F.row_number().over(Window.orderBy("x")),
        F.first("x").over(Window.partitionBy("x")),
    ):
        refused(df.withColumn("z", column), f"'z' is computed from {place}", materialize=True)
    grouped = df.groupBy("id").agg(F.sum("y").alias("y"), F.sum("x").alias("x"))
    refused(grouped, f"'x' is computed from {place}", materialize=True)
    assert rows_of(grouped.drop("x"), materialize=True) == 500
    fresh = df.withColumn("id", F.monotonically_increasing_id())
    refused(fresh, f"'id' is computed from {place}", materialize=True)
    assert rows_of(fresh, materialize=True, allow_related=["id"]) == 500
    for frame in (df.limit(400), df.sample(0.5, 1), df.dropDuplicates(["x"]), df.where(F.rand(1) > 0.5)):
        refused(frame, "which rows there are follows from", materialize=True)


def test_rows_may_lie_where_their_labels_put_them_and_are_put_elsewhere(spark, df, tmp_path):
    from pyspark.sql import functions as F  # noqa: N812

    def written(frame):
        return randomize(frame, "y", MECHANISM, id="id", random_state=3).frame.select("id", "x", "y").toArrow()

    expected = written(df)
    assert expected["id"].to_pylist() == list(range(500))
    for frame in (df.orderBy("y"), df.repartitionByRange(4, "y"), df.repartition(3, "y"), df.repartition(3)):
        assert written(frame) == expected
    rounded = df.withColumn("y", F.round("y"))
    rounded.write.partitionBy("y").parquet(str(tmp_path / "by"))  # in folders named by the label
    assert written(spark.read.parquet(str(tmp_path / "by"))) == written(rounded)


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
    before = persistent(spark)
    assert estimate_prior(changing, materialize=True, **ask).bounds == (0.0, 5.0)
    assert persistent(spark) <= before
    kept = stable_frame(changing, True)
    assert len(persistent(spark) - before) == 1  # what would be left behind
    kept.drop()
    assert persistent(spark) <= before
    holes = df.withColumn("y", F.when(df.x > 4, df.y))
    with pytest.raises(ldp.LabelError, match=r"^5 of 500 labels"):
        estimate_prior(holes, **ask)


def test_a_prior_that_is_estimated_again_without_a_ledger_warns(spark, df):
    from pyspark.sql import functions as F  # noqa: N812

    again, ask = df.select("id", F.col("y")), {"label": "y", "epsilon": 1.0, "bounds": (0, 5)}
    estimate_prior(again, **ask)
    with pytest.warns(ldp.errors.RepeatedReleaseWarning, match="released before"):
        estimate_prior(again, **ask)
