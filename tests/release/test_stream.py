"""Labels in batches: the same release as in one piece, paid for before anything leaves."""

from __future__ import annotations

import copy
import os
import pickle
import threading

import numpy as np
import pytest

import labeldp as ldp
from labeldp.channels.domain import CHUNK
from labeldp.errors import DataError
from labeldp.release.plan import Request
from labeldp.release.stream import LabelCounts, LabelStream

pytestmark = pytest.mark.filterwarnings("ignore::labeldp.InsecureRandomnessWarning")

LABELS = np.random.default_rng(5).gamma(2.0, 0.8, 3 * CHUNK + 17)
CUTS = [CHUNK, 2 * CHUNK]
PRIOR = ldp.Histogram([0, 1, 5], [1, 2])


@pytest.mark.parametrize("mechanism", ["auto", "rp", "laplace", "two-point", "unbiased", "rr-on-bins"])
def test_batches_give_what_one_piece_gives(mechanism):
    whole = ldp.privatize(LABELS, epsilon=1.0, bounds=(0, 5), mechanism=mechanism, random_state=3)
    batches = np.split(LABELS, CUTS)
    stream = LabelStream(lambda: batches, Request(epsilon=1.0, bounds=(0, 5), mechanism=mechanism), random_state=3)
    parts = np.concatenate([stream.release(batch) for batch in batches])
    np.testing.assert_array_equal(parts, whole.labels)
    terms = stream.finish()
    assert terms.cost == whole.cost
    assert terms.mechanisms == whole.mechanisms
    assert not terms.secure


def test_nobody_is_trusted_gives_what_one_piece_gives():
    whole = ldp.privatize(LABELS, epsilon=2.0, bounds=(0, 5), trust="local", random_state=3)
    batches = np.split(LABELS, CUTS)
    stream = LabelStream(lambda: batches, Request(epsilon=2.0, bounds=(0, 5), trust="local"), random_state=3)
    np.testing.assert_array_equal(np.concatenate([stream.release(b) for b in batches]), whole.labels)


def test_batches_of_any_length_and_empty_ones_add_up():
    parts = [LABELS[:0], LABELS[:1], LABELS[1:777], LABELS[777:]]
    total = LabelCounts.none()
    for part in parts:
        total += LabelCounts.of(part, (0, 5))
    whole = LabelCounts.of(LABELS, (0, 5))
    assert total.rows == whole.rows
    np.testing.assert_array_equal(total.fine, whole.fine)


def test_a_count_shows_no_label():
    assert repr(LabelCounts.of([1.0, 2.0], (0, 5))) == "<2 labels, counted>"


def test_a_stream_cannot_be_copied_for_a_copy_would_release_again_at_no_cost():
    stream = LabelStream(lambda: [LABELS[:9]], Request(epsilon=1.0, bounds=(0, 5), prior=PRIOR))
    for copied in (copy.copy, copy.deepcopy, pickle.dumps):
        with pytest.raises(TypeError, match="cannot be copied"):
            copied(stream)
    assert stream.release(LABELS[:9]).size == 9
    assert stream.finish().cost == ldp.Budget(epsilon=1.0)


def test_a_forked_process_cannot_release_again_either():
    stream = LabelStream(lambda: [LABELS[:9]], Request(epsilon=1.0, bounds=(0, 5), prior=PRIOR))
    child = os.fork()
    if not child:
        try:
            stream.release(LABELS[:9])
        except ldp.ParameterError:
            os._exit(0)
        os._exit(1)
    assert os.waitpid(child, 0)[1] == 0
    assert stream.release(LABELS[:9]).size == 9


class Lazy:
    """An array-like that is computed when it is looked at, and may have grown by then."""

    def __init__(self, *looks, wait=lambda: None):
        self.looks, self.wait = list(looks), wait

    def __array__(self, dtype=None, copy=None):
        self.wait()
        return self.looks.pop(0) if len(self.looks) > 1 else self.looks[0]


def test_of_several_threads_one_releases_the_labels():
    stream = LabelStream(lambda: [LABELS[:9]], Request(epsilon=1.0, bounds=(0, 5), prior=PRIOR))
    meet, released, refused = threading.Barrier(4), [], []

    def release():
        try:
            released.append(stream.release(Lazy(LABELS[:9], wait=lambda: meet.wait(10))))
        except DataError:
            refused.append(True)

    threads = [threading.Thread(target=release) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert (len(released), len(refused)) == (1, 3)


def test_labels_that_grow_between_two_looks_are_looked_at_once():
    stream = LabelStream(lambda: [LABELS[:9]], Request(epsilon=1.0, bounds=(0, 5), prior=PRIOR))
    assert stream.release(Lazy(LABELS[:9], LABELS)).size == 9
    assert stream.finish().rows == 9
    stream = LabelStream(lambda: [Lazy(LABELS[:9], LABELS)], Request(epsilon=1.0, bounds=(0, 5), prior=PRIOR))
    assert stream.terms.rows == 9


@pytest.mark.parametrize(
    "unneeded", [{"trust": "local"}, {"prior": PRIOR}, {"mechanism": "two-point"}, {"epsilon_prior": 0}], ids=str
)
def test_labels_are_not_counted_in_cells_that_no_curators_prior_needs(unneeded, monkeypatch):
    monkeypatch.setattr("labeldp.release.stream.count", lambda *given: pytest.fail("counted"))
    stream = LabelStream(lambda: [LABELS, LABELS[:0]], Request(epsilon=1.0, bounds=(0, 5), **unneeded))
    assert stream.terms.rows == LABELS.size


def test_what_the_ledger_refuses_is_not_released():
    ledger = ldp.Ledger(limit=ldp.Budget(epsilon=0.5))
    with pytest.raises(ldp.BudgetError):
        LabelStream(lambda: [LABELS], Request(epsilon=1.0, bounds=(0, 5)), ledger=ledger)
    assert ledger.total == ldp.Budget(epsilon=0.0)


def test_bad_labels_cost_nothing():
    ledger = ldp.Ledger()
    for bad in ([np.nan], ["a"], [], [None]):
        with pytest.raises(ldp.LabelError):
            LabelStream(lambda bad=bad: [bad], Request(epsilon=1.0, bounds=(0, 5)), ledger=ledger)
    assert ledger.total == ldp.Budget(epsilon=0.0)


@pytest.mark.parametrize(
    "wrong",
    [
        {"epsilon": 0.0},
        {"bounds": (5, 0)},
        {"mechanism": "none"},
        {"delta": 0.1},
        {"rows_per_person": 0},
        {"trust": "all"},
        {"zeta": -1.0},
    ],
)
def test_an_order_is_refused_before_any_label_is_read(wrong):
    with pytest.raises(ldp.ParameterError):
        Request(**{"epsilon": 1.0, "bounds": (0, 5), **wrong})


def test_a_table_that_changes_between_the_passes_is_refused():
    stream = LabelStream(lambda: [LABELS], Request(epsilon=1.0, bounds=(0, 5)))
    stream.release(LABELS[1:])
    with pytest.raises(DataError, match="fewer"):
        stream.finish()
    with pytest.raises(DataError, match="more"):
        stream.release(LABELS[:2])


def test_the_card_may_say_more_and_is_read_as_any_other():
    stream = LabelStream(lambda: [LABELS], Request(epsilon=1.0, bounds=(0, 5)))
    card = stream.terms.to_card(file={"name": "out.parquet"})
    content = ldp.read_release_card(card)
    assert content["file"] == {"name": "out.parquet"}
    assert content["rows"] == LABELS.size
