"""Both regressors as functions of their data set: the ledger's total bounds what an audit of a whole fit finds.

The neighbours differ in one label at its worst: at the other end of the bounds, in the only row whose feature is
not that of the others, so that sums, range and prediction hang on it. Three rows and one feature make a fit cheap.
What no label enters is worked out once, and searches that see only what is private already are cut short, by
`quick`; every step from the labels to the noise is the library's own. `benchmarks/audit_pipelines.py` audits fits
as they are.

Every audit has two twins that it must detect: the same fit for several times the ε, and one with something raw.
"""

import tempfile
from copy import copy
from functools import cache
from types import SimpleNamespace
from unittest import mock

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from sklearn.dummy import DummyRegressor

import labeldp as ldp
from helpers import seeded
from labeldp.learning import label_queries, label_rounds, learner, sum_model
from labeldp.learning.features import FeatureTable
from labeldp.learning.groups import GroupSearch

pytestmark = [pytest.mark.slow, pytest.mark.statistical]

BOUNDS = (0.0, 5.0)
X = np.array([[1.0], [0.0], [0.0]])
PAIR = (np.array([0.0, 1.0, 1.0]), np.array([5.0, 1.0, 1.0]))
CLAIM = 0.5
SURE = 1 - 1e-7
"""Five audits below detect nothing: a false alarm among them has probability 5e-7 at most."""


@pytest.fixture(autouse=True)
def quick(monkeypatch):
    """Make fits cheap without touching what happens to a label."""
    table = FeatureTable.fit(X)
    search = cache(lambda prior: GroupSearch.of.__func__(GroupSearch, table, np.frombuffer(prior)))
    prior_grid = sum_model.prior_grid
    widest = lambda width, **_: prior_grid(width)[-4:-3]  # noqa: E731  (the last without interactions)
    for module, name, value in (
        (FeatureTable, "fit", lambda *_: FeatureTable(table.public, X)),
        (FeatureTable, "spectrum", table.spectrum),
        (sum_model, "GroupSearch", SimpleNamespace(of=lambda _, prior: search(prior.tobytes()))),
        (sum_model, "prior_grid", widest),
        (learner, "prior_grid", widest),
        (label_rounds, "_HALF_WIDTHS", np.array([1.0, 6.0])),
    ):
        monkeypatch.setattr(module, name, value)


# ---- fits, and what they release -----------------------------------------------------------------------------


def by_labels(y, ledger, source, epsilon=CLAIM, mechanism="two-point"):
    """Return what a label release reveals: bounds, spread, the worst row's label, noise, and a prediction."""
    model = ldp.LabelReleaseRegressor(
        DummyRegressor(), epsilon=epsilon, bounds=BOUNDS, mechanism=mechanism, ledger=ledger, random_state=source
    ).fit(X, y)
    release = model.release_
    return [
        release.label_summary.low,
        release.label_summary.high,
        release.start[0],
        release.labels[0],
        *noise_in(release.terms.mechanisms),
        *model.predict(X[:1]),
    ]


def by_model(y, ledger, source, epsilon=CLAIM):
    """Return what a model reveals: a prediction for the worst row, bounds, spread, and variances."""
    model = ldp.ModelReleaseRegressor(epsilon=epsilon, bounds=BOUNDS, ledger=ledger, random_state=source)
    predicted = model.fit(X, y).predict(X[:1])
    return [
        *predicted,
        model._ensemble.label_summary.low,
        model._ensemble.label_summary.high,
        model._ensemble.residual_variance,
        *noise_in(model.mechanism_),
    ]


@cache
def model_of_others():
    """Return a model that was fitted to other rows."""
    model = ldp.ModelReleaseRegressor(epsilon=4.0, bounds=BOUNDS, random_state=seeded(0))
    return model.fit(X, np.array([2.0, 3.0, 4.0]))


def by_update(y, ledger, source, epsilon=CLAIM):
    """Return what an update reveals: its sums, a prediction for the worst row, and variances."""
    model = copy(model_of_others()).set_params(epsilon=epsilon, ledger=ledger, random_state=source)
    known = model.measurements
    measured = model.update(X, y).measurements
    sums = measured.sums.values[known.sums.values.size :]
    return [sums[0], sums[-1], *model.predict(X[:1]), model._ensemble.residual_variance, model._ensemble.error]


def by_file(y, ledger, source, epsilon=CLAIM):
    """Return what a file with labels for training reveals: all of its labels, and the variance on its card."""
    with tempfile.TemporaryDirectory() as folder:
        given, out = f"{folder}/in.parquet", f"{folder}/out.parquet"
        pq.write_table(pa.table({"x": X[:, 0], "y": y}), given)
        about = {"label": "y", "bounds": BOUNDS, "epsilon": epsilon}
        done = ldp.privatize_file(given, out, **about, ledger=ledger, random_state=source)
        labels = pq.read_table(out).column("y").to_numpy()
    return [*labels, done.release.columns["y"].entries["residual_variance"]]


def noise_in(mechanisms):
    """Return the variance of each mechanism: its design decides it."""
    return [float(np.squeeze(each.variance([0.0]))) for each in mechanisms]


TWO_STAGES = {"labeldp.learning.epsilon_split.FEWEST_FOR_GROUPS": 0.0}
WITH_RANGE = {"labeldp.learning.epsilon_split.FEWEST_FOR_RANGE": 0.0}
MOSTLY_LABELS = {
    "labeldp.learning.epsilon_split.LABELS_FROM": 0.02,
    "labeldp.learning.epsilon_split.LABELS_WORTH": 0.0,
}

FITS = {
    "LabelReleaseRegressor": (by_labels, {}, 300, 6),
    "LabelReleaseRegressor, mostly labels": (by_labels, MOSTLY_LABELS, 300, 10),
    "ModelReleaseRegressor, two stages": (by_model, TWO_STAGES, 120, 24),
    "ModelReleaseRegressor.update": (by_update, {}, 100, 24),
    "privatize_file with a model": (by_file, MOSTLY_LABELS, 120, 24),
}
"""A fit, its path, the runs for each data set, and the multiple of ε that must be detected."""


@pytest.fixture
def change(monkeypatch):
    """Return a function that sets values by their names, for one test."""

    def change(values):
        for name, value in values.items():
            monkeypatch.setattr(name, value)

    return change


def audited(fit, runs, seed=1, **options):
    source = seeded(seed)
    return ldp.audit_pipeline(
        lambda y: fit(y, ldp.Ledger(), source, **options),
        neighbours=PAIR,
        epsilon=CLAIM,
        samples=runs,
        confidence=SURE,
        lenses=["size"],
    )


@pytest.mark.parametrize("name", FITS)
def test_the_ledgers_total_bounds_what_an_audit_of_a_fit_finds_and_more_is_detected(name, change):
    fit, path, runs, times = FITS[name]
    change(path)
    ledger = ldp.Ledger()
    fit(PAIR[0], ledger, seeded(0))
    assert ledger.total == ldp.Budget(CLAIM)
    result = audited(fit, runs)
    assert not result.detected
    assert result.detectable < times * CLAIM
    assert audited(fit, runs, epsilon=times * CLAIM).detected


# ---- fits that use something raw -----------------------------------------------------------------------------


def raw_range(access, bounds):
    """The published mistake, in another place: where labels lie is read off them."""
    cells = label_queries.Cells(bounds, label_queries.CELLS)
    places = np.flatnonzero(access._add_up(cells))
    width = (bounds[1] - bounds[0]) / cells.number
    return bounds[0] + width * places[0], bounds[0] + width * (places[-1] + 1)


def raw_draw(access, public_map, noise, exact):
    """Measurements are returned without noise."""
    return exact


def with_own_mechanism(y, ledger, source):
    """A user's mechanism: its window is as wide as raw labels are spread."""
    wide = 0.2 + float(np.std(y)) / (BOUNDS[1] - BOUNDS[0])

    class Own(ldp.RPWithPrior):
        @classmethod
        def for_bounds(cls, bounds, epsilon, **_):
            return ldp.RPWithPrior(interval=bounds, zeta=wide, epsilon=epsilon)

    with mock.patch.dict("labeldp.mechanisms.registry.REGISTRY", own=Own):
        return by_labels(y, ledger, source, mechanism="own")


def raw_labels(private, labels):
    """Labels of a file are moved half way towards the true ones."""
    private._done = labels.size
    return private.release.labels + 0.5 * (labels - private.release.labels)


RAW_LABELS = {"labeldp.app.file_labels.FittedLabels.next_rows": raw_labels}
RAW_SUMS = {"labeldp.release.label_access.LabelAccess._draw": raw_draw}
RAW_RANGE = {**WITH_RANGE, "labeldp.learning.sum_model.find_range": raw_range}
RAW = {
    "LabelReleaseRegressor, mechanism designed for raw labels": (with_own_mechanism, {}),
    "LabelReleaseRegressor, raw range": (by_labels, RAW_RANGE),
    "ModelReleaseRegressor, raw sums": (by_model, RAW_SUMS),
    "ModelReleaseRegressor.update, raw sums": (by_update, RAW_SUMS),
    "privatize_file, moved towards true labels": (by_file, RAW_LABELS),
}


@pytest.mark.parametrize("name", RAW)
def test_a_fit_that_uses_something_raw_is_detected(name, change):
    fit, values = RAW[name]
    change(values)
    assert audited(fit, 160).detected
