"""A synthetic twin of Criteo's log, in exactly its format: for tests and demonstrations, at any size.

The real log may not be passed on, and is large. A twin has its columns, its shares of sales and of
missing values, and its heavy tails. Amounts depend on the features, so that there is something to learn.
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
from pyarrow import csv

from labeldp.errors import ParameterError
from reproduction.criteo.log_format import COLUMNS
from reproduction.criteo.shop import effect, hash64, hex_words, product_columns, sample_ranks, with_gaps
from reproduction.datasets.data_files import cache_folder
from reproduction.files import draft_of

_VERSION = 1
_CHUNK = 1 << 16
_SALES = 0.1055  # about 2 % of them above 400, so 10.3 % of all lines have 0 ≤ amount ≤ 400
_PRODUCTS, _USERS = 1_000_000, 12_000_000
_FIRST_CLICK, _SECONDS_A_CLICK = 1_596_439_471, 90 * 86_400 / 15_995_634
_MONTH = 30 * 86_400


def make_criteo_like(rows: int, seed: int = 0, path: str | os.PathLike[str] | None = None) -> Path:
    r"""Write a synthetic log of ``rows`` lines, and return its path.

    The same rows and seed give the same file, byte for byte, and fewer rows give its beginning. The
    products, and what people pay for them, are the same for all seeds; who clicks and buys differs.

    Parameters
    ----------
    rows : int
        How many lines; the real log has 15,995,634. Memory does not grow with it.
    seed : int
    path : path, optional
        Where to write to; packed if it ends in ``.gz``. By default the user's cache folder, where an
        earlier twin is used again.

    Examples
    --------
    >>> import tempfile
    >>> path = make_criteo_like(1000, seed=1, path=tempfile.mkdtemp() + "/twin.tsv")
    >>> lines = path.read_text().splitlines()
    >>> len(lines), {line.count("\t") for line in lines}
    (1000, {22})
    """
    if rows < 1 or seed < 0:
        raise ParameterError(f"a twin needs rows >= 1 and seed >= 0, got rows={rows} and seed={seed}")
    target = cache_folder() / f"criteo-like-{_VERSION}-{rows}-{seed}.tsv" if path is None else Path(path)
    if path is None and target.is_file():
        return target
    options = csv.WriteOptions(include_header=False, delimiter="\t", quoting_style="none")
    packing = "gzip" if target.suffix == ".gz" else None
    with draft_of(target) as draft, pa.output_stream(str(draft), compression=packing) as stream:
        for start in range(0, rows, _CHUNK):
            rng = np.random.default_rng([seed, start // _CHUNK])  # makes data; no privacy rests on it
            csv.write_csv(_table(rng, start, min(_CHUNK, rows - start)), stream, options)
    return target


def _table(rng: np.random.Generator, start: int, rows: int) -> Any:
    """Return ``rows`` lines from line ``start``; always draws for a whole chunk, so that beginnings agree."""
    product = sample_ranks(rng.random(_CHUNK), _PRODUCTS, 0.8)[:rows]
    user = sample_ranks(rng.random(_CHUNK), _USERS, 0.5)[:rows]
    device = np.searchsorted([0.5, 0.85], rng.random(_CHUNK))[:rows].astype(np.uint64)
    sale = rng.random(_CHUNK)[:rows] < _SALES
    noise = rng.normal(0, 0.45, _CHUNK)[:rows]
    delay = np.minimum(rng.exponential(1.0, _CHUNK)[:rows] ** 3 * 20_000, _MONTH).astype(np.int64)
    jitter = rng.random(_CHUNK)[:rows]
    clicks = np.floor(np.exp(rng.exponential(1.3, _CHUNK)[:rows])).astype(np.int64)
    clicks_known = rng.random(_CHUNK)[:rows] < 0.6

    columns, log_amount = product_columns(product)
    amount = np.exp(log_amount + 0.15 * effect("device", device) + noise).round(2)
    audience = sample_ranks(hash64("audience", user) / 2.0**64, 5_000, 0.9)
    columns |= {
        "Sale": sale.astype(np.int8),
        "SalesAmountInEuro": np.where(sale, amount, -1.0),
        "time_delay_for_conversion": np.where(sale, delay, -1),
        "click_timestamp": (_FIRST_CLICK + (start + np.arange(rows) + jitter) * _SECONDS_A_CLICK).astype(np.int64),
        "nb_clicks_1week": np.where(clicks_known, clicks, -1),
        "device_type": hex_words("device", device),
        "audience_id": with_gaps(hex_words("audience", audience), hash64("no audience", user), 0.72, "-1"),
        "user_id": hex_words("user", user),
    }
    return pa.table({name: columns[name] for name in COLUMNS})
