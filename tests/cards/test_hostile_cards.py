"""A card costs its reader little time. What is counted is the work of a proof: no busy machine changes that."""

import json
from fractions import Fraction

import numpy as np
import pytest

import labeldp as ldp
from card_cases import STRONG, card, labels, release
from forged_cards import forged
from labeldp.cards import read_any_card, verify_card
from labeldp.channels import shift
from labeldp.channels.proof import WORDS, Promise, exp_lower, fingerprint

BOUNDS = (0.0, 5.0)
SEVERAL = 4
EXACT, QUICK = shift._hockey_stick, shift._hockey_stick_below


def random_counts(seed):
    """Return counts that sum to 2^64, of one of several kinds: even, steep, with holes, or with spikes."""
    rng = np.random.default_rng(seed)
    size = 2 * int(rng.integers(20, 200)) + 1
    weights = [
        np.ones(size),
        np.exp(-np.abs(np.arange(size) - size // 2) * rng.uniform(0.01, 2)),
        rng.random(size) * (rng.random(size) < 0.3),
        rng.pareto(0.5, size),
    ][seed % 4]
    weights[size // 2] += 1
    parts = [int(w * 2**40) << 20 for w in weights / weights.sum()]
    parts[size // 2] += WORDS - sum(parts)
    return np.array(parts, dtype=np.uint64)


@pytest.mark.parametrize("seed", range(8))
def test_the_quick_bound_is_never_below_the_exact_sum(seed):
    counts = random_counts(seed)
    for epsilon in ("0.001", "0.7", "5", "20"):
        bound = exp_lower(Fraction(epsilon))
        for step in (1, 2, counts.size // 3, counts.size - 1):
            assert QUICK(counts, step, bound) >= EXACT(counts, step, bound)


def channel(seed, steps=12):
    counts = random_counts(seed).tolist()
    reach = len(counts) // 2
    return shift.ShiftChannel.from_counts(0.0, 1.0, steps, reach, counts, Promise.of(0.7, 1.0))


def by_hand(made):
    """Return δ as the definition has it: every shift, both ways, in fractions."""
    bound = exp_lower(made.promise.epsilon)
    counts = [int(n) for n in made.counts()]
    worst = Fraction(0)
    for way in (counts, counts[::-1]):
        for step in range(1, made.steps + 1):
            pairs = zip([*way, *[0] * step], [*[0] * step, *way], strict=True)
            worst = max(worst, sum((max(Fraction(0), here - bound * there) for here, there in pairs), Fraction(0)))
    return worst / WORDS


def agrees(made):
    proven, exact = made.verify().delta, by_hand(made)
    return exact <= Fraction(proven) <= exact * (1 + Fraction(1, 1 << 50))


@pytest.mark.parametrize("seed", range(8))
def test_the_proof_gives_the_same_delta_as_the_definition(seed):
    assert agrees(channel(seed))


def test_a_bound_that_is_too_small_is_found(monkeypatch):
    """The twin: with it, shifts would be left out that matter."""
    made = [channel(seed) for seed in range(8)]
    monkeypatch.setattr(shift, "_hockey_stick_below", lambda *_: Fraction(-1))
    assert not all(agrees(each) for each in made)


# ---- how much work a card can make -----------------------------------------------------------------------


def hostile_card():
    """Return a card with several distinct Gaussians of the finest grid."""
    release = ldp.privatize(
        np.linspace(1, 4, 50), epsilon=0.5, bounds=BOUNDS, mechanism="gaussian", delta=1e-5, ledger=ldp.Ledger()
    )
    content = json.loads(release.to_card())
    sigma = release.mechanism.sigma
    many = [
        ldp.Gaussian(bounds=BOUNDS, epsilon=0.5, delta=1e-5, sigma=sigma * (1 + k / 1000)).to_json()
        for k in range(SEVERAL)
    ]
    return forged({**content, "mechanisms": many})


def work(monkeypatch, read, quick=QUICK):
    """Return how often exact sums over all outputs are made while a card is read."""
    made = []

    def counted(*arguments):
        made.append(1)
        return EXACT(*arguments)

    monkeypatch.setattr(shift, "_hockey_stick", counted)
    monkeypatch.setattr(shift, "_hockey_stick_below", quick)
    read()
    return len(made)


def test_a_card_of_many_gaussians_makes_few_exact_sums(monkeypatch):
    """Each is proven as it is built, and once more; of its 253 shifts a few need exact sums."""

    def read():
        with pytest.raises(ldp.CardError, match="contradicts itself"):  # only now: all are proven by then
            read_any_card(hostile_card())

    assert SEVERAL <= work(monkeypatch, read) <= 16 * SEVERAL


def test_without_the_quick_bound_it_would_make_one_for_each_shift(monkeypatch):
    text = ldp.Gaussian(bounds=BOUNDS, epsilon=0.5, delta=1e-5).to_json()
    assert work(monkeypatch, lambda: ldp.load_mechanism(text), quick=lambda *_: Fraction(2)) == 2 * 253


def test_a_large_table_is_counted_in_one_go(monkeypatch):
    """Not row by row: 65,536 rows took a second and a half."""
    calls = []
    recount = ldp.channels.table.recount

    def counted(table):
        calls.append(table.shape)
        return recount(table)

    monkeypatch.setattr(ldp.channels.table, "recount", counted)
    half = WORDS // 2
    made = ldp.Unbiased(bounds=(0, 1), outputs=[0.0, 1.0], counts=[[half, half]] * 512, epsilon=1.0)
    assert calls == [(512, 2)]
    rows = made.channel.table
    assert np.array_equal(recount(rows), np.array([recount(row) for row in rows]))


def test_a_card_of_more_mechanisms_than_allowed_is_refused():
    assert len(read_any_card(card("row-release"), most_mechanisms=2).terms.mechanisms) == 2
    for kind, most in (("row-release", 1), ("model", 1), ("release", 0)):
        with pytest.raises(ldp.CardError, match="distinct mechanisms"):
            read_any_card(card(kind), most_mechanisms=most)


def test_a_mechanism_that_many_columns_share_is_proven_and_hashed_a_few_times(monkeypatch):
    work, verify = [], ldp.TwoPoint.verify
    monkeypatch.setattr(ldp.TwoPoint, "verify", lambda self: (work.append(1), verify(self))[1])
    monkeypatch.setattr(
        "labeldp.cards.reading.fingerprint", lambda channel: (work.append(1), fingerprint(channel))[1]
    )
    text = release(*(labels(column=k) for k in range(100)), mechanisms=(STRONG,) * 100).to_card()
    work.clear()
    assert verify_card(text).holds
    assert len(work) < 6
