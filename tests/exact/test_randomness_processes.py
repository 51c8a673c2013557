"""Processes and secure words: a child never repeats a word of its parent, however it came about."""

import multiprocessing
import threading
import warnings

import numpy as np
import pytest

from exact.word_cases import assert_no_common_word, draw
from helpers import PATIENCE, posix_only, seeded
from labeldp.exact import SecureWords, default_source

pytestmark = pytest.mark.real_words


def _child(pipe, source):
    pipe.send(draw(source if source is not None else default_source()))
    pipe.close()


def in_child(method, source):
    """Return the words that a child process draws from ``source`` (None: its default)."""
    context = multiprocessing.get_context(method)
    ours, theirs = context.Pipe(duplex=False)
    child = context.Process(target=_child, args=(theirs, source))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)  # Python 3.12 on: forking with threads
        child.start()
    try:
        assert ours.poll(PATIENCE), "the child is stuck"
        words = ours.recv()
        child.join(PATIENCE)
        assert child.exitcode == 0
    finally:
        if child.is_alive():
            child.kill()
            child.join()
    return words


@posix_only
@pytest.mark.parametrize("shared", [True, False], ids=["own source", "default source"])
def test_a_forked_child_never_repeats_its_parents_words(shared):
    source = SecureWords() if shared else default_source()
    before = draw(source)
    children = [in_child("fork", source if shared else None) for _ in range(3)]
    assert_no_common_word(before, draw(source), *children)


@posix_only
def test_a_forked_copy_of_a_seeded_source_does_repeat_words():
    """The twin of the test before: it would catch a source that survives a fork."""
    source = seeded(1)
    draw(source)
    assert np.array_equal(in_child("fork", source), draw(source))


@posix_only
def test_a_fork_while_another_thread_holds_the_lock_does_not_deadlock():
    source = SecureWords()
    before = draw(source)
    held, release = threading.Event(), threading.Event()

    def hold():
        with source._lock:
            held.set()
            release.wait(PATIENCE)

    thread = threading.Thread(target=hold)
    thread.start()
    assert held.wait(PATIENCE)
    try:
        words = in_child("fork", source)
    finally:
        release.set()
        thread.join()
    assert_no_common_word(before, words, draw(source))
