"""Criteo's Sponsored Search Conversion Log: clicks on advertisements, and what was then bought for."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any, Literal, get_args

import numpy as np
from numpy.typing import NDArray

from labeldp.datasets.criteo_cache import cached_path, read_cached, write_cached
from labeldp.datasets.criteo_format import CATEGORIES, batches
from labeldp.datasets.fetch import fetch
from labeldp.datasets.home import cache_folder, find
from labeldp.datasets.table import Dataset
from labeldp.errors import DataError, DataNotFoundError, ParameterError
from labeldp.tabular.arrow import arrow

__all__ = ["load_criteo"]

Protocol = Literal["text", "code"]

FILE = "CriteoSearchData"
ARCHIVE = "criteo-research-search-conversion.tar.gz"
NAMES = (
    FILE,
    f"{FILE}.tsv",
    f"{FILE}.txt",
    f"{FILE}.csv",
    f"Criteo_Conversion_Search/{FILE}",
    ARCHIVE,
    "Criteo_Conversion_Search.tar.gz",
)
URL = f"https://go.criteo.net/{ARCHIVE}"
BOUNDS = (0.0, 400.0)

_AMOUNT, _DELAY = "SalesAmountInEuro", "time_delay_for_conversion"
_BY_HAND = (
    "To get it by hand: follow https://ailab.criteo.com/criteo-sponsored-search-conversion-log-dataset/, accept "
    f"the licence (CC BY-NC-SA 4.0), put {FILE} or the packed file in a folder, and name that folder in the "
    "environment variable LABELDP_DATA. To try things without it, make_criteo_like(rows, seed) writes a made "
    "file of the same format"
)
_COLUMNS: dict[str, tuple[str, ...]] = {
    "text": ("nb_clicks_1week", "product_price"),
    "code": (_DELAY, "nb_clicks_1week", "product_price"),
}
_NOTES: dict[str, tuple[str, ...]] = {
    "text": (
        "Kept: the lines with Sale = 1 and an amount. Whether there was a sale counts as public, as whether a "
        "label is missing always does; no line is left out for its amount.",
        "The label is SalesAmountInEuro, clipped to the public bounds of 0 to 400 euro.",
        "Left out: Sale, click_timestamp, and time_delay_for_conversion, which is known only after the sale.",
    ),
    "code": (
        "Kept: the lines with an amount from 0 to 400 euro, as the paper does. This chooses rows by their "
        "labels: which rows are here tells something about them, and no mechanism accounts for that.",
        "time_delay_for_conversion is among the features, as in the paper, though it is known only after the "
        "sale: an outcome, not a public feature.",
        "Left out: Sale and click_timestamp.",
    ),
}
_ALWAYS = "Missing numbers are -1, as in the file. product_title is one value a title, not one a word."


def load_criteo(
    path: str | os.PathLike[str] | None = None,
    *,
    protocol: Protocol = "text",
    threshold: int = 10,
    download: bool = True,
    cache: bool = True,
) -> Dataset:
    """Return Criteo's log, encoded: the lines with a sale, 2 or 3 numbers and 17 categories.

    The file is read as a stream, so memory is needed for the lines with a sale only. Values of a
    category get numbers from 1, the most frequent first. Those that occur fewer than ``threshold``
    times among the lines kept, and missing ones, share the number 0.

    Parameters
    ----------
    path : path, optional
        A file of the log's format: plain, ``.gz``, or the official ``.tar.gz``. Without it,
        ``CriteoSearchData`` or the official packed file is looked for in the folder that
        ``LABELDP_DATA`` names, then in the user's cache folder, else downloaded there from Criteo.
        The download is large (hundreds of megabytes packed; it is not unpacked on disk), and Criteo
        gives no checksum for it.
    protocol : {"text", "code"}
        ``"text"``, the default: lines are kept by the public flag ``Sale``, amounts above 400 are
        clipped, and the delay until the sale, an outcome, is left out. ``"code"``: what the paper
        did; lines are kept by their amount, and the delay is a feature. The numbers of ``"code"``
        can be compared with the paper's; they are not label-private.
    threshold : int
        How often a value must occur to have a number of its own.
    download : bool
        Whether the network may be used.
    cache : bool
        Whether to keep the encoded table in the user's cache folder (as Parquet, for the owner's eyes
        only: it holds the labels), and to use the one kept there while the file is unchanged.

    Raises
    ------
    DataNotFoundError
        If the file is nowhere to be had; the message says how to get it.
    DataError
        If a line is not of the format; the message has its number and none of its content.
    MissingExtraError
        If PyArrow is not installed.

    Notes
    -----
    `product_title` holds the hashes of several words. A title counts as one value, as in the paper: it
    says more than its first word, and tells products apart as a brand or a category does.

    References
    ----------
    M. Tallis and P. Yadav, Reacting to variations in product demand: an application for conversion rate
    (CR) prediction in sponsored search, 2018, arXiv:1806.08211.
    """
    if protocol not in get_args(Protocol):
        raise ParameterError(f"protocol must be 'text' or 'code', got {protocol!r}")
    if isinstance(threshold, bool) or not isinstance(threshold, int | np.integer) or threshold < 1:
        raise ParameterError(f"threshold must be a whole number from 1, got {threshold!r}")
    arrow()  # before a long download
    source = _source(path, download)
    if not cache:
        return _encode(source, protocol, int(threshold))
    kept_at = cached_path(source, protocol, int(threshold))
    dataset = read_cached(kept_at)
    if dataset is None:
        dataset = _encode(source, protocol, int(threshold))
        write_cached(dataset, kept_at)
    return dataset


def _source(path: str | os.PathLike[str] | None, download: bool) -> Path:
    if path is not None:
        if not Path(path).is_file():
            raise DataNotFoundError(f"there is no file {os.fspath(path)}. {_BY_HAND}")
        return Path(path)
    found = find(*NAMES)
    if found is None and not download:
        raise DataNotFoundError(f"{FILE} is not here, and must not be downloaded. {_BY_HAND}")
    return found or fetch(URL, cache_folder() / ARCHIVE, by_hand=_BY_HAND)


def _encode(source: Path, protocol: Protocol, threshold: int) -> Dataset:
    """Read the whole file once; what is not kept is forgotten block by block."""
    lines = 0
    amounts: list[NDArray[np.float64]] = []
    numbers: list[NDArray[np.float64]] = []
    values: dict[str, list[Any]] = {name: [] for name in CATEGORIES}
    for batch in batches(source):
        lines += batch.num_rows
        keep = _kept(batch, protocol)
        some = batch.filter(arrow().core.array(keep))
        amounts.append(_floats(some, _AMOUNT))
        numbers.append(np.column_stack([_finite(some, name) for name in _COLUMNS[protocol]]))
        for name in CATEGORIES:
            values[name].append(some.column(name).dictionary_encode())
    y = np.clip(np.concatenate(amounts), *BOUNDS)
    if not y.size:
        raise DataError(f"{source} has {lines} lines and no sale among them")
    ids = np.empty((y.size, len(CATEGORIES)), dtype=np.int32)
    sizes = []
    for k, name in enumerate(CATEGORIES):
        ids[:, k], size = _numbered(values.pop(name), threshold)  # popped: strings of one column at a time
        sizes.append(size)
    counts = (f"{lines} lines read, {y.size} kept.", f"Values with fewer than {threshold} lines have number 0.")
    return Dataset(
        "criteo",
        np.concatenate(numbers),
        y,
        BOUNDS,
        _COLUMNS[protocol],
        ids,
        CATEGORIES,
        tuple(sizes),
        (*_NOTES[protocol], _ALWAYS, *counts),
    )


def _kept(batch: Any, protocol: Protocol) -> NDArray[np.bool_]:
    amount = _floats(batch, _AMOUNT)
    if protocol == "code":
        return np.asarray((amount >= BOUNDS[0]) & (amount <= BOUNDS[1]))
    return np.asarray((_floats(batch, "Sale") == 1) & np.isfinite(amount))


def _floats(batch: Any, name: str) -> NDArray[np.float64]:
    """Return a column of numbers, NaN where missing."""
    column: NDArray[np.float64] = batch.column(name).to_numpy(zero_copy_only=False)
    return column


def _finite(batch: Any, name: str) -> NDArray[np.float64]:
    column = _floats(batch, name)
    return np.where(np.isfinite(column), column, -1.0)


def _numbered(chunks: list[Any], threshold: int) -> tuple[NDArray[np.int32], int]:
    """Return a category's values as numbers, and how many numbers there are."""
    pa, _, compute, _ = arrow()
    column = pa.chunked_array(chunks).unify_dictionaries()
    words = column.chunk(0).dictionary
    codes = np.concatenate([chunk.indices.fill_null(len(words)).to_numpy() for chunk in column.chunks])
    counts = np.bincount(codes, minlength=len(words) + 1)[:-1]
    often = np.flatnonzero(counts >= threshold)
    table = pa.table({"count": counts[often], "word": words.take(pa.array(often))})
    # ties by the value itself: the numbers do not depend on the order of the lines
    order = compute.sort_indices(table, sort_keys=[("count", "descending"), ("word", "ascending")]).to_numpy()
    number = np.zeros(len(words) + 1, dtype=np.int32)
    number[often[order]] = np.arange(1, often.size + 1, dtype=np.int32)
    return number[codes], often.size + 1
