"""What a plan shows: frames that change, columns and rows that carry labels along, messages that quote them."""

from __future__ import annotations

import pytest
from pyspark.sql import Window
from pyspark.sql import functions as F  # noqa: N812

import labeldp as ldp
from labeldp.errors import DataError
from labeldp.spark import estimate_prior, fit_model, privatize, randomize
from labeldp.spark.frame_checks import stable_frame
from labeldp.spark.plan_checks import refuse_related
from plan_cases import read_text

pytestmark = [
    pytest.mark.xdist_group("spark"),
    pytest.mark.filterwarnings("ignore::labeldp.InsecureRandomnessWarning"),
]

MECHANISM = ldp.TwoPoint(bounds=(0, 5), epsilon=1.0)
PRIOR = {"label": "y", "epsilon": 1.0, "bounds": (0, 5)}
INFINITE = float("inf")
CHOSEN = "which rows there are follows from the same data as the label"
PLACE = "where rows lie, as the labels' bytes decide"


def refuse(df, match, allowed=()):
    with pytest.raises(DataError, match=match):
        refuse_related(df, "y", allowed, id="id")


def refuse_unstable(df, match):
    with pytest.raises(DataError, match=f"may not be the same when Spark computes it again .*({match})"):
        stable_frame(df, None)


def test_every_way_out_checks_the_plan_and_refuses_before_the_charge(spark, df):
    ledger = ldp.Ledger()
    ask = {**PRIOR, "ledger": ledger}
    ids = df.withColumn("id", (F.col("y") * 1e15).cast("long"))
    for match, call in {
        "which rows": lambda: randomize(df.where("y > 3"), "y", MECHANISM, id="id", ledger=ledger),
        "same data": lambda: privatize(df.withColumn("z", df.y * 2), id="id", **ask),
        "follows from": lambda: estimate_prior(df.where("y > 3"), **ask),
        "'id'": lambda: fit_model(ids, features=["x"], id="id", **ask),
        "may not be the same": lambda: estimate_prior(df.withColumn("y", F.rand()), **ask),
        "deterministic": lambda: fit_model(df.withColumn("y", F.rand()), features=["x"], id="id", **ask),
        "Aggregate": lambda: privatize(df.groupBy("id").agg(F.sum("y").alias("y")), id="id", **ask),
    }.items():
        with pytest.raises(DataError, match=match):
            call()
    assert ledger.total == ldp.Budget(epsilon=0.0)


# ---- frames that Spark may compute differently -----------------------------------------------------------


@pytest.mark.parametrize(
    ("query", "reason"),
    [
        ("select concat(current_timestamp(), id) id, y from plans_t", "depends on the time"),
        ("select id, least(5, unix_timestamp() % 7 + y) y from plans_t", "depends on the time"),
        ("select id, y, now() seen from plans_t", "depends on the time"),
        ("select id, y, current_user() who from plans_t", "depends on the time"),
        ("select id, y, (select x from plans_t limit 1) z from plans_t", "Limit"),
        ("select id, y / (select sum(y) from plans_t) y from plans_t", "Aggregate"),
        ("select id, y + (select rand()) y from plans_t", "not deterministic"),
        ("select id, y from (select id, x, rand() y from plans_t) where x > 5", "not deterministic"),
        ("select * from plans_t limit 100", "Limit"),
        ("select * from plans_t tablesample (50 percent) repeatable (1)", "Sample"),
        ("select id, sum(y) y from plans_t group by id", "Aggregate"),
    ],
)
def test_what_may_be_different_the_next_time_is_refused_in_subqueries_too(spark, df, query, reason):
    refuse_unstable(spark.sql(query), reason)


def test_functions_and_rdds_are_refused_and_files_joins_and_unions_accepted(spark, df):
    refuse_unstable(df.dropDuplicates(["x"]), "Deduplicate")
    refuse_unstable(df.mapInArrow(lambda batches: batches, "id long, x long, y double"), "MapInArrow")
    refuse_unstable(df.withColumn("y", F.udf(lambda: 1.0, "double")()), "a function that Spark does not know")
    refuse_unstable(spark.createDataFrame(df.rdd), "an RDD")
    fine = df.where("x >= 9").join(df.select("id"), "id").union(df.where("x < 9")).distinct().orderBy("id")
    assert stable_frame(fine, None).frame is fine


def persistent(spark):
    """Return the ids of what Spark keeps, which may become fewer at any time."""
    return set(spark.sparkContext._jsc.getPersistentRDDs())


def test_a_checkpoint_is_dropped_once_a_prior_is_estimated(spark, df):
    random = df.withColumn("y", F.rand())
    before = persistent(spark)
    assert estimate_prior(random, materialize=True, **PRIOR).bounds == (0.0, 5.0)
    assert persistent(spark) <= before
    checkpoint = stable_frame(random, True)
    assert len(persistent(spark) - before) == 1  # what would be left behind
    checkpoint.drop()
    assert persistent(spark) <= before


# ---- columns that carry the label along -------------------------------------------------------------------


def test_copies_of_the_label_are_refused_wherever_they_come_from(spark, df):
    copy = df.select("id", F.col("y").alias("copy"))
    again = spark.read.parquet(*df.inputFiles()).select("id", F.col("y").alias("copy"))
    sales = df.withColumn("copy", F.col("y")).withColumn("y", F.log1p("copy"))
    for related in (
        sales,
        sales.where("x > 1").alias("a"),
        sales.union(sales),
        sales.withColumn("y", F.col("y") * 2),
        df.join(copy, "id"),
        df.join(again, "id"),
        df.withColumn("copy", F.max("y").over(Window.partitionBy("id"))),
        df.withColumn("copy", F.explode(F.array("y"))),
        df.withColumn("copy", F.row_number().over(Window.orderBy("y"))),
        spark.sql("select id, y, (select max(y) from plans_t) copy from plans_t"),
        spark.sql("with a as (select id, y from plans_t) select a.*, b.y copy from a join a b on a.id = b.id"),
    ):
        refuse(related, "'copy' is computed from the same data as the label")
    # Related only through an id, or through a column that the label is not computed from: not refused.
    refuse_related(sales.drop("copy"), "y", id="id")
    refuse_related(df.join(df.select("id", (F.col("x") * 2).alias("z")), "id"), "y", id="id")
    refuse_related(
        spark.sql("with a as (select * from plans_t) select id, y, x + 1 x from a where x > 3"), "y", id="id"
    )


def test_a_column_of_corrupt_records_is_related_to_the_label(spark, text_file, tmp_path):
    schema = "id long, y double, z int"
    broken, option = f"{schema}, broken string", {"columnNameOfCorruptRecord": "broken"}
    refuse_related(read_text(spark, text_file), "y", id="id")
    refuse_related(read_text(spark, text_file, broken), "y", id="id")
    refuse(read_text(spark, text_file, f"{schema}, _corrupt_record string"), "'_corrupt_record'")
    refuse(read_text(spark, text_file, broken, **option), "'broken'")
    (tmp_path / "t.json").write_text('{"id":1,"y":-5.25,"z":3}\n{"id":2,"y":7.5,"z":"x"}\n')
    json = str(tmp_path / "t.json")
    refuse(spark.read.json(json, schema=f"{schema}, _corrupt_record string"), "'_corrupt_record'")
    refuse(spark.read.json(json, schema=broken, **option), "'broken'")
    spark.conf.set("spark.sql.columnNameOfCorruptRecord", "broken")
    try:
        refuse(read_text(spark, text_file, broken), "'broken'")
    finally:
        spark.conf.unset("spark.sql.columnNameOfCorruptRecord")


def test_a_column_in_allow_related_allows_no_other(spark, df):
    big = df.withColumn("big", F.col("y") > 3)
    line = df.withColumn("line", F.monotonically_increasing_id())
    sales = df.withColumnRenamed("y", "sales").withColumn("y", F.log("sales"))
    refuse_related(big, "y", ["big"], id="id")
    refuse_related(big.withColumn("small", ~F.col("big")).where("big"), "y", ["big"], id="id")
    refuse_related(big.union(big), "y", ["big"], id="id")
    refuse_related(line, "y", ["line"], id="id")
    refuse_related(sales.where("sales > 3"), "y", ["sales"], id="id")
    refuse(big.withColumn("copy", F.col("y")), "'copy'", ["big"])
    refuse(big.withColumn("log", F.log("y")), "'log'", ["big"])
    refuse(big.withColumn("copy", F.col("y")), "'copy'", ["big", "y"])
    refuse(big.where("y > 3"), "which rows there are", ["big"])
    refuse(big.join(df.select("id", F.col("y").alias("copy")), "id"), "'copy'", ["big"])
    refuse(line.withColumn("other", F.monotonically_increasing_id() * 2), "'other'", ["line"])
    refuse(line.limit(2), "which rows there are", ["line"])
    refuse(sales.join(df.select("id", F.col("y").alias("second")), "id"), "'second'", ["sales"])
    mapped = df.mapInArrow(lambda batches: batches, "id long, x long, y double")
    refuse(mapped, "which rows there are", ["id", "x"])  # no column vouches for a function


def test_another_reading_of_the_same_file_is_related_to_the_label(spark, text_file):
    same = read_text(spark, text_file)
    refuse_related(same.join(read_text(spark, text_file).select("id", F.col("z").alias("z2")), "id"), "y", id="id")
    for other in (
        read_text(spark, text_file, "id long, a string, b string"),
        read_text(spark, text_file, "id string, y string, z string", sep=";").toDF("a", "b", "c"),
        spark.read.text(text_file),
        spark.read.text(text_file.rpartition("/")[0]),
    ):
        column = other.select(F.col(other.columns[0]).alias("other"))
        refuse(same.select("y").join(column, F.lit(True)), "'other'")
        refuse(column.join(same.select("y"), F.lit(True)), "'other'")


def test_sources_that_a_third_one_covers_are_the_same_source(spark, df, tmp_path):
    for part in ("a", "b"):
        df.limit(3).write.parquet(str(tmp_path / part))
    first, second = (spark.read.parquet(str(tmp_path / part)) for part in ("a", "b"))
    both = spark.read.option("recursiveFileLookup", "true").parquet(str(tmp_path))
    joined = first.select("id", "x").join(second.select("id", "y"), "id")
    refuse_related(joined, "y", id="id")
    refuse(joined.join(both.select("id", F.col("y").alias("copy")), "id"), "is computed from")


# ---- rows chosen by the label -----------------------------------------------------------------------------


def test_rows_that_are_chosen_or_merged_by_the_label_are_refused(spark, df):
    flag = df.withColumn("flag", F.when(F.col("y") > 3, 1))
    for chosen in (
        df.where("y > 3"),
        df.where("y > 3 and x > 3"),
        df.where("y is null or y > 3"),
        df.where(F.when(F.col("y") > 3, 1).isNotNull()),
        df.where(F.col("y").try_cast("tinyint").isNotNull()),
        flag.where("flag is not null").drop("flag"),
        flag.dropna().drop("flag"),
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
        refuse(chosen, CHOSEN)
    for chosen in (
        df.where("x > (select max(y) from plans_t)"),
        df.withColumn("more", F.explode(F.sequence(F.lit(1), F.col("y").cast("int") + 1))).drop("more"),
        df.groupBy("y").agg(F.max("id").alias("id")),
        df.orderBy("y").limit(10),
        df.mapInArrow(lambda batches: batches, "id long, x long, y double"),
    ):
        refuse(chosen, "follows from|is computed from")


def test_rows_may_be_chosen_by_public_columns_and_by_whether_the_label_is_missing(spark, df, text_file):
    text = df.select("id", F.col("y").cast("string").alias("t")).where("t is not null")
    file = read_text(spark, text_file, "id long, t string, z int").withColumn("y", F.col("t").cast("double"))
    for fine in (
        df.where("x > 3"),
        df.where("x > 3 or y is null"),
        df.where("y is not null and not isnan(y) and x > 3"),
        df.where((F.abs("y") < INFINITE) & ~F.col("y").isin(INFINITE, -INFINITE, float("nan"))),
        df.dropna(),
        df.dropna(subset=["y"]),
        df.withColumn("y", F.col("y").cast("int")).dropna(),
        df.where("x < 9 and y is not null").union(df.where("x >= 9 and y is not null")),
        df.join(df.where("x > 3").select("id"), "id"),
        df.join(df.select("x").distinct(), "x"),
        text.withColumn("y", F.col("t").try_cast("double")).where("y is not null").drop("t"),
        file.where("t is not null and not isnan(y)").where(F.abs("y") < INFINITE).drop("t"),
        spark.sql(
            "with a as (select id, y from plans_t where y is not null) select id, y from a where not isnan(y)"
        ),
    ):
        refuse_related(fine, "y", id="id")


def test_a_computed_label_shows_itself_by_where_it_is_missing(spark, df, text_file):
    text = read_text(spark, text_file, "id long, t string, z int").withColumn("y", F.col("t").cast("double"))
    computed = ["nullif(y, 3.5)", "if(y > 3, y, null)", "log(y)", "sqrt(y)"]
    computed += ["try_cast(y as tinyint)", "try_cast(y as decimal(3, 2))"]
    gaps = df.withColumn("y", F.nullif("y", F.lit(3.5)))
    for chosen in (
        text.where("t > '-Infinity'").drop("t"),
        text.where("t < 'NaN'").drop("t"),
        text.where("t in ('NaN', 'Infinity')").drop("t"),
        df.where(F.col("y").cast("float") < INFINITE),
        df.withColumn("y", F.col("y").cast("float")).where(F.col("y") < INFINITE),
        *(df.withColumn("y", F.expr(formula)).dropna(subset=["y"]) for formula in computed),
        df.union(gaps).dropna(),
        gaps.union(df).dropna(),
    ):
        refuse(chosen, CHOSEN)


# ---- where rows lie ---------------------------------------------------------------------------------------


def test_what_follows_from_where_rows_lie_is_refused(spark, df):
    for column in (
        F.monotonically_increasing_id(),
        F.spark_partition_id(),
        F.rand(7),
        F.input_file_block_start(),
        F.col("_metadata.file_size"),
        F.row_number().over(Window.orderBy("x")),
        F.first("x").over(Window.partitionBy("x")),
    ):
        refuse(df.withColumn("z", column), f"'z' is computed from {PLACE}")
    grouped = df.groupBy("id").agg(F.sum("y").alias("y"), F.sum("x").alias("x"))
    refuse(grouped, f"'x' is computed from {PLACE}")
    refuse_related(grouped.drop("x"), "y", id="id")
    refuse(df.withColumn("id", F.monotonically_increasing_id()), f"'id' is computed from {PLACE}")
    for frame in (df.limit(400), df.sample(0.5, 1), df.dropDuplicates(["x"]), df.where(F.rand(1) > 0.5)):
        refuse(frame, "which rows there are follows from")


def test_rows_may_lie_where_their_labels_put_them_and_are_put_elsewhere(spark, df, tmp_path):
    def output(frame):
        return randomize(frame, "y", MECHANISM, id="id", random_state=3).frame.select("id", "x", "y").toArrow()

    expected = output(df)
    assert expected["id"].to_pylist() == list(range(500))
    for frame in (df.orderBy("y"), df.repartitionByRange(4, "y"), df.repartition(3, "y"), df.repartition(3)):
        assert output(frame) == expected
    rounded = df.withColumn("y", F.round("y"))
    rounded.write.partitionBy("y").parquet(str(tmp_path / "by"))  # in folders named by the label
    assert output(spark.read.parquet(str(tmp_path / "by"))) == output(rounded)


def test_no_message_quotes_a_label(spark, df):
    text = df.selectExpr("id", "concat(cast(y as string), 'x') y")
    cast = text.withColumn("y", text.y.cast("double"))
    with pytest.raises(Exception, match=r"The value '\d\.\d+x'"):
        cast.collect()
    for call in (
        lambda: randomize(cast, "y", MECHANISM, id="id"),
        lambda: randomize(cast, "y", MECHANISM, id="id", materialize=True),
        lambda: estimate_prior(cast, **PRIOR),
    ):
        with pytest.raises(DataError, match=r"cannot compute these rows \(CAST_INVALID_INPUT") as info:
            call()
        assert "x'" not in str(info.value)
        assert info.value.__cause__ is info.value.__context__ is None  # Spark's own message does not come along
