"""Private sales amounts on Spark: a synthetic log of Criteo's format, on two cores of this machine.

    pip install --editable '.[spark]'   # in a clone of the repository; Java 17 or newer
    python -m examples.spark_twin

Reads a log, gives its rows ids, releases the amounts of sales, and fits a private model; then shows what both are
worth. On a cluster, make the session as you always do, and leave the rest as it is.
"""

from __future__ import annotations

import os
import sys
import tempfile
from pathlib import Path
from typing import Any

import numpy as np

import labeldp as ldp
from labeldp import spark as private_spark
from reproduction.criteo import make_criteo_like

BOUNDS = (0.0, 400.0)
"""Public: what a sale may count for. Never read them off the data."""

FEATURES = ["product_price", "nb_clicks_1week", "hour"]


def sales(spark: Any, folder: Path, rows: int) -> Any:
    """Return the log's sales, each with an id."""
    from pyspark.sql import functions as F  # noqa: N812, PLC0415

    log = make_criteo_like(rows, seed=1, path=folder / "twin.tsv")
    # Ids belong to rows, and are public: here the number of a line. Those that Spark counts out
    # (monotonically_increasing_id) follow from how it cuts the file, and so from the labels' length.
    numbered = folder / "numbered.tsv"
    with log.open() as lines, numbered.open("w") as out:
        out.writelines(f"{number}\t{line}" for number, line in enumerate(lines))
    read = spark.read.csv(str(numbered), sep="\t").toDF("id", *[f"c{k}" for k in range(23)])
    return read.where("c0 = 1").select(
        F.col("id").cast("long").alias("id"),
        F.col("c1").cast("double").alias("amount"),
        F.hour(F.timestamp_seconds(F.col("c3").cast("long"))).alias("hour"),
        F.col("c4").cast("double").alias("nb_clicks_1week"),
        F.col("c5").cast("double").alias("product_price"),
    )


def main(spark: Any, folder: Path, rows: int = 200_000) -> dict[str, float]:
    """Release, write, fit; return means and errors."""
    from pyspark.sql import functions as F  # noqa: N812, PLC0415

    table = sales(spark, folder, rows)
    ledger = ldp.Ledger(limit=ldp.Budget(epsilon=2.0))

    with private_spark.privatize(
        table, label="amount", id="id", epsilon=1.0, bounds=BOUNDS, debiased=True, ledger=ledger
    ) as release:
        release.frame.write.parquet(str(folder / "private"))
        (folder / "private.card.json").write_text(release.card)
    print(release.summary())

    model = private_spark.fit_model(
        table, features=FEATURES, label="amount", id="id", epsilon=1.0, bounds=BOUNDS, ledger=ledger
    )
    print(model.summary())

    # Only the owner can do this: compare with the truth.
    private = spark.read.parquet(str(folder / "private")).agg(F.avg("amount_debiased")).first()[0]
    truth = table.select(F.least("amount", F.lit(BOUNDS[1])).alias("amount"), *FEATURES).toArrow()
    amounts = truth["amount"].to_numpy()
    errors = (model.predict(truth.select(FEATURES).to_pandas()) - amounts) ** 2
    results = {
        "mean": float(amounts.mean()),
        "private mean": float(private),
        "error of a constant": float(amounts.var()),
        "error of the model": float(np.mean(errors)),
    }
    for name, value in results.items():
        print(f"{name:20} {value:10.1f}")
    print(f"{'spent':20} {ledger.total.epsilon:10.1f}")
    return results


if __name__ == "__main__":
    from pyspark.sql import SparkSession

    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    session = SparkSession.builder.master("local[2]").appName("labeldp").getOrCreate()
    with tempfile.TemporaryDirectory() as folder:
        main(session, Path(folder))
    session.stop()
