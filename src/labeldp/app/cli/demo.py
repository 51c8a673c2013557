"""``labeldp demo``: the main job, on a synthetic survey."""

from __future__ import annotations

from pathlib import Path

import numpy as np
from rich.console import Console

from labeldp.accounts.budget import rounded_up
from labeldp.accounts.ledger import Ledger
from labeldp.accounts.numbers import number
from labeldp.app.cli.command import command
from labeldp.app.cli.compare import show_comparison
from labeldp.app.cli.comparison_figures import draw_comparison
from labeldp.app.cli.shell import PlainConsole, progress, tell
from labeldp.app.options import integer
from labeldp.app.report.card_report import write_report
from labeldp.app.report.figures import require_matplotlib
from labeldp.errors import MissingExtraError
from labeldp.evidence.comparison import compare_table
from labeldp.evidence.label_noise import mechanism_noise
from labeldp.evidence.survey import Survey, make_survey
from labeldp.learning.model_regressor import ModelReleaseRegressor
from labeldp.learning.score import private_score
from labeldp.release.arrays import Release, privatize

_MOST = 8000
"""Rows to compare models on: enough to show the price, few enough not to wait for it."""


@command(
    *("rows", "plot", "report"),
    rows={**integer("rows", 1000), "help": "Households in the synthetic survey."},
    plot={"default": Path("labeldp-demo.png"), "help": "Where to save the picture."},
    report={"default": Path("labeldp-report.html"), "help": "Where to write the report."},
)
def demo(rows: int, plot: Path, report: Path) -> None:
    """Randomise the incomes of a synthetic survey, train private models, and show what that costs and protects.

    What is released: nothing of yours. The survey is drawn at random; the picture and the report are written to
    the current folder, and replace older ones.
    """
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
            budgets=(0.1, 0.5, 2.0),
            mechanisms=("laplace", "rp", "auto"),
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
    write_report(report, release.to_card(), force=True)
    tell(console, f"The picture is in {plot}.")
    tell(console, f"The report of the release at ε = 1 is in {report}: open it in a browser.")


def _show_release(release: Release, survey: Survey, console: Console) -> None:
    """Say what one release carries: what is proven, what is expected, and what came out."""
    prior = sum(charge.budget.epsilon for charge in release.charges if charge.purpose == "prior")
    proven = release.mechanism.verify().epsilon + prior
    expected, errors = mechanism_noise(release.mechanism, survey.income), release.debiased - survey.income
    tell(
        console,
        f"{survey.income.size:,} incomes were randomised for ε = 1 by {type(release.mechanism).__name__}. Proven "
        f"in exact arithmetic, for the very bits released: ε ≤ {rounded_up(proven)}. Whoever sees a released "
        "income, and knows all features, can raise their odds on any household's true income by at most e^ε.",
    )
    tell(
        console,
        f"One private income is expected to be off by ±{number(expected.one, 3)}, and was by "
        f"±{number(float(np.sqrt(np.mean(errors**2))), 3)}; their mean by only ±{number(expected.mean, 3)}: it is "
        f"{number(release.debiased.mean())}, in truth {number(survey.income.mean())}. Noise averages out over "
        "many.\n",
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
        "\nprivate_score measures the error of a model privately, on labels that were held out. For a further "
        f"ε = 0.5 it estimates the error of the model at ε = 2 as {score.figures['rmse']}; together they cost "
        f"{ledger.total}. Each release of the same incomes costs again, so choose one where incomes are real.\n",
        "dim",
    )
