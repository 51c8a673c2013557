"""``labeldp demo``: the main job, on a survey made on the spot."""

from __future__ import annotations

import math
import time
from typing import Annotated

import numpy as np
import typer
from numpy.typing import NDArray
from rich.console import Console
from rich.progress import track
from rich.table import Table

from labeldp.datasets import Survey, make_survey
from labeldp.mechanisms import Laplace, Mechanism, RPWithPrior, TwoPoint

__all__ = ["demo"]

BUDGETS = (0.5, 1.0, 2.0, 4.0)


def demo(
    rows: Annotated[int, typer.Option(min=100, help="Households in the made survey.")] = 20_000,
) -> None:
    """Randomise the incomes of a made survey and show what it costs and what it protects.

    Example:  labeldp demo --rows 50000
    """
    console = Console()
    survey = make_survey(rows)
    low, high = survey.bounds
    console.print(
        f"\n[bold]A made survey of {rows:,} households.[/bold] Age, schooling, region … are public; the "
        f"income is private, asked as ${low:,.0f} to ${high:,.0f} (those bounds are public).\n"
    )
    table = Table(
        title=f"Error of one private income, and the mean of all (in truth {survey.income.mean():,.0f})",
        title_justify="left",
    )
    for name in ("ε", "ε proven", "mechanism", "expected", "measured", "mean", "labels/s"):
        table.add_column(name, justify="left" if name == "mechanism" else "right", no_wrap=True)
    for epsilon in track(BUDGETS, description="Randomising …", console=console, transient=True):
        choices = (
            Laplace(bounds=survey.bounds, epsilon=epsilon),
            TwoPoint(bounds=survey.bounds, epsilon=epsilon),
            RPWithPrior(
                interval=survey.bounds,
                zeta=(high - low) / 2 * math.exp(-epsilon / 2),  # the best for labels anywhere
                epsilon=epsilon,
            ),
        )
        expected = [_expected_error(mechanism, survey) for mechanism in choices]
        for mechanism, error in zip(choices, expected, strict=True):
            unbiased, rate = _release(mechanism, survey.income)
            measured = float(np.sqrt(np.mean((unbiased - survey.income) ** 2)))
            table.add_row(
                f"{epsilon:g}",
                f"{mechanism.verify().epsilon:.6f}",
                type(mechanism).__name__,
                f"±{error:,.0f}",
                f"±{measured:,.0f}",
                f"{unbiased.mean():,.0f}",
                f"{rate / 1e6:,.0f} M",
                style="bold green" if error == min(expected) else "",
                end_section=mechanism is choices[-1],
            )
    console.print(table)
    console.print(
        "\nEach income alone drowns in noise, so whoever sees a released value can raise their odds on "
        "any household's true income by at most e^ε, which is proven in exact arithmetic for the very "
        "bits released. The noise is unbiased and averages out over many households, so means and models "
        "learnt from the private incomes stay close to the truth [green](green: the best choice at that "
        "ε)[/green].\n"
    )


def _expected_error(mechanism: Mechanism, survey: Survey) -> float:
    """Return the root mean squared error of the unbiased label that the channel's counts predict."""
    return float(np.sqrt(mechanism.unbiased_variance(survey.income).mean()))


def _release(mechanism: Mechanism, labels: NDArray[np.float64]) -> tuple[NDArray[np.float64], float]:
    """Return unbiased private labels and the rate of `randomize`, on labels repeated to a million."""
    released = mechanism.randomize(labels)
    many = np.tile(labels, max(1, 1_000_000 // labels.size))
    started = time.perf_counter()
    mechanism.randomize(many)
    return mechanism.debias(released), many.size / (time.perf_counter() - started)
