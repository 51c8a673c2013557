"""`labeldp.spark.privatize` and write, beside Spark reading and writing the same frame, on two local cores."""

from __future__ import annotations

import os
import shutil
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from statistics import median
from typing import Annotated, Any

import numpy as np
import pyspark
import typer
from pyspark.sql import SparkSession
from pyspark.sql import functions as F  # noqa: N812
from rich.console import Console
from rich.table import Table

import labeldp as ldp
from labeldp.spark import privatize

BOUNDS = (0.0, 5.0)
SLOWER = 1.5
"""At most so many times the time of reading and writing."""


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


def made(spark: Any, rows: int, path: str, ids: str) -> None:
    """Write a table of five columns, in files of a million rows."""
    name = F.col("id") if ids == "integer" else F.concat(F.lit("user-"), F.sha1(F.col("id").cast("string")))
    columns = [name.alias("id"), *(F.randn(k).alias(f"x{k}") for k in range(3))]
    frame = spark.range(0, rows, 1, max(2, rows // 1_000_000)).select(*columns, (F.rand(9) * 5).alias("y"))
    frame.write.parquet(path)


def seconds(call: Callable[[], object]) -> float:
    started = time.perf_counter()
    call()
    return time.perf_counter() - started


def measured(spark: Any, source: str, target: str, rounds: int) -> tuple[float, float, float, float]:
    """Return medians of: read and write; counting and design; release and write; the ratio of all to the first."""
    plain, ready, wrote, ratio = [], [], [], []

    def write(frame: Any) -> None:
        frame.write.mode("overwrite").parquet(target)

    for turn in range(rounds + 1):
        a = seconds(lambda: write(spark.read.parquet(source)))
        started = time.perf_counter()
        with privatize(
            spark.read.parquet(source),
            label="y",
            id="id",
            epsilon=1.0,
            bounds=BOUNDS,
            check_ids=False,
            ledger=ldp.Ledger(),
        ) as release:
            b = time.perf_counter() - started
            c = seconds(lambda frame=release.frame: write(frame))
        if turn:  # the first warms up
            for kept, value in zip((plain, ready, wrote, ratio), (a, b, c, (b + c) / a), strict=True):
                kept.append(value)
    return median(plain), median(ready), median(wrote), median(ratio)


def main(
    sizes: Annotated[str, typer.Option(help="Numbers of rows.")] = "1000000,4000000,16000000",
    rounds: int = 3,
    ids: str = "integer",
    write: bool = True,
) -> None:
    """Time both in turns; write benchmarks/spark.md."""
    header = (
        "rows",
        "read and write, s",
        "count and design, s",
        "release and write, s",
        "ratio",
        "µs a row and core",
    )
    lines, table = [], Table(*header, title=f"privatize on Spark, local[2] (target: ratio ≤ {SLOWER})")
    with tempfile.TemporaryDirectory() as folder:
        spark = session(Path(folder) / "local")
        for rows in (int(size) for size in sizes.split(",")):
            source, target = f"{folder}/in", f"{folder}/out"
            made(spark, rows, source, ids)
            plain, ready, wrote, ratio = measured(spark, source, target, rounds)
            each = (ready + wrote) / rows * 2e6
            cells = (f"{rows:,}", f"{plain:.1f}", f"{ready:.1f}", f"{wrote:.1f}", f"{ratio:.2f}", f"{each:.2f}")
            table.add_row(*cells)
            lines.append(f"| {' | '.join(cells)} |")
            for path in (source, target):
                shutil.rmtree(path)
        spark.stop()
    Console().print(table)
    if write:
        versions = f"PySpark {pyspark.__version__}, NumPy {np.__version__}, labeldp {ldp.__version__}"
        text = f"""# privatize on Spark

`python -m benchmarks.spark`: Parquet of five columns ({ids} ids, three features, the label), `local[2]`, ids
vouched for, medians of {rounds} rounds after one to warm up, time on the clock. {versions}. Target: at most
{SLOWER} times reading and writing the same frame.

"""
        text += f"| {' | '.join(header)} |\n|{'---|' * len(header)}\n" + "\n".join(lines) + "\n"
        (Path(__file__).parent / "spark.md").write_text(text)


if __name__ == "__main__":
    typer.run(main)
