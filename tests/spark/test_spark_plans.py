"""What a plan shows: frames that change, columns and rows that carry labels along, messages that quote them."""

from __future__ import annotations

import numpy as np
import pytest

import labeldp as ldp
from labeldp.errors import DataError
from labeldp.spark import estimate_prior, fit_model, privatize, randomize
from labeldp.spark.related import refuse_related
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
    with pytest.raises(DataError, match=why):
        stable_frame(spark.sql(hidden), None)


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


@pytest.fixture(scope="module")
def text_file(tmp_path_factory):
    """A text file: id, y, z, with a z that is no number."""
    path = tmp_path_factory.mktemp("text") / "t.csv"
    path.write_text("id,y,z\n1,-5.25,3\n2,7.5,x\n3,2.125,4\n")
    return str(path)


def read_text(spark, path, schema="id long, y double, z int", **options):
    return spark.read.csv(path, schema=schema, **{"header": True, **options})


def related(df, match, allowed=(), label="y"):
    with pytest.raises(DataError, match=match):
        refuse_related(df, label, allowed)


def test_a_column_of_records_that_cannot_be_read_is_related_to_the_label(spark, text_file, tmp_path):
    schema = "id long, y double, z int"
    refuse_related(read_text(spark, text_file), "y")
    related(read_text(spark, text_file, f"{schema}, _corrupt_record string"), "'_corrupt_record'")
    broken = f"{schema}, broken string"
    refuse_related(read_text(spark, text_file, broken), "y")
    option = {"columnNameOfCorruptRecord": "broken"}
    related(read_text(spark, text_file, broken, **option), "'broken'")
    (tmp_path / "t.json").write_text('{"id":1,"y":-5.25,"z":3}\n{"id":2,"y":7.5,"z":"x"}\n')
    json = str(tmp_path / "t.json")
    related(spark.read.json(json, schema=f"{schema}, _corrupt_record string"), "'_corrupt_record'")
    related(spark.read.json(json, schema=broken, **option), "'broken'")
    spark.conf.set("spark.sql.columnNameOfCorruptRecord", "broken")
    try:
        related(read_text(spark, text_file, broken), "'broken'")
    finally:
        spark.conf.unset("spark.sql.columnNameOfCorruptRecord")


def test_columns_that_spark_adds_to_a_source_are_known_whatever_their_names_are(spark, tmp_path):
    (tmp_path / "t.csv").write_text("id,y,_metadata\n1,5.25,3\n2,7.5,x\n")
    own = read_text(spark, str(tmp_path / "t.csv"), "id long, y double, _metadata string")
    refuse_related(own, "y")
    size = own.metadataColumn("_metadata").getField("file_size")
    related(own.withColumn("size", size), "'size' is computed from where rows lie")


def test_files_are_known_in_both_of_sparks_ways_of_reading(spark, text_file, tmp_path):
    from pyspark.sql import functions as F  # noqa: N812

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
    from pyspark.sql import functions as F  # noqa: N812

    (tmp_path / "link.csv").symlink_to(text_file)
    (tmp_path / "folder").symlink_to(text_file.rpartition("/")[0])
    for path in (tmp_path / "link.csv", tmp_path / "folder", tmp_path / "folder" / "t.csv"):
        copy = read_text(spark, str(path)).select("id", F.col("y").alias("copy"))
        related(read_text(spark, text_file).join(copy, "id"), "'copy'")


def test_sources_that_are_no_files_may_have_the_same_data(spark, tmp_path):
    from pyspark.sql import functions as F  # noqa: N812
    from pyspark.sql.datasource import DataSource, DataSourceReader

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
    from pyspark.sql import functions as F  # noqa: N812

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


def test_a_column_that_is_vouched_for_vouches_for_no_other(spark, df):
    from pyspark.sql import functions as F  # noqa: N812

    big = df.withColumn("big", F.col("y") > 3)
    refuse_related(big, "y", ["big"])
    refuse_related(big.withColumn("small", ~F.col("big")).where("big"), "y", ["big"])
    refuse_related(big.union(big), "y", ["big"], id="id")  # rows with the same id are refused later
    related(big.withColumn("copy", F.col("y")), "'copy'", ["big"])
    related(big.withColumn("log", F.log("y")), "'log'", ["big"])
    related(big.withColumn("copy", F.col("y")), "'copy'", ["big", "y"])
    related(big.where("y > 3"), "which rows there are", ["big"])
    related(big.join(df.select("id", F.col("y").alias("copy")), "id"), "'copy'", ["big"])
    line = df.withColumn("line", F.monotonically_increasing_id())
    refuse_related(line, "y", ["line"])
    related(line.withColumn("other", F.monotonically_increasing_id() * 2), "'other'", ["line"])
    related(line.limit(2), "which rows there are", ["line"])
    whole = df.withColumnRenamed("y", "sales").withColumn("y", F.log("sales"))
    refuse_related(whole, "y", ["sales"])
    again = df.select("id", F.col("y").alias("second"))
    related(whole.join(again, "id"), "'second'", ["sales"])


def test_another_reading_of_the_same_file_is_related_to_the_label(spark, text_file):
    from pyspark.sql import functions as F  # noqa: N812

    same = read_text(spark, text_file)
    refuse_related(same.join(read_text(spark, text_file).select("id", F.col("z").alias("z2")), "id"), "y", id="id")
    for other in (
        read_text(spark, text_file, "id long, a string, b string"),
        read_text(spark, text_file, "id string, y string, z string", sep=";").toDF("a", "b", "c"),
        spark.read.text(text_file),
        spark.read.text(text_file.rpartition("/")[0]),
    ):
        shown = other.columns[0]
        pair = same.select("y").join(other.select(F.col(shown).alias("other")), F.lit(True))
        related(pair, "'other'")
        related(other.select(F.col(shown).alias("other")).join(same.select("y"), F.lit(True)), "'other'")


def test_sources_that_a_third_one_covers_are_the_same_source(spark, df, tmp_path):
    from pyspark.sql import functions as F  # noqa: N812

    for part in ("a", "b"):
        df.limit(3).write.parquet(str(tmp_path / part))
    first, second = (spark.read.parquet(str(tmp_path / part)) for part in ("a", "b"))
    both = spark.read.option("recursiveFileLookup", "true").parquet(str(tmp_path))
    joined = first.select("id", "x").join(second.select("id", "y"), "id")
    refuse_related(joined, "y", id="id")
    related(joined.join(both.select("id", F.col("y").alias("copy")), "id"), "is computed from")


def test_a_label_that_is_computed_tells_by_where_it_is_missing(spark, df, text_file):
    from pyspark.sql import functions as F  # noqa: N812

    chosen = "which rows there are follows from the same data as the label"
    infinite = float("inf")
    text = read_text(spark, text_file, "id long, t string, z int").withColumn("y", F.col("t").cast("double"))
    refuse_related(text.where("t is not null and not isnan(y)").where(F.abs("y") < infinite).drop("t"), "y")
    refuse_related(df.withColumn("y", F.col("y").cast("int")).dropna(), "y")
    for wrong in (
        text.where("t > '-Infinity'").drop("t"),
        text.where("t < 'NaN'").drop("t"),
        text.where("t in ('NaN', 'Infinity')").drop("t"),
        df.where(F.col("y").cast("float") < infinite),
        df.withColumn("y", F.col("y").cast("float")).where(F.col("y") < infinite),
        *(
            df.withColumn("y", F.expr(made)).dropna(subset=["y"])
            for made in (
                "nullif(y, 3.5)",
                "if(y > 3, y, null)",
                "log(y)",
                "sqrt(y)",
                "try_cast(y as tinyint)",
                "try_cast(y as decimal(3, 2))",
            )
        ),
        df.union(df.withColumn("y", F.nullif("y", F.lit(3.5)))).dropna(),
        df.withColumn("y", F.nullif("y", F.lit(3.5))).union(df).dropna(),
    ):
        related(wrong, chosen)


def test_a_file_whose_reading_loses_numbers_tells_by_which_rows_are_missing(spark, df, text_file, tmp_path):
    from pyspark.sql import functions as F  # noqa: N812

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
    text = df.select("id", F.col("y").cast("string").alias("t")).where("t is not null")
    for fine in (
        df.where("x > 3"),
        df.where("x > 3 or y is null"),
        df.where("y is not null and not isnan(y) and x > 3"),
        df.where((F.abs("y") < infinite) & ~F.col("y").isin(infinite, -infinite, float("nan"))),
        df.dropna(),
        df.dropna(subset=["y"]),
        df.where("y is not null and x < 100").union(df.where("y is not null and x >= 100")),
        df.join(df.where("x > 3").select("id"), "id"),
        df.join(df.select("x").distinct(), "x"),
        text.withColumn("y", F.col("t").try_cast("double")).where("y is not null").drop("t"),
        spark.sql(
            "with a as (select id, y from plans_t where y is not null) select id, y from a where not isnan(y)"
        ),
    ):
        assert rows_of(fine) >= 496
    # A column that may be public may choose rows, too.
    sales = df.withColumn("sales", F.exp("y")).where("sales > 3")
    refused(sales, "'sales'")
    assert rows_of(sales, allow_related=["sales"]) < 500


def test_a_label_that_may_be_in_several_rows_is_refused(spark, df, tmp_path):
    from pyspark.sql import Window
    from pyspark.sql import functions as F  # noqa: N812

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
    from pyspark.sql import functions as F  # noqa: N812

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
        assert rows_of(fine, materialize=True) == 500


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
