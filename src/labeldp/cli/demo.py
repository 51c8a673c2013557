"""``labeldp demo``: the main job, on a synthetic survey."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Annotated

import numpy as np
import typer
from rich.console import Console

from labeldp._values import rounded_up
from labeldp.cli.compare import show_comparison
from labeldp.cli.comparison_figures import draw_comparison
from labeldp.cli.shell import PlainConsole, explained, progress, tell
from labeldp.comparison import compare_table, mechanism_noise
from labeldp.datasets import Survey, make_survey
from labeldp.errors import MissingExtraError
from labeldp.estimators import ModelReleaseRegressor, private_score
from labeldp.ledger import Ledger
from labeldp.release import Release, privatize
from labeldp.release.numbers import number
from labeldp.report import Section, write_report
from labeldp.report.figures import require_matplotlib

_BUDGETS = (0.1, 0.5, 2.0)
_MECHANISMS = ("laplace", "rp", "auto")
_MOST = 8000
"""Rows to compare models on: enough to show the price, few enough not to wait for it."""


def demo(
    rows: Annotated[int, typer.Option(min=1000, metavar="N", help="Households in the synthetic survey.")] = 20_000,
    plot: Annotated[Path, typer.Option(metavar="FILE", help="Where to save the picture.")] = Path(
        "labeldp-demo.png"
    ),
    report: Annotated[Path, typer.Option(metavar="FILE", help="Where to write the report.")] = Path(
        "labeldp-report.html"
    ),
) -> None:
    """Randomise the incomes of a synthetic survey, train private models, and show what that costs and protects.

    What leaves: nothing of yours. The survey is drawn at random; the picture and the report are written where you
    stand, and replace older ones.
    """
    with explained():
        console = PlainConsole()
        survey = make_survey(rows)
        low, high = survey.bounds
        tell(console, f"\nA synthetic survey of {rows:,} households.", "bold")
        tell(
            console,
            "Age, schooling, region … are public; the income is private, asked as "
            f"${low:,.0f} to ${high:,.0f} (these bounds are public).\n",
        )
        release = privatize(survey.income, epsilon=1.0, bounds=survey.bounds, ledger=Ledger())
        _show_release(release, survey, console)
        with progress() as update:
            comparison = compare_table(
                survey.features[:_MOST],
                survey.income[:_MOST],
                survey.bounds,
                budgets=_BUDGETS,
                mechanisms=_MECHANISMS,
                progress=update,
            )
        tell(console, "What that costs at other ε: errors in dollars, on incomes that are no secret here.\n")
        show_comparison(comparison, "income", console)
        _show_score(survey, console)
        try:
            require_matplotlib()
        except MissingExtraError as error:
            tell(console, f"No picture and no report: {error}")
            return
        draw_comparison(comparison, "income", plot)
        _write_report(report, release, survey)
        tell(console, f"The picture is in {plot}.")
        tell(console, f"The report of the release at ε = 1 is in {report}: open it in a browser.")


def _show_release(release: Release, survey: Survey, console: Console) -> None:
    """Say what one release carries: what is proven, what is expected, and what came out."""
    prior = sum(charge.budget.epsilon for charge in release.charges if charge.purpose == "prior")
    proven = release.mechanism.verify().epsilon + prior
    expected = mechanism_noise(release.mechanism, survey.income)
    tell(
        console,
        f"{survey.income.size:,} incomes were randomised for ε = 1 by {type(release.mechanism).__name__}, at "
        f"{_labels_per_second(release, survey) / 1e6:,.0f} million a second. Proven in exact arithmetic, for the "
        f"very bits released: ε ≤ {rounded_up(proven)}. Whoever sees a released income, and knows all features, "
        "can raise their odds on any household's true income by at most e^ε.",
    )
    tell(
        console,
        f"One private income is off by ±{number(expected.one, 3)}; their mean by only "
        f"±{number(expected.mean, 3)}: it is {number(release.debiased.mean())}, in truth "
        f"{number(survey.income.mean())}. Noise averages out over many.\n",
    )


def _show_score(survey: Survey, console: Console) -> None:
    """Fit one model and measure its error privately."""
    X, y = survey.features[:_MOST], survey.income[:_MOST]
    test, train = slice(0, len(y) // 4), slice(len(y) // 4, None)
    ledger = Ledger()
    model = ModelReleaseRegressor(epsilon=2.0, bounds=survey.bounds, ledger=ledger).fit(X[train], y[train])
    score = private_score(model, X[test], y[test], epsilon=0.5, bounds=survey.bounds, ledger=ledger)
    tell(
        console,
        "\nOne's own model is measured by private_score, without showing a test label: for ε = 0.5 more it puts "
        f"the error at ε = 2 at {score.figures['rmse']}. Both together cost {ledger.total}. Each "
        "release of the same incomes costs again: in earnest choose one.\n",
        "dim",
    )


def _write_report(path: Path, release: Release, survey: Survey) -> None:
    """Write the report of a release, with what only a synthetic survey allows: the prediction beside the truth."""
    errors = release.debiased - survey.income
    expected = mechanism_noise(release.mechanism, survey.income)
    comparison = Section(
        "What came true",
        ["This survey is synthetic: its incomes are no secret, and predictions can be held against them."],
        header=["error of", "predicted", "seen here"],
        rows=[
            ["one private income", f"±{number(expected.one)}", f"±{number(float(np.sqrt(np.mean(errors**2))))}"],
            [f"the mean of all {errors.size:,}", f"±{number(expected.mean)}", number(float(errors.mean()))],
        ],
    )
    write_report(path, release.to_card(), sections=[comparison], force=True)


def _labels_per_second(release: Release, survey: Survey) -> float:
    """Return the speed, on incomes repeated to a million."""
    many = np.tile(survey.income, max(1, 1_000_000 // survey.income.size))
    release.mechanism.randomize(many)
    start = time.perf_counter()
    release.mechanism.randomize(many)
    return many.size / (time.perf_counter() - start)
