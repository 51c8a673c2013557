"""Both regressors as functions of their data set: the ledger's total bounds what an audit of a whole fit finds.

The neighbours differ in one label at its worst: at the other end of the bounds, in the only row whose feature is
not that of the others, so that sums, mean and prediction hang on it. Three rows and one feature make a fit cheap.
What no label enters is worked out once, and searches that see only what is private already are cut short, by
`quick`; every step from the labels to the noise is the library's own. `benchmarks/audit_pipelines.py` audits fits
as they are.

Every audit has two twins that it must convict: the same fit for several times the ε, and one with something raw.
"""

from dataclasses import replace
from functools import cache, partial

import numpy as np
import pytest
from sklearn.dummy import DummyRegressor

import labeldp as ldp
from helpers import seeded
from labeldp.audit.events import QuantileLens
from labeldp.estimators import label_rounds, learner, model_regressor, round_design, sums
from labeldp.estimators.designs import Design
from labeldp.estimators.feature_table import FeatureTable
from labeldp.estimators.features import PublicFeatures
from labeldp.estimators.sums import SumPlan
from labeldp.noise import IntegerNoise
from labeldp.priors import curator

pytestmark = [pytest.mark.slow, pytest.mark.statistical]

BOUNDS = (0.0, 5.0)
X = np.array([[1.0], [0.0], [0.0]])
PAIR = (np.array([0.0, 1.0, 1.0]), np.array([5.0, 1.0, 1.0]))
CLAIM = 0.5
SURE = 1 - 1e-7
"""Four acquittals below: a false alarm among them has probability 4e-7 at most."""


@pytest.fixture(autouse=True)
def quick(monkeypatch):
    """Make fits cheap without touching what happens to a label."""
    once = cache(lambda: PublicFeatures.fit(X))
    table = FeatureTable(once(), X)
    spectrum = table.spectrum()
    plan = cache(partial(SumPlan.make, table, BOUNDS))
    monkeypatch.setattr(PublicFeatures, "fit", lambda _: once())
    monkeypatch.setattr(FeatureTable, "spectrum", lambda _: spectrum)
    monkeypatch.setattr(SumPlan, "make", lambda _, bounds, epsilon, delta: plan(epsilon, delta))
    few = sums.unknown_variance(5.0)[:1]
    monkeypatch.setattr(sums, "unknown_variance", lambda _: few)
    known_variance = learner.known_variance
    monkeypatch.setattr(learner, "known_variance", lambda *given, **options: known_variance(*given, **options)[:1])
    monkeypatch.setattr(round_design, "_LOWER", (0.0, 0.2))
    monkeypatch.setattr(round_design, "_UPPER", (0.8, 1.0))


# ---- fits, and what leaves the safe room ---------------------------------------------------------------------


def by_labels(y, ledger, source, epsilon=CLAIM, mechanism="two-point"):
    """What a label release tells: the mean, the worst row's label, how it was made, and the prediction there."""
    model = ldp.LabelReleaseRegressor(
        DummyRegressor(), epsilon=epsilon, bounds=BOUNDS, mechanism=mechanism, ledger=ledger, random_state=source
    ).fit(X, y)
    kept = model.release_
    made = [kept.offset[0], kept.scale[0], *noise_in(kept.mechanisms)]
    return [kept.knowledge.mean, kept.labels[0], *made, *model.predict(X[:1])]


def by_model(y, ledger, source, epsilon=CLAIM):
    """What a model tells: its prediction for the worst row, what it calls unexplained, and how loud noise was."""
    model = ldp.ModelReleaseRegressor(epsilon=epsilon, bounds=BOUNDS, ledger=ledger, random_state=source)
    predicted = model.fit(X, y).predict(X[:1])
    return [*predicted, model._model.rest, *noise_in(model.mechanism_)]


def noise_in(made):
    """How loud each mechanism, or each noise on sums, is: a number that its design decides."""
    return [
        float(np.squeeze(each.variance([0.0]) if isinstance(each, ldp.Mechanism) else each.variance(1)))
        for each in made
    ]


def one_stage(monkeypatch):
    """Three rows and this ε are too few for two."""


def two_stages(monkeypatch):
    monkeypatch.setattr(sums, "LONE", 0.0)


def labels_one_by_one(monkeypatch):
    monkeypatch.setattr(model_regressor, "ENOUGH", 0.0)


FITS = {
    "LabelReleaseRegressor": (by_labels, one_stage, 300, 6),
    "ModelReleaseRegressor": (by_model, one_stage, 500, 4),
    "ModelReleaseRegressor, two stages": (by_model, two_stages, 120, 12),
    "ModelReleaseRegressor, labels one by one": (by_model, labels_one_by_one, 120, 12),
}
"""How to fit, which path, how often for each data set, and how many times the ε must be convicted."""


def audited(fit, runs, seed=1, **options):
    source = seeded(seed)
    return ldp.audit_pipeline(
        lambda y: fit(y, ldp.Ledger(), source, **options),
        neighbours=PAIR,
        epsilon=CLAIM,
        samples=runs,
        confidence=SURE,
        lenses=[QuantileLens()],
    )


@pytest.mark.parametrize("name", FITS)
def test_the_ledgers_total_bounds_what_an_audit_of_a_fit_finds(name, monkeypatch):
    fit, path, runs, times = FITS[name]
    path(monkeypatch)
    ledger = ldp.Ledger()
    fit(PAIR[0], ledger, seeded(0))
    assert ledger.total.epsilon == CLAIM
    assert ledger.total.delta == 0
    found = audited(fit, runs)
    print(f"{name}: charged {CLAIM:g}, found {found.epsilon:.3f}; {times * CLAIM:g} is convicted below")
    assert not found.convicted
    assert found.best_case < times * CLAIM


@pytest.mark.parametrize("name", FITS)
def test_a_fit_that_spends_several_times_what_the_ledger_shows_is_convicted(name, monkeypatch):
    fit, path, runs, times = FITS[name]
    path(monkeypatch)
    found = audited(fit, runs, epsilon=times * CLAIM)
    print(f"{name}: charged {CLAIM:g}, spent {times * CLAIM:g}, found {found.epsilon:.3f}")
    assert found.convicted


# ---- fits that use something raw -----------------------------------------------------------------------------


class Silent(IntegerNoise):
    """Noise that says how large it is, and is not there."""

    def __init__(self, noise):
        self.variance = noise.variance

    def sample(self, size, source):
        return np.zeros(size, dtype=np.int64)


def raw_prior(monkeypatch):
    """The published mistake: the histogram that labels are released under is counted, and gets no noise."""
    knowledge_of = label_rounds.knowledge_of

    def raw(exact, bounds, budget, source):
        known, values, _ = knowledge_of(exact, bounds, budget, source)
        masses = exact().counts + 1e-12
        masses /= masses.sum()
        variance = float(masses @ (values - masses @ values) ** 2)
        return replace(known, variance=variance), values, masses

    monkeypatch.setattr(label_rounds, "knowledge_of", raw)


def raw_mean(monkeypatch):
    mean_noise = curator.mean_noise
    monkeypatch.setattr(curator, "mean_noise", lambda epsilon: Silent(mean_noise(epsilon)))


def raw_sums(monkeypatch):
    noisy = Design.noisy
    raw = lambda design, exact, width, noise, source: noisy(design, exact, width, Silent(noise), source)  # noqa: E731
    monkeypatch.setattr(Design, "noisy", raw)


def with_own_mechanism(y, ledger, source):
    """A user's mechanism, through the public argument: its window is as wide as raw labels are spread."""
    wide = 0.2 + float(np.std(y)) / (BOUNDS[1] - BOUNDS[0])
    made = lambda prior, epsilon: ldp.RPWithPrior(interval=(0, 1), zeta=wide, epsilon=epsilon)  # noqa: E731
    return by_labels(y, ledger, source, mechanism=made)


RAW = {
    "LabelReleaseRegressor, prior of raw labels": (by_labels, one_stage, raw_prior),
    "LabelReleaseRegressor, mechanism designed for raw labels": (with_own_mechanism, one_stage, one_stage),
    "LabelReleaseRegressor, raw mean": (by_labels, one_stage, raw_mean),
    "ModelReleaseRegressor, raw sums": (by_model, one_stage, raw_sums),
    "ModelReleaseRegressor, two stages of raw sums": (by_model, two_stages, raw_sums),
    "ModelReleaseRegressor, prior of raw labels": (by_model, labels_one_by_one, raw_prior),
    "ModelReleaseRegressor, raw mean": (by_model, labels_one_by_one, raw_mean),
}


@pytest.mark.parametrize("name", RAW)
def test_a_fit_that_uses_something_raw_is_convicted(name, monkeypatch):
    fit, path, spoil = RAW[name]
    path(monkeypatch)
    spoil(monkeypatch)
    found = audited(fit, 100)
    print(f"{name}: charged {CLAIM:g}, found {found.epsilon:.3f} in {found.worst.lens}")
    assert found.convicted
