"""All noisy sums of a fit, seen by somebody who knows everything else: two tables that differ in one label.

Such a judge computes every exact statistic for both tables, along the way that the noisy numbers led, and how much
more likely one of them made these numbers: no test is stronger. Rough sums, counts of distances by octaves
and sums of residuals, twice, are all taken, for three rows. In each twin one of them has next to no noise.
"""

from fractions import Fraction
from functools import cache
from types import SimpleNamespace

import numpy as np
import pytest

import labeldp as ldp
from helpers import paid_access, seeded
from labeldp.learning import sum_model
from labeldp.learning.features import FeatureTable
from labeldp.learning.fit_plan import Limits
from labeldp.learning.groups import GroupSearch
from labeldp.learning.sum_model import fit_sums
from labeldp.release.label_access import LabelAccess

pytestmark = [pytest.mark.slow, pytest.mark.statistical]

BOUNDS = Limits(0.0, 5.0)
X = np.array([[1.0, 0.0], [0.0, 1.0], [0.0, 0.0]])
TABLE = FeatureTable.fit(X)
PAIR = (np.array([0.0, 1.0, 1.0]), np.array([5.0, 1.0, 1.0]))
CLAIM, RUNS = 0.5, 120
SURE = 1 - 1e-7
"""One audit below that detects nothing: a false alarm has probability 1e-7 at most."""


class Watched(LabelAccess):
    """Labels whose measurements add up how much more likely the second table is, by each noisy integer."""

    def _draw(self, public_map, noise, exact):
        noisy = super()._draw(public_map, noise, exact)
        first, second = (np.abs(noisy - public_map.answer(table)[0]).sum() for table in PAIR)
        what = f"{noise.description}, {len(self.likely)}"
        self.likely[what] = float((first - second) / noise.noise.scale)
        return noisy


@pytest.fixture(autouse=True)
def all_measured(monkeypatch):
    """Let three rows be enough for every statistic, and residuals count as far as the bounds are wide.

    What no label enters is worked out once.
    """
    unknown, lengths = sum_model.prior_grid, sum_model.equal_length_scales(2)
    learnt = sum_model.LengthScales(lengths, np.ones(2), 0.0, lengths, lengths)
    table = TABLE.with_length_scales(learnt.values, learnt.strengths, learnt.log_prior_odds)
    search = cache(lambda prior: GroupSearch.of(table, np.frombuffer(prior)))
    for name, value in {
        "epsilon_split.FEWEST_FOR_LENGTHS": 0.0,
        "epsilon_split.FEWEST_FOR_SPREAD": 0.0,
        "sum_model._MIN_STRENGTH": 1.0,
        "sum_model.learn_length_scales": lambda *_, **__: learnt,
        "sum_model.SpreadCounts.deviation": 0.25,
        "sum_model._SUSPICIOUS": -1e9,
        "sum_model._SIGNIFICANT": 1e9,
        "sum_model.prior_grid": lambda width, **_: unknown(width)[-1:],
        "sum_model.GroupSearch": SimpleNamespace(of=lambda _, prior: search(prior.tobytes())),
    }.items():
        monkeypatch.setattr(f"labeldp.learning.{name}", value)


def audited(is_paid=True):
    source, stages, losses = seeded(4), [], []

    def run(labels):
        access = paid_access(labels, Fraction(str(CLAIM)), source, Watched)
        access.likely = {}
        fit_sums(TABLE, BOUNDS, access)
        assert access.remaining == 0 or not is_paid
        stages.append(len(access.likely))
        losses.append(sum(access.likely.values()))
        return losses[-1:]

    found = ldp.audit_pipeline(run, neighbours=PAIR, epsilon=CLAIM, samples=RUNS, confidence=SURE, lenses=["size"])
    assert set(stages) == {7}, "rough sums, distances twice, sums, distances twice, sums"
    return found, max(map(abs, losses))


def test_all_noisy_sums_together_satisfy_epsilon_dp():
    found, most = audited()
    assert not found.detected
    assert 0.5 * CLAIM < most <= CLAIM * (1 + 1e-9)


@pytest.mark.parametrize("what", ["counts of distances", "sums"])
def test_a_statistic_with_next_to_no_noise_is_detected(what, monkeypatch):
    def noise(statistic):
        right = ldp.exact.DiscreteLaplace.calibrated(sensitivity=statistic.sensitivity, epsilon=statistic.epsilon)
        return ldp.exact.DiscreteLaplace(right.scale / 1000) if statistic.description.endswith(what) else right

    monkeypatch.setattr(ldp.accounts.Statistic, "noise", property(noise))
    found, most = audited()
    assert found.detected
    assert most > CLAIM


def test_a_statistic_that_is_not_paid_for_is_detected(monkeypatch):
    """Each costs four times ε, because nobody counts."""

    def forget(access, epsilon, description):
        access.remaining = Fraction(2)

    monkeypatch.setattr(Watched, "_spend", forget)
    monkeypatch.setattr("labeldp.learning.epsilon_split.Share.of", lambda share, access: Fraction(2))
    assert audited(is_paid=False)[0].detected
