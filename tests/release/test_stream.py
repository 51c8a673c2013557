"""Labels in batches: the same release as in one piece, charged before anything leaves, each label once."""

import copy
import dataclasses
import os
import pickle
import threading

import numpy as np
import pytest

import labeldp as ldp
from helpers import PATIENCE, posix_only, seeded
from labeldp.accounts.scope import Scope
from labeldp.errors import DataError, ParameterError
from labeldp.exact.sampling import CHUNK
from labeldp.release import LabelStream

BOUNDS = (0.0, 5.0)
LABELS = np.random.default_rng(5).gamma(2.0, 0.8, 3 * CHUNK + 17)
NINE = LABELS[:9]
PRIOR = ldp.Histogram([0, 1, 2, 5], [3, 2, 1])
ORDERS = {
    "as it comes": {},
    **{name: {"mechanism": name} for name in ("rp", "laplace", "two-point", "unbiased", "rr-on-bins")},
    "part for the prior": {"epsilon_prior": 0.25},
    "no prior": {"epsilon_prior": 0},
    "known prior": {"prior": PRIOR},
    "window": {"zeta": 0.7},
    "people": {"rows_per_person": 3},
    "made already": {"mechanism": ldp.TwoPoint(bounds=(1, 4), epsilon=1.0)},
    "nobody trusted": {"trust": "local"},
    "nobody trusted, and a prior": {"trust": "local", "epsilon_prior": 0.5, "mechanism": "rp"},
    "nobody trusted, and none": {"trust": "local", "epsilon_prior": 0},
}


def order(rows_per_person=1, **how):
    how["scope"] = Scope.parse(rows_per_person)
    return ldp.release.Request(**{"epsilon": 1.0, "bounds": BOUNDS, **how})


def small_stream(batches=lambda: [NINE], **options):
    return LabelStream(batches, order(prior=PRIOR), **options)


def timeless(charges):
    return [dataclasses.replace(charge, when="") for charge in charges]


@pytest.mark.parametrize("how", ORDERS.values(), ids=ORDERS)
def test_batches_give_what_one_piece_gives(how):
    how = {**how, "purpose": "values"}
    whole = ldp.privatize(LABELS, epsilon=1.0, bounds=BOUNDS, random_state=seeded(3), **how)
    batches = [LABELS[:0], *np.split(LABELS, [CHUNK, 2 * CHUNK]), []]
    ledger = ldp.Ledger()
    ledger.charge("earlier", epsilon=0.1)
    stream = LabelStream(lambda: batches, order(**how), ledger=ledger, random_state=seeded(3))
    parts = [stream.release(batch) for batch in batches]
    assert [part.shape for part in parts] == [np.shape(batch) for batch in batches]
    np.testing.assert_array_equal(np.concatenate(parts), whole.values)
    terms = stream.finish()
    assert terms is stream.terms
    for name in ("rows", "mechanisms", "priors", "bounds", "trust", "secure", "cost"):
        assert getattr(terms, name) == getattr(whole.terms, name), name
    assert timeless(terms.charges) == timeless(whole.charges)
    assert ledger.charges[1:] == terms.charges
    assert stream.mechanism is terms.mechanisms[0]


# ---- counts -------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "unneeded", [{"trust": "local"}, {"prior": PRIOR}, {"mechanism": "two-point"}, {"epsilon_prior": 0}], ids=str
)
def test_labels_are_not_counted_in_cells_that_no_curators_prior_needs(unneeded, monkeypatch):
    monkeypatch.setattr("labeldp.release.stream.Cells", lambda *given: pytest.fail("counted"))
    stream = LabelStream(lambda: [LABELS, LABELS[:0]], order(**unneeded))
    assert stream.terms.rows == LABELS.size


# ---- each label is released once ----------------------------------------------------------------------


def test_every_label_is_released_once_and_no_more():
    stream = small_stream()
    stream.release(NINE[:-1])
    with pytest.raises(DataError, match="fewer"):
        stream.finish()
    stream.release(NINE[-1:])
    assert stream.finish() is stream.terms
    with pytest.raises(DataError, match="more"):
        stream.release(NINE[:1])


def test_a_stream_cannot_be_copied_for_a_copy_would_release_again_at_no_cost():
    stream = small_stream()
    for copied in (copy.copy, copy.deepcopy, pickle.dumps):
        with pytest.raises(TypeError, match="cannot be copied"):
            copied(stream)
    assert stream.release(NINE).size == 9


@posix_only
def test_a_forked_process_cannot_release_again_either():
    stream = small_stream()
    child = os.fork()
    if not child:
        try:
            stream.release(NINE)
        except ParameterError:
            os._exit(0)
        os._exit(1)
    assert os.waitpid(child, 0)[1] == 0
    assert stream.release(NINE).size == 9


class Lazy:
    """An array-like that is computed when it is looked at, and may have grown by then."""

    def __init__(self, *looks, wait=lambda: None):
        self.looks, self.wait = list(looks), wait

    def __array__(self, dtype=None, copy=None):
        self.wait()
        return self.looks.pop(0) if len(self.looks) > 1 else self.looks[0]


def test_of_several_threads_one_releases_the_labels():
    stream = small_stream()
    meet, released, refused = threading.Barrier(4), [], []

    def release():
        try:
            released.append(stream.release(Lazy(NINE, wait=lambda: meet.wait(PATIENCE))))
        except DataError:
            refused.append(True)

    threads = [threading.Thread(target=release) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert (len(released), len(refused)) == (1, 3)


# ---- what is refused costs nothing --------------------------------------------------------------------


def test_bad_labels_a_design_that_fails_and_a_spent_ledger_cost_nothing():
    ledger = ldp.Ledger(limit=ldp.Budget(epsilon=0.5))
    for bad in ([np.nan], ["a"], [], [None]):
        with pytest.raises(ldp.errors.LabelError):
            LabelStream(lambda bad=bad: [bad], order(epsilon=0.5), ledger=ledger)
    with pytest.raises(ParameterError, match="zeta"):
        LabelStream(lambda: [LABELS], order(epsilon=0.5, zeta=1e-300, prior=PRIOR), ledger=ledger)
    with pytest.raises(ldp.BudgetError):
        LabelStream(lambda: [LABELS], order(), ledger=ledger)
    assert ledger.charges == ()
