"""Priors from local reports, held to an account of them in plain loops; and what a prior charges and refuses."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest

import labeldp as ldp
from helpers import seeded
from labeldp.priors import estimate as priors
from labeldp.priors.curator import FINE, adaptive_histogram, bins_for, count, equal_histogram
from labeldp.priors.estimate import Reports, _smoothed_em, estimate_prior


def by_loops(likelihood, observed, rounds=2000):
    """Return the smoothed masses: one step of expectation maximisation after the other."""
    cells, bins = len(likelihood), len(likelihood[0])
    masses = [1 / bins] * bins
    for _ in range(rounds):
        expected = [sum(likelihood[i][j] * masses[j] for j in range(bins)) for i in range(cells)]
        ratio = [observed[i] / expected[i] if expected[i] > 0 else 0.0 for i in range(cells)]
        step = [masses[j] * sum(likelihood[i][j] * ratio[i] for i in range(cells)) for j in range(bins)]
        ends = [step[0], *step, step[-1]]
        step = [(ends[j] + 2 * ends[j + 1] + ends[j + 2]) / 4 for j in range(bins)]
        step = [one / sum(step) for one in step]
        if sum(abs(a - b) for a, b in zip(step, masses, strict=True)) < 1e-7:
            break
        masses = step
    return masses


def test_masses_are_those_of_smoothed_expectation_maximisation(monkeypatch):
    rng = np.random.default_rng(1)
    likelihood = rng.dirichlet(np.ones(9), 5).T
    likelihood[3] = 0.0  # a cell that no label leads to
    observed = rng.dirichlet(np.ones(9))
    np.testing.assert_allclose(_smoothed_em(likelihood, observed), by_loops(likelihood, observed), rtol=1e-9)
    sharp = np.kron(np.eye(30), np.ones((2, 1))) * 0.5
    sharp[:, 1:] += sharp[:, :-1] / 3
    some = rng.dirichlet(np.ones(60) / 5)
    for rounds in (1, 2, 40):
        monkeypatch.setattr(priors, "_ROUNDS", rounds)
        np.testing.assert_allclose(_smoothed_em(sharp, some), by_loops(sharp, some, rounds), rtol=1e-9, atol=1e-15)


@pytest.mark.parametrize(("rows", "bins"), [(1, 8), (64, 8), (100, 10), (150, 12), (10**6, 64)])
def test_reports_are_counted_in_four_times_as_many_cells_as_the_prior_has_bins(rows, bins):
    bounds = (2.0, 6.0)
    reports = Reports(1.0, bounds, rows)
    reach = reports.mechanism.zeta * 1.001
    edges = np.linspace(bounds[0] - reach, bounds[1] + reach, 4 * bins + 1)
    drawn = reports.mechanism.randomize(np.linspace(2, 6, 500), random_state=seeded(1))
    counts = reports.count(drawn)
    assert counts.tolist() == np.histogram(drawn, edges)[0].tolist()
    assert counts.sum() == 500, "no report is lost"
    prior = reports.histogram(counts)
    assert prior.nodes.tolist() == np.linspace(2, 6, bins + 1).tolist()


def test_the_prior_explains_reports_by_labels_anywhere_in_each_bin():
    reports = Reports(2.0, (2.0, 6.0), 64)
    reach = reports.mechanism.zeta * 1.001
    edges = np.linspace(2 - reach, 6 + reach, 33)
    counts = reports.count(reports.mechanism.randomize(np.full(400, 3.1), random_state=seeded(2)))
    likelihood = np.zeros((32, 8))
    for place in range(8):
        for part in range(16):
            label = 2 + 4 * (place + (part + 0.5) / 16) / 8
            below = reports.mechanism.channel.cumulative(label, edges)
            likelihood[:, place] += [(below[i + 1] - below[i]) / 16 for i in range(32)]
    expected = by_loops(likelihood.tolist(), (counts / 400).tolist())
    np.testing.assert_allclose(reports.histogram(counts).masses, expected, rtol=1e-6)


def test_each_method_makes_its_prior_from_the_words_it_was_given():
    labels, bounds, epsilon = np.random.default_rng(4).uniform(-1, 6, 300), (0.0, 5.0), Fraction("0.7")
    reports = Reports(0.7, bounds, 300)
    drawn = reports.mechanism.randomize(labels, random_state=seeded(5))
    expected = {
        "adaptive": adaptive_histogram(count(labels, bounds, FINE), epsilon, bounds, seeded(5)),
        "counts": equal_histogram(count(labels, bounds, bins_for(300, 0.7)), epsilon, bounds, seeded(5)),
        "square-wave": reports.histogram(reports.count(drawn)),
    }
    for method, prior in expected.items():
        trust = "local" if method == "square-wave" else "curator"
        how = {"epsilon": 0.7, "bounds": bounds, "trust": trust, "random_state": seeded(5)}
        assert estimate_prior(labels, method=method, **how) == prior


@pytest.mark.parametrize("sigma", [None, 0.7])
def test_a_single_report_is_in_the_middle_of_a_bin_as_wide_as_the_bounds(sigma):
    how = {"epsilon": 1.0, "bounds": (1.0, 6.0)}
    report = float(ldp.Laplace(**how).randomize([2.0], random_state=seeded(3))[0])
    prior = estimate_prior([2.0], trust="local", method="laplace", sigma=sigma, random_state=seeded(3), **how)
    assert prior.nodes.tolist() == [report - 2.5, report + 2.5]


def test_bins_that_would_be_too_many_are_refused(monkeypatch):
    monkeypatch.setattr(ldp.Laplace, "randomize", lambda self, labels, random_state: np.array([1.0, 2.0, 5.0]))
    monkeypatch.setattr(priors, "_MOST_BINS", 4)
    how = {"epsilon": 1.0, "bounds": (0, 5), "trust": "local", "method": "laplace"}
    assert estimate_prior([1, 2, 3], sigma=1.0, **how).masses.size == 5
    with pytest.raises(ldp.ParameterError, match="larger one"):
        estimate_prior([1, 2, 3], sigma=0.999, **how)


def test_algorithm_3_has_its_nodes_below_zero_too(monkeypatch):
    monkeypatch.setattr(ldp.Laplace, "randomize", lambda self, labels, random_state: np.array([-5.0, -2.0, -1.0]))
    prior = estimate_prior([1, 2, 3], sigma=1.0, epsilon=1.0, bounds=(0, 5), trust="local", method="laplace")
    assert prior.nodes == pytest.approx([-5, -14 / 3, -11 / 3, -8 / 3, -5 / 3, -1])
    assert prior.masses == pytest.approx([1 / 3, 0, 0, 1 / 3, 1 / 3])


def test_a_prior_says_what_it_was_charged_for_and_counts_every_row_of_a_person():
    for trust in ("curator", "local"):
        ledger = ldp.Ledger()
        how = {"epsilon": 0.3, "bounds": (0, 5), "trust": trust, "ledger": ledger}
        estimate_prior([1.0, 2.0], **how)
        estimate_prior([1.0, 2.0], rows_per_person=3, **how)
        assert [charge.what for charge in ledger.charges] == [f"prior ({trust})"] * 2
        assert [charge.rows_per_person for charge in ledger.charges] == [1, 3]
        assert ledger.total == ldp.Budget(1.2)


@pytest.mark.parametrize("labels", [3.0, [[1.0, 2.0]], [[1.0, 2.0], [3.0, 4.0]], [[[1.0]], [[2.0]]]])
def test_labels_that_are_not_one_column_are_refused_before_anything_is_charged(labels):
    ledger = ldp.Ledger()
    with pytest.raises(ldp.LabelError, match="one label column"):
        estimate_prior(labels, epsilon=1.0, bounds=(0, 5), ledger=ledger)
    assert not ledger.charges


def test_the_number_of_bins_is_what_was_asked_for(monkeypatch):
    for bins in (1, 2):
        assert estimate_prior([1.0], epsilon=1.0, bounds=(0, 5), bins=bins).masses.size == bins
    monkeypatch.setattr(priors, "equal_histogram", lambda counts, *how: counts.size)  # noise would take seconds
    assert estimate_prior([1.0], epsilon=1.0, bounds=(0, 5), bins=1 << 20) == 1 << 20
    for bins in ((1 << 20) + 1, -1, "3"):
        with pytest.raises(ldp.ParameterError, match="bins"):
            estimate_prior([1.0], epsilon=1.0, bounds=(0, 5), bins=bins)


def test_every_method_belongs_to_one_kind_of_trust():
    for trust, methods in priors.METHODS.items():
        for method in methods:
            priors.check_method(trust, method)
            with pytest.raises(ldp.ParameterError, match="method must be"):
                priors.check_method("local" if trust == "curator" else "curator", method)
        priors.check_method(trust, None)
    with pytest.raises(ldp.ParameterError, match="trust must be"):
        priors.check_method("both", None)


@pytest.mark.parametrize(("method", "kind"), [("laplace", ldp.Laplace), ("square-wave", ldp.RPWithPrior)])
def test_reports_cost_what_the_prior_was_charged(method, kind, monkeypatch):
    spent, original = [], kind.randomize
    monkeypatch.setattr(
        kind, "randomize", lambda self, labels, **how: spent.append(self.verify()) or original(self, labels, **how)
    )
    ledger = ldp.Ledger()
    estimate_prior(np.ones(100), epsilon=0.7, bounds=(0, 5), trust="local", method=method, ledger=ledger)
    assert [proof.delta for proof in spent] == [0]
    assert 0.69 < spent[0].epsilon <= ledger.total.epsilon == 0.7
