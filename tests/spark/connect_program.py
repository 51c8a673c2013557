"""A program, not a test: a release, a prior and a model through Spark Connect, on a server that it starts.

Prints JSON: whether they are what one machine gives. `test_spark_connect` runs it; its argument is a folder.
"""

import json
import sys
import warnings
from pathlib import Path

import numpy as np

warnings.simplefilter("ignore")
FOLDER = Path(sys.argv[1])
sys.path.insert(0, str(Path(__file__).parents[1]))

from pyspark.errors import AnalysisException  # noqa: E402
from pyspark.sql import functions as F  # noqa: E402, N812
from pyspark.sql.connect.logging import logger  # noqa: E402

import labeldp as ldp  # noqa: E402
from conftest import spark_builder  # noqa: E402
from exact.word_cases import as_ids  # noqa: E402
from labeldp.exact.row_ids import public_places  # noqa: E402
from labeldp.exact.row_words import ReleaseKey, RowWords, card_checksum  # noqa: E402
from labeldp.spark import executor  # noqa: E402
from labeldp.spark.frame_checks import stable_frame  # noqa: E402
from spark import interference_cases as ways  # noqa: E402

privatize = ldp.spark.privatize


ROWS, BOUNDS = 300, (0.0, 5.0)
MECHANISM = ldp.Laplace(bounds=BOUNDS, epsilon=1.0)
ASK = {"label": "y", "id": "id", "epsilon": 1.0, "bounds": BOUNDS}


def interference(spark):
    """Return in what two tables that differ in labels only differ in the output, cells replayed."""
    for name, value in ways.SMALL_SPLITS.items():
        spark.conf.set(name, value)
    executor.PARTITION_ROWS = 200
    outputs = []
    with ways.replay() as noise:
        for name in ("base", "some rows"):
            noise.start()
            folder = FOLDER / name
            folder.mkdir()
            ways.write_table(folder / "in", "csv", ways.LABELS[name])
            outputs.append(ways.WAYS["release"](ways.read_table(spark, folder / "in", "csv"), folder))
    return ways.differences(*outputs)


def main():
    import pyarrow as pa

    spark = spark_builder(FOLDER, None).getOrCreate()
    rng = np.random.default_rng(4)
    ids, x = [f"row {k}" for k in range(ROWS)], rng.normal(size=ROWS)
    y = np.clip(2.5 + x, *BOUNDS)
    df = spark.createDataFrame(pa.table({"id": ids, "x": x, "y": y}))
    words = RowWords(ReleaseKey(6).secret(card=card_checksum(MECHANISM), column="y"), as_ids(ids))
    expected = dict(zip(ids, MECHANISM.randomize(y, random_state=words).tolist(), strict=True))
    release = privatize(df, mechanism=MECHANISM, random_state=6, **ASK)
    runs = []
    for _ in range(2):
        table = release.frame.toArrow()
        runs.append(dict(zip(table["id"].to_pylist(), table["y"].to_pylist(), strict=True)) == expected)
    release.close()
    reached = 0
    for reach in (release.frame.where(df["y"] > 3), release.frame.orderBy(df["y"])):
        try:
            reached += reach.count()
        except AnalysisException:  # there is no such column
            continue

    random = df.withColumn("y", F.rand() * 5)
    stable = privatize(random, mechanism=MECHANISM, **ASK)  # is computed once, and kept
    runs.append(stable.frame.orderBy("id").toArrow() == stable.frame.orderBy("id").toArrow())
    df.write.parquet(str(FOLDER / "stored"))
    stored = [stable_frame(frame).is_checkpoint for frame in (df, spark.read.parquet(str(FOLDER / "stored")))]
    runs.append(stored == [True, False])

    logger.disabled, level = False, logger.level
    logger.setLevel("DEBUG")  # then the client would write the secret into its log
    try:
        privatize(df, **ASK)
        runs.append(False)
    except ldp.errors.ParameterError as error:
        runs.append("SPARK_CONNECT_LOG_LEVEL" in str(error))
    logger.disabled = True
    logger.setLevel(level)

    ledger = ldp.Ledger()
    refusals = 0
    for wrong in (df.withColumn("id", F.lit("one")), df.withColumn("y", F.when(F.col("x") > 0, F.col("y")))):
        try:
            privatize(wrong, ledger=ledger, **ASK)
        except ldp.LabelDPError:
            refusals += 1
    few = {"epsilon": 0.3, "bounds": BOUNDS, "random_state": 3}  # sums alone: a model of labels takes longer
    model = ldp.spark.fit_model(df, features=["x"], label="y", id="id", **few)
    order = np.argsort(public_places(as_ids(ids))[:, 0])
    alone = ldp.ModelReleaseRegressor(**few).fit(x[order, None], y[order])
    answer = {
        "connect": type(df).__module__,
        "releases": runs,
        "reached": reached,
        "columns": release.frame.columns,
        "refused": [refusals, ledger.total.epsilon],
        "interference": interference(spark),
        "model": bool((model.predict(x[:, None]) == alone.predict(x[:, None])).all()),
    }
    print("ANSWER " + json.dumps(answer), flush=True)
    spark.stop()


if __name__ == "__main__":
    main()
