"""Ids of rows as blocks, held to the standard's own functions, one row at a time; and ids that are refused."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import pytest
from cryptography.hazmat.primitives.ciphers import Cipher, algorithms, modes
from cryptography.hazmat.primitives.hashes import SHA256
from cryptography.hazmat.primitives.hmac import HMAC
from hypothesis import given, settings
from hypothesis import strategies as st

import labeldp as ldp
from labeldp.exact import row_ids
from labeldp.exact.row_words import RowWords

KEY = bytes(range(32))
TEXTS = ["", "a", "sixteen letters!", "one more than 16.", "Zoë", "z" * 32, "z" * 40, "", "y" * 100, "b"]


def encrypt(key, data):
    return Cipher(algorithms.AES256(key), modes.ECB()).encryptor().update(data)  # noqa: S305


def tag(key, data):
    mac = HMAC(key, SHA256())
    mac.update(data)
    return mac.finalize()[:16]


def blocks(ids, start, stop):
    return [one.tobytes() for one in ids.blocks(start, stop)]


@given(st.lists(st.binary(max_size=70), min_size=1, max_size=20), st.binary(min_size=32, max_size=32))
@settings(max_examples=60, deadline=None)
def test_ids_of_any_length_go_through_a_keyed_hash(ids, key):
    assert blocks(row_ids.TextIds.of(ids, "binary").under(key), 0, len(ids)) == [tag(key, one) for one in ids]


@pytest.mark.parametrize(("start", "stop"), [(0, 10), (1, 9), (3, 4), (4, 10), (7, 8)])
def test_some_rows_have_the_blocks_that_they_have_among_all(start, stop):
    texts = row_ids.as_ids(TEXTS).under(KEY)
    assert blocks(texts, start, stop) == [tag(KEY, one.encode()) for one in TEXTS[start:stop]]
    numbers = row_ids.as_ids(np.arange(10) * 7 - 20)
    expected = [int(n).to_bytes(8, "little", signed=True) + bytes(8) for n in numbers.values[start:stop]]
    assert blocks(numbers, start, stop) == expected


def test_public_places_are_those_of_a_key_of_zeros_and_spread():
    key = bytes(32)
    expected = [encrypt(key, n.to_bytes(8, "little", signed=True) + bytes(8)) for n in (5, -5)]
    assert [one.tobytes() for one in row_ids.public_places(row_ids.as_ids([5, -5]))] == expected
    texts = row_ids.public_places(row_ids.as_ids(TEXTS))
    assert [one.tobytes() for one in texts] == [encrypt(key, tag(key, one.encode())) for one in TEXTS]
    assert np.unique(row_ids.public_places(row_ids.IntegerIds(np.arange(50_000)))[:, 0]).size == 50_000


@pytest.mark.parametrize(
    ("ids", "kind"),
    [
        ([1, -2, 2**63 - 1], "integer"),
        (np.array([], dtype=np.int64), "integer"),
        (["a\0", "a", ""], "text"),
        ([b"a", b"\0"], "binary"),
    ],
)
def test_ids_of_a_kind_are_kept_to_the_last_byte(ids, kind):
    converted = row_ids.as_ids(ids)
    assert (converted.kind, len(converted)) == (kind, len(ids))
    if kind == "integer":
        assert converted.values.tolist() == list(ids)
    else:
        parts = [converted.data[a:b].tobytes() for a, b in pairwise(converted.offsets)]
        assert parts == [one if isinstance(one, bytes) else one.encode() for one in ids]


@pytest.mark.parametrize(
    "ids",
    [
        *([1.0, 2.0], [None, "a"], [[1], [2]], ["a", 1], [True, False], [2**63, 1], [-(2**63)], 7, []),
        *(["a", b"a"], (1, "a"), [b"a", None], "ab"),
        np.array([1, 2**64 - 1], dtype=np.uint64),
        np.array([[1, 2]]),
        np.array([b"a\0", b"a"]),  # NumPy drops the last zeros of text and bytes
        np.array(["ann", "ann\0"]),
    ],
    ids=repr,
)
def test_ids_that_do_not_tell_rows_apart_for_sure_are_refused(ids):
    with pytest.raises(ldp.errors.ParameterError, match="ids must be an array"):
        RowWords(KEY, ids)


@pytest.mark.parametrize(
    "ids",
    [
        [7, 8, 7],
        ["ann", "bob", "ann"],
        [b"", b""],
        row_ids.TextIds(
            np.array([3, 6, 9]), np.frombuffer(b"eveannann!", dtype=np.uint8), "text"
        ),  # a slice of a column
    ],
    ids=str,
)
def test_equal_ids_would_share_their_noise_and_are_refused(ids):
    with pytest.raises(ldp.errors.ParameterError, match="ids must all be different"):
        RowWords(KEY, ids)
