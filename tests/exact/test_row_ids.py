"""Ids of rows as blocks, held to the standard's own functions, one row at a time; and ids that are refused."""

from __future__ import annotations

import numpy as np
from cryptography.hazmat.primitives.ciphers import Cipher, algorithms, modes
from cryptography.hazmat.primitives.hashes import SHA256
from cryptography.hazmat.primitives.hmac import HMAC
from hypothesis import given, settings
from hypothesis import strategies as st

from exact.word_cases import as_ids
from labeldp.exact import row_ids

KEY = bytes(range(32))
TEXTS = ["", "a", "sixteen letters!", "one more than 16.", "Zoë", "z" * 32, "z" * 40, "", "y" * 100, "b"]


def encrypt(key, data):
    return Cipher(algorithms.AES256(key), modes.ECB()).encryptor().update(data)  # noqa: S305


def tag(key, data):
    mac = HMAC(key, SHA256())
    mac.update(data)
    return mac.finalize()[:16]


def blocks(ids, start, stop):
    return [one.tobytes() for one in ids.blocks(KEY, start, stop)]


@given(st.lists(st.binary(max_size=70), min_size=1, max_size=20))
@settings(max_examples=60, deadline=None)
def test_ids_of_any_length_go_through_a_keyed_hash(ids):
    assert blocks(row_ids.Ids("binary", ids), 0, len(ids)) == [tag(KEY, one) for one in ids]


def test_public_places_are_those_of_a_key_of_zeros_and_spread():
    key = bytes(32)
    expected = [encrypt(key, n.to_bytes(8, "little", signed=True) + bytes(8)) for n in (5, -5)]
    assert [one.tobytes() for one in row_ids.public_places(as_ids([5, -5]))] == expected
    texts = row_ids.public_places(as_ids(TEXTS))
    assert [one.tobytes() for one in texts] == [encrypt(key, tag(key, one.encode())) for one in TEXTS]
    assert np.unique(row_ids.public_places(as_ids(np.arange(50_000)))[:, 0]).size == 50_000


def test_ids_are_different_if_a_byte_is():
    assert as_ids([1, -2, 2**63 - 1]).distinct()
    assert as_ids(["a\0", "a", ""]).distinct()
    assert not as_ids([b"a", b"\0", b"a"]).distinct()
