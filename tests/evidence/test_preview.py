"""A preview says before any label is read what a release, a score and a model would have."""

import json
import math

import numpy as np
import pytest

import labeldp as ldp
from command_line import said
from helpers import seeded
from labeldp.evidence.accuracy_suite import share_kept

BOUNDS = (0.0, 200.0)
ROWS = 20_000
LABELS = np.random.default_rng(0).uniform(*BOUNDS, ROWS)


class Zero:
    """A model at the lower bound: one label moves its squared error as far as it can."""

    def predict(self, X):
        return np.zeros(len(X))


def expected(epsilon, **options):
    return ldp.preview(rows=ROWS, bounds=BOUNDS, epsilon=epsilon, **options).budgets[0]


@pytest.mark.parametrize("prior", [None, ldp.Histogram([0, 50, 200], [0.9, 0.1])])
def test_the_error_of_a_label_is_that_of_a_release(prior):
    """The mean square of 20,000 noises varies by about 1 %: 6 % is beyond five standard errors."""
    rng = np.random.default_rng(1)
    labels = LABELS if prior is None else np.where(rng.random(ROWS) < 0.9, LABELS / 4, 50 + 0.75 * LABELS)
    how = {"epsilon_prior": 0} if prior is None else {"prior": prior}
    release = ldp.privatize(labels, epsilon=1.0, bounds=BOUNDS, random_state=seeded(0), **how)
    error = math.sqrt(np.mean((release.debiased - labels) ** 2))
    assert error == pytest.approx(expected(1.0, prior=prior).label, rel=0.06)


def test_a_score_at_the_stated_error_is_twice_its_noise():
    """The squares of 200 scores' errors have a mean that varies by 16 %: 80 % is five standard errors."""
    least = expected(0.5).score
    X, labels = np.zeros((ROWS // 10, 1)), np.full(ROWS // 10, least)
    paid = {"epsilon": 0.5, "bounds": BOUNDS, "ledger": ldp.Ledger()}
    scores = [ldp.private_score(Zero(), X, labels, random_state=seeded(k), **paid).mse for k in range(200)]
    noise = math.sqrt(np.mean((np.array(scores) - least**2) ** 2))
    assert 2 * noise == pytest.approx(least**2, rel=0.4)


def test_where_a_score_would_be_refused_it_shows_nothing():
    assert math.isinf(ldp.preview(rows=100, bounds=BOUNDS, epsilon=0.1).budgets[0].score)
    with pytest.raises(ldp.errors.ParameterError, match="would say nothing"):
        ldp.private_score(Zero(), np.zeros((10, 1)), np.zeros(10), epsilon=0.1, bounds=BOUNDS)
    assert "nothing" in ldp.preview(rows=100, bounds=BOUNDS, epsilon=0.1).summary()


@pytest.mark.slow
def test_more_budget_is_never_worse_and_the_curator_knows_the_mean_best():
    curve = ldp.preview(rows=ROWS, bounds=BOUNDS).curve
    for name in ("label", "hundred", "thousand", "mean", "curator_mean", "score"):
        values = [getattr(point, name) for point in curve]
        assert values == sorted(values, reverse=True)
    assert all(p.curator_mean < p.mean < p.thousand < p.hundred < p.label for p in curve)


@pytest.mark.slow
def test_with_the_epsilon_that_is_needed_the_error_is_as_wanted():
    needed = ldp.preview(rows=ROWS, bounds=BOUNDS, wanted=5.0).needed
    for name, epsilon in needed.items():
        if epsilon > 0.02:  # the least that is tried
            assert getattr(expected(epsilon), name) == pytest.approx(5.0, rel=0.05)
    assert needed["curator_mean"] == 0.02
    assert ldp.preview(rows=10, bounds=BOUNDS, wanted=1e-6).needed["label"] is None


def test_models_keep_more_with_more_rows_and_nothing_is_said_where_nothing_was_measured():
    few, many = share_kept(2000, 1.0), share_kept(20_000, 1.0)
    assert 0 < few.middle < many.middle <= 1
    assert share_kept(20, 0.1) is None
    assert "not measured" in ldp.preview(rows=20, bounds=BOUNDS, epsilon=0.1).summary()


def test_it_shows_itself_in_text_and_as_a_figure():
    plan = ldp.preview(rows=ROWS, bounds=BOUNDS, wanted=2.0, epsilon=[1, 0.3])
    text = plan.summary()
    assert text.index("ε = 0.3") < text.index("ε = 1")
    assert all(words in text for words in ("accuracy suite", "nothing was spent", "For ±2", "evenly"))
    left, right = plan.plot().axes
    assert left.get_legend().get_texts()[0].get_text() == "one label"
    assert right.get_ylim() == (0, 100)


@pytest.mark.parametrize(
    "options",
    [
        {"rows": 0},
        {"rows": 2.5},
        {"bounds": (1, 1)},
        {"epsilon": []},
        {"epsilon": [1, -1]},
        {"wanted": 0},
        {"prior": [1, 2]},
        {"rows_per_person": 0},
    ],
)
def test_what_cannot_be_planned_is_refused_by_its_option(options):
    with pytest.raises(ldp.errors.ParameterError) as refused:
        ldp.preview(**{"rows": ROWS, "bounds": BOUNDS, **options})
    assert refused.value.option == next(iter(options))


@pytest.mark.slow
def test_the_command_reads_no_table_and_shows_the_same_figures(tmp_path):
    plot = tmp_path / "preview.png"
    words = ("--rows", 5000, "--bounds", 0, 100, "--epsilon", "0.5,2", "--wanted", 3, "--plot", plot)
    shown = said("preview", *words, "--edges", "0,20,100", "--masses", "80,20")
    prior = ldp.Histogram([0, 20, 100], [80, 20])
    plan = ldp.preview(rows=5000, bounds=(0, 100), epsilon=[0.5, 2], prior=prior, wanted=3)
    for line in plan.table()[1]:
        assert all(cell in shown for cell in line)
    assert plot.read_bytes().startswith(b"\x89PNG")
    assert "exists already" in said("preview", *words, code=2)


def test_without_matplotlib_it_says_what_to_install(uninstall, tmp_path):
    uninstall("matplotlib", "matplotlib.figure")
    options = ("--rows", 100, "--bounds", 0, 1, "--plot", tmp_path / "preview.png")
    assert "labeldp[plots]" in said("preview", *options, code=1)
    with pytest.raises(ImportError, match=r"labeldp\[plots\]"):
        ldp.preview(rows=100, bounds=(0, 1)).plot()


def test_the_packaged_figures_are_written_from_the_suite_s_cells(tmp_path):
    from benchmarks.accuracy.packaged import write_packaged

    place = {"split": 0, "repeat": 0, "table": "scores", "epsilon": 1.0, "loose": "1", "rows": 0}
    cells = [
        place | {"method": "constant", "label": "", "error": 2.0},
        place | {"method": "trees", "label": "", "error": 1.0, "epsilon": math.inf},
        place | {"method": "model", "label": "new", "error": 1.2},
        place | {"method": "model", "label": "new", "error": 1.4, "split": 1},
        place | {"method": "model", "label": "old", "error": 9.0},
        place | {"method": "model", "label": "new", "error": 9.0, "loose": "10"},
    ]
    assert write_packaged(cells, "new", tmp_path / "suite.json") == 1
    (table,) = json.loads((tmp_path / "suite.json").read_text())["tables"]
    assert (table["table"], table["columns"], table["splits"], table["trees"]) == ("scores", 10, 2, 0.5)
    assert table["figures"] == [{"method": "model", "epsilon": 1.0, "rows": 1600, "error": 0.65}]
