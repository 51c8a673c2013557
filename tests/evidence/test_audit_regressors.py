"""Both regressors as functions of their data set: the ledger's total bounds what an audit of a whole fit finds.

The neighbours differ in one label at its worst: at the other end of the bounds, in the only row whose feature is
not that of the others, so that sums, range and prediction hang on it. Three rows and one feature make a fit cheap.
What no label enters is worked out once, and searches that see only what is private already are cut short, by
`quick`; every step from the labels to the noise is the library's own. `benchmarks/audit_pipelines.py` audits fits
as they are.

Every audit has two twins that it must detect: the same fit for several times the ε, and one with something raw.
"""

from functools import cache
from types import SimpleNamespace

import numpy as np
import pytest
from sklearn.dummy import DummyRegressor

import labeldp as ldp
from helpers import seeded
from labeldp.evidence.lenses import QuantileLens
from labeldp.learning import fit_plan, label_rounds, learner, round_design, sums
from labeldp.learning.features import FeatureTable, PublicFeatures
from labeldp.learning.groups import Geometry
from labeldp.learning.sums import CELLS, STEPS, Stage

pytestmark = [pytest.mark.slow, pytest.mark.statistical]

BOUNDS = (0.0, 5.0)
X = np.array([[1.0], [0.0], [0.0]])
PAIR = (np.array([0.0, 1.0, 1.0]), np.array([5.0, 1.0, 1.0]))
CLAIM = 0.5
SURE = 1 - 1e-7
"""Six audits below that detect nothing: a false alarm among them has probability 6e-7 at most."""


@pytest.fixture(autouse=True)
def quick(monkeypatch):
    """Make fits cheap without touching what happens to a label."""
    once = cache(lambda: PublicFeatures.fit(X))
    table = FeatureTable(once(), X)
    spectrum = table.spectrum()
    geometry = cache(lambda prior: Geometry.of.__func__(Geometry, table, np.frombuffer(prior)))
    monkeypatch.setattr(PublicFeatures, "fit", lambda _: once())
    monkeypatch.setattr(FeatureTable, "spectrum", lambda _: spectrum)
    monkeypatch.setattr(sums, "Geometry", SimpleNamespace(of=lambda _, prior: geometry(prior.tobytes())))
    unknown_variance = sums.unknown_variance
    for module in (sums, learner):
        monkeypatch.setattr(module, "unknown_variance", lambda width, **_: unknown_variance(width)[-1:])
    monkeypatch.setattr(round_design, "_LOWER", (0.0, 0.2))
    monkeypatch.setattr(round_design, "_UPPER", (0.8, 1.0))


# ---- fits, and what they release -----------------------------------------------------------------------------


def by_labels(y, ledger, source, epsilon=CLAIM, mechanism="two-point"):
    """What a label release reveals: what is known, the worst row's label, how it was made, and its prediction.

    Whoever knows all other labels learns from the spread how far the worst row's label is from its guess.
    """
    model = ldp.LabelReleaseRegressor(
        DummyRegressor(), epsilon=epsilon, bounds=BOUNDS, mechanism=mechanism, ledger=ledger, random_state=source
    ).fit(X, y)
    kept = model.release_
    made = [kept.offset[0], kept.scale[0], *noise_in(kept.mechanisms)]
    known = kept.knowledge
    far = 3 * known.residual - float((np.minimum(np.abs(kept.start - PAIR[0]), 2.5) ** 2).sum())
    return [
        known.low,
        known.high,
        known.residual,
        far,
        kept.start[0],
        kept.labels[0],
        *made,
        *model.predict(X[:1]),
    ]


def by_model(y, ledger, source, epsilon=CLAIM):
    """What a model reveals: a prediction for the worst row, what is unexplained, and how loud noise was."""
    model = ldp.ModelReleaseRegressor(epsilon=epsilon, bounds=BOUNDS, ledger=ledger, random_state=source)
    predicted = model.fit(X, y).predict(X[:1])
    known = model._ensemble.knowledge
    return [*predicted, known.low, known.high, known.residual, model._ensemble.rest, *noise_in(model.mechanism_)]


def noise_in(mechanisms):
    """How loud each mechanism is: a number that its design decides."""
    return [float(np.squeeze(each.variance([0.0]))) for each in mechanisms]


def one_stage(monkeypatch):
    """Three rows and this ε are too few for two."""


def two_stages(monkeypatch):
    monkeypatch.setattr(sums, "_GROUPED", 0.0)


def with_range(monkeypatch):
    monkeypatch.setattr(sums, "_RANGE_ROWS", 0.0)


def labels_one_by_one(monkeypatch):
    monkeypatch.setattr(fit_plan, "_FEWEST_FOR_LABELS", 0.02)
    monkeypatch.setattr(fit_plan, "_WORTH_LABELS", 0.0)


FITS = {
    "LabelReleaseRegressor": (by_labels, one_stage, 300, 6),
    "LabelReleaseRegressor, mostly labels": (by_labels, labels_one_by_one, 300, 10),
    "LabelReleaseRegressor, two stages": (by_labels, two_stages, 160, 30),
    "ModelReleaseRegressor": (by_model, one_stage, 300, 6),
    "ModelReleaseRegressor, two stages": (by_model, two_stages, 120, 24),
    "ModelReleaseRegressor, labels one by one": (by_model, labels_one_by_one, 120, 12),
}
"""How to fit, which path, how often for each data set, and how many times the ε must be detected."""


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
    print(f"{name}: charged {CLAIM:g}, found {found.epsilon:.3f}; {times * CLAIM:g} is detected below")
    assert not found.detected
    assert found.detectable < times * CLAIM


@pytest.mark.parametrize("name", FITS)
def test_a_fit_that_spends_several_times_what_the_ledger_shows_is_detected(name, monkeypatch):
    fit, path, runs, times = FITS[name]
    path(monkeypatch)
    found = audited(fit, runs, epsilon=times * CLAIM)
    print(f"{name}: charged {CLAIM:g}, spent {times * CLAIM:g}, found {found.epsilon:.3f}")
    assert found.detected


# ---- fits that use something raw -----------------------------------------------------------------------------


def raw_range(monkeypatch):
    """The published mistake, in another place: where labels lie is read off them."""

    def raw(count_labels, bounds, budget, source):
        places = np.flatnonzero(count_labels())
        width = (bounds[1] - bounds[0]) / CELLS
        return bounds[0] + width * places[0], bounds[0] + width * (places[-1] + 1)

    monkeypatch.setattr(label_rounds, "find_range", raw)


def raw_sums(monkeypatch):
    """Sums of all stages get no noise."""
    release = Stage.release

    def raw(stage, exact, epsilon, budget, source):
        release(stage, exact, epsilon, budget, source)
        return exact * (stage.width / STEPS)

    monkeypatch.setattr(Stage, "release", raw)


def with_own_mechanism(y, ledger, source):
    """A user's mechanism, through the public argument: its window is as wide as raw labels are spread."""
    wide = 0.2 + float(np.std(y)) / (BOUNDS[1] - BOUNDS[0])
    made = lambda prior, epsilon: ldp.RPWithPrior(interval=(0, 1), zeta=wide, epsilon=epsilon)  # noqa: E731
    return by_labels(y, ledger, source, mechanism=made)


RAW = {
    "LabelReleaseRegressor, mechanism designed for raw labels": (with_own_mechanism, one_stage, one_stage),
    "LabelReleaseRegressor, raw sums": (by_labels, one_stage, raw_sums),
    "LabelReleaseRegressor, raw range": (by_labels, with_range, raw_range),
    "ModelReleaseRegressor, raw sums": (by_model, one_stage, raw_sums),
    "ModelReleaseRegressor, two stages of raw sums": (by_model, two_stages, raw_sums),
    "ModelReleaseRegressor, raw range": (by_model, with_range, raw_range),
}


@pytest.mark.parametrize("name", RAW)
def test_a_fit_that_uses_something_raw_is_detected(name, monkeypatch):
    fit, path, spoil = RAW[name]
    path(monkeypatch)
    spoil(monkeypatch)
    found = audited(fit, 160)
    print(f"{name}: charged {CLAIM:g}, found {found.epsilon:.3f} in {found.worst.lens}")
    assert found.detected
