"""A program, not a test: a release on a Spark whose workers are killed, with a web UI, logs and events.

Prints JSON: whether the results agree, what happened to tasks, and where the secret was seen. `test_spark_trouble`
runs it; its argument is a folder.
"""

import base64
import json
import os
import sys
import traceback
import urllib.request
import warnings
from pathlib import Path

import numpy as np

warnings.simplefilter("ignore")
FOLDER = Path(sys.argv[1])
sys.path.insert(0, str(Path(__file__).parents[1]))

from pyspark.sql import functions as F  # noqa: E402, N812

import labeldp as ldp  # noqa: E402
import labeldp.spark.dataframe_release as steps  # noqa: E402
from conftest import spark_builder  # noqa: E402
from labeldp.exact.row_words import ReleaseKey, card_checksum  # noqa: E402
from labeldp.spark import frame_checks  # noqa: E402

SEED = 7
releaser, seal = steps.releaser, steps.seal
halves = []


def seal_and_remember(df, secret):
    """Seal a secret, and remember its halves."""
    sealed = seal(df, secret)
    halves.extend([secret, sealed.pad, sealed.masked.value])
    return sealed


def releaser_in_trouble(*arguments, **options):
    """The release's own work, with trouble in the first attempt at one partition, as a file says."""
    work = releaser(*arguments, **options)
    folder = str(FOLDER)

    def run(arrays):
        import os

        from pyspark import TaskContext

        task = TaskContext.get()
        mode = open(f"{folder}/mode").read()  # noqa: SIM115
        for private in work(arrays):
            yield private
            with open(f"{folder}/{mode}.log", "a") as log:
                log.write(f"{task.partitionId()} {task.attemptNumber()}\n")
            if mode == "kill" and (task.partitionId(), task.attemptNumber()) == (1, 0):
                os.kill(os.getpid(), 9)

    return run


def action(frame, mode):
    """Return what an action gives, as bytes."""
    (FOLDER / "mode").write_text(mode)
    table = frame.select("*").toArrow().sort_by("id")  # a plan of its own: else Spark keeps what it has shuffled
    return b"".join(np.ascontiguousarray(table[name].to_numpy()).tobytes() for name in table.column_names)


def attempts(mode):
    """Return which partitions were tried more than once."""
    tried = {tuple(line.split()) for line in (FOLDER / f"{mode}.log").read_text().splitlines()}
    return sorted({partition for partition, attempt in tried if attempt != "0"})


def pages(spark):
    """Return what the web UI shows."""
    start = spark.sparkContext.uiWebUrl
    app = spark.sparkContext.applicationId
    paths = ["jobs/", "stages/", "environment/", "executors/", "SQL/", "storage/"]
    paths += [f"SQL/execution/?id={k}" for k in range(6)]
    paths += [
        f"api/v1/applications/{app}/{name}" for name in ("sql?details=true", "environment", "jobs", "stages")
    ]
    texts = []
    for path in paths:
        try:
            with urllib.request.urlopen(f"{start}/{path}", timeout=60) as answer:  # noqa: S310
                texts.append(answer.read())
        except OSError as error:
            texts.append(str(error).encode())
    return texts


def files(folder, pattern):
    """Return the content of some files."""
    return b"".join(path.read_bytes() for path in (FOLDER / folder).rglob(pattern) if path.is_file())


def plan(frame):
    """Return all that Spark shows of a frame's plan."""
    return frame._jdf.queryExecution().toString().encode()


def texts_with(secrets, texts):
    """Return the names of texts in which a secret stands, in whatever spelling."""
    spellings = []
    for secret in secrets:
        spellings += [secret, secret.hex().encode(), base64.b64encode(secret)]
        spellings += [str(list(secret)).encode(), repr(secret).encode()]
    return sorted(name for name, text in texts.items() if any(spelling in text for spelling in spellings))


def main():
    settings = {
        "spark.eventLog.compress": "false",
        "spark.eventLog.dir": str(FOLDER / "events"),
        "spark.eventLog.enabled": "true",
        "spark.ui.enabled": "true",
        "spark.ui.port": "0",
        "spark.log.level": "INFO",
    }
    (FOLDER / "events").mkdir()
    spark = spark_builder(FOLDER, "local[2,4]").config(map=settings).getOrCreate()
    df = spark.range(0, 8000, 1, 4).select("id", ((F.col("id") * 37) % 1000 / 250.0).alias("y"))
    mechanism = ldp.TwoPoint(bounds=(0, 4), epsilon=1.0)
    steps.releaser, steps.seal = releaser_in_trouble, seal_and_remember
    frame_checks.is_stored = lambda df: True  # computed again by each attempt
    ask = {"label": "y", "id": "id", "epsilon": 1.0, "bounds": (0, 4), "mechanism": mechanism}
    release = steps.privatize(df, **ask, random_state=SEED)
    quiet = action(release.frame, "quiet")
    killed = action(release.frame, "kill")
    answer = {
        "equal": quiet == killed,
        "rows": len(quiet) // 16,
        "tried again": {mode: attempts(mode) for mode in ("quiet", "kill")},
    }
    secret = ReleaseKey(SEED).secret(card=card_checksum(mechanism), column="y")
    texts = {f"page {k}": page for k, page in enumerate(pages(spark))}
    texts["plan"] = plan(release.frame)
    texts["output"] = quiet
    texts["driver"] = (FOLDER / "driver.log").read_bytes()
    texts["events"] = files("events", "*")
    leaky = df.withColumn("key", F.lit(secret.hex()))
    leaky.collect()
    texts["twin plan"] = plan(leaky)
    spark.stop()
    texts["twin events"] = files("events", "*")
    answer["pages"] = sum(b"HTTP Error" not in text for name, text in texts.items() if name.startswith("page"))
    answer["searched"] = {name: len(text) for name, text in texts.items()}
    answer["seen"] = texts_with([secret, *halves], texts)
    answer["halves"] = len(halves)
    print("ANSWER " + json.dumps(answer))


if __name__ == "__main__":
    with open(FOLDER / "driver.log", "wb") as log:
        os.dup2(log.fileno(), 2)  # what the driver says, Spark's own log too
    try:
        main()
    except BaseException:
        traceback.print_exc(file=sys.stdout)
        raise
