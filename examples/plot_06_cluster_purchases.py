"""
Purchases on a cluster
======================

A shop keeps its orders in Spark. The amounts are private, the rest is not. ``labeldp.spark``
releases them where they lie: the same mechanisms, cards and ledger as on one machine, and single
labels leave the executors with noise only.

This example needs ``pip install "labeldp[spark]"`` and Java 17 or newer. It runs on two cores of
this machine; on a cluster, use the session that you have, and leave the rest as it is.
"""

import os
import sys
import tempfile

import matplotlib.pyplot as plt
import numpy as np
import pyarrow as pa
from pyarrow import parquet
from pyspark.sql import SparkSession, functions

import labeldp as ldp
from labeldp import spark as private

plt.style.use("labeldp.plots")
os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
settings = {"spark.ui.enabled": "false", "spark.ui.showConsoleProgress": "false"}
session = SparkSession.builder.master("local[2]").config(map=settings).getOrCreate()
folder = tempfile.TemporaryDirectory()

# %%
# A table of orders
# -----------------
# Synthetic, and written to a file first: Spark may compute rows twice, and what it reads from a
# file is the same both times. Every order has an id. Its noise follows from that and from a secret
# of the release, so a task that runs again releases nothing again.

rng = np.random.default_rng(7)
rows = 20_000
hour = rng.choice(24, rows, p=np.r_[np.full(8, 0.01), np.full(16, 0.0575)])
amount = np.minimum(rng.gamma(2.0, 22 + 16 * np.exp(-(((hour - 20) / 3) ** 2)), rows), 400).round(2)
table = pa.table({"order": np.arange(rows), "hour": hour, "amount": amount})
parquet.write_table(table, f"{folder.name}/orders.parquet")
orders = session.read.parquet(f"{folder.name}/orders.parquet")

# %%
# The release
# -----------
# One order counts for 400 at most: a public rule, not the largest amount. The frame that comes
# back has all columns; the private ``amount`` is right on average, but for clipping.
# Write it inside the ``with`` block, for at its end the secret is destroyed.

ledger = ldp.Ledger(limit=ldp.Budget(epsilon=2.0))
with private.privatize(
    orders, label="amount", id="order", epsilon=1.0, bounds=(0, 400), ledger=ledger
) as release:
    release.frame.write.parquet(f"{folder.name}/private")
release

# %%
# Analysis
# --------
# The files may be shared, with ``release.to_card()`` beside them. Any query on them costs nothing:
# here the mean of every three hours, and its standard error.

released = session.read.parquet(f"{folder.name}/private")
part = functions.floor(functions.col("hour") / 3).alias("part")
mean = functions.avg("amount").alias("mean")
error = functions.stddev("amount") / functions.sqrt(functions.count("order"))
answer = released.groupBy(part).agg(mean, error.alias("error")).orderBy("part").toArrow()
folder.cleanup()

# %%
# The picture
# -----------
# Large orders come in the evening: the private table shows it as the raw one does. At night there
# are few orders, and their means have a wide ±. Evening means are a little low, because the
# largest amounts were clipped; where, the release says above. One order shows next to nothing
# about its amount.

place = answer["part"].to_numpy()
truth = [amount[hour // 3 == part].mean() for part in place]  # only the shop itself can ask this
figure, axes = plt.subplots()
axes.bar(place, truth, color="0.88", edgecolor="0.55", label="true mean, known to the shop")
words, errors = "private mean ± 2 standard errors", 2 * answer["error"].to_numpy()
axes.errorbar(place, answer["mean"], yerr=errors, fmt="o", capsize=5, label=words)
axes.set(title="20,000 orders on Spark, ε = 1", xlabel="hour of the day", ylim=(0, 110))
axes.set_ylabel("mean amount of an order, €")
axes.set_xticks(place, [f"{3 * part}–{3 * part + 3}" for part in place])
axes.legend(loc="upper left")
plt.show()
