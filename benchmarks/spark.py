"""`labeldp.spark.privatize` and write, beside Spark reading and writing the same frame, on two local cores.

Released rows are spread and sorted by their ids; so Spark doing that by itself is a second reference.
"""

import os
import shutil
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from statistics import median
from typing import Annotated, Any
from unittest.mock import patch

import numpy as np
import pyarrow as pa
import pyspark
import typer
from pyspark.sql import SparkSession
from pyspark.sql import functions as F  # noqa: N812
from rich.console import Console

import labeldp as ldp
from benchmarks.report import Sheet
from labeldp.spark import executor
from labeldp.spark.dataframe_release import privatize
from labeldp.spark.executor import spread_by_id
from reproduction.criteo import COLUMNS, make_criteo_like

BOUNDS = {"narrow": (0.0, 5.0), "log": (0.0, 400.0)}
MILLION = 1_000_000


def session(folder: Path) -> Any:
    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    settings = {
        "spark.driver.memory": "4g",
        "spark.local.dir": str(folder),
        "spark.ui.enabled": "false",
        "spark.ui.showConsoleProgress": "false",
    }
    spark = SparkSession.builder.master("local[2]").config(map=settings).getOrCreate()
    spark.sparkContext.setLogLevel("ERROR")
    return spark


def narrow(spark: Any, rows: int, path: str) -> None:
    """Write a table of five numbers, in files of a million rows."""
    columns = [F.col("id"), *(F.randn(k).alias(f"x{k}") for k in range(3)), (F.rand(9) * 5).alias("y")]
    spark.range(0, rows, 1, max(2, rows // MILLION)).select(*columns).write.parquet(path)


def log(spark: Any, rows: int, path: str) -> None:
    """Write a log of Criteo's format, 23 columns of which most are text, and an id, in files of a million rows."""
    once = Path(path).with_name("once")
    if not once.exists():
        twin = make_criteo_like(MILLION, seed=1, path=once.with_name("twin.tsv"))
        lines = spark.read.csv(str(twin), sep="\t", inferSchema=True).toDF(*COLUMNS).coalesce(1)
        amount = F.greatest(F.col("SalesAmountInEuro").cast("double"), F.lit(0.0)).alias("y")
        columns = (F.monotonically_increasing_id().alias("id"), "*", amount)
        lines.select(*columns).drop("SalesAmountInEuro").write.parquet(str(once))
    for start in range(0, rows, MILLION):
        part = spark.read.parquet(str(once)).coalesce(1)
        part.withColumn("id", F.col("id") + start).write.mode("append").parquet(path)


TABLES: dict[str, Callable[[Any, int, str], None]] = {"narrow": narrow, "log": log}


def seconds(call: Callable[[], object]) -> float:
    started = time.perf_counter()
    call()
    return time.perf_counter() - started


def identity(labels: Iterator[tuple[pa.Array, pa.Array]]) -> Iterator[pa.Array]:
    """Do nothing: what it costs to hand labels to Python and back."""
    for label, _ in labels:
        yield label


def write(frame: Any, target: str) -> None:
    frame.write.mode("overwrite").parquet(target)


def release(frame: Any, target: str, bounds: tuple[float, float], **options: Any) -> None:
    options |= {"label": "y", "id": "id", "epsilon": 1.0, "bounds": bounds, "check_ids": False}
    with privatize(frame, **options, ledger=ldp.Ledger()) as private:
        write(private.frame, target)


def release_as_it_lies(frame: Any, target: str, bounds: tuple[float, float]) -> None:
    """Release rows without moving them, which shows labels: to see what moving them costs."""
    with patch.object(executor, "spread_by_id", lambda rows, id, count: rows):
        release(frame, target, bounds)


READ, SORTED, UNSORTED, PRIVATE = "read and write", "read, sort by id, write", "privatize, not sorted", "privatize"

CASES: dict[str, Callable[[Any, str, tuple[float, float]], None]] = {
    READ: lambda frame, target, _: write(frame, target),
    SORTED: lambda frame, target, _: write(spread_by_id(frame, "id", frame.count()), target),
    "label through Python": lambda frame, target, _: write(
        frame.where("id is not null").withColumn("y", F.arrow_udf(identity, "double")("y", "id")), target
    ),
    UNSORTED: release_as_it_lies,
    "privatize, no prior": lambda frame, target, bounds: release(frame, target, bounds, mechanism="two-point"),
    PRIVATE: release,
}


def measure(spark: Any, table: str, source: str, target: str, rounds: int) -> list[str]:
    """Return medians of seconds (ratios to reading and writing), what sorting costs, and the ratio to it."""
    times: dict[str, list[float]] = {name: [] for name in CASES}
    for _ in range(rounds):
        for name, case in CASES.items():
            times[name].append(seconds(lambda case=case: case(spark.read.parquet(source), target, BOUNDS[table])))

    def ratio(name: str, reference: str) -> float:
        return median(a / b for a, b in zip(times[name], times[reference], strict=True))

    cells = [f"{median(each):.1f} ({ratio(name, READ):.2f})" for name, each in times.items()]
    sort = median(a - b for a, b in zip(times[PRIVATE], times[UNSORTED], strict=True))
    return [*cells, f"{sort:.1f}", f"{ratio(PRIVATE, SORTED):.2f}"]


TEXT = """# privatize on Spark

`python -m benchmarks.spark`: Parquet, `local[2]`, `check_ids=False`, medians of {rounds} round(s) after one to
warm up, time on the clock; in brackets the ratio to reading and writing the same frame in the same round.
{versions}.

"Narrow" is five numbers: an id, three features, the label. "Log" has the 23 columns of Criteo's log, most of them
text, and an id. "Label through Python" does nothing but hand labels and ids to Python and labels back: Spark's own
part. "No prior" is `mechanism="two-point"`, which needs none.

Released rows are spread over parts by a hash of their ids, and sorted by id, so that nothing shows where they lay:
that follows from the bytes of the labels. "Read, sort by id, write" is Spark doing the same with the raw frame.
"Not sorted" is `privatize` without it, which is no release; "sort" is what it costs, in seconds.

"""


def main(
    sizes: Annotated[str, typer.Option(help="Numbers of rows.")] = "1000000,4000000,16000000",
    tables: Annotated[str, typer.Option(help="Of narrow and log.")] = "narrow,log",
    rounds: int = 3,
    write: bool = True,
) -> None:
    """Time all cases in turns; write benchmarks/spark.md."""
    versions = f"PySpark {pyspark.__version__}, NumPy {np.__version__}, labeldp {ldp.__version__}"
    sheet = Sheet(
        "privatize on Spark, seconds (ratio)", ["table", "rows", *CASES, "sort", "ratio to Spark's own sort"]
    )
    with tempfile.TemporaryDirectory() as folder:
        spark = session(Path(folder) / "local")
        for table in tables.split(","):
            source, target = f"{folder}/in", f"{folder}/out"
            for turn, rows in enumerate(int(size) for size in sizes.split(",")):
                TABLES[table](spark, rows, source)
                if turn == 0:
                    measure(spark, table, source, target, 1)  # to warm up
                sheet.rows.append([table, f"{rows:,}", *measure(spark, table, source, target, rounds)])
                print(" | ".join(sheet.rows[-1]), flush=True)
                for path in (source, target):
                    shutil.rmtree(path)
        spark.stop()
    Console().print(sheet.rich())
    if write:
        text = TEXT.format(rounds=rounds, versions=versions)
        (Path(__file__).parent / "spark.md").write_text(text + sheet.markdown() + "\n")


if __name__ == "__main__":
    typer.run(main)
