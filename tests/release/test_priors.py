"""The prior, estimated privately by a curator or from local reports.

Statistical tests have fixed seeds; limits on a distance leave a third above what is usual.
"""

import gzip
import math
import os
from decimal import Decimal, localcontext
from fractions import Fraction
from functools import partial
from pathlib import Path
from unittest import mock

import numpy as np
import pytest

import labeldp as ldp
from helpers import paid_access, seeded
from labeldp.exact import DiscreteLaplace

pytestmark = [pytest.mark.slow, pytest.mark.statistical]

estimate_prior, square_wave = ldp.estimate_prior, ldp.release.local.square_wave
RNG = np.random.default_rng(0)
SMOOTH = np.where(RNG.random(20_000) < 0.05, 5.0, np.minimum(RNG.gamma(3.0, 0.65, 20_000), 5.0))


def distance(prior, labels, bins=40, bounds=(0.0, 5.0)):
    """Return the total variation between the prior and the labels, in equally wide bins."""
    edges = np.linspace(*bounds, bins + 1)
    truth = np.histogram(np.clip(labels, *bounds), bins=edges)[0] / len(labels)
    return 0.5 * np.abs(np.diff(prior.cumulative(edges)) - truth).sum()


def prior_of_release(labels, *, random_state, **how):
    """Return the prior that a release estimates, with all of ε."""
    request = ldp.release.Request(**how)
    exact = request.epsilon.exact
    return request.estimate_prior(paid_access(labels, exact, random_state, purpose="prior"), exact)


ESTIMATES = {
    "curator": estimate_prior,
    "local": partial(estimate_prior, trust="local"),
    "of a release": prior_of_release,
}


def usual_distance(kind, labels, **how):
    tries = [ESTIMATES[kind](labels, bounds=(0, 5), random_state=seeded(seed), **how) for seed in range(3)]
    return np.mean([distance(prior, labels) for prior in tries])


@pytest.mark.parametrize("bins", [1, 2, 40, 1024])
def test_counts_are_those_of_a_plain_histogram(bins):
    extremes = [-1e308, 1e308, 0.0, 1.0, 0.25, 0.5]
    labels = np.concatenate([np.random.default_rng(3).normal(0.5, 0.4, 70_000), extremes])
    by_hand = np.histogram(np.clip(labels, 0.0, 1.0), np.linspace(0.0, 1.0, bins + 1))[0]
    assert ldp.release.queries.count(labels, (0.0, 1.0), bins).tolist() == by_hand.tolist()


# ---- accuracy ----------------------------------------------------------------------------------------


def housing():
    path = Path(os.environ.get("LABELDP_DATA", "nowhere")) / "california_housing.csv.gz"
    if not path.exists():
        pytest.skip("set LABELDP_DATA to a folder with california_housing.csv.gz")
    with gzip.open(path, "rt") as file:
        return np.genfromtxt(file, delimiter=",", names=True)["MedHouseVal"]


ACCURACY = {
    "curator": (0.15, 0.03, 0.008),
    "local": (0.37, 0.35, 0.17),
    "of a release": (0.18, 0.12, 0.03),  # made for designs: few bins, and smooth tails
}
"""Limits on the distance at ε = 0.017, 0.1 and 1."""


@pytest.mark.parametrize("labels", ["synthetic", "housing"])
@pytest.mark.parametrize("kind", ACCURACY)
def test_priors_are_as_close_as_methods_says(kind, labels):
    y = SMOOTH if labels == "synthetic" else housing()
    for epsilon, limit in zip((0.017, 0.1, 1.0), ACCURACY[kind], strict=True):
        assert usual_distance(kind, y, epsilon=epsilon) < limit


def test_loose_bounds_are_narrowed_by_a_release():
    """The middle of 15 priors: about 4 % of them are wider, so 8 are once in 10^7 times."""
    labels = np.random.default_rng(1).normal(3.0, 1.0, 20_000)
    how = {"epsilon": 0.3, "bounds": (-500, 500)}
    priors = [prior_of_release(labels, **how, random_state=seeded(seed)) for seed in range(15)]
    assert abs(np.median([prior.mean for prior in priors]) - 3) < 0.1
    assert 0.9 < np.median([math.sqrt(prior.variance) for prior in priors]) < 1.2


# ---- a curator's privacy -----------------------------------------------------------------------------


def spent(kind, labels, neighbour, monkeypatch):
    """Return what telling two inputs apart can cost at most: all noise gives out the same for both."""
    given, moved = [], []
    release = DiscreteLaplace.release

    def record(self, exact, source):
        given.append((exact.copy(), release(self, exact, source)))
        return given[-1][1].copy()

    def replay(self, exact, source):
        before, noisy = given[len(moved)]
        moved.append(Fraction(int(np.abs(exact - before).sum())) / self.scale)
        return noisy.copy()

    for some, seam in ((labels, record), (neighbour, replay)):
        monkeypatch.setattr(DiscreteLaplace, "release", seam)
        ESTIMATES[kind](some, epsilon=0.5, bounds=(0, 5), random_state=seeded(3))
    assert len(moved) == len(given)
    return sum(moved)


@pytest.mark.parametrize("kind", ["curator", "of a release"])
def test_changing_one_label_costs_no_more_than_was_paid_for(kind, monkeypatch):
    """Its twin has half the noise, and costs more."""
    rng = np.random.default_rng(2)
    labels = rng.normal(1, 0.05, 800)  # so narrow that place and scale are searched for
    most = 0
    for other in [0.0, 5.0, 2.5, 1e308, -1e308, 5e-324, *rng.uniform(-1, 6, 20)]:
        neighbour = labels.copy()
        neighbour[rng.integers(800)] = other
        with monkeypatch.context() as patch:
            most = max(most, spent(kind, labels, neighbour, patch))
    assert Fraction(1, 5) < most <= Fraction(1, 2)
    halved = {"calibrated": lambda sensitivity, epsilon: DiscreteLaplace(Fraction(sensitivity, 2) / epsilon)}
    with monkeypatch.context() as patch, mock.patch.multiple(DiscreteLaplace, **halved):
        assert spent(kind, labels, np.append(labels[1:], 5.0), patch) > Fraction(1, 2)


def test_the_number_of_bins_follows_from_rows_and_epsilon_alone():
    rng, bins_for = np.random.default_rng(5), ldp.release.curator.bins_for
    for rows, epsilon in [(1, 0.001), (300, 1.0), (20_000, 0.1), (20_000, 1.0)]:
        for labels in (np.zeros(rows), rng.uniform(-9, 9, rows), np.full(rows, 1e308)):
            prior = estimate_prior(labels, epsilon=epsilon, bounds=(0, 5), random_state=seeded(6))
            assert prior.nodes.tolist() == np.linspace(0, 5, bins_for(rows, epsilon) + 1).tolist()
    sizes = [bins_for(10**k, 0.1) for k in range(12)]
    assert sizes == sorted(sizes)


# ---- local reports -----------------------------------------------------------------------------------


def paper_algorithm_3(reports, sigma):
    """Return nodes and masses, line by line as the paper has them."""
    mu, low, high = reports.mean(), reports.min(), reports.max()
    k0, k1 = -10_000, -10_000
    while not mu + k0 * sigma <= low < mu + (k0 + 1) * sigma:
        k0 += 1
    while not mu + k1 * sigma < high <= mu + (k1 + 1) * sigma:
        k1 += 1
    nodes = [low, *(mu + (i + k0) * sigma for i in range(1, k1 - k0 + 1)), high]
    last = len(nodes) - 2
    alpha = [
        np.mean((reports >= nodes[k]) & ((reports < nodes[k + 1]) | ((k == last) & (reports == high))))
        for k in range(last + 1)
    ]
    return nodes, alpha


@pytest.mark.parametrize(("epsilon", "sigma"), [(0.05, None), (1.0, None), (1.0, 0.7), (1.0, 400.0)])
def test_algorithm_3_is_the_papers_with_masses_over_widths(epsilon, sigma):
    labels = SMOOTH[:2000]
    how = {"epsilon": epsilon, "bounds": (0, 5)}
    reports = ldp.Laplace(**how).randomize(labels, random_state=seeded(7))
    nodes, alpha = paper_algorithm_3(reports, reports.std() if sigma is None else sigma)
    prior = estimate_prior(labels, trust="local", method="laplace", sigma=sigma, random_state=seeded(7), **how)
    assert prior.nodes == pytest.approx(nodes, rel=1e-12)
    assert prior.masses == pytest.approx(alpha, abs=1e-12)
    assert prior.density == pytest.approx(np.array(alpha) / np.diff(nodes), rel=1e-9)  # Lemma 3.5


@pytest.mark.parametrize(("method", "kind"), [("laplace", ldp.Laplace), (None, ldp.RPWithPrior)])
def test_every_label_is_reported_once_for_what_was_charged_and_the_prior_reads_reports_only(
    method, kind, monkeypatch
):
    sizes, proofs = [], []
    reports = kind.randomize(square_wave(1.0, (0, 5)), SMOOTH[:500], random_state=seeded(8))

    def fixed(self, labels, source):
        sizes.append(np.size(labels))
        proofs.append(self.verify())
        return reports.copy()

    monkeypatch.setattr(kind, "randomize_checked", fixed)
    ledger = ldp.Ledger()
    how = {"epsilon": 0.7, "bounds": (0, 5), "trust": "local", "method": method, "ledger": ledger}
    assert estimate_prior(SMOOTH[:500], **how) == estimate_prior(np.full(500, 4.9), **how)
    assert sizes == [500, 500]
    assert all(proof.delta == 0 and 0.69 < proof.epsilon <= 0.7 for proof in proofs)
    assert ledger.total == ldp.Budget(1.4)


@pytest.mark.parametrize("epsilon", [0.001, 0.0099, 0.0101, 0.3, 1.0, 5.0, 20.0])
def test_square_waves_half_width_is_that_of_its_paper(epsilon):
    with localcontext() as context:
        context.prec = 50
        x = Decimal(epsilon)
        b = (x * x.exp() - x.exp() + 1) / (2 * x.exp() * (x.exp() - 1 - x))
    assert square_wave(epsilon, (2.0, 6.0)).zeta == pytest.approx(4 * float(b), rel=1e-9)


def test_expectation_maximisation_recovers_a_known_distribution():
    rng = np.random.default_rng(9)
    labels = np.concatenate([rng.normal(1.5, 0.4, 120_000), rng.normal(3.5, 0.25, 80_000)])
    prior = estimate_prior(labels, epsilon=4.0, bounds=(0, 5), trust="local", random_state=seeded(10))
    assert distance(prior, labels, bins=20) < 0.03


@pytest.mark.parametrize("epsilon", [1.0, 4.0, 10.0])
def test_square_wave_finds_a_spike_wherever_it_lies_in_a_bin(epsilon):
    for label in (0.501, 0.505, 0.5117):
        how = {"epsilon": epsilon, "bounds": (0, 1), "trust": "local"}
        prior = estimate_prior(np.full(20_000, label), random_state=seeded(11), **how)
        assert np.diff(prior.cumulative([label - 0.1, label + 0.1]))[0] > 0.75


# ---- requests: one charge before any noise, and clear refusals ------------------------------------------


METHODS = [("curator", None), ("local", None), ("local", "laplace")]
each_method = pytest.mark.parametrize(("trust", "method"), METHODS)


@each_method
@pytest.mark.parametrize("scale", [1e-130, 1.0, 1e130])
def test_any_labels_in_any_unit_give_a_prior(trust, method, scale):
    for labels in ([2.0], [3] * 100, [9e107, -1e108, 2.0], np.float32([1, 7, 2]), [[1], [2]]):
        given = np.asarray(labels, dtype=np.float64) * scale
        prior = estimate_prior(given, epsilon=1.0, bounds=(0, 5 * scale), trust=trust, method=method)
        assert prior.masses.sum() == pytest.approx(1.0)
        if method != "laplace":
            assert prior.bounds == (0, 5 * scale)


BAD = [
    {"trust": "nobody"},
    {"method": "laplace"},
    {"trust": "local", "method": "counts"},
    {"trust": "local", "method": "laplace", "sigma": 0},
    {"epsilon": 0},
    {"bounds": (1, 1)},
    {"ledger": "ledger.db"},
    {"labels": [[1.0, 2.0], [3.0, 4.0]]},
    {"labels": [math.nan, 1.0]},
    {"labels": []},
]


@pytest.mark.parametrize("bad", BAD, ids=str)
def test_bad_arguments_are_refused_before_anything_is_charged(bad):
    ledger = ldp.Ledger()
    how = {"labels": [1.0], "epsilon": 1.0, "bounds": (0, 5), "ledger": ledger} | bad
    with pytest.raises((ldp.errors.ParameterError, ldp.errors.LabelError)):
        estimate_prior(how.pop("labels"), **how)
    assert ledger.charges == ()


@pytest.mark.parametrize("trust", ["curator", "local"])
def test_a_charge_for_a_prior_says_so_and_counts_every_row_of_a_person(trust):
    ledger = ldp.Ledger()
    how = {"epsilon": 0.3, "bounds": (0, 5), "trust": trust, "ledger": ledger}
    estimate_prior([1.0, 2.0], **how)
    estimate_prior([1.0, 2.0], rows_per_person=3, **how)
    assert all("prior" in charge.description for charge in ledger.charges)
    assert [charge.rows_per_person for charge in ledger.charges] == [1, 3]
    assert ledger.total == ldp.Budget(1.2)
