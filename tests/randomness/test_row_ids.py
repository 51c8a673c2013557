"""Ids of rows as blocks, and words made from them, held to the standard's own functions, one row at a time."""

from __future__ import annotations

import hashlib

import numpy as np
import pytest
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.ciphers import Cipher, algorithms, modes
from cryptography.hazmat.primitives.cmac import CMAC
from cryptography.hazmat.primitives.kdf.hkdf import HKDF

import labeldp as ldp
from labeldp.channels.domain import CHUNK
from labeldp.randomness.row_ids import IntegerIds, TextIds, aes, as_ids, public_places
from labeldp.randomness.row_words import ReleaseKey, RowWords, _encoded

pytestmark = pytest.mark.filterwarnings("ignore::labeldp.InsecureRandomnessWarning")

KEY = bytes(range(32))
TEXTS = ["", "a", "sixteen letters!", "one more than 16.", "Zoë", "z" * 32, "z" * 40, "", "y" * 100, "b"]


def block(key, data):
    return Cipher(algorithms.AES256(key), modes.ECB()).encryptor().update(data)  # noqa: S305


def tag(key, data):
    cmac = CMAC(algorithms.AES256(key))
    cmac.update(data)
    return cmac.finalize()


@pytest.mark.parametrize(("start", "stop"), [(0, 10), (1, 9), (3, 4), (4, 10), (7, 8)])
def test_some_rows_have_the_blocks_that_they_have_among_all(start, stop):
    texts = as_ids(TEXTS).under(aes(KEY))
    got = [one.tobytes() for one in texts.blocks(start, stop)]
    assert got == [tag(KEY, one.encode()) for one in TEXTS[start:stop]]
    numbers = as_ids(np.arange(10) * 7 - 20)
    got = [one.tobytes() for one in numbers.blocks(start, stop)]
    assert got == [int(n).to_bytes(8, "little", signed=True) + bytes(8) for n in numbers.values[start:stop]]


def test_subkeys_are_right_with_and_without_a_carry():
    cases = set()
    for first in range(32):
        key = bytes([first]) * 32
        cases.add(block(key, bytes(16))[0] >> 6)  # the two bits that are carried
        ids = [b"full to the brim", b"not"]
        got = TextIds.of(ids, "binary").under(aes(key)).blocks(0, 2)
        assert [one.tobytes() for one in got] == [tag(key, one) for one in ids]
    assert cases == {0, 1, 2, 3}


@pytest.mark.parametrize(
    ("ids", "kind"),
    [
        ([1, -2, 3], IntegerIds),
        ((1, 2), IntegerIds),
        ([], TextIds),
        (np.array([], dtype=np.uint64), IntegerIds),
        (np.array([0, 2**63 - 1], dtype=np.uint64), IntegerIds),
        (np.array([255], dtype=np.uint8), IntegerIds),
        (["a", ""], TextIds),
        (np.array(["a", "b"]), TextIds),
        (np.array(["a", "b"], dtype=object), TextIds),
        ([b"a", b"\0"], TextIds),
        (["a\0", "a"], TextIds),
        (np.array([b"a\0", b"a"], dtype=object), TextIds),
        (np.array(["a\0", "a"], dtype=np.dtypes.StringDType()), TextIds),
    ],
)
def test_ids_of_a_kind_are_kept_whole(ids, kind):
    found = as_ids(ids)
    assert isinstance(found, kind)
    assert len(found) == len(ids)
    if kind is IntegerIds:
        assert found.values.tolist() == [int(one) for one in ids]
        assert (found.kind, found.values.dtype) == ("integer", np.int64)
    else:
        parts = [found.data[a:b].tobytes() for a, b in zip(found.offsets, found.offsets[1:], strict=False)]
        assert parts == [one if isinstance(one, bytes) else str(one).encode() for one in ids]
        assert found.kind == ("binary" if any(isinstance(one, bytes) for one in ids) else "text")
        assert found.offsets.dtype == np.int64
    assert as_ids(found) is found


@pytest.mark.parametrize(
    "ids",
    [
        np.array([2**63], dtype=np.uint64),
        np.array([1, 2**64 - 1], dtype=np.uint64),
        np.array([[1, 2]]),
        7,
        ["a", b"a"],
        (1, "a"),
        [1.5],
        np.array([b"a"]),
        [b"a", None],
        np.array(["a", None], dtype=object),
    ],
)
def test_other_ids_are_refused(ids):
    with pytest.raises(ldp.ParameterError, match="ids"):
        as_ids(ids)


def test_public_places_are_those_of_a_key_of_zeros():
    key = bytes(32)
    numbers = public_places(as_ids([5, -5]))
    expected = [block(key, n.to_bytes(8, "little", signed=True) + bytes(8)) for n in (5, -5)]
    assert [one.tobytes() for one in numbers] == expected
    texts = public_places(as_ids(TEXTS))
    assert [one.tobytes() for one in texts] == [block(key, tag(key, one.encode())) for one in TEXTS]


# ---- words --------------------------------------------------------------------------------------------


def test_no_two_rows_share_a_word_however_many_pieces_they_come_in():
    rows = 3 * CHUNK + 5
    source = RowWords(KEY, np.arange(rows)).for_labels(rows)
    drawn = []
    for size in (CHUNK, CHUNK, CHUNK, 5):
        words = np.empty(size, dtype=np.uint64)
        source.fill(words)
        drawn.append(words)
    assert np.unique(np.concatenate(drawn)).size == rows
    cipher_key = HKDF(hashes.SHA256(), 32, salt=b"labeldp row words 1", info=_encoded("words", "integer", 0))
    key = cipher_key.derive(KEY)
    for row, word in [(0, drawn[0][0]), (2 * CHUNK + 9, drawn[2][9]), (rows - 1, drawn[3][4])]:
        assert int(word) == int.from_bytes(block(key, row.to_bytes(16, "little"))[:8], "little")
    for size in (0, 1):
        with pytest.raises(ldp.ParameterError, match="other words"):
            source.fill(np.empty(size, dtype=np.uint64))


@pytest.mark.parametrize("rows", [1, 2, 3, 8])
def test_a_channel_gets_words_for_its_rows_or_half_as_many_more_and_nothing_else(rows):
    halves = (rows + 1) // 2
    for size in range(3 * rows + 3):
        source = RowWords(KEY, np.arange(rows)).for_labels(rows)
        words = np.full(size, np.iinfo(np.uint64).max)
        if size not in (rows, rows + halves):
            with pytest.raises(ldp.ParameterError, match="other words"):
                source.fill(words)
            continue
        source.fill(words)
        rounding = words[rows:].view(np.uint32)
        assert rounding[rows:].tolist() == [0] * (rounding.size - min(rows, rounding.size))
        if rounding.size:
            assert np.unique(rounding[:rows]).size == rows


def test_fields_are_encoded_with_their_number_kind_and_length():
    assert _encoded() == bytes(8)
    two = bytes(7) + b"\2" + b"s" + bytes(7) + b"\3" + "Zö".encode() + b"i" + bytes(7) + b"\2" + b"-3"
    assert _encoded("Zö", -3) == two


def test_a_keys_secret_is_derived_from_all_that_names_it():
    key = ReleaseKey.from_seed(3)
    assert key.release == "test-3"
    seed = hashlib.sha256(b"labeldp insecure release key 3").digest()
    info = _encoded("rows", "test-3", "sha256:1", "y", 2)
    derived = HKDF(hashes.SHA256(), 32, salt=b"labeldp row words 1", info=info).derive(seed)
    assert key.secret(card="sha256:1", column="y", round=2) == derived
    first = ReleaseKey.from_seed(3)
    unnamed = first.secret(card="c", column="y")
    with pytest.raises(ldp.ParameterError, match="share their noise"):
        first.secret(card="c", column="y", round=0)
    assert unnamed == ReleaseKey.from_seed(3).secret(card="c", column="y", round=0)


def test_a_key_has_256_bits_of_secret_and_a_name_of_128():
    key = ReleaseKey()
    assert len(key._secret) == 32
    assert len(bytes.fromhex(key.release)) == 16
    held = key._secret
    key.destroy()
    key.destroy()
    assert bytes(held) == bytes(32)
    assert key._secret is None
