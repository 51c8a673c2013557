"""``labeldp audit``: a verdict on a card, and an exit code that scripts can trust."""

from dataclasses import dataclass

import numpy as np
import pytest

import labeldp as ldp
from command_line import run, said
from helpers import mechanisms

LABELS = np.random.default_rng(1).uniform(0, 5, 500)
X = np.random.default_rng(2).normal(size=(500, 2))


@pytest.fixture
def audit(tmp_path):
    """Return what the audit of a card says."""

    def say(card, *options, code=0):
        (tmp_path / "card.json").write_text(card, encoding="utf-8")
        return said("audit", tmp_path / "card.json", "--samples", 4000, *options, code=code)

    return say


def test_the_card_of_a_mechanism_passes(audit):
    shown = audit(mechanisms(1.0)["two-point"].to_json(), "--confidence", 0.999999999999)
    assert "none detected" in shown
    assert "VIOLATION" not in shown
    assert "1e-12" in shown


def test_the_card_of_a_release_is_audited_and_says_what_it_leaves_out(audit):
    shown = audit(ldp.privatize(LABELS, epsilon=1.0, bounds=(0, 5), mechanism="rp").to_card())
    assert "a card of a release" in shown
    assert "prior" in shown.split("Not sampled")[1]
    assert "probability 0.8" in shown


@pytest.mark.slow
def test_the_card_of_a_row_release_is_audited_once_for_each_different_mechanism(audit):
    release = ldp.LabelReleaseRegressor(epsilon=2.0, bounds=(0, 5)).fit(X, LABELS).release_
    assert audit(release.to_card()).count("none detected") == len(set(release.terms.mechanisms))


@ldp.mechanisms.register("test-audit-leak")
@dataclass(frozen=True, slots=True, kw_only=True)
class Leak(ldp.mechanisms.Mechanism):
    """Counts that are proven, and a `randomize` that does not use them."""

    epsilon: float
    channel: ldp.exact.TableChannel = ldp.mechanisms.channel_field()

    def _build(self):
        half = 1 << 63
        return ldp.exact.TableChannel.from_counts(
            0.0, 1.0, [0.0, 1.0], [[half, half], [half, half]], ldp.exact.Promise.of(self.epsilon)
        )

    def randomize(self, labels, *, random_state=None):
        return np.rint(np.clip(labels, 0.0, 1.0))


def test_a_mechanism_that_samples_something_else_than_its_counts_ends_with_code_4(audit):
    shown = audit(Leak(epsilon=1.0).to_json(), code=4)
    assert "VIOLATION" in shown
    assert "refuted: the claim and proof" in shown


def test_what_cannot_be_audited_is_refused(audit, tmp_path):
    run("audit", tmp_path / "none.json", code=2)
    for card in ("{}", "no card"):
        audit(card, code=4)
    audit(mechanisms(1.0)["two-point"].to_json(), "--confidence", 1.0, code=2)
    model = ldp.ModelReleaseRegressor(epsilon=1.0, bounds=(0, 5)).fit(X[:60], LABELS[:60])
    assert "audit_pipeline" in audit(model.to_card(), code=2)
