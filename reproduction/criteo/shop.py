"""The world behind a synthetic log: products with brands, categories, prices and what is paid for them.

Nothing is stored. Each property of a product is a hash of the product's number, so the world is of any
size, costs no memory, and is the same in every log.
"""

from __future__ import annotations

import zlib
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray
from pyarrow import compute
from scipy.special import ndtri

Keys = NDArray[np.uint64]
Floats = NDArray[np.float64]

_HEX = np.array([int.from_bytes(b"%02X" % k, "little") for k in range(256)], dtype="<u2")
_DIGITS = 32
_SHORTEST, _LONGEST = 2, 5  # words of a title
_WORDS = 30_000
_LEVELS = (0.88, 0.85, 0.70, 0.45, 0.20, 0.05, 0.005)  # the share of products that have a category k


def product_columns(product: Keys) -> tuple[dict[str, Any], Floats]:
    """Return the columns of the log that describe these products, and the logarithm of what a sale brings."""
    partner = _pick("partner", product, 300, 0.9)
    country = _pick("country", partner, 20, 0.8)
    brand = _pick("brand", product, 20_000, 1.1)
    levels = [_pick("category", product, 20, 0.7)]  # from the broadest to the finest
    for k in range(1, len(_LEVELS)):
        branch = hash64(f"branch {k}", product) % np.uint64(5)
        levels.append(hash64(f"category {k}", levels[-1] * np.uint64(8) + branch))
    log_price = (
        3.5
        + 0.55 * effect("price, category", levels[0])
        + 0.35 * effect("price, category 2", levels[1])
        + 0.45 * effect("price, brand", brand)
        + 0.35 * effect("price, product", product)
    )
    log_amount = (
        4.05
        + 0.6 * (log_price - 3.5)
        + 0.3 * effect("category", levels[0])
        + 0.15 * effect("category 2", levels[1])
        + 0.35 * effect("partner", partner)
        + 0.2 * effect("country", country)
        + 0.25 * effect("brand", brand)
    )
    price_known = _unit(hash64("price known", product)) < 0.85
    columns = {
        "product_price": np.where(price_known, np.exp(log_price).round(2), -1.0),
        "product_id": hex_words("product", product),
        "product_country": hex_words("country", country),
        "partner_id": hex_words("partner", partner),
        "product_title": with_gaps(_titles(product), hash64("no title", product), 0.04, ""),
    }
    for name, key, keys, share, mark in (
        ("product_age_group", "age", _pick("age", product, 8, 0.9), 0.7, ""),
        ("product_gender", "gender", _pick("gender", product, 4, 0.7), 0.7, "-1"),
        ("product_brand", "brand", brand, 0.35, ""),
    ):
        columns[name] = with_gaps(hex_words(key, keys), hash64(f"no {key}", product), share, mark)
    depth = hash64("depth", product)  # one for all levels: a finer category has all broader ones
    for k, (keys, share) in enumerate(zip(levels, _LEVELS, strict=True), start=1):
        columns[f"product_category{k}"] = with_gaps(hex_words(f"category {k}", keys), depth, 1 - share, "-1")
    return columns, log_amount


def hash64(name: str, keys: Keys) -> Keys:
    """Return a 64-bit hash of each key, another one for each name (SplitMix64's finaliser)."""
    salt = np.uint64(zlib.crc32(name.encode()) + 1)
    x = (keys + salt) * np.uint64(0x9E3779B97F4A7C15)
    x = (x ^ (x >> np.uint64(32)) ^ (salt << np.uint64(31))) * np.uint64(0xD6E8FEB86659FD93)
    x = (x ^ (x >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    x = (x ^ (x >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return x ^ (x >> np.uint64(31))


def _unit(hashes: Keys) -> Floats:
    """Return hashes as numbers in (0, 1)."""
    return ((hashes >> np.uint64(12)).astype(np.float64) + 0.5) * 2.0**-52


def effect(name: str, keys: Keys) -> Floats:
    """Return a standard normal number that belongs to each key."""
    return np.asarray(ndtri(_unit(hash64(f"effect of {name}", keys))))


def sample_ranks(unit: Floats, size: int, exponent: float) -> Keys:
    """Turn uniform numbers into ranks from 0 to size − 1, rank r with weight about (r+1)^−exponent.

    Inverts the bounded Pareto distribution function, so no table of weights is needed.
    """
    power = 1.0 - exponent
    rank = (1.0 + unit * ((size + 1.0) ** power - 1.0)) ** (1.0 / power) - 1.0
    return np.asarray(np.minimum(rank, size - 1.0).astype(np.uint64))


def _pick(name: str, keys: Keys, size: int, exponent: float) -> Keys:
    """Return a rank that belongs to each key."""
    return sample_ranks(_unit(hash64(name, keys)), size, exponent)


def hex_words(name: str, keys: Keys) -> Any:
    """Return each key as 32 upper-case hexadecimal digits, as an Arrow array of strings."""
    data = np.ascontiguousarray(_hex(name, keys)).reshape(-1)
    return _strings(data, np.arange(len(keys) + 1, dtype=np.int32) * np.int32(_DIGITS))


def _hex(name: str, keys: Keys) -> NDArray[np.uint8]:
    halves = np.stack([hash64(f"{name} 1", keys), hash64(f"{name} 2", keys)], axis=-1)
    return _HEX[halves.view(np.uint8)].view(np.uint8)


def _strings(data: NDArray[np.uint8], offsets: NDArray[np.int32]) -> Any:
    return pa.StringArray.from_buffers(len(offsets) - 1, pa.py_buffer(offsets), pa.py_buffer(data))


def _titles(keys: Keys) -> Any:
    """Return for each key two to five words of 32 digits, separated by spaces."""
    count = _SHORTEST + (hash64("length of title", keys) % np.uint64(_LONGEST - _SHORTEST + 1)).astype(np.int64)
    # Each word's bytes lie one after the other, so a shorter title is a beginning of the longest.
    text = np.full((len(keys), _LONGEST, _DIGITS + 1), ord(" "), dtype=np.uint8)
    for k in range(_LONGEST):
        text[:, k, :_DIGITS] = _hex("word", _pick(f"word {k} of title", keys, _WORDS, 0.9))
    ends = (_DIGITS + 1) * count - 1
    flat = text.reshape(len(keys), -1)
    return _strings(flat[np.arange(flat.shape[1]) < ends[:, None]], np.cumsum([0, *ends]).astype(np.int32))


def with_gaps(strings: Any, hashes: Keys, share: float, mark: str) -> Any:
    """Return the strings with ``mark`` in the place of a share of them."""
    return compute.if_else(pa.array(_unit(hashes) < share), pa.scalar(mark), strings)
