"""`privatize` as a function of its data set: the ledger's total bounds what an audit of the whole pipeline finds.

The neighbours differ in one label at its worst: at the other end of the bounds, and alone there, so that the prior
hangs on it. Two rows make a release cheap. The search for the best interval, which sees only what is private
already, is cut short. Each pipeline has a twin that spends several times the ε, and must be detected. Regressors
are audited in `test_audit_regressors.py`, and all of it at length in `benchmarks/audit_pipelines.py`.
"""

from concurrent.futures import ThreadPoolExecutor
from functools import partial
from types import SimpleNamespace

import numpy as np
import pytest

import labeldp as ldp
from helpers import seeded

pytestmark = [pytest.mark.slow, pytest.mark.statistical]

BOUNDS = (0.0, 5.0)
PAIR = (np.array([0.0, 0.5]), np.array([5.0, 0.5]))
MANY = (np.r_[0.0, np.full(199, 0.5)], np.r_[5.0, np.full(199, 0.5)])
CLAIM = 0.5
SURE = 1 - 1e-7
"""Four audits below detect nothing: a false alarm among them has probability 4e-7 at most."""


@pytest.fixture(autouse=True)
def quick(monkeypatch):
    monkeypatch.setattr(
        "scipy.optimize.minimize", lambda risk, start, **_: SimpleNamespace(x=start, fun=risk(start))
    )


# ---- pipelines -----------------------------------------------------------------------------------------------


def released(y, ledger, source=None, epsilon=CLAIM, **options):
    """What `privatize` hands over: the worst row's label, its place where labels are clipped to, and the prior."""
    release = ldp.privatize(y, epsilon=epsilon, bounds=BOUNDS, ledger=ledger, random_state=source, **options)
    low, high = getattr(release.mechanism, "interval", None) or release.mechanism.bounds
    return [release.values[0], (release.values[0] - low) / (high - low), low, high, *prior_of(release)]


def prior_of(release):
    return [] if release.prior is None else [release.prior.masses[0], release.prior.masses[-1]]


def estimated(y, ledger, source=None, epsilon=CLAIM):
    """The prior alone."""
    prior = ldp.estimate_prior(y, epsilon=epsilon, bounds=BOUNDS, ledger=ledger, random_state=source)
    return [prior.masses[0], prior.masses[-1]]


def with_window(y, ledger, source=None, epsilon=CLAIM):
    """Algorithm 4: the release makes its own prior, for a quarter of the budget."""
    return released(y, ledger, source, epsilon, mechanism="rp", epsilon_prior=epsilon / 4)


PIPELINES = {
    "privatize, two-point": (partial(released, mechanism="two-point"), 500, 4),
    "privatize, two-point, local": (partial(released, mechanism="two-point", trust="local"), 500, 4),
    "privatize, RPWithPrior": (with_window, 300, 8),
    "estimate_prior": (estimated, 500, 8),
}
"""A pipeline, its runs for each data set, and the multiple of ε that must be detected."""


def audited(pipeline, neighbours, runs, **options):
    return ldp.audit_pipeline(
        lambda y: pipeline(y, ldp.Ledger(), **options),
        neighbours=neighbours,
        epsilon=CLAIM,
        samples=runs,
        confidence=SURE,
        lenses=["size"],
    )


@pytest.mark.parametrize("name", PIPELINES)
def test_the_ledgers_total_bounds_what_an_audit_of_the_pipeline_finds_and_more_is_detected(name):
    pipeline, runs, times = PIPELINES[name]
    ledger = ldp.Ledger()
    pipeline(PAIR[0], ledger)
    assert ledger.total == ldp.Budget(CLAIM)
    result = audited(pipeline, PAIR, runs, source=seeded(1))
    assert not result.detected
    assert result.detectable < times * CLAIM
    assert audited(pipeline, PAIR, runs, source=seeded(1), epsilon=times * CLAIM).detected


# ---- broken pipelines: the same labels and mechanisms, and one thing read off the data -------------------------


def raw_prior(y, ledger):
    """The published mistake: a histogram of raw labels, used as if it were private."""
    counts, edges = np.histogram(y, bins=25, range=BOUNDS)
    release = ldp.privatize(
        y, epsilon=CLAIM, bounds=BOUNDS, mechanism="rp", prior=ldp.Histogram(edges, counts), ledger=ledger
    )
    return [release.values[0], *release.mechanism.interval]


def raw_bounds(y, ledger):
    bounds = (float(y.min()), float(y.max()) + 1e-3)
    release = ldp.privatize(y, epsilon=CLAIM, bounds=bounds, mechanism="two-point", epsilon_prior=0, ledger=ledger)
    return [release.values[0], *release.mechanism.bounds]


def raw_mean(y, ledger):
    return [*released(y, ledger, mechanism="two-point"), y.mean()]


def again(y, _):
    """Two hundred releases of the same label, accounted for as one."""
    return ldp.TwoPoint(bounds=BOUNDS, epsilon=CLAIM).randomize(np.full(200, y[0])).mean()


BROKEN = {
    "a prior of raw labels": raw_prior,
    "bounds read off the labels": raw_bounds,
    "a mean released beside private labels": raw_mean,
    "the same label released 200 times for one": again,
}


@pytest.mark.parametrize("name", BROKEN)
def test_a_pipeline_that_spends_what_no_ledger_shows_is_detected(name):
    assert audited(BROKEN[name], MANY, 100).detected


# ---- the function itself ---------------------------------------------------------------------------------------


def test_several_numbers_together_reveal_more_than_each_alone():
    """Forty numbers, each of which leaks a little; sizes only, and one fair seed."""
    rng = np.random.default_rng(1)
    pipeline = lambda y: y[0] + rng.normal(0, 4.0, 40).round(6)  # noqa: E731
    pair = (np.zeros(3), np.r_[1.0, 0, 0])
    found = ldp.audit_pipeline(pipeline, neighbours=pair, epsilon=0.1, samples=2000, lenses=["size"])
    assert found.detected
    assert found.worst.lens == "all numbers together"


def test_neighbours_differ_in_one_row():
    zeros = np.zeros(5)
    for other in (zeros, np.ones(5), np.zeros(4)):
        with pytest.raises(ldp.errors.ParameterError) as refused:
            ldp.audit_pipeline(np.sum, neighbours=(zeros, other), samples=100)
        assert refused.value.option == "neighbours"


def test_a_pipeline_must_return_as_many_numbers_each_time():
    sizes = iter(range(1, 1000))
    with pytest.raises(ldp.errors.ParameterError, match="as many numbers"):
        ldp.audit_pipeline(lambda _: np.zeros(next(sizes)), neighbours=MANY, samples=100)


def test_runs_can_be_spread_over_an_executor():
    with ThreadPoolExecutor(2) as pool:
        found = ldp.audit_pipeline(lambda y: y[0], neighbours=MANY, samples=100, epsilon=0.5, executor=pool)
    assert found.detected
