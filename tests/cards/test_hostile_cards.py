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
from labeldp.channels.proof import WORDS, fingerprint

BOUNDS = (0.0, 5.0)
SEVERAL = 4
EXACT, QUICK = shift._hockey_stick, shift._hockey_stick_below


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
    """The channel is kept since it was built, and proven again as the card is read."""
    text = ldp.Gaussian(bounds=BOUNDS, epsilon=0.5, delta=1e-5).to_json()
    assert work(monkeypatch, lambda: ldp.load_mechanism(text), quick=lambda *_: Fraction(2)) == 253


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
