"""``labeldp demo``: the main job, on a survey made on the spot."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Annotated

import numpy as np
import typer
from rich.console import Console
from rich.progress import track
from rich.table import Table

from labeldp.datasets import Survey, make_survey
from labeldp.ledger import Ledger
from labeldp.release import Release, privatize
from labeldp.report import Section, number, write_report

__all__ = ["demo"]

EXAMPLE = "Example:  labeldp demo --rows 50000 --plot price.png"

BUDGETS = (0.5, 1.0, 2.0, 4.0)
CHOICES = {
    "Laplace": {"mechanism": "laplace"},
    "RPWithPrior": {"mechanism": "rp"},
    "auto": {"mechanism": "auto"},
}


def demo(
    rows: Annotated[int, typer.Option(min=1000, help="Households in the made survey.")] = 20_000,
    plot: Annotated[Path, typer.Option(help="Where to save the picture.")] = Path("labeldp-demo.png"),
    report: Annotated[Path, typer.Option(help="Where to write the report.")] = Path("labeldp-report.html"),
) -> None:
    """Randomise the incomes of a made survey, train private models, and show what that costs and protects.

    Example:  labeldp demo --rows 50000 --plot price.png --report price.html
    """
    console = Console()
    survey = make_survey(rows)
    low, high = survey.bounds
    truth = float(survey.income.mean())
    console.print(
        f"\n[bold]A made survey of {rows:,} households.[/bold] Age, schooling, region … are public; the income is "
        f"private, asked as ${low:,.0f} to ${high:,.0f} (these bounds are public).\n"
    )
    table = Table(
        title=f"What a private income carries; in truth their mean is {truth:,.0f}", title_justify="left"
    )
    for name in ("ε", "proven", "mechanism", "one ±", "seen ±", "mean ±", "mean", "M/s"):
        table.add_column(name, justify="left" if name == "mechanism" else "right", no_wrap=True)
    releases = {}
    for epsilon in track(BUDGETS, description="Randomising …", console=console, transient=True):
        for name in CHOICES:
            releases[epsilon, name] = _add_row(table, survey, epsilon, name)
    console.print(table)
    console.print(
        "one ±: expected error of one private income, seen ±: its error here; mean ±: expected error of the mean; "
        "M/s: million labels a second",
        style="dim",
    )
    console.print(
        "\nWhoever sees a released income, and knows all features, can raise their odds on any household's true "
        "income by at most e^ε: that is proven in exact arithmetic for the very bits released. A single income "
        "stays noisy while the noise averages out over many, so means and models stay close; "
        '"auto", what [bold]privatize[/bold] does by default, spends a little of ε on where incomes are, and '
        "then clips and chooses the mechanism for the mean's sake.\n"
    )
    from labeldp.cli.demo_models import price_of_privacy, save_plot, show_prices  # noqa: PLC0415 (slow to import)

    price = price_of_privacy(survey, console)
    show_prices(price, console)
    if save_plot(price, plot):
        _write_report(report, releases[1.0, "auto"], survey)
        console.print(f"The picture is in [bold]{plot}[/bold].")
        console.print(f"The report of one release, at ε = 1, is in [bold]{report}[/bold]: open it in a browser.")
    else:
        console.print("For a picture and a report too:  pip install 'labeldp[plots]'", markup=False)


def _write_report(path: Path, release: Release, survey: Survey) -> None:
    """Write the report of a release, with what only a made survey allows: the prediction beside the truth."""
    bias, noise = _expected(release, survey)
    errors = release.debiased - survey.income
    one, mean = np.sqrt(np.mean(bias**2 + noise)), np.hypot(bias.mean(), np.sqrt(noise.mean() / noise.size))
    seen = Section(
        "What came true",
        ["This survey is made, so its true incomes are no secret, and predictions can be held against them."],
        header=["error of", "predicted", "seen here"],
        rows=[
            ["one private income", f"±{number(one)}", f"±{number(float(np.sqrt(np.mean(errors**2))))}"],
            [f"the mean of all {errors.size:,}", f"±{number(mean)}", number(float(errors.mean()))],
        ],
    )
    write_report(path, release.to_card(), extra=[seen], force=True)


def _add_row(table: Table, survey: Survey, epsilon: float, name: str) -> Release:
    release = privatize(
        survey.income,
        epsilon=epsilon,
        bounds=survey.bounds,
        ledger=Ledger(),
        **CHOICES[name],  # type: ignore[arg-type]
    )
    private = release.debiased
    bias, noise = _expected(release, survey)
    table.add_row(
        f"{epsilon:g}" if name == "Laplace" else "",
        f"{_proven(release):.4f}",
        f"auto: {type(release.mechanism).__name__}" if name == "auto" else name,
        f"{np.sqrt(np.mean(bias**2 + noise)) / 1000:,.1f}k",
        f"{np.sqrt(np.mean((private - survey.income) ** 2)) / 1000:,.1f}k",
        f"{np.hypot(bias.mean(), np.sqrt(noise.mean() / noise.size)):,.0f}",
        f"{private.mean():,.0f}",
        f"{_rate(release, survey) / 1e6:,.0f}",
        style="green" if name == "auto" else "",
        end_section=name == "auto",
    )
    return release


def _proven(release: Release) -> float:
    """Return the proven ε of the labels, plus what the prior cost."""
    prior = sum(c.budget.epsilon for c in release.charges if c.purpose == "prior")
    return float(release.mechanism.verify().epsilon + prior)


def _expected(release: Release, survey: Survey) -> tuple[np.ndarray, np.ndarray]:
    """Return bias and variance of each unbiased label, as the channel's counts predict them."""
    mechanism = release.mechanism
    bias = mechanism.debias(mechanism.mean(survey.income)) - survey.income
    return bias, mechanism.unbiased_variance(survey.income)


def _rate(release: Release, survey: Survey) -> float:
    """Return labels a second, on incomes repeated to a million."""
    many = np.tile(survey.income, max(1, 1_000_000 // survey.income.size))
    release.mechanism.randomize(many)
    started = time.perf_counter()
    release.mechanism.randomize(many)
    return many.size / (time.perf_counter() - started)
