"""Arrays of labels: what `privatize`, a prior, a stream or a mechanism returns depends on labels by noise only."""

import pickle
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given

import labeldp as ldp
from fuzzing import tries
from helpers import PURE, mechanisms
from interference import changes
from interference.harness import Way, assert_nothing_leaks, overspending, run
from labeldp.exact import row_words, sampling
from labeldp.exact.row_ids import Ids

BOUNDS = changes.BOUNDS
ROWS = 120
CHANGES = changes.changes(ROWS, every=32)
LOCAL = {"trust": "local", "epsilon_prior": 0.3}  # so few rows would have no prior otherwise


def released(labels, **options):
    """Release labels in every form that `Release` has."""
    ledger = ldp.Ledger.open("ledger.db")
    release = ldp.privatize(labels, **{"epsilon": 1.0, "bounds": BOUNDS, "ledger": ledger, **options})
    left = [release, release.to_card(), release.summary(), repr(release), pickle.dumps(release)]
    return [*left, release._repr_html_(), release.labels, release.values]


def way(**options):
    return Way(lambda labels: released(labels, **{"mechanism": "rp", **options}))


def pair(name, kind=np.float64):
    return [changes.numbers(labels, kind) for labels in CHANGES[name]]


@pytest.mark.parametrize("mechanism", ["auto", *PURE])
@pytest.mark.parametrize("trust", [{}, LOCAL], ids=["curator", "local"])
def test_privatize_with_each_mechanism(mechanism, trust, tmp_path):
    if trust and mechanism not in ("auto", "rp", "rr-on-bins", "unbiased"):
        return  # needs no prior: it is the same for both
    purpose = "values" if mechanism == "rr-on-bins" else "training"
    out = way(mechanism=mechanism, purpose=purpose, **trust)
    assert_nothing_leaks(out, *pair("all rows"), tmp_path)


@pytest.mark.parametrize("change", CHANGES)
def test_privatize_with_each_change_of_labels(change, tmp_path):
    assert_nothing_leaks(way(), *pair(change), tmp_path)


def by_people(labels):
    """Release rows of people of whom some have too many rows, and some no budget left."""
    ledger = ldp.Ledger.open("people.db", limit=ldp.Budget(2.0), unit="person")
    people = [f"p{number % 70}" for number in range(len(labels))]
    ledger.charge("earlier", epsilon=1.5, person=people[:20])
    how = {"segment": ["a", "b"] * (len(labels) // 2), "id": np.arange(len(labels)), "person": people}
    done = ldp.privatize(
        labels, epsilon=1.0, bounds=BOUNDS, mechanism="rp", ledger=ledger, most_rows_per_person=1, **how
    )
    left = [done.labels, done.to_card(), done.summary(), ledger.to_extract(), ledger.total_of_person("p3")]
    return [*left, sorted(ledger.chain.people.items())]


@pytest.mark.filterwarnings("ignore:The labels of")
@pytest.mark.parametrize("change", ["all rows", "constant"])
def test_privatize_by_people_and_segments(change, tmp_path):
    assert_nothing_leaks(Way(by_people), *pair(change), tmp_path)


@pytest.mark.parametrize("kind", [np.float32, np.float16, np.int64, np.int8, np.uint8, ">f8", object])
def test_privatize_with_labels_of_each_type(kind, tmp_path):
    one, other = pair("all rows") if kind is object else pair("all rows", kind)
    assert_nothing_leaks(way(), one.astype(kind), other.astype(kind), tmp_path)


@pytest.mark.parametrize("first", [2.5, 10**30])
def test_privatize_with_lists_of_integers_or_of_floats(first, tmp_path):
    """NumPy gives the two another type, and integers of more than 64 bits a third."""
    assert_nothing_leaks(way(), [2] * 50, [first, *[2] * 49], tmp_path)


@pytest.mark.parametrize("trust", ["curator", "local"])
def test_privatize_with_a_column_of_a_matrix(trust, tmp_path):
    def column(labels):
        one = changes.numbers(labels)
        return np.column_stack([one, one[::-1]])[:, :1]

    assert_nothing_leaks(way(trust=trust), *map(column, CHANGES["first row 1e300"]), tmp_path)


def test_privatize_over_several_chunks(tmp_path):
    """A channel works in pieces; labels at their edges are no exception."""
    one = changes.plain(3 * sampling.CHUNK // 2)
    edges = [0, sampling.CHUNK - 1, sampling.CHUNK, len(one) - 1]
    other = changes.changed(one, edges, changes.SPELLINGS)
    out = Way(lambda labels: ldp.privatize(labels, epsilon=1.0, bounds=BOUNDS, mechanism="laplace"))
    assert_nothing_leaks(out, changes.numbers(one), changes.numbers(other), tmp_path)


@given(inputs=changes.pairs())
@tries(10)
def test_privatize_whatever_the_labels(inputs, tmp_path_factory):
    assert_nothing_leaks(way(), *map(changes.numbers, inputs), tmp_path_factory.mktemp("any"))


# ---- priors, streams, mechanisms ----------------------------------------------------------------------------

PRIORS = [("curator", None), ("local", None), ("local", "laplace")]


@pytest.mark.parametrize(("trust", "method"), PRIORS)
@pytest.mark.parametrize("change", ["all rows", "constant"])
def test_estimate_prior(trust, method, change, tmp_path):
    how = {"epsilon": 2.5 if trust == "curator" else 0.5}  # enough to search for place and scale
    how |= {"bounds": BOUNDS, "trust": trust, "method": method, "rows_per_person": 2}

    def act(labels):
        ledger = ldp.Ledger.open("ledger.db", limit=ldp.Budget(9.0))
        prior = ldp.estimate_prior(labels, **how, ledger=ledger)
        return prior, prior.mean, repr(prior), ledger

    assert_nothing_leaks(Way(act), *pair(change), tmp_path)


def streamed(labels, **options):
    """Release labels in four batches."""
    batches = np.split(labels, [32, 64, 64])
    request = ldp.release.Request(epsilon=1.0, bounds=BOUNDS, **{**LOCAL, **options})
    labels = ldp.release.LabelStream(lambda: batches, request, ledger=ldp.Ledger.open("ledger.db"))
    return [labels.release(batch) for batch in batches], labels.finish().to_card(), repr(labels.terms)


@pytest.mark.parametrize("trust", ["curator", "local"])
@pytest.mark.parametrize("change", ["boundaries", "all rows"])
def test_a_stream_of_labels(trust, change, tmp_path):
    assert_nothing_leaks(Way(lambda labels: streamed(labels, trust=trust)), *pair(change), tmp_path)


@pytest.mark.parametrize("name", PURE)
def test_each_mechanism_alone_with_words_from_anywhere_and_with_words_of_rows(name, tmp_path):
    mechanism = mechanisms(1.0)[name]

    def act(labels):
        with row_words.ReleaseKey() as key:
            secret = key.secret(card=row_words.card_checksum(mechanism), column="y")
            words = row_words.RowWords(secret, Ids("integer", np.arange(labels.size)))
        return mechanism.randomize(labels), mechanism.randomize(labels, random_state=words), key.release

    assert_nothing_leaks(Way(act), *pair("all rows"), tmp_path)


# ---- without replay -----------------------------------------------------------------------------------------


@pytest.mark.parametrize("mechanism", PURE)
def test_without_replay_all_but_the_labels_and_what_follows_from_the_prior_is_equal(mechanism, tmp_path):
    """One run for each input: what is drawn differs, the charges, the number of words and all else does not."""
    how = {"epsilon": 4.0, "bounds": BOUNDS, "mechanism": mechanism, "purpose": "values"}
    if mechanism not in ("laplace", "staircase", "two-point"):
        how["prior"] = ldp.Histogram(np.linspace(*BOUNDS, 5), [5.0, 0.0, 0.0, 5.0])

    def act(labels):
        release = ldp.privatize(labels, **how, ledger=ldp.Ledger.open("ledger.db"))
        np.save("labels.npy", release.labels)
        return release.to_card(), release.summary(), release.labels.dtype, release.labels.strides

    (one, tape), (other, again) = (run(Way(act), labels, tmp_path) for labels in pair("all rows"))
    assert not np.array_equal(*[np.concatenate(next(iter(each.given.values()))) for each in (tape, again)])
    assert (tape.calls, tape.inside) == (again.calls, again.inside)
    assert tape.outside == again.outside == 0
    for observed in (one, other):
        assert set(observed.files) == {"ledger.db", "labels.npy"}
        del observed.files["labels.npy"]
    assert one == other
    assert not Path("ledger.db").exists()


SPENDING = {
    "release": released,
    "stream": streamed,
    "release, local": lambda labels: released(labels, **LOCAL),
    "prior": lambda labels: ldp.estimate_prior(labels, epsilon=0.5, bounds=BOUNDS, ledger=ldp.Ledger()),
}


@pytest.mark.slow
@pytest.mark.parametrize("name", SPENDING)
def test_channels_and_noise_spend_no_more_than_is_charged(name, tmp_path):
    assert not overspending(Way(SPENDING[name]), *pair("all rows"), tmp_path)
