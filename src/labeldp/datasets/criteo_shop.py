"""The world behind a made log: products with brands, categories, prices and what is paid for them.

Nothing is stored. Each property of a product is a hash of the product's number, so the world is of any
size, costs no memory, and is the same in every log.
"""

from __future__ import annotations

import zlib
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.special import ndtri

from labeldp.tabular.arrow import arrow

__all__ = ["Goods", "effect", "hashed", "hex_words", "missing", "sample_ranks", "sentences"]

Keys = NDArray[np.uint64]

_HEX = np.array([int.from_bytes(b"%02X" % k, "little") for k in range(256)], dtype="<u2")
_DIGITS = 32
_SHORTEST, _LONGEST = 2, 5  # words of a title
_WORDS = 30_000
_LEVELS = 7
_ENDS = (0.88, 0.85, 0.70, 0.45, 0.20, 0.05, 0.005)  # the share of products that have a category k


def hashed(name: str, keys: Keys) -> Keys:
    """Return a 64-bit hash of each key, another one for each name (SplitMix64's finaliser)."""
    salt = np.uint64(zlib.crc32(name.encode()) + 1)
    x = (keys + salt) * np.uint64(0x9E3779B97F4A7C15)
    x = (x ^ (x >> np.uint64(32)) ^ (salt << np.uint64(31))) * np.uint64(0xD6E8FEB86659FD93)
    x = (x ^ (x >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    x = (x ^ (x >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return x ^ (x >> np.uint64(31))


def _unit(hashes: Keys) -> NDArray[np.float64]:
    """Return hashes as numbers in (0, 1)."""
    return ((hashes >> np.uint64(12)).astype(np.float64) + 0.5) * 2.0**-52


def effect(name: str, keys: Keys) -> NDArray[np.float64]:
    """Return a standard normal number that belongs to each key."""
    normal: NDArray[np.float64] = ndtri(_unit(hashed(f"effect of {name}", keys)))
    return normal


def sample_ranks(unit: NDArray[np.float64], size: int, exponent: float) -> Keys:
    """Turn uniform numbers into ranks from 0 to size − 1, rank r with weight about (r+1)^−exponent.

    Inverts the bounded Pareto distribution function, so no table of weights is needed.
    """
    power = 1.0 - exponent
    rank = (1.0 + unit * ((size + 1.0) ** power - 1.0)) ** (1.0 / power) - 1.0
    ranks: Keys = np.minimum(rank, size - 1.0).astype(np.uint64)
    return ranks


def hex_words(name: str, keys: Keys) -> Any:
    """Return each key as 32 upper-case hexadecimal digits, as an Arrow array of strings."""
    data = np.ascontiguousarray(_hex(name, keys)).reshape(-1)
    return _strings(data, np.arange(len(keys) + 1, dtype=np.int32) * np.int32(_DIGITS))


def _hex(name: str, keys: Keys) -> NDArray[np.uint8]:
    halves = np.stack([hashed(f"{name} 1", keys), hashed(f"{name} 2", keys)], axis=-1)
    return _HEX[halves.view(np.uint8)].view(np.uint8)


def _strings(data: NDArray[np.uint8], offsets: NDArray[np.int32]) -> Any:
    pa = arrow().core
    return pa.StringArray.from_buffers(len(offsets) - 1, pa.py_buffer(offsets), pa.py_buffer(data))


def sentences(name: str, keys: Keys) -> Any:
    """Return for each key two to five words of 32 digits, separated by spaces."""
    count = _SHORTEST + (hashed(f"length of {name}", keys) % np.uint64(_LONGEST - _SHORTEST + 1)).astype(np.int64)
    # each word's bytes lie one after the other, so a shorter title is a beginning of the longest
    text = np.full((len(keys), _LONGEST, _DIGITS + 1), ord(" "), dtype=np.uint8)
    for k in range(_LONGEST):
        word = sample_ranks(_unit(hashed(f"word {k} of {name}", keys)), _WORDS, 0.9)
        text[:, k, :_DIGITS] = _hex("word", word)
    ends = (_DIGITS + 1) * count - 1
    flat = text.reshape(len(keys), -1)
    used = np.arange(flat.shape[1]) < ends[:, None]
    return _strings(flat[used], np.concatenate([[0], np.cumsum(ends)]).astype(np.int32))


def missing(strings: Any, hashes: Keys, share: float, mark: str) -> Any:
    """Return the strings with ``mark`` in the place of a share of them."""
    pa, _, compute, _ = arrow()
    return compute.if_else(pa.array(_unit(hashes) < share), pa.scalar(mark), strings)


@dataclass(frozen=True, slots=True)
class Goods:
    """What is true of the products clicked on, one entry a line.

    Attributes
    ----------
    product, partner, country, brand, age, gender : arrays of keys
    category : tuple of arrays of keys
        From the broadest to the finest.
    log_price, log_amount : arrays
        The logarithm of the price, and of what a sale brings on average.
    price_known : array of bool
        Whether the log tells the price.
    """

    product: Keys
    partner: Keys
    country: Keys
    brand: Keys
    age: Keys
    gender: Keys
    category: tuple[Keys, ...]
    log_price: NDArray[np.float64]
    log_amount: NDArray[np.float64]
    price_known: NDArray[np.bool_]

    @classmethod
    def of(cls, product: Keys) -> Goods:
        """Return what belongs to these products."""

        def pick(name: str, keys: Keys, size: int, exponent: float) -> Keys:
            return sample_ranks(_unit(hashed(name, keys)), size, exponent)

        partner = pick("partner", product, 300, 0.9)
        country = pick("country", partner, 20, 0.8)
        brand = pick("brand", product, 20_000, 1.1)
        levels = [pick("category", product, 20, 0.7)]
        for k in range(1, _LEVELS):
            branch = hashed(f"branch {k}", product) % np.uint64(5)
            levels.append(hashed(f"category {k}", levels[-1] * np.uint64(8) + branch))
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
        return cls(
            product,
            partner,
            country,
            brand,
            pick("age", product, 8, 0.9),
            pick("gender", product, 4, 0.7),
            tuple(levels),
            log_price,
            log_amount,
            _unit(hashed("price known", product)) < 0.85,
        )

    def categories(self) -> dict[str, Any]:
        """Return the hashed columns that describe the product, with their gaps."""

        def gone(name: str, share: float, keys: Keys, mark: str) -> Any:
            return missing(hex_words(name, keys), hashed(f"no {name}", self.product), share, mark)

        found = {
            "product_age_group": gone("age", 0.7, self.age, ""),
            "product_gender": gone("gender", 0.7, self.gender, "-1"),
            "product_brand": gone("brand", 0.35, self.brand, ""),
            "product_country": hex_words("country", self.country),
            "partner_id": hex_words("partner", self.partner),
        }
        depth = hashed("depth", self.product)  # one for all levels: a finer category has all broader ones
        for k, (keys, share) in enumerate(zip(self.category, _ENDS, strict=True), start=1):
            found[f"product_category{k}"] = missing(hex_words(f"category {k}", keys), depth, 1 - share, "-1")
        return found
