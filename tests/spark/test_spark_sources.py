"""Sources, options and joins by which a label could leave several times, or show itself by what is missing."""

from __future__ import annotations

import pytest
from pyspark.sql import Window
from pyspark.sql import functions as F  # noqa: N812
from pyspark.sql.datasource import DataSource, DataSourceReader

import labeldp as ldp
from labeldp.errors import DataError
from labeldp.spark import estimate_prior, fit_model, randomize
from labeldp.spark.plan_checks import refuse_related
from plan_cases import read_text

pytestmark = [
    pytest.mark.xdist_group("spark"),
    pytest.mark.filterwarnings("ignore::labeldp.InsecureRandomnessWarning"),
]

MECHANISM = ldp.TwoPoint(bounds=(0, 5), epsilon=1.0)
LEDGER = ldp.Ledger()


def refused(df, match, **change):
    with pytest.raises(DataError, match=match):
        randomize(df, "y", MECHANISM, id="id", ledger=LEDGER, **change)
    assert LEDGER.total == ldp.Budget(epsilon=0.0)


def related(df, match, allowed=(), label="y"):
    with pytest.raises(DataError, match=match):
        refuse_related(df, label, allowed)


def test_columns_that_spark_adds_to_a_source_are_known_whatever_their_names_are(spark, tmp_path):
    (tmp_path / "t.csv").write_text("id,y,_metadata\n1,5.25,3\n2,7.5,x\n")
    own = read_text(spark, str(tmp_path / "t.csv"), "id long, y double, _metadata string")
    refuse_related(own, "y")
    size = own.metadataColumn("_metadata").getField("file_size")
    related(own.withColumn("size", size), "'size' is computed from where rows lie")


def test_files_are_known_in_both_of_sparks_ways_of_reading(spark, text_file, tmp_path):
    other = "id long, a string, b string"
    broken = "id long, y double, z int, broken string"
    first = read_text(spark, text_file)
    spark.conf.set("spark.sql.sources.useV1SourceList", "")
    try:
        second, reading = read_text(spark, text_file), read_text(spark, text_file, other).select("id", "a")
        record = read_text(spark, text_file, broken, columnNameOfCorruptRecord="broken")
        ints = read_text(spark, text_file, "id long, y int, z int")
        dropped = read_text(spark, text_file, mode="DROPMALFORMED")
    finally:
        spark.conf.unset("spark.sql.sources.useV1SourceList")
    refuse_related(second, "y")
    related(record, "'broken'")
    related(second.join(reading, "id"), "is computed from")
    related(first.join(reading, "id"), "is computed from")
    related(second.join(first.select("id", F.col("y").alias("copy")), "id"), "'copy'")
    related(ints.dropna(), "which rows there are")
    related(dropped, "DROPMALFORMED")


def test_a_file_is_the_same_behind_a_link(spark, text_file, tmp_path):
    (tmp_path / "link.csv").symlink_to(text_file)
    (tmp_path / "folder").symlink_to(text_file.rpartition("/")[0])
    for path in (tmp_path / "link.csv", tmp_path / "folder", tmp_path / "folder" / "t.csv"):
        copy = read_text(spark, str(path)).select("id", F.col("y").alias("copy"))
        related(read_text(spark, text_file).join(copy, "id"), "'copy'")


def test_sources_that_are_no_files_may_have_the_same_data(spark, tmp_path):
    class Sales(DataSource):
        @classmethod
        def name(cls):
            return "plans_sales"

        def schema(self):
            return "id long, x long, y double"

        def reader(self, schema):
            return DataSourceReader()

    spark.dataSource.register(Sales)
    sales, again = (spark.read.format("plans_sales").option("k", k).load() for k in ("1", "2"))
    refuse_related(sales, "y")
    related(sales.withColumn("z", F.col("y") * 2), "'z'")
    related(sales.join(again.select("id", F.col("x").alias("z")), "id"), "is computed from the same data")


def test_a_session_variable_may_have_been_set_from_labels(spark, df):
    spark.sql("declare or replace variable largest double default 0")
    spark.sql("set var largest = (select max(y) from plans_t)")
    related(df.withColumn("z", F.expr("largest")), "'z' is computed from a session variable")
    related(df.where("x > largest"), "which rows there are follows from a session variable")
    refuse_related(df.withColumn("z", F.expr("largest")), "y", ["z"])
    spark.sql("drop temporary variable largest")


def test_what_is_said_of_a_column_stays_behind(spark, df):
    noted = df.withMetadata("x", {"note": "12.5"}).withMetadata("y", {"note": "12.5"})
    schema = randomize(noted, "y", MECHANISM, id="id").frame.schema
    assert [field.metadata for field in schema] == [{}, {}, {}]


def test_no_message_suggests_a_name_that_may_be_a_label(spark, tmp_path):
    (tmp_path / "t.csv").write_text("id,-5.25,amount\n2,7.5,8\n")  # the first row has become names
    df = spark.read.csv(str(tmp_path / "t.csv"), header=True)
    for name in ("-5.2", "5.25", "_5.25"):
        with pytest.raises(ldp.ParameterError, match="there is no column") as told:
            randomize(df, name, MECHANISM, id="id")
        assert "-5.25" not in str(told.value)
    with pytest.raises(ldp.ParameterError, match="is 'amount' meant"):
        randomize(df, "amonut", MECHANISM, id="id")


@pytest.mark.parametrize("name", ["66993", "66.993,50 €", "-6.6e4"])
def test_a_label_whose_name_reads_as_a_number_is_refused(spark, df, name):
    """Without a header, names are the values of the first row, and the name of the label is a label."""
    ledger = ldp.Ledger()
    with pytest.raises(ldp.ParameterError, match="reads as a number") as told:
        randomize(df.withColumnRenamed("y", name), name, MECHANISM, id="id", ledger=ledger)
    assert name not in str(told.value)
    assert ledger.charges == ()


def test_a_file_whose_reading_loses_numbers_tells_by_which_rows_are_missing(spark, df, text_file, tmp_path):
    (tmp_path / "t.json").write_text('{"id":1,"y":5}\n{"id":2,"y":3000000000}\n')
    json = str(tmp_path / "t.json")
    df.select("id", F.col("x").alias("y")).write.orc(str(tmp_path / "orc"))
    for kind in ("int", "tinyint", "float", "decimal(3, 1)"):
        schema = f"id long, y {kind}"
        for frame in (
            read_text(spark, text_file, schema + ", z int"),
            spark.read.json(json, schema=schema),
            spark.read.schema(schema).orc(str(tmp_path / "orc")),
        ):
            refuse_related(frame, "y")
            related(frame.dropna(subset=["y"]), "which rows there are")
            related(frame.where(F.col("y") < float("inf")), "which rows there are")
    refuse_related(spark.read.json(json, schema="id long, y double").dropna(), "y")
    refuse_related(df.select("id", F.col("x").alias("y")).dropna(subset=["y"]), "y")  # Parquet is read as it is
    related(spark.read.json(json, schema="id long, y double", mode="dropMalformed"), "DROPMALFORMED")
    for option in (
        {"mode": "DROPMALFORMED"},
        {"nullValue": "5"},
        {"nanValue": "-5.25"},
        {"positiveInf": "7.5"},
        {"negativeInf": "7.5"},
        {"comment": "-"},
        {"sep": "."},
        {"quote": "5"},
        {"maxCharsPerColumn": "4"},
    ):
        related(read_text(spark, text_file, **option), "the label's file is read with")
        text = read_text(spark, text_file, "id long, t string, z int", **option)
        related(text.select("id", F.col("t").cast("double").alias("y")), "the label's file is read with")
        public = read_text(spark, text_file, "id long, t string, z int", **option)
        refuse_related(public.join(df.select("id", "y"), "id"), "y", id="id")
    harmless = {"nullValue": "NA", "comment": "#", "nanValue": "nan", "sep": ",", "mode": "PERMISSIVE"}
    refuse_related(read_text(spark, text_file, **harmless).dropna(subset=["y"]), "y")


def test_a_label_that_may_be_in_several_rows_is_refused(spark, df, tmp_path):
    spark.range(1500).selectExpr("id item", "id % 500 order").write.parquet(str(tmp_path / "items"))
    items = spark.read.parquet(str(tmp_path / "items"))
    joined = items.join(df, F.col("order") == F.col("id"))
    named = joined.drop("id").withColumnRenamed("item", "id")
    items.createOrReplaceTempView("plans_items")
    several = "one label may be in several rows"
    queried = "select item, (select max(y) from plans_t where id = order) y from plans_items"
    for wrong in (
        named,
        joined.withColumn("id", F.concat_ws("-", "item", "id")),
        items.join(df, F.col("order") == F.col("id"), "left").drop("id").withColumnRenamed("item", "id"),
        df.crossJoin(spark.range(2).toDF("k")).withColumn("id", F.concat_ws("-", "id", "k")),
        df.union(df.withColumn("id", F.col("id") + 500)),
        df.withColumn("id", F.col("id") * 2).union(df.withColumn("id", F.col("id") * 2 + 1)),
        df.withColumn("y", F.avg("y").over(Window.partitionBy(F.lit(1)))),
        spark.sql(queried).withColumnRenamed("item", "id"),
        spark.sql("with a as (select * from plans_t) select id, y from a union all select id + 500, y from a"),
    ):
        refused(wrong, several, materialize=True)
        refused(wrong.select("id", "y").where("id is not null"), several, materialize=True)
    twice = df.withColumn("k", F.explode(F.array(F.lit(1), F.lit(2))))
    refused(
        twice.withColumn("id", F.concat_ws("-", "id", "k")), "is computed from where rows lie", materialize=True
    )
    for shared in (joined, df.union(df)):
        refused(shared, "share an id", materialize=True)
    with pytest.raises(DataError, match=several):
        fit_model(named, features=["x"], label="y", id="id", epsilon=1.0, bounds=(0, 5), ledger=LEDGER)
    with pytest.raises(DataError, match=several):
        estimate_prior(named, label="y", epsilon=1.0, bounds=(0, 5), ledger=LEDGER)
    assert LEDGER.total == ldp.Budget(epsilon=0.0)
    paid = randomize(named, "y", MECHANISM, id="id", rows_per_person=3)
    assert paid.terms.rows == 1500
    assert paid.cost == ldp.Budget(epsilon=3.0)


def test_what_is_public_may_be_joined_to_labels_if_the_id_is_of_the_labels_row(spark, df):
    features = spark.range(500).selectExpr("id", "id % 7 color")
    small = features.withColumn("id", F.col("id").cast("int"))
    for fine in (
        df.join(features, "id"),
        features.join(df, "id"),
        small.join(df, "id"),
        df.join(features, "id", "left"),
        features.join(df, "id", "left").dropna(),
        features.join(features.join(df, "id"), "id").select("id", "y"),
        df.join(features.select(F.col("id").alias("k"), "color"), F.col("k") == F.col("x")),
        df.join(features, "id", "left_semi").withColumn("id", F.concat(F.lit("a"), "id")),
        features.join(df, "id").groupBy("id").agg(F.sum("y").alias("y")),
    ):
        refuse_related(fine, "y", id="id")
    assert randomize(fine, "y", MECHANISM, id="id", materialize=True).terms.rows == 500
