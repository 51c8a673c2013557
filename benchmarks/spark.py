"""`labeldp.spark.privatize` and write, beside Spark reading and writing the same frame, on two local cores."""

from __future__ import annotations

import os
import shutil
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
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


def handed_on(batches: Iterator[Any]) -> Iterator[Any]:
    """Do nothing: what it costs to hand all columns to Python and back."""
    yield from batches


def write(frame: Any, target: str) -> None:
    frame.write.mode("overwrite").parquet(target)


def released(frame: Any, target: str, **how: Any) -> None:
    ask = {"label": "y", "id": "id", "epsilon": 1.0, "bounds": BOUNDS, "check_ids": False}
    with privatize(frame, **ask, **how, ledger=ldp.Ledger()) as release:
        write(release.frame, target)


CASES: dict[str, Callable[[Any, str], None]] = {
    "read and write": write,
    "the same through Python": lambda frame, target: write(frame.mapInArrow(handed_on, frame.schema), target),
    "privatize": released,
    "privatize, no prior": lambda frame, target: released(frame, target, mechanism="two-point"),
}


def measured(spark: Any, source: str, target: str, rounds: int) -> dict[str, tuple[float, float]]:
    """Return, for each case, the median of seconds, and of the ratio to reading and writing in the same round."""
    taken: dict[str, list[float]] = {name: [] for name in CASES}
    for turn in range(rounds + 1):
        for name, case in CASES.items():
            one = seconds(lambda case=case: case(spark.read.parquet(source), target))
            if turn:  # the first warms up
                taken[name].append(one)
    plain = taken["read and write"]
    return {
        name: (median(each), median(a / b for a, b in zip(each, plain, strict=True)))
        for name, each in taken.items()
    }


def main(
    sizes: Annotated[str, typer.Option(help="Numbers of rows.")] = "1000000,4000000,16000000",
    rounds: int = 3,
    ids: str = "integer",
    write: bool = True,
) -> None:
    """Time both in turns; write benchmarks/spark.md."""
    header = ["rows", *(f"{name}, s" for name in CASES), *(f"ratio of {name}" for name in list(CASES)[1:])]
    header.append("µs a row and core")
    lines, table = [], Table(*header, title=f"privatize on Spark, local[2] (target: ratio ≤ {SLOWER})")
    with tempfile.TemporaryDirectory() as folder:
        spark = session(Path(folder) / "local")
        for rows in (int(size) for size in sizes.split(",")):
            source, target = f"{folder}/in", f"{folder}/out"
            made(spark, rows, source, ids)
            found = measured(spark, source, target, rounds)
            each = (found["privatize"][0]) / rows * 2e6
            times = [f"{took:.1f}" for took, _ in found.values()]
            ratios = [f"{ratio:.2f}" for _, ratio in list(found.values())[1:]]
            cells = (f"{rows:,}", *times, *ratios, f"{each:.2f}")
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
{SLOWER} times reading and writing the same frame. "Through Python" hands all columns to Python and back and does
nothing else; "no prior" is `mechanism="two-point"`, which needs none.

"""
        text += f"| {' | '.join(header)} |\n|{'---|' * len(header)}\n" + "\n".join(lines) + "\n"
        (Path(__file__).parent / "spark.md").write_text(text)


if __name__ == "__main__":
    typer.run(main)
