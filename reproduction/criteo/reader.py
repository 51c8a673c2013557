"""Criteo's Sponsored Search Conversion Log: clicks on advertisements, and what was then bought for."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any, Literal, get_args

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray
from pyarrow import compute

from labeldp.errors import DataError, DataNotFoundError, ParameterError
from reproduction.categories import CategoricalDataset
from reproduction.criteo.cache import cache_path, read_cache, write_cache
from reproduction.criteo.log_format import CATEGORIES, batches
from reproduction.datasets.data_files import cache_folder, fetch, find

Protocol = Literal["text", "code", "private"]
Floats = NDArray[np.float64]

FILE = "CriteoSearchData"
ARCHIVE = "criteo-research-search-conversion.tar.gz"
_FOLDER = "Criteo_Conversion_Search"
NAMES = (*(FILE + end for end in ("", ".tsv", ".txt", ".csv")), f"{_FOLDER}/{FILE}", ARCHIVE, f"{_FOLDER}.tar.gz")
URL = f"https://go.criteo.net/{ARCHIVE}"
BOUNDS = (0.0, 400.0)

_AMOUNT, _DELAY = "SalesAmountInEuro", "time_delay_for_conversion"
_BY_HAND = (
    "To get it by hand: follow https://ailab.criteo.com/criteo-sponsored-search-conversion-log-dataset/, accept "
    f"the licence (CC BY-NC-SA 4.0), put {FILE} or the packed file in a folder, and name that folder in the "
    "environment variable LABELDP_DATA. To try things without it, reproduction.criteo.make_criteo_like "
    "writes a synthetic log of the same format, and --twin uses one"
)
_COLUMNS: dict[str, tuple[str, ...]] = {
    "text": (_DELAY, "nb_clicks_1week", "product_price"),
    "code": (_DELAY, "nb_clicks_1week", "product_price"),
    "private": ("nb_clicks_1week", "product_price"),
}
_THRESHOLDS = {"text": 10, "code": 5, "private": 10}
"""How often a value must occur by default. The text has no number; the code that it adapts has 10."""
_ALWAYS = "Missing numbers are -1, as in the file. product_title is one value a title, not one a word."
_BY_AMOUNT = (
    "Kept: the lines with an amount from 0 to 400 euro, as the paper does. This chooses rows by their "
    "labels: which rows are here tells something about them, and no mechanism accounts for that.",
    "time_delay_for_conversion is among the features, as in the paper, though it is known only after the "
    "sale: an outcome, not a public feature.",
    "Left out: Sale and click_timestamp.",
    _ALWAYS,
)
_NOTES: dict[str, tuple[str, ...]] = {
    "text": _BY_AMOUNT,
    "code": _BY_AMOUNT,
    "private": (
        "Kept: the lines with Sale = 1 and an amount. Whether there was a sale counts as public, as whether a "
        "label is missing always does; no line is left out for its amount.",
        "The label is SalesAmountInEuro, clipped to the public bounds of 0 to 400 euro.",
        "Left out: Sale, click_timestamp, and time_delay_for_conversion, which is known only after the sale.",
        _ALWAYS,
    ),
}


def load_criteo(
    path: str | os.PathLike[str] | None = None,
    *,
    protocol: Protocol = "text",
    threshold: int | None = None,
    download: bool = True,
    cache: bool = True,
) -> CategoricalDataset:
    """Return Criteo's log, encoded: the lines with a sale, 2 or 3 numbers and 17 categories.

    The file is read as a stream, so memory is needed for the lines with a sale only. Values of a category get
    integers from 1, the most frequent first. Missing values, and those that occur fewer than ``threshold`` times
    among the lines kept, share 0. A title is one value, as in the paper, though it holds several hashed words.

    Parameters
    ----------
    path : path, optional
        A file of the log's format: plain, ``.gz``, or the official ``.tar.gz``. By default ``CriteoSearchData`` or
        the official archive in the folder that ``LABELDP_DATA`` names or in the user's cache folder, else
        downloaded there (hundreds of megabytes; Criteo gives no checksum).
    protocol : {"text", "code", "private"}
        ``"text"`` and ``"code"``, as in the paper: lines are kept by their amount, and the delay until the sale,
        an outcome, is a feature; not label-private. ``"private"``: lines are kept by the public flag ``Sale``,
        amounts above 400 are clipped, and the delay is left out.
    threshold : int, optional
        How often a value must occur to have an integer of its own: by default 5 by the code, else 10.
    download : bool
        Whether the network may be used.
    cache : bool
        Whether to keep the encoded table in the user's cache folder (for the owner's eyes only: it holds the
        labels), and to use the one kept there while the file is unchanged.

    Raises
    ------
    DataNotFoundError
        If there is no such file; the message says how to get it.
    DataError
        If a line is not of the format; the message has its number and none of its content.

    References
    ----------
    M. Tallis and P. Yadav, Reacting to variations in product demand: an application for conversion rate (CR)
    prediction in sponsored search, 2018, arXiv:1806.08211.
    """
    if protocol not in get_args(Protocol):
        raise ParameterError(f"protocol must be 'text', 'code' or 'private', got {protocol!r}")
    threshold = _THRESHOLDS[protocol] if threshold is None else threshold
    if threshold < 1:
        raise ParameterError(f"threshold must be an integer from 1, got {threshold!r}")
    source = _source(path, download)
    if not cache:
        return _encode(source, protocol, threshold)
    place = cache_path(source, protocol, threshold)
    dataset = read_cache(place)
    if dataset is None:
        dataset = _encode(source, protocol, threshold)
        write_cache(dataset, place)
    return dataset


def _source(path: str | os.PathLike[str] | None, download: bool) -> Path:
    if path is not None and not Path(path).is_file():
        raise DataNotFoundError(f"there is no file {os.fspath(path)}. {_BY_HAND}")
    source = find(*NAMES) if path is None else Path(path)
    if source is None and not download:
        raise DataNotFoundError(f"{FILE} was not found, and downloads are not allowed. {_BY_HAND}")
    return source or fetch(URL, cache_folder() / ARCHIVE, by_hand=_BY_HAND)


def _encode(source: Path, protocol: Protocol, threshold: int) -> CategoricalDataset:
    """Read the file once; only the lines with a sale stay in memory."""
    lines = 0
    amounts: list[Floats] = []
    numbers: list[Floats] = []
    values: dict[str, list[Any]] = {name: [] for name in CATEGORIES}
    for batch in batches(source):
        lines += batch.num_rows
        sales = batch.filter(pa.array(_has_label(batch, protocol)))
        amounts.append(_floats(sales, _AMOUNT))
        columns = [_floats(sales, name) for name in _COLUMNS[protocol]]
        numbers.append(np.column_stack([np.where(np.isfinite(column), column, -1.0) for column in columns]))
        for name in CATEGORIES:
            values[name].append(sales.column(name).dictionary_encode())
    y = np.clip(np.concatenate(amounts), *BOUNDS)
    if not y.size:
        raise DataError(f"{source} has {lines} lines and no sale among them")
    encoded = [_integers(values.pop(name), threshold) for name in CATEGORIES]  # one column's strings at a time
    counts = (f"{lines} lines read, {y.size} kept.", f"Values with fewer than {threshold} lines are 0.")
    return CategoricalDataset(
        name="criteo",
        X=np.concatenate(numbers),
        y=y,
        bounds=BOUNDS,
        columns=_COLUMNS[protocol],
        notes=(*_NOTES[protocol], *counts),
        ids=np.column_stack([ids for ids, _ in encoded]),
        categories=CATEGORIES,
        sizes=tuple(size for _, size in encoded),
    )


def _has_label(batch: Any, protocol: Protocol) -> NDArray[np.bool_]:
    amount = _floats(batch, _AMOUNT)
    if protocol != "private":
        return np.asarray((amount >= BOUNDS[0]) & (amount <= BOUNDS[1]))
    return np.asarray((_floats(batch, "Sale") == 1) & np.isfinite(amount))


def _floats(batch: Any, name: str) -> Floats:
    """Return a column of numbers, NaN where missing."""
    return np.asarray(batch.column(name).to_numpy(zero_copy_only=False), dtype=np.float64)


def _integers(chunks: list[Any], threshold: int) -> tuple[NDArray[np.int32], int]:
    """Return a category's values as integers, and the size of its vocabulary."""
    column = pa.chunked_array(chunks).unify_dictionaries()
    words = column.chunk(0).dictionary
    codes = np.concatenate([chunk.indices.fill_null(len(words)).to_numpy() for chunk in column.chunks])
    counts = np.bincount(codes, minlength=len(words) + 1)[:-1]
    frequent = np.flatnonzero(counts >= threshold)
    table = pa.table({"count": counts[frequent], "word": words.take(pa.array(frequent))})
    # Ties are broken by the value itself, so that the order of the lines does not matter.
    order = compute.sort_indices(table, sort_keys=[("count", "descending"), ("word", "ascending")]).to_numpy()
    integers = np.zeros(len(words) + 1, dtype=np.int32)
    integers[frequent[order]] = np.arange(1, frequent.size + 1, dtype=np.int32)
    return integers[codes], frequent.size + 1
