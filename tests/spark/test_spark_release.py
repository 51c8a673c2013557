"""A release on Spark: the same numbers as on one machine, refused where it must be, and paid for last."""

from __future__ import annotations

import datetime
import decimal
import doctest
import inspect
from fractions import Fraction

import numpy as np
import pyarrow as pa
import pytest
from pyspark.sql import functions as F  # noqa: N812

import labeldp as ldp
import labeldp.spark.dataframe_release as steps
from exact.word_cases import as_ids
from helpers import paid_access, seeded
from labeldp.app.card_check import verify_files
from labeldp.exact.row_words import ReleaseKey, RowWords, card_checksum
from labeldp.release.plan import Request
from labeldp.release.queries import Cells
from labeldp.release.stream import LabelStream
from labeldp.spark import frame_checks
from labeldp.spark.cluster_access import ClusterAccess

estimate_prior, privatize = ldp.spark.estimate_prior, ldp.spark.privatize
DataError, LabelError, ParameterError = ldp.errors.DataError, ldp.errors.LabelError, ldp.errors.ParameterError

pytestmark = pytest.mark.filterwarnings("ignore::labeldp.InsecureRandomnessWarning")

BOUNDS = (0.0, 5.0)
ROWS = 3000
LABELS = np.random.default_rng(1).gamma(2.0, 0.8, ROWS)
LAPLACE = ldp.Laplace(bounds=BOUNDS, epsilon=1.0)
ASK = {"label": "y", "id": "id", "epsilon": 1.0, "bounds": BOUNDS}


def randomize(df, label, mechanism, **how):
    """Release with a mechanism that there is already, which needs no prior."""
    bounds, epsilon = mechanism.domain, mechanism.epsilon
    return privatize(df, label=label, mechanism=mechanism, bounds=bounds, epsilon=epsilon, **how)


def ids_of(kind):
    numbers = np.arange(ROWS) * 7 - 5000
    if kind == "integer":
        return numbers.tolist()
    text = [f"person {n:x}" * (1 + n % 4) for n in numbers.tolist()]
    return text if kind == "text" else [one.encode() + b"\0" for one in text]


def frame(spark, kind="integer", partitions=3, labels=LABELS, **more):
    table = pa.table({"id": ids_of(kind)[: len(labels)], "x": np.arange(len(labels)), "y": labels, **more})
    return spark.createDataFrame(table).repartition(partitions, "id")


def by_id(release, name="y"):
    table = release.frame.select("*").toArrow()  # a plan of its own: Spark computes it anew
    values = dict(zip(table["id"].to_pylist(), table[name].to_pylist(), strict=True))
    assert len(values) == table.num_rows
    return values


def words(seed, mechanism, ids):
    secret = ReleaseKey(seed).secret(card=card_checksum(mechanism.with_origin(None)), column="y")
    return RowWords(secret, as_ids(ids))


@pytest.mark.parametrize(
    ("kind", "mechanism", "partitions"), [("integer", "auto", 1), ("text", "laplace", 3), ("binary", "rp", 30)]
)
def test_the_same_numbers_as_on_one_machine_in_any_partitions(spark, kind, mechanism, partitions):
    ask = {"epsilon": 1.0, "bounds": BOUNDS, "mechanism": mechanism}
    df = frame(spark, kind, partitions)
    release = privatize(df, label="y", id="id", purpose="values", random_state=5, **ask)
    mechanism = LabelStream(lambda: [LABELS], Request(**ask), random_state=5).mechanism
    assert release.mechanism == mechanism
    expected = mechanism.randomize(LABELS, random_state=words(5, mechanism, ids_of(kind)))
    assert by_id(release) == dict(zip(ids_of(kind), expected.tolist(), strict=True))
    unbiased = by_id(privatize(df, label="y", id="id", random_state=5, **ask))
    assert unbiased == dict(zip(ids_of(kind), mechanism.debias(expected).tolist(), strict=True))
    assert not release.secure


def test_an_estimated_prior_is_that_of_one_machine(spark):
    ledger = ldp.Ledger()
    prior = estimate_prior(frame(spark), label="y", epsilon=0.5, bounds=BOUNDS, ledger=ledger, random_state=3)
    request = Request(epsilon=0.5, bounds=BOUNDS)
    assert prior == request.estimate_prior(
        paid_access(LABELS, Fraction(1, 2), seeded(3), purpose="prior"), Fraction(1, 2)
    )
    assert ledger.total == ldp.Budget(epsilon=0.5)


def test_a_release_is_paid_for_and_has_a_card_and_nothing_of_the_label(spark):
    ledger = ldp.Ledger(limit=ldp.Budget(epsilon=1.5))
    df = frame(spark)
    release = privatize(df, ledger=ledger, **ASK)
    assert release.frame.columns == ["id", "x", "y"]
    content = ldp.accounts.Card.parse(release.to_card()).content
    assert (content["rows"], content["release"], content["secure"]) == (ROWS, release.name, True)
    assert release.cost == ledger.total == ldp.Budget(epsilon=1.0)
    assert release.ledger is ledger
    again = by_id(release)
    assert by_id(release) == again  # an action repeated
    raw = dict(zip(ids_of("integer"), LABELS.tolist(), strict=True))
    assert sum(again[one] == raw[one] for one in raw) < 5
    with pytest.raises(ldp.BudgetError):
        privatize(df, ledger=ledger, **ASK)
    assert ledger.total == ldp.Budget(epsilon=1.0)


def test_what_was_written_can_be_verified_against_its_card(spark, tmp_path):
    with privatize(frame(spark), **ASK) as release:
        release.frame.write.parquet(str(tmp_path / "private"))
    frame(spark, labels=LABELS[:50]).write.parquet(str(tmp_path / "other"))
    for name, holds in {"private": True, "other": False}.items():
        checks = verify_files(release.to_card(), file=tmp_path / name).checks
        assert {check.name: check.holds for check in checks}["rows"] is holds


def test_two_releases_share_no_noise_and_a_broken_one_does(spark, monkeypatch):
    df = frame(spark, partitions=1)

    def equal():
        one, other = (by_id(randomize(df, "y", LAPLACE, id="id")) for _ in range(2))
        return sum(one[k] == other[k] for k in one)

    # Two independent draws agree with probability below 0.01: of 3000 more than 100 with probability below 1e-9.
    assert equal() < 100
    monkeypatch.setattr(steps, "ReleaseKey", lambda seed: ReleaseKey(1))  # a key accepted twice
    assert equal() == ROWS


def test_fresh_noise_for_each_action_would_be_noticed(spark, monkeypatch):
    def fresh(mechanism, sealed, *, debiased):
        def run(arrays):
            import pyarrow as pa

            for labels, _ in arrays:
                yield pa.array(mechanism.randomize(labels.to_numpy()))

        return run

    monkeypatch.setattr(steps, "releaser", fresh)
    broken = randomize(frame(spark, partitions=1), "y", LAPLACE, id="id")
    assert by_id(broken) != by_id(broken)


def test_a_closed_release_cannot_be_computed_any_more(spark):
    with privatize(frame(spark, partitions=1), mechanism="two-point", **ASK) as release:
        copy = release.frame.localCheckpoint()
    assert copy.count() == ROWS
    with pytest.raises(Exception, match="destroyed"):
        release.frame.toArrow()


def test_nothing_that_is_done_to_the_output_can_reach_back_to_the_raw_label(spark, monkeypatch, tmp_path):
    frame(spark).write.parquet(str(tmp_path / "p"))
    df = spark.read.parquet(str(tmp_path / "p"))
    mechanism = ldp.TwoPoint(bounds=BOUNDS, epsilon=1.0)
    reaching = [lambda f: f.where(df["y"] > 3), lambda f: f.orderBy(df["y"]), lambda f: f.select(df["y"])]
    for reach in (*reaching, lambda f: f.select("_metadata.file_name")):
        with pytest.raises(Exception, match=r"(?i)missing|resolve"):
            reach(randomize(df, "y", mechanism, id="id").frame).collect()
    # The twin, without its wall, filters private rows by their raw labels.
    monkeypatch.setattr("labeldp.spark.executor._wall", lambda frame: frame)
    monkeypatch.setattr("labeldp.spark.executor.spread_by_id", lambda frame, id, rows: frame)
    assert 0 < reaching[0](randomize(df, "y", mechanism, id="id").frame).count() < ROWS


def test_numbers_of_any_type_are_labels_and_other_columns_pass_untouched(spark):
    others = {
        "when": pa.array([datetime.datetime(2024, 1, 1 + n, tzinfo=datetime.UTC) for n in range(12)]),
        "dot.ted `name`": pa.array([None if n % 3 else f"ü{n}" for n in range(12)]),
    }
    amounts = pa.array([decimal.Decimal(n) / 4 for n in range(12)], pa.decimal128(9, 2))
    for kind in (pa.decimal128(9, 2), pa.float32(), pa.int64()):
        table = pa.table({"id": range(12), "y": amounts.cast(kind, safe=False), **others})
        safe = spark.createDataFrame(table.rename_columns([f"k{k}" for k in range(table.num_columns)]))
        df = safe.toDF(*table.column_names).coalesce(2)
        got = randomize(df, "y", LAPLACE, id="id", random_state=4).frame.toArrow().sort_by("id")
        numbers = table["y"].cast(pa.float64()).to_numpy()
        expected = LAPLACE.randomize(numbers, random_state=words(4, LAPLACE, range(12)))
        assert got["y"].to_pylist() == expected.tolist()
        assert got.drop_columns("y").to_pylist() == table.drop_columns("y").to_pylist()


# ---- refused, and nothing charged ---------------------------------------------------------------------

LEDGER = ldp.Ledger()


def refuse(df, error, option=None, **change):
    """Refuse a release before it is charged, and return the message."""
    with pytest.raises(error) as refused:
        privatize(df, **{**ASK, "ledger": LEDGER, **change})
    assert option is None or refused.value.option == option
    assert LEDGER.total == ldp.Budget(epsilon=0.0)
    return str(refused.value)


def test_wrong_parameters_are_refused_before_any_row_is_read(spark):
    df = frame(spark)
    for option, values in {
        "id": [None, "ids", "y"],
        "label": [None, "Y"],
        "random_state": [seeded(1)],
    }.items():
        for value in values:
            refuse(df, ParameterError, option, **{option: value})
    refuse(df, ParameterError, bounds=None)
    refuse(df, ParameterError, epsilon=0.0)
    refuse(df, ParameterError, "id", label="x", id="x")
    refuse(df, ParameterError, "id", id="y", label="x")
    collated = df.withColumn("id", F.expr("cast(id as string) collate UTF8_LCASE"))
    refuse(collated, ParameterError, "id")
    refuse({"y": [1.0]}, ParameterError)
    refuse(df.withColumn("y", F.col("y").cast("string")), LabelError)
    refuse(df.withColumn("y", F.col("y") > 1), LabelError)
    refuse(df.select("id", "y", F.lit(2).alias("Y")), DataError)
    refuse(df, ParameterError, "purpose", purpose="add")
    refuse(df, ParameterError, mechanism="rr-on-bins")


@pytest.mark.parametrize("column", ["array(x)", "parse_json('{}')"])
def test_a_public_column_that_is_not_flat_is_refused_by_its_name(spark, column):
    assert "'more'" in refuse(frame(spark).withColumn("more", F.expr(column)), DataError)


def checkpoints(spark):
    """Return the ids of what Spark keeps."""
    return set(spark.sparkContext._jsc.getPersistentRDDs())


def test_a_frame_is_computed_once_and_the_copy_is_deleted(spark, monkeypatch):
    df = frame(spark).withColumn("y", F.rand() * 5)
    before = checkpoints(spark)
    release = randomize(df, "y", LAPLACE, id="id")
    assert len(checkpoints(spark) - before) == 1
    assert by_id(release) == by_id(release)
    release.close()
    release.close()
    estimate_prior(df, label="y", epsilon=1.0, bounds=BOUNDS)
    assert checkpoints(spark) <= before
    for shared in (df.withColumn("id", F.lit(1)), df.withColumn("y", F.lit(None).cast("double"))):
        refuse(shared, ldp.LabelDPError)
    assert checkpoints(spark) <= before  # after an error, too
    monkeypatch.setattr(frame_checks, "is_stored", lambda df: True)
    broken = randomize(frame(spark).withColumn("y", random()), "y", LAPLACE, id="id")
    assert by_id(broken) != by_id(broken)  # what would happen: the same noise on another label


def random():
    """Return a column that is another one each time it is computed."""

    def draw():
        import os

        return os.urandom(1)[0] / 64

    return F.udf(draw, "double").asNondeterministic()()


def test_a_stored_table_is_read_where_it_is(spark, tmp_path):
    path = str(tmp_path / "t")
    frame(spark).write.parquet(path)
    before = checkpoints(spark)
    stored = spark.read.parquet(path)
    stored.createOrReplaceTempView("stored_t")
    for df, copies in (
        (stored, 0),
        (stored.where("x > 5"), 1),
        (spark.sql("select id, rand() y from stored_t"), 1),
    ):
        with privatize(df, **ASK):
            assert len(checkpoints(spark) - before) == copies


def test_missing_labels_and_ids_and_shared_ids_are_refused_without_a_label_in_the_message(spark):
    holes = LABELS.copy()
    holes[:3] = [np.nan, np.inf, -np.inf]
    assert "3 of 3000" in refuse(frame(spark, labels=holes), LabelError)
    df = frame(spark)
    refuse(df.where("x < 0"), LabelError)
    assert "5 of 3000" in refuse(df.withColumn("y", F.when(F.col("x") > 4, F.col("y"))), LabelError)
    assert "5 of 3000" in refuse(df.withColumn("id", F.when(F.col("x") > 4, F.col("id"))), DataError)
    shared = df.withColumn("id", F.when(F.col("x") == 4, F.lit(9)).otherwise(F.col("x")))
    assert "share an id" in refuse(shared, DataError)
    assert privatize(shared, check_ids=False, **ASK).terms.rows == ROWS


def test_no_message_quotes_a_label(spark):
    text = frame(spark).selectExpr("id", "concat(cast(y as string), 'x') y")
    cast = text.withColumn("y", text.y.cast("double"))
    with pytest.raises(Exception, match=r"The value '\d\.\d+x'"):
        cast.collect()
    with pytest.raises(DataError, match=r"\(CAST_INVALID_INPUT") as refused:
        randomize(cast, "y", LAPLACE, id="id")
    assert "x'" not in str(refused.value)
    assert refused.value.__cause__ is refused.value.__context__ is None  # Spark's own message is left out


@pytest.mark.parametrize("name", ["66993", "66.993,50 €", "-6.6e4"])
def test_a_label_whose_name_reads_as_a_number_is_refused_and_not_quoted(spark, name):
    """Without a header, names are the values of the first row, and the name of the label is a label."""
    df = frame(spark).withColumnRenamed("y", name)
    assert name not in refuse(df, ParameterError, label=name)
    assert name not in refuse(df, ParameterError, "label", label=name[1:])


def test_the_metadata_of_columns_are_left_out(spark):
    noted = frame(spark).withMetadata("x", {"note": "12.5"}).withMetadata("y", {"note": "12.5"})
    assert [field.metadata for field in privatize(noted, **ASK).frame.schema] == [{}, {}, {}]


@pytest.mark.parametrize("found", [0, 9, 11])
def test_sums_over_more_or_fewer_rows_than_were_checked_are_refused(spark, found):
    with pytest.raises(DataError, match="more or fewer rows"):
        ClusterAccess(spark.range(found), 10, None, "prior").count_ahead(Cells(BOUNDS, 16))


# ---- examples -----------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ldp.spark.__all__)
def test_the_example_of_a_name_gives_what_it_says(name, spark):
    text = inspect.getdoc(getattr(ldp.spark, name))
    example = doctest.DocTestParser().get_doctest(text, {"spark": spark}, name, None, None)
    flags = doctest.ELLIPSIS | doctest.NORMALIZE_WHITESPACE
    assert doctest.DocTestRunner(optionflags=flags).run(example).failed == 0
