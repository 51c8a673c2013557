"""Secure words: never repeated, by threads, forks or copies; seeded words: repeatable, and loud."""

import copy
import hashlib
import os
import pickle
import threading

import numpy as np
import pytest
from cryptography.hazmat.primitives.ciphers import Cipher, algorithms, modes
from scipy import stats

import labeldp as ldp
from exact.word_cases import assert_no_common_word, draw
from helpers import FALSE_ALARM, PATIENCE, seeded
from labeldp.exact import SecureWords, resolve_source
from labeldp.exact import word_sources as randomness
from labeldp.exact.word_sources import CHUNK_BYTES

pytestmark = pytest.mark.real_words

CHUNK = CHUNK_BYTES // 8
# A source that misbehaves repeats some of its words; one that behaves repeats one among n words with
# probability n²/2^65, below 1e-8 for every n here. So "no common word" has a false-alarm rate below 1e-6.


# ---- filling --------------------------------------------------------------------------------------


each_source = pytest.mark.parametrize("make", [SecureWords, lambda: seeded(1)], ids=["secure", "seeded"])


@pytest.mark.parametrize("size", [0, 1, 2, 3, 7, CHUNK - 1, CHUNK, CHUNK + 1, 3 * CHUNK + 5])
@each_source
def test_fill_writes_every_byte_of_the_buffer_and_nothing_beside_it(make, size):
    """A byte that is written 16 times stays zero with a chance of 2^-128, a word once in 2^64."""
    source, whole, written = make(), np.zeros(size + 2, dtype=np.uint64), np.zeros(size, dtype=np.uint64)
    for _ in range(16):
        source.fill(whole[1:-1])
        assert np.count_nonzero(whole) == size
        written |= whole[1:-1]
    assert whole[0] == whole[-1] == 0
    assert written.view(np.uint8).all()


def test_no_word_is_given_twice_by_one_source_or_two():
    source = SecureWords()
    assert_no_common_word(*(draw(source, n) for n in (1, 5, 100, 40_000)), draw(SecureWords(), 1000))


# ---- forks, threads, keys, copies ------------------------------------------------------------------


def test_a_fork_that_python_does_not_see_still_changes_the_words(monkeypatch):
    source = SecureWords()
    before, stream = draw(source), source._stream
    monkeypatch.setattr(os, "getpid", lambda: -1)
    assert_no_common_word(before, draw(source))
    assert source._stream is not stream


def test_after_a_fork_every_source_drops_its_key_and_its_lock(monkeypatch):
    """Also where the child's process has the id of a parent that ended."""
    sources = [SecureWords(), SecureWords(), ldp.exact.default_source()]
    before, streams = [draw(source) for source in sources], [source._stream for source in sources]
    with sources[0]._lock:  # held by a thread that the child does not have
        monkeypatch.setattr(randomness, "_forks", [None])
        assert_no_common_word(*before, *(draw(source) for source in sources))
        assert all(source._stream is not old for source, old in zip(sources, streams, strict=True))


def test_threads_that_share_a_source_never_get_the_same_word():
    source, start = SecureWords(), threading.Barrier(8)
    parts = [[] for _ in range(8)]

    def work(mine):
        start.wait(PATIENCE)
        mine.extend(draw(source, 97) for _ in range(200))

    threads = [threading.Thread(target=work, args=(part,)) for part in parts]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert_no_common_word(*(words for part in parts for words in part))


def test_a_key_serves_no_more_than_its_bytes(monkeypatch):
    keys, make = [], randomness._keystream
    monkeypatch.setattr(randomness, "REKEY_BYTES", 1 << 8)
    monkeypatch.setattr(randomness, "_keystream", lambda *key: keys.append(key) or make(*key))
    source = SecureWords()
    sizes = (5, 32, 33, 1, 300, 7)
    assert_no_common_word(*(draw(source, size) for size in sizes))
    assert len(set(keys)) == len(keys) >= 8 * sum(sizes) / (1 << 8)


@pytest.mark.parametrize("how", [copy.copy, copy.deepcopy, pickle.dumps], ids=["copy", "deepcopy", "pickle"])
def test_a_secure_source_refuses_to_be_copied(how):
    with pytest.raises(TypeError, match="make a new one"):
        how(SecureWords())


# ---- seeds ----------------------------------------------------------------------------------------


def test_a_seeded_source_warns_whoever_gave_the_seed_and_is_no_secure_source():
    with pytest.warns(ldp.InsecureRandomnessWarning, match="never for a release") as warned:
        source = ldp.exact.SeededWords(1)
    assert [warning.filename for warning in warned] == [__file__]
    assert not isinstance(source, SecureWords)


def test_a_seed_repeats_its_words_however_they_are_cut():
    source = seeded(7)
    cut = np.concatenate([draw(source, n) for n in (1, 2, 40_000, 3)])
    assert np.array_equal(cut, draw(seeded(7), cut.size))
    assert_no_common_word(draw(seeded(7)), draw(seeded(8)))


@pytest.mark.parametrize("seed", [0, 1, -5, 1 << 80])
def test_a_seeds_words_are_aes_256_ctr_under_the_hashed_seed(seed):
    key = hashlib.sha256(f"labeldp insecure seed {seed}".encode()).digest()
    aes = Cipher(algorithms.AES(key), modes.CTR(bytes(16))).encryptor()
    expected = np.frombuffer(aes.update(bytes(8 * 70_001)), dtype="<u8")
    assert np.array_equal(draw(seeded(seed), 70_001), expected)


# ---- random_state ---------------------------------------------------------------------------------


def test_random_state_is_a_seed_and_warns_or_a_source_and_by_default_a_secure_one():
    for seed in (3, np.int64(3)):
        with pytest.warns(ldp.InsecureRandomnessWarning):
            assert np.array_equal(draw(resolve_source(seed)), draw(seeded(3)))
    source = seeded(1)
    assert resolve_source(source) is source
    assert type(resolve_source(None)) is SecureWords


@pytest.mark.parametrize(
    "state",
    [
        *(True, 1.0, "1", [1], {}),
        *(np.arange(3), np.random.default_rng(1), np.random.RandomState(1)),
    ],
    ids=lambda state: type(state).__name__,
)
def test_random_state_of_any_other_kind_is_refused(state):
    with pytest.raises(ldp.errors.ParameterError, match="random_state must be None"):
        resolve_source(state)


# ---- statistics -----------------------------------------------------------------------------------


def uniform(words):
    """False alarm 1e-6 over 64 bit positions and one χ²; finds a bit that is off by 0.4 % or more."""
    ones = [int(np.count_nonzero(words >> np.uint64(bit) & np.uint64(1))) for bit in range(64)]
    tally = np.bincount(words.view(np.uint8), minlength=256)
    pvalues = [stats.binomtest(n, words.size).pvalue for n in ones] + [stats.chisquare(tally).pvalue]
    return min(pvalues) > FALSE_ALARM / 65


@pytest.mark.statistical
def test_bits_and_bytes_of_words_are_uniform_and_a_stuck_bit_would_be_noticed():
    words = draw(SecureWords(), 1 << 20)
    assert uniform(words)
    words[: words.size // 100] |= np.uint64(1)  # one word in a hundred has its last bit set
    assert not uniform(words)
