"""``labeldp compare``: only for labels that are said to be public; exact curves, and advice that follows."""

import math
import sys
from dataclasses import replace

import numpy as np
import pyarrow as pa
import pyarrow.parquet
import pytest

from command_line import files_in, homes, said
from labeldp import InsecureRandomnessWarning, comparison, privatize
from labeldp.cli.comparison_figures import draw_comparison, label_curves, model_curves
from labeldp.comparison import Comparison, LabelNoise, compare_table, label_noise
from labeldp.errors import DataError


def compare(*words, code=0):
    return said("compare", *words, code=code)


NAMES = "laplace,rr-on-bins,auto"
OPTIONS = ("--label", "price", "--bounds", 0, 5, "--budgets", "3,0.5", "--repeats", 2, "--mechanisms", NAMES)


@pytest.fixture
def table(tmp_path):
    pa.parquet.write_table(homes(160), tmp_path / "homes.parquet")
    return tmp_path / "homes.parquet"


def test_without_the_word_public_it_stops_before_it_opens_anything(tmp_path):
    shown = compare(tmp_path / "nowhere.parquet", *OPTIONS, "--plot", tmp_path / "compare.png", code=2)
    assert "spend budget that nobody counts" in shown
    assert "nowhere" not in shown
    assert not list(tmp_path.iterdir())


def test_it_says_loudly_that_nothing_is_private_shows_both_curves_and_gives_advice(table, tmp_path):
    plot = tmp_path / "compare.png"
    page = tmp_path / "compare.html"
    shown = compare(table, *OPTIONS, "--public", "--plot", plot, "--report", page)
    for words in ("PUBLIC", "not private", "labels released", "model released", "private constant", "--release"):
        assert words in shown
    assert shown.index("ε = 0.5") < shown.index("ε = 3")
    assert "rr-on-bins: nearest one by one" in shown
    assert f"{5 * math.sqrt(2) / 0.5:.3g}" in shown  # Laplace at ε = 0.5: width · √2/ε
    assert plot.read_bytes().startswith(b"\x89PNG")
    html = page.read_text()
    assert html.count("<svg") == 2
    for text in (shown, html):
        assert "of 2 fits with fresh noise" in text
        assert text.count(" ± ") >= 8  # of two regressors, the constant and what is not private, at two budgets
    assert "nothing here is protected" in html
    assert "<script" not in html


@pytest.mark.parametrize(
    ("options", "words"),
    [
        (["--budgets", "one"], "numbers with commas"),
        (["--budgets", "1,inf"], "no privacy at all"),
        (["--mechanisms", "laplas"], "no mechanism 'laplas'"),
        (["--mechanisms", "gaussian"], "--delta"),
        (["--plot", "compare.doc"], ".png"),
        (["--report", __file__], "exists already"),
        (["--label", "prise"], "price"),
        (["--bounds", 5, 0], "lo < hi"),
    ],
)
def test_what_cannot_be_compared_is_refused_before_any_work(options, words, table, tmp_path):
    assert words in compare(table, *OPTIONS, "--public", *options, code=2)
    assert files_in(tmp_path) == ["homes.parquet"]


def test_without_matplotlib_it_says_what_to_install_before_any_work(monkeypatch, table, tmp_path):
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    shown = compare(table, *OPTIONS, "--public", "--plot", tmp_path / "compare.png", code=1)
    assert "labeldp[plots]" in shown
    assert "labels released" not in shown


@pytest.mark.parametrize("name", ["laplace", "rp", "rr-on-bins"])
def test_the_error_of_a_label_is_what_a_release_really_has(name):
    # 20,000 labels: the mean square of Laplace noise varies by 1.6 %, so 10 % is 6 standard errors, 2e-9.
    labels = np.random.default_rng(0).beta(2, 4, 20_000) * 5
    result = label_noise(name, labels, (0, 5), 1.0)
    with pytest.warns(InsecureRandomnessWarning):
        release = privatize(labels, epsilon=1.0, bounds=(0, 5), mechanism=name, random_state=0)
    private = release.labels if name == "rr-on-bins" else release.debiased
    assert math.sqrt(np.mean((private - labels) ** 2)) == pytest.approx(result.one, rel=0.1)
    assert result.unbiased == (name != "rr-on-bins")


def test_models_are_judged_on_rows_that_they_did_not_see():
    rng = np.random.default_rng(0)
    X, labels = rng.normal(size=(400, 4)), rng.uniform(0, 5, 400)  # nothing to learn: only memory could help
    result = compare_table(X, labels, (0.0, 5.0), budgets=[20.0], mechanisms=["laplace"])
    spread = math.sqrt(25 / 12)
    assert (result.trained, result.judged) == (300, 100)
    # The root mean square of 100 even residuals varies by 4.5 %: 0.75 of it is 5.5 standard errors away, 4e-8.
    assert result.not_private > 0.75 * spread
    assert min(result.models.values()) > 0.75 * spread
    assert "hardly predict" in result.advice()[0]


def test_fits_are_repeated_with_fresh_noise_and_their_spread_is_told(monkeypatch):
    fitted = []

    class Odd:
        """Its errors are 1, 2, 1, 2, … whatever the noise."""

        def __init__(self, **_):
            fitted.append(self)

        def fit(self, *_):
            return self

        def predict(self, X):
            return np.full(len(X), 1.0 + (len(fitted) - 1) % 2)

    for name in comparison.REGRESSORS:
        monkeypatch.setitem(comparison.REGRESSORS, name, Odd)
    X, labels, steps = np.random.default_rng(0).normal(size=(80, 2)), np.zeros(80), []
    asked = {"budgets": [1.0, 2.0], "mechanisms": ["laplace"]}
    result = compare_table(X, labels, (0.0, 5.0), **asked, repeats=4, progress=lambda *step: steps.append(step))
    assert len(fitted) == 16
    assert steps == [("comparing", k, 19) for k in range(1, 20)]
    assert result.models["model released", 1.0] == pytest.approx(1.5)
    # The errors' variance is 1/3, by n − 1 = 3; times ε² it is 5/6 on average, and a mean of four has a quarter.
    assert result.spread["model released", 1.0] == pytest.approx(math.sqrt(5 / 6 / 4))
    assert result.error("model released", 2.0) == "1.5 ± 0.23"
    once = compare_table(X, labels, (0.0, 5.0), **asked)
    assert once.spread["model released", 1.0] == 0.0  # all held-out rows have the same error


def test_the_standard_error_by_rows_is_that_of_fresh_rows():
    """Held-out errors of a constant, over 40 draws of rows, vary by what is stated; that varies by 11 %."""
    asked = {"budgets": [20.0], "mechanisms": ["laplace"]}
    rng, found, stated = np.random.default_rng(0), [], []
    for _ in range(40):
        labels = rng.uniform(0, 5, 160)
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(comparison.comparison, "REGRESSORS", {})
            result = compare_table(np.zeros((160, 1)), labels, (0.0, 5.0), **asked)
        found.append(result.constant[20.0])
        stated.append(result.rows_spread[0])
    assert np.std(found) == pytest.approx(np.mean(stated), rel=0.6)


COLOURS = ("#000000", "#111111"), "#777777"


def axes_of(curves, result):
    from matplotlib.figure import Figure

    axes = Figure().subplots()
    curves(axes, result, *COLOURS)
    return axes


def test_the_band_in_the_plot_is_the_standard_error():
    result = comparison_of({(name, e): 0.6 for name in comparison.REGRESSORS for e in (0.1, 1.0)})
    axes = axes_of(model_curves, replace(result, spread=dict.fromkeys(result.models, 0.05), repeats=3))
    assert len(axes.collections) == 2
    (low, high) = axes.collections[0].get_paths()[0].get_extents().get_points()[:, 1]
    assert (low, high) == pytest.approx((0.55, 0.65))


def test_a_far_away_constant_does_not_hide_differences_and_axes_have_plain_numbers(tmp_path):
    models = {(name, e): 15_000 + 500 * k for k, name in enumerate(comparison.REGRESSORS) for e in (0.1, 1.0)}
    axes = axes_of(model_curves, comparison_of(models, constant=72_000.0, not_private=14_000.0))
    low, high = axes.get_ylim()
    assert 13_000 < low < 14_000
    assert 15_500 < high < 17_000
    names = [line.get_label() for line in axes.get_lines()]
    assert "private constant:\n72,000, above" in names
    near = axes_of(model_curves, comparison_of(models, constant=16_000.0, not_private=14_000.0))
    assert near.get_ylim()[1] > 16_000
    labels = axes_of(label_curves, comparison_of(models, constant=72_000.0))
    assert [text.get_text() for text in labels.get_yticklabels()] == ["0.1", "1", "10", "100", "1,000", "10k"]
    draw_comparison(comparison_of(models), "price", tmp_path / "curves.png")
    assert (tmp_path / "curves.png").read_bytes().startswith(b"\x89PNG")


def comparison_of(models, constant=1.0, not_private=0.5, risks=(1.0, 1.0)):
    noise = {}
    for epsilon in (0.1, 1.0):
        noise["auto", epsilon] = LabelNoise(2.0, 0.1, risks[0], unbiased=True)
        noise["rp", epsilon] = LabelNoise(2.0, 0.1, risks[1], unbiased=True)
        noise["rr-on-bins", epsilon] = LabelNoise(0.1, 0.1, 0.0, unbiased=False)
    return Comparison(
        budgets=(0.1, 1.0),
        trained=300,
        judged=100,
        noise=noise,
        models=models,
        constant={0.1: constant, 1.0: constant},
        not_private=not_private,
        spread=dict.fromkeys(models, 0.01),
        rows_spread=(0.02, 0.01),
    )


def test_the_advice_is_the_least_budget_that_keeps_most_and_says_so_if_there_is_none():
    good = {
        ("labels released", 0.1): 0.9,
        ("model released", 0.1): 0.55,
        ("labels released", 1.0): 0.51,
        ("model released", 1.0): 0.52,
    }
    advice = " ".join(comparison_of(good).advice())
    assert "Take ε = 0.1" in advice
    assert "For a model: ModelReleaseRegressor, with a typical error of" in advice
    assert "93 % at ε = 0.1" in advice  # (1 − 0.55²)/(1 − 0.5²)
    alike = " ".join(comparison_of({**good, ("labels released", 0.1): 0.56}).advice())
    assert "For a model: LabelReleaseRegressor or ModelReleaseRegressor, with typical errors of" in alike
    assert "too close to tell apart" in alike
    poor = {**dict.fromkeys(good, 1.0), ("labels released", 1.0): 0.9}
    advice = " ".join(comparison_of(poor).advice())
    assert "None of these budgets" in advice
    assert "ε = 1 keeps most" in advice
    assert "a constant does as well" in " ".join(comparison_of(dict.fromkeys(good, 1.1)).advice())


def test_labels_that_do_not_average_out_are_never_advised_and_auto_only_if_none_is_clearly_better():
    models = {(name, e): 0.6 for name in ("labels released", "model released") for e in (0.1, 1.0)}
    assert comparison_of(models, risks=(1.05, 1.0)).best_mechanism(1.0) == "auto"
    assert comparison_of(models, risks=(1.2, 1.0)).best_mechanism(1.0) == "rp"


def test_a_handful_of_rows_is_refused():
    with pytest.raises(DataError, match="too few"):
        compare_table(np.zeros((10, 1)), np.zeros(10), (0.0, 5.0), budgets=[1.0], mechanisms=["laplace"])
