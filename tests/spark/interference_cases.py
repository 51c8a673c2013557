"""Tables that differ in labels only, and all that Spark outputs for each: for tests of non-interference.

Released cells and noisy sums are replayed: a channel is given the same label for every row, and on the driver a
curator's noise gives out what it returned for the first table. Keys come from a seed. What then
differs between two tables was caused by something other than channels and noise.
"""

from __future__ import annotations

import json
import pickle
import re
import warnings
from contextlib import contextmanager
from unittest.mock import patch

import numpy as np

import labeldp as ldp
from labeldp.release.label_access import LabelAccess
from labeldp.spark import dataframe_model, dataframe_release

ROWS, FILES = 1000, 3
BOUNDS = (0.0, 5.0)
SCHEMA = "id string, a double, b double, note string, y double"
SMALL_SPLITS = {"spark.sql.files.maxPartitionBytes": "4096", "spark.sql.files.openCostInBytes": "0"}
"""Input is split so often that splits move with the length of the labels' text."""


BASE = [f"{(k * 37) % 50 / 10}" for k in range(ROWS)]
LABELS = {
    "base": BASE,
    "first row": ["4.123456789012345", *BASE[1:]],
    "some rows": [f"{text}0000000000000000" if 400 < k < 600 else text for k, text in enumerate(BASE)],
    "all rows": [("-1.7e308", "1e-300", "-0.0")[k % 3] for k in range(ROWS)],
    "short text": ["1"] * ROWS,
}
"""The text of all labels. Those outside the bounds are clipped."""


def write_table(folder, kind, labels):
    """Write a table in several files; its public columns are always the same."""
    rng = np.random.default_rng(3)
    a, b = rng.normal(size=ROWS).tolist(), rng.uniform(size=ROWS).tolist()
    rows = []
    for k, y in enumerate(labels):
        public = {"id": f"person {(k * 7919) % 100_003}", "a": a[k], "b": b[k], "note": "n" * (k % 11)}
        if kind == "json":
            rows.append(f'{json.dumps(public)[:-1]}, "y": {y}}}')
        else:
            rows.append(",".join([*map(str, public.values()), y]))
    folder.mkdir()
    for part in range(FILES):
        some = rows[part * ROWS // FILES : (part + 1) * ROWS // FILES]
        (folder / f"{part}.{kind}").write_text("\n".join(some) + "\n")


def read_table(spark, folder, kind):
    """Return the table."""
    return getattr(spark.read.schema(SCHEMA), kind)(str(folder))


def files_in(folder):
    """Return the bytes of all files that Spark wrote, without the random part of their names."""
    paths = list(folder.iterdir())
    random_part = r"[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}"
    content = {re.sub(random_part, "", path.name): path.read_bytes() for path in paths}
    assert len(content) == len(paths) > 2
    return content


def parts_of(frame):
    """Return the public columns of a frame's rows, part by part, in their order."""
    from pyspark.sql import functions as F  # noqa: N812

    table = frame.select(F.spark_partition_id().alias("part"), "id", "a", "b", "note").toArrow()
    return list(zip(*(column.to_pylist() for column in table.columns), strict=True))


def card_content(card):
    """Return what a card says, but for the time of its charges, wherever they stand, and the checksum over it."""

    def timeless(data):
        if isinstance(data, list):
            return [timeless(item) for item in data]
        if not isinstance(data, dict):
            return data
        return {key: timeless(value) for key, value in data.items() if key not in ("when", "checksum")}

    return timeless(json.loads(card))


class Replay:
    """A curator's noise that returns, for every table, what it returned for the first."""

    def __init__(self):
        self.sums, self.turn = [], 0

    def start(self):
        """Begin with the next table."""
        self.turn = 0

    def method(self):
        """Return what stands for `DiscreteLaplace.release`."""

        def release(noise, exact, source):
            noisy = exact + noise.sample(exact.size, source)  # always: labels are randomised with later words
            if self.turn == len(self.sums):
                self.sums.append(noisy)
            self.turn += 1
            return self.sums[self.turn - 1].copy()

        return release


def equal_labels(real):
    """Return a function that makes the executors' work, with one label for all rows."""

    def releaser(*arguments, **options):
        work = real(*arguments, **options)

        def run(arrays):
            import pyarrow as pa

            yield from work((pa.array([1.5] * len(labels)), ids) for labels, ids in arrays)

        return run

    return releaser


def equal_draw(real):
    """Return a function that draws noise, and labels as if all were in one place."""

    def draw(access, public_map, noise, exact):
        is_sum = isinstance(noise, ldp.accounts.Statistic)
        return real(access, public_map, noise, exact if is_sum else exact * 0 + 0.5)

    return draw


@contextmanager
def replay():
    """Replay released cells and noisy sums; hands out the `Replay`, to be started for each table."""
    noise = Replay()
    with (
        patch.object(dataframe_release, "releaser", equal_labels(dataframe_release.releaser)),
        patch.object(LabelAccess, "_draw", equal_draw(LabelAccess._draw)),
        patch.object(ldp.exact.DiscreteLaplace, "release", noise.method()),
        warnings.catch_warnings(),
    ):
        warnings.simplefilter("ignore")
        yield noise


def release_output(df, folder):
    """Return all that a release outputs."""
    ledger = ldp.Ledger()
    ask = {"epsilon": 1.0, "bounds": BOUNDS, "random_state": 5, "ledger": ledger}
    with ldp.spark.privatize(df, label="y", id="id", mechanism="rp", **ask) as release:
        out = {"card": card_content(release.to_card()), "summary": release.summary(), "spent": str(ledger.total)}
        for kind in ("parquet", "csv"):
            getattr(release.frame.write, kind)(str(folder / kind))
            out[kind] = files_in(folder / kind)
    return out


def model_output(df, epsilon):
    """Return all that a model outputs."""
    model = ldp.spark.fit_model(
        df, features=["a", "b"], label="y", id="id", epsilon=epsilon, bounds=BOUNDS, random_state=5
    )
    grid = np.random.default_rng(1).normal(size=(50, 2))
    return {
        "card": card_content(model.to_card()),
        "inside": pickle.dumps((model._ensemble, model._public)),
        "predictions": model.predict(grid).tobytes(),
    }


def sampled_model_output(df, epsilon):
    """Return the same for a model whose rows are more than the driver takes."""
    with patch.object(dataframe_model, "MAX_ROWS_FINAL_TREES", ROWS // 2):
        return model_output(df, epsilon)


def table_output(df):
    """Return all that a regression table outputs."""
    table = ldp.spark.private_ols(
        df, features=["a", "b"], label="y", id="id", epsilon=2.0, bounds=BOUNDS, random_state=5
    )
    return {
        "card": card_content(table.to_card()),
        "inside": pickle.dumps(table.estimates),
        "summary": table.summary(),
    }


WAYS = {
    "release": release_output,
    "release of a computed frame": lambda df, folder: release_output(df.where("a is not null"), folder),
    "prior": lambda df, folder: ldp.spark.estimate_prior(
        df, label="y", epsilon=1.0, bounds=BOUNDS, random_state=5
    ),
    "model from sums": lambda df, folder: sampled_model_output(df, 0.5),
    "model from labels": lambda df, folder: model_output(df, 2.0),
    "regression table": lambda df, folder: table_output(df),
}
"""Each returns all that is output, for a frame and a folder to write to."""


def differences(one, other):
    """Return where two outputs differ."""
    if not isinstance(one, dict) or not isinstance(other, dict):
        return [] if one == other else ["it"]
    both = sorted(set(one) | set(other))
    return [f"{key}: {where}" for key in both for where in differences(one.get(key), other.get(key))]
