"""``labeldp demo``: the main job, on a survey made on the spot."""

from __future__ import annotations

import time
from typing import Annotated

import numpy as np
import typer
from rich.console import Console
from rich.progress import track
from rich.table import Table

from labeldp.datasets import Survey, make_survey
from labeldp.release import Release, privatize

__all__ = ["demo"]

BUDGETS = (0.5, 1.0, 2.0, 4.0)
MECHANISMS = ("laplace", "rp", "auto")


def demo(
    rows: Annotated[int, typer.Option(min=100, help="Households in the made survey.")] = 20_000,
) -> None:
    """Randomise the incomes of a made survey; show what it costs and what it protects.

    Example:  labeldp demo --rows 50000
    """
    console = Console()
    survey = make_survey(rows)
    low, high = survey.bounds
    console.print(
        f"\n[bold]A made survey of {rows:,} households.[/bold] Age, schooling, region … are public; the "
        f"income is private, asked as ${low:,.0f} to ${high:,.0f} (these bounds are public).\n"
    )
    table = Table(
        title=f"Error of one private income, and the mean of all (in truth {survey.income.mean():,.0f})",
        title_justify="left",
    )
    for name in ("ε", "ε proven", "mechanism", "expected", "measured", "mean", "labels/s"):
        table.add_column(name, justify="left" if name == "mechanism" else "right", no_wrap=True)
    for epsilon in track(BUDGETS, description="Randomising …", console=console, transient=True):
        for name in MECHANISMS:
            _add_row(table, survey, epsilon, name)
    console.print(table)
    console.print(
        "\nEach income alone drowns in noise: whoever sees a released value, and knows all features, can "
        "raise their odds on any household's true income by at most e^ε, proven in exact arithmetic for "
        "the very bits released. The noise averages out over many households, so means, and models learnt "
        "from private incomes, stay close to the truth ([green]green[/green]: "
        '[bold]privatize(…, mechanism="auto")[/bold], which first spends a little of ε on where incomes '
        "are).\n"
    )


def _add_row(table: Table, survey: Survey, epsilon: float, name: str) -> None:
    release = privatize(survey.income, epsilon=epsilon, bounds=survey.bounds, mechanism=name)
    private = release.debiased
    error = np.sqrt(np.mean((private - survey.income) ** 2))
    chosen = type(release.mechanism).__name__
    table.add_row(
        f"{epsilon:g}" if name == MECHANISMS[0] else "",
        f"{_proven(release):.6f}",
        f"auto: {chosen}" if name == "auto" else chosen,
        f"±{_expected_error(release, survey) / 1000:,.1f}k",
        f"±{error / 1000:,.1f}k",
        f"{private.mean():,.0f}",
        f"{_rate(release, survey) / 1e6:,.0f} M",
        style="green" if name == "auto" else "",
        end_section=name == MECHANISMS[-1],
    )


def _proven(release: Release) -> float:
    """Return the proven ε of the labels, plus what the prior cost."""
    prior = sum(c.budget.epsilon for c in release.charges if c.what.startswith("prior"))
    return float(release.mechanism.verify().epsilon + prior)


def _expected_error(release: Release, survey: Survey) -> float:
    """Return the root mean squared error of an unbiased label that the channel's counts predict."""
    mechanism = release.mechanism
    bias = mechanism.debias(mechanism.mean(survey.income)) - survey.income
    return float(np.sqrt(np.mean(bias**2 + mechanism.unbiased_variance(survey.income))))


def _rate(release: Release, survey: Survey) -> float:
    """Return labels a second, on incomes repeated to a million."""
    many = np.tile(survey.income, max(1, 1_000_000 // survey.income.size))
    started = time.perf_counter()
    release.mechanism.randomize(many)
    return many.size / (time.perf_counter() - started)
