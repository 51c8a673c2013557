"""What is computed from labels before noise comes on top is recorded, and looked for in all that is handed over.

Sums are integers of many digits, counts a row of small ones: a value of the first kind, or eight of the second in
sequence, would not be there by chance.
"""

import pickle
from dataclasses import replace

import numpy as np
import pytest

import labeldp as ldp
from labeldp.estimators import label_statistics, model_regressor, sums
from labeldp.estimators.designs import STEPS
from labeldp.priors import curator, statistics
from object_graph import Secrets, secrets_inside

pytestmark = pytest.mark.slow

BOUNDS = (0.0, 5.0)
RNG = np.random.default_rng(11)
X = RNG.normal(size=(600, 3))
Y = np.clip(2.5 + X[:, 0] + 0.3 * RNG.normal(size=600), 0.01, 4.99)

MADE = {
    "sums": lambda: ldp.ModelReleaseRegressor(epsilon=1.0, bounds=BOUNDS).fit(X, Y),
    "sums against directions": lambda: ldp.ModelReleaseRegressor(epsilon=0.05, bounds=BOUNDS).fit(X, Y),
    "sums, gaussian": lambda: ldp.ModelReleaseRegressor(epsilon=0.5, delta=1e-5, bounds=BOUNDS).fit(X, Y),
    "a model of labels": lambda: ldp.ModelReleaseRegressor(epsilon=4.0, bounds=BOUNDS).fit(X, Y),
    "labels": lambda: ldp.LabelReleaseRegressor(epsilon=1.0, bounds=BOUNDS).fit(X, Y),
    "release": lambda: ldp.privatize(Y, epsilon=1.0, bounds=BOUNDS),
    "prior": lambda: ldp.estimate_prior(Y, epsilon=1.0, bounds=BOUNDS),
    "adaptive prior": lambda: ldp.estimate_prior(Y, epsilon=1.0, bounds=BOUNDS, method="adaptive"),
}


@pytest.fixture
def recorded(monkeypatch):
    """All exact sums and counts, as secrets."""
    secrets = Secrets()
    exact_sums, noisy, label_sums = sums.Stage.sums, curator.noisy_counts, label_statistics.LabelSums.of

    def record_sums(stage, *arguments):
        found = exact_sums(stage, *arguments)
        design = stage.design
        unit = np.full(found.size, design.share / 4096) if design.sizes is None else 1 / design.sizes
        average = found * unit * stage.width / STEPS
        for kind, numbers in {"sum": found, "average": average, "share": average / stage.width}.items():
            secrets.values.update({f"{kind} {len(secrets.values)}.{k}": v for k, v in enumerate(numbers) if v})
        return found

    def record_counts(counts, *arguments):
        for name, row in {"counts": counts, "masses": counts / counts.sum(), "running": np.cumsum(counts)}.items():
            secrets.add_row(name, row, 8)
        return noisy(counts, *arguments)

    def record_label_sums(y, bounds):
        found = label_sums(y, bounds)
        total = int(found.total[0])
        mean = bounds[0] + total * ((bounds[1] - bounds[0]) / statistics.GRID / found.rows)
        secrets.values.update({"total": total, "mean": mean})
        secrets.add_row("counts", found.counts, 8)
        secrets.add_row("masses", found.counts / found.rows, 8)
        return found

    monkeypatch.setattr(sums.Stage, "sums", record_sums)
    monkeypatch.setattr(label_statistics.LabelSums, "of", record_label_sums)
    monkeypatch.setattr(curator, "noisy_counts", record_counts)
    return secrets


@pytest.mark.parametrize("name", MADE)
def test_no_exact_sum_and_no_exact_count_is_handed_over(name, recorded):
    made = MADE[name]()
    assert len(recorded.values) + len(recorded.rows[8]) > 2  # there was something to look for
    assert secrets_inside(made, recorded) == set()
    if "prior" not in name:
        assert secrets_inside(pickle.dumps(made), recorded) == set()
        assert secrets_inside(made.to_card(), recorded) == set()


# ---- twins: the same fits, with what is exact left inside -----------------------------------------------------


@pytest.mark.parametrize("form", [tuple, np.float64, lambda v: v.tobytes(), lambda v: str(v.tolist())])
def test_a_model_that_kept_its_exact_sums_is_found(form, recorded, monkeypatch):
    def keeping(plan, add_up, *arguments):
        kept = []

        def add(stage):
            kept.append(add_up(stage))
            return kept[-1]

        model, noise = fit(plan, add, *arguments)
        return replace(model, likely=(form(kept[0]),)), noise

    fit = model_regressor.fit_sums
    monkeypatch.setattr(model_regressor, "fit_sums", keeping)
    made = MADE["sums against directions"]()
    assert secrets_inside(made, recorded)


@pytest.mark.parametrize("name", ["prior", "adaptive prior", "release"])
def test_a_prior_of_exact_counts_is_found(name, recorded, monkeypatch):
    watched = curator.noisy_counts
    monkeypatch.setattr(curator, "noisy_counts", lambda counts, *rest: watched(counts, *rest) * 0 + counts)
    assert secrets_inside(MADE[name](), recorded)


@pytest.mark.parametrize("name", ["labels"])
def test_a_mean_without_noise_is_found(name, recorded, monkeypatch):
    noisy = label_statistics.noisy_mean

    def exact(total, rows, bounds, epsilon, source):
        mean = bounds[0] + int(total[0]) * ((bounds[1] - bounds[0]) / statistics.GRID / rows)
        return mean, noisy(total, rows, bounds, epsilon, source)[1]

    monkeypatch.setattr(label_statistics, "noisy_mean", exact)
    assert "mean" in secrets_inside(MADE[name](), recorded)
