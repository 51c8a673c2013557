"""Words of rows: the same whenever a row is asked for, secret without the key, and used for one release."""

from __future__ import annotations

import copy
import hashlib
import hmac
import os
import pickle

import numpy as np
import pytest
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.ciphers import Cipher, algorithms, modes
from cryptography.hazmat.primitives.kdf.hkdf import HKDF

import labeldp as ldp
from exact.word_cases import as_ids
from helpers import NAMES, mechanisms, posix_only
from labeldp.errors import ParameterError
from labeldp.exact import row_words
from labeldp.exact.word_sources import CHUNK

pytestmark = pytest.mark.filterwarnings("ignore::labeldp.InsecureRandomnessWarning")

SECRET = bytes(range(32))
ROWS = CHUNK + 777


def words(secret, ids):
    """Return each row's word, and its rounding bits if a channel asks for them."""
    out = np.empty(len(ids) + (len(ids) + 1) // 2, dtype=np.uint64)
    row_words.RowWords(secret, as_ids(ids)).fill(out)
    return out[: len(ids)], out[len(ids) :].view(np.uint32)[: len(ids)]


# ---- a row's word is the row's ------------------------------------------------------------------------


@pytest.mark.parametrize("name", NAMES)
def test_a_row_is_randomised_alike_in_any_order_and_company(name):
    mechanism = mechanisms(1.0)[name]
    rng = np.random.default_rng(3)
    labels, ids = rng.random(ROWS), rng.permutation(ROWS) - 500
    whole = mechanism.randomize(labels, random_state=row_words.RowWords(SECRET, as_ids(ids)))
    some = rng.permutation(ROWS)[: ROWS // 2 + 1]
    again = mechanism.randomize(labels[some], random_state=row_words.RowWords(SECRET, as_ids(ids[some])))
    np.testing.assert_array_equal(again, whole[some])
    fresh = mechanism.randomize(labels, random_state=row_words.RowWords(bytes(32), as_ids(ids)))
    assert (fresh != whole).any()  # another secret is another release


def derived(secret, *fields):
    return HKDF(hashes.SHA256(), 32, salt=b"labeldp row words 1", info=row_words._encoded(*fields)).derive(secret)


def test_the_words_are_those_that_the_proof_speaks_of():
    """AES of the id, or of its keyed hash, under keys from HKDF; fields are encoded with kind and length."""

    def encrypt(key, data):
        return Cipher(algorithms.AES256(key), modes.ECB()).encryptor().update(data)  # noqa: S305

    assert row_words._encoded() == bytes(8)
    two = bytes(7) + b"\2" + b"s" + bytes(7) + b"\3" + "Zö".encode() + b"i" + bytes(7) + b"\2" + b"-3"
    assert row_words._encoded("Zö", -3) == two
    key = derived(SECRET, "words", "integer", 0)
    integer = encrypt(key, (-7).to_bytes(16, "little", signed=True)[:8] + bytes(8))
    word, rounding = words(SECRET, [-7])
    assert int(word[0]) == int.from_bytes(integer[:8], "little")
    assert int(rounding[0]) == int.from_bytes(integer[8:12], "little")
    tag = hmac.digest(derived(SECRET, "ids", "text"), "Zoë".encode(), "sha256")[:16]
    text = encrypt(derived(SECRET, "words", "text", 0), tag)
    assert int(words(SECRET, ["Zoë"])[0][0]) == int.from_bytes(text[:8], "little")
    release = row_words.ReleaseKey(3)
    seed = hashlib.sha256(b"labeldp insecure release key 3").digest()
    expected = derived(seed, "rows", "test-3", "sha256:1", "y", 2)
    assert release.secret(card="sha256:1", column="y", round=2) == expected
    assert release.secret(card="c", column="y") == derived(seed, "rows", "test-3", "c", "y", 0)


def test_no_two_rows_share_a_word_however_many_pieces_they_come_in():
    rows = 3 * CHUNK + 5
    source = row_words.RowWords(SECRET, as_ids(np.arange(rows)))
    parts = [np.empty(size, dtype=np.uint64) for size in (CHUNK, CHUNK, CHUNK, 5)]
    for part in parts:
        source.fill(part)
    assert np.unique(np.concatenate(parts)).size == rows
    for size in (0, 1):
        with pytest.raises(ParameterError, match="nothing else"):
            source.fill(np.empty(size, dtype=np.uint64))


# ---- recomputation ------------------------------------------------------------------------------------


def attack(release):
    """Return the average of a thousand recomputations of a row whose label is 1, debiased."""
    mechanism = ldp.Laplace(bounds=(0, 1), epsilon=0.5)
    runs = mechanism.debias(np.concatenate([release(mechanism, [1.0]) for _ in range(1000)]))
    return runs.mean(), runs.std()


def test_recomputing_reveals_nothing_more_and_with_fresh_words_it_would():
    """1000 runs of Laplace noise of deviation 2.8: the average is within 0.5 of the label but for 1 in 10^7."""
    middle, spread = attack(lambda m, y: m.randomize(y, random_state=row_words.RowWords(SECRET, as_ids([5]))))
    assert spread < 1e-12
    assert middle != pytest.approx(1.0, abs=1e-3)
    middle, _ = attack(lambda m, y: m.randomize(y))
    assert middle == pytest.approx(1.0, abs=0.5)


# ---- keys ---------------------------------------------------------------------------------------------


def test_whatever_names_a_word_changes_it():
    base = {"card": "sha256:1", "column": "y", "round": 0}
    changed = [base, {**base, "card": "sha256:2"}, {**base, "column": "x"}, {**base, "round": 1}]
    first = [words(row_words.ReleaseKey(1).secret(**one), [1])[0][0] for one in changed]
    first.append(words(row_words.ReleaseKey(2).secret(**base), [1])[0][0])
    assert len(set(first)) == len(first)
    fresh = [row_words.ReleaseKey().secret(**base) for _ in range(2)]
    assert len({words(secret, [1])[0][0] for secret in fresh}) == 2


def test_a_key_serves_each_column_and_round_once():
    key = row_words.ReleaseKey()
    key.secret(card="one", column="y")
    key.secret(card="one", column="y", round=1)
    for again in ({"card": "two"}, {"card": "one", "round": 0}):
        with pytest.raises(ParameterError, match="share their noise"):
            key.secret(column="y", **again)


def test_a_key_that_served_its_release_gives_nothing_and_keeps_nothing():
    with row_words.ReleaseKey() as key:
        assert len(key._secret) == 32
    assert key._secret is None
    with pytest.raises(ParameterError, match="destroyed"):
        key.secret(card="one", column="y")


def test_keys_and_sources_cannot_be_copied_and_do_not_show_themselves():
    key = row_words.ReleaseKey()
    for thing in (key, row_words.RowWords(SECRET, as_ids([1]))):
        for way in (pickle.dumps, copy.copy, copy.deepcopy):
            with pytest.raises(TypeError, match="cannot be copied or pickled"):
                way(thing)
    assert key._secret.hex() not in repr(key) + str(vars(type(key)))


# ---- what cannot be used ------------------------------------------------------------------------------


@pytest.mark.parametrize("ids", [[1, 2], [1, 2, 3, 4]])
def test_there_must_be_an_id_for_each_label(ids):
    with pytest.raises(ParameterError, match="one id"):
        mechanisms(1.0)["rp"].randomize([0.1, 0.2, 0.3], random_state=row_words.RowWords(SECRET, as_ids(ids)))


def test_a_source_serves_one_release():
    mechanism, source = mechanisms(1.0)["laplace"], row_words.RowWords(SECRET, as_ids([1, 2, 3]))
    mechanism.randomize([0.1, 0.2, 0.3], random_state=source)
    with pytest.raises(ParameterError, match="not used before"):
        mechanism.randomize([0.1, 0.2, 0.3], random_state=source)


def test_words_of_rows_are_refused_before_the_charge_where_only_randomize_may_use_them():
    ledger, source = ldp.Ledger(), row_words.RowWords(SECRET, as_ids([1, 2, 3]))
    with pytest.raises(ParameterError):
        ldp.privatize([0.1, 0.2, 0.3], epsilon=1.0, bounds=(0, 1), ledger=ledger, random_state=source)
    assert ledger.charges == ()


@posix_only
@pytest.mark.filterwarnings("ignore::DeprecationWarning")  # Python 3.12 on: forking with threads
def test_a_forked_process_gets_nothing_from_a_key_or_a_source():
    key = row_words.ReleaseKey()
    source = row_words.RowWords(SECRET, as_ids([1, 2]))
    uses = (lambda: key.secret(card="c", column="y"), lambda: source.fill(np.empty(2, np.uint64)))
    child = os.fork()
    if not child:
        for use in uses:
            try:
                use()
            except ParameterError:
                continue
            os._exit(1)
        os._exit(0)
    assert os.waitpid(child, 0)[1] == 0
    for use in uses:
        use()


@pytest.mark.parametrize("ids", [[7, 8, 7], ["ann", "bob", "ann"], [b"", b""]], ids=str)
def test_equal_ids_would_share_their_noise_and_are_refused(ids):
    with pytest.raises(ParameterError, match="must all be different"):
        row_words.RowWords(SECRET, as_ids(ids))
