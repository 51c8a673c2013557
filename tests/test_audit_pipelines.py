"""Whole pipelines as functions of their data set: the ledger's total bounds what an audit finds.

The neighbours differ in one label at its worst: at the other end of the bounds, in a row whose features are
far from all others, so that predictions there hang on that label. `benchmarks/audit.py` does the same at length.
"""

import math
from functools import partial

import numpy as np
import pytest

import labeldp as ldp
from labeldp.audit.lenses import Size

ROWS = 24
BOUNDS = (0.0, 5.0)
X = np.random.default_rng(0).normal(size=(ROWS, 2))
X[0] = 9.0
LOW = np.full(ROWS, 0.5)
HIGH = LOW.copy()
LOW[0], HIGH[0] = BOUNDS
PAIR = (LOW, HIGH)
MANY = (np.r_[0.0, np.full(199, 0.5)], np.r_[5.0, np.full(199, 0.5)])
SURE = 1 - 1e-7
"""Six acquittals below: a false alarm among them has probability 6e-7 at most."""

# ---- pipelines -----------------------------------------------------------------------------------------------


def released(y, ledger, epsilon=0.5, **options):
    """What `privatize` hands over: the worst row's label, the others' mean, and where the prior clipped."""
    release = ldp.privatize(y, epsilon=epsilon, bounds=BOUNDS, ledger=ledger, **options)
    edges = getattr(release.mechanism, "interval", None) or release.mechanism.bounds
    return [release.labels[0], release.labels[1:].mean(), *edges]


def with_prior(y, ledger):
    """Two charges on one ledger: a prior, and labels randomised under it."""
    prior = ldp.estimate_prior(y, epsilon=0.1, bounds=BOUNDS, ledger=ledger, bins=8)
    release = ldp.privatize(y, epsilon=0.2, bounds=BOUNDS, mechanism="two-point", prior=prior, ledger=ledger)
    return [release.labels[0], prior.mean]


def fitted(y, ledger, make, epsilon=0.2):
    """What a model tells where the worst row is."""
    return make(epsilon=epsilon, bounds=BOUNDS, ledger=ledger).fit(X, y).predict(X[:1])


PIPELINES = {
    "privatize, two-point": (partial(released, mechanism="two-point"), MANY, 800),
    "privatize, two-point, local": (partial(released, mechanism="two-point", trust="local"), MANY, 800),
    "privatize, RPWithPrior": (partial(released, mechanism="rp", epsilon=0.2, epsilon_prior=0.1), MANY, 80),
    "prior, then labels": (with_prior, MANY, 100),
    "LabelReleaseRegressor": (partial(fitted, make=ldp.LabelReleaseRegressor), PAIR, 64),
    "ModelReleaseRegressor": (partial(fitted, make=ldp.ModelReleaseRegressor), PAIR, 64),
}


@pytest.mark.parametrize("name", PIPELINES)
def test_the_ledgers_total_bounds_what_an_audit_of_the_pipeline_finds(name):
    """With so few runs only a gross violation shows; how gross is printed, and finite."""
    pipeline, neighbours, runs = PIPELINES[name]
    ledger = ldp.Ledger()
    pipeline(neighbours[0], ledger)
    total = ledger.total
    found = ldp.audit_pipeline(
        lambda y: pipeline(y, ldp.Ledger()),
        neighbours=neighbours,
        epsilon=total.epsilon,
        delta=total.delta,
        samples=runs,
        confidence=SURE,
        lenses=[Size()],
    )
    print(f"{name}: charged {total.epsilon:g}, found {found.epsilon:.3f}, could have shown {found.showable:.3f}")
    assert not found.convicted
    assert math.isfinite(found.showable)


# ---- broken pipelines: the same labels and mechanisms, and one thing read off the data -------------------------


def raw_prior(y, _):
    """The published mistake: a histogram of raw labels, used as if it were private."""
    counts, edges = np.histogram(y, bins=25, range=BOUNDS)
    prior = ldp.Histogram(edges, counts / counts.sum())
    return released(y, ldp.Ledger(), mechanism="rp", prior=prior, epsilon=0.2)


def raw_bounds(y, _):
    bounds = (float(y.min()), float(y.max()) + 1e-3)
    release = ldp.privatize(
        y, epsilon=0.2, bounds=bounds, mechanism="two-point", epsilon_prior=0, ledger=ldp.Ledger()
    )
    return [release.labels[0], *release.mechanism.bounds]


def raw_mean(y, _):
    return [*released(y, ldp.Ledger(), mechanism="two-point"), y.mean()]


def again(y, _):
    """Two hundred releases of the same label, accounted for as one."""
    return ldp.TwoPoint(bounds=BOUNDS, epsilon=0.5).randomize(np.full(200, y[0])).mean()


def raw_model(y, _):
    """A model fitted to the labels themselves, and a little noise on its answers."""
    w = np.linalg.lstsq(np.column_stack([X, np.ones(ROWS)]), y, rcond=None)[0]
    return X[:3] @ w[:2] + w[2] + np.random.default_rng().laplace(0, 0.2, 3)


BROKEN = {
    "a prior of raw labels": (raw_prior, MANY),
    "bounds read off the labels": (raw_bounds, MANY),
    "a mean released beside private labels": (raw_mean, MANY),
    "the same label released 200 times for one": (again, MANY),
    "a model of raw labels": (raw_model, PAIR),
}


@pytest.mark.parametrize("name", BROKEN)
def test_a_pipeline_that_spends_what_no_ledger_shows_is_convicted(name):
    pipeline, neighbours = BROKEN[name]
    found = ldp.audit_pipeline(
        lambda y: pipeline(y, None),
        neighbours=neighbours,
        epsilon=0.5,
        samples=100,
        confidence=SURE,
        lenses=[Size()],
    )
    assert found.convicted


# ---- the function itself ---------------------------------------------------------------------------------------


def test_several_numbers_together_tell_more_than_each_alone():
    """Forty numbers, each of which leaks a little; sizes only, and one fair seed."""
    rng = np.random.default_rng(1)
    pipeline = lambda y: y[0] + rng.normal(0, 4.0, 40).round(6)  # noqa: E731
    pair = (np.zeros(3), np.r_[1.0, 0, 0])
    found = ldp.audit_pipeline(pipeline, neighbours=pair, epsilon=0.1, samples=2000, lenses=[Size()])
    assert found.convicted
    assert found.worst.lens == "all numbers together"


def test_neighbours_differ_in_one_row():
    zeros = np.zeros(5)
    for other in (zeros, np.ones(5), np.zeros(4)):
        with pytest.raises(ldp.ParameterError, match="neighbours must"):
            ldp.audit_pipeline(np.sum, neighbours=(zeros, other), samples=100)


def test_a_pipeline_must_return_as_many_numbers_each_time():
    sizes = iter(range(1, 1000))
    with pytest.raises(ldp.ParameterError, match="as many numbers"):
        ldp.audit_pipeline(lambda _: np.zeros(next(sizes)), neighbours=MANY, samples=100)


def test_runs_can_be_spread_over_an_executor():
    from concurrent.futures import ThreadPoolExecutor

    with ThreadPoolExecutor(2) as pool:
        found = ldp.audit_pipeline(lambda y: y[0], neighbours=MANY, samples=100, epsilon=0.5, executor=pool)
    assert found.convicted
