"""Whether `privatize` has the error it states, and how much luck is in it: ``python -m benchmarks.privatize``.

The same labels are released again and again with ``mechanism="auto"``. The error is the mean of the released
labels less the true mean; the stated ± is the one that `Release.summary` shows. An rms of 1 means that the ± is
what it says; "beyond 2" is how often the error is more than twice as large. "max/min" is the largest noise of a
label over the smallest, of all releases of the same labels: as stated, and as it is. "to exact" is the median
noise over that of a design for the labels themselves, with no ε spent to know them. Kinds marked * chose nothing
in the library: they were looked at once, at the end.
"""

from __future__ import annotations

import math
import warnings
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Literal

import numpy as np
import typer
from numpy.typing import NDArray
from rich.console import Console
from rich.progress import Progress

import labeldp as ldp
from benchmarks.report import Sheet, commit
from labeldp.accounts.accuracy import Accuracy
from labeldp.accounts.numbers import number
from labeldp.release.plan import choose_mechanism

RESULTS = Path(__file__).with_suffix(".md")
SETTINGS = ((2_000, 0.3), (2_000, 1.0), (5_000, 1.0), (20_000, 0.3), (20_000, 1.0), (20_000, 3.0))
LOCAL = ((20_000, 1.0), (20_000, 3.0))

Labels = NDArray[np.float64]
Bounds = tuple[float, float]
Trust = Literal["curator", "local"]


@dataclass(frozen=True)
class Kind:
    """A kind of labels."""

    draw: Callable[[np.random.Generator, int], Labels]
    bounds: Bounds


def bell(rng: np.random.Generator, rows: int) -> Labels:
    """Return labels that lie well inside bounds of 0 to 100."""
    return rng.normal(50, 10, rows)


def incomes(rng: np.random.Generator, rows: int) -> Labels:
    """Return labels with a long tail."""
    return rng.lognormal(10, 0.8, rows)


def zeros(rng: np.random.Generator, rows: int) -> Labels:
    """Return labels of which most are zero, and the others have a heavy tail."""
    return np.where(rng.random(rows) < 0.7, 0.0, rng.lognormal(4, 1.2, rows))


def clumps(rng: np.random.Generator, rows: int) -> Labels:
    """Return labels in two places."""
    return np.where(rng.random(rows) < 0.6, rng.normal(20, 3, rows), rng.normal(80, 3, rows))


KINDS = {
    "bell": Kind(bell, (0, 100)),
    "incomes": Kind(incomes, (0, 500_000)),
    "zeros, heavy tail": Kind(zeros, (0, 2_000)),
    "two clumps": Kind(clumps, (0, 100)),
    "ratings 0 to 10": Kind(lambda rng, rows: rng.binomial(10, 0.7, rows).astype(np.float64), (0, 10)),
    "bell, bounds × 10": Kind(bell, (-400, 600)),
    "bell, bounds × 100": Kind(bell, (-6_000, 4_000)),
    "incomes, bounds × 10": Kind(incomes, (0, 5_000_000)),
    "incomes, bounds × 100": Kind(incomes, (-2e7, 3e7)),
    "capped waits *": Kind(lambda rng, rows: np.minimum(rng.exponential(3, rows), 10), (0, 10)),
    "changes, t₃ *": Kind(lambda rng, rows: 20 + 5 * rng.standard_t(3, rows), (-100, 150)),
}


@dataclass
class Cell:
    """What came of many releases of the same labels."""

    ratios: list[float]
    stated: list[float]
    true: list[float]
    exact: float

    def texts(self) -> list[str]:
        """Return the cell as a row of the table."""
        ratios = np.array(self.ratios)
        return [
            f"{math.sqrt(np.mean(ratios**2)):.2f}",
            f"{100 * np.mean(np.abs(ratios) > 2):.1f} %",
            f"{max(self.stated) / min(self.stated):.2f}",
            f"{max(self.true) / min(self.true):.2f}",
            f"{np.median(self.true) / self.exact:.2f}",
        ]


def noise_of(mechanism: ldp.mechanisms.Mechanism, labels: Labels) -> float:
    """Return the root mean square of the noise in these labels."""
    return math.sqrt(float(mechanism.unbiased_variance(labels).mean()))


def measure(kind: Kind, rows: int, epsilon: float, trust: Trust, releases: int) -> Cell:
    """Release the same labels many times."""
    labels = np.clip(kind.draw(np.random.default_rng(0), rows), *kind.bounds)
    known = ldp.Histogram.from_counts(np.histogram(labels, 4096, kind.bounds)[0], kind.bounds)
    exact = choose_mechanism("auto", known, bounds=kind.bounds, epsilon=epsilon, rows=rows)
    cell = Cell([], [], [], noise_of(exact, labels))
    for seed in range(releases):
        release = ldp.privatize(
            labels,
            epsilon=epsilon,
            bounds=kind.bounds,
            trust=trust,
            ledger=ldp.Ledger(),
            random_state=seed,
        )
        accuracy = Accuracy.under(release.mechanism, release.prior, kind.bounds)
        stated = float(accuracy.error_of_mean(rows))
        if not seed and f"their mean ±{number(stated)}" not in release.summary():
            raise RuntimeError("the summary states another ± than is measured here")
        cell.ratios.append((float(release.labels.mean()) - float(labels.mean())) / stated)
        cell.stated.append(accuracy.noise)
        cell.true.append(noise_of(release.mechanism, labels))
    return cell


def main(
    releases: Annotated[int, typer.Option(help="Releases of each kind; a tenth of them without a curator.")] = 400,
    only: Annotated[str, typer.Option(help="Kinds whose names contain this.")] = "",
    rows: Annotated[int, typer.Option(help="Settings with this many rows only.")] = 0,
    skip: Annotated[str, typer.Option(help="Leave kinds out whose names contain this.")] = "-",
    local: Annotated[bool, typer.Option(help="Also without a curator.")] = True,
    keep: Annotated[bool, typer.Option(help="Write the results.")] = False,
) -> None:
    """Measure and show, and on request keep, the results."""
    warnings.simplefilter("ignore", ldp.InsecureRandomnessWarning)
    console = Console(width=120)
    kinds = {name: kind for name, kind in KINDS.items() if only in name and skip not in name}
    cases: list[tuple[Trust, int, float]]
    cases = [("curator", *setting) for setting in SETTINGS if rows in (0, setting[0])]
    cases += [("local", *setting) for setting in LOCAL if local and rows in (0, setting[0])]
    columns = ["trust", "rows", "ε", "labels", "rms", "beyond 2", "max/min stated", "max/min true", "to exact"]
    sheet = Sheet("Error over the stated ±, and luck", columns)
    with Progress(console=console, transient=True) as progress:
        task = progress.add_task("Releasing", total=len(cases) * len(kinds))
        for trust, many, epsilon in cases:
            for name, kind in kinds.items():
                count = releases if trust == "curator" else max(2, releases // 10)
                cell = measure(kind, many, epsilon, trust, count)
                sheet.rows.append([trust, f"{many:,}", f"{epsilon:g}", name, *cell.texts()])
                progress.console.print(" | ".join(sheet.rows[-1]), highlight=False)
                progress.advance(task)
    console.print(sheet.rich())
    if keep:
        head = (__doc__ or "").split("\n\n", 1)[1].strip()
        version = f"labeldp {ldp.__version__} ({commit()})"
        note = f"{releases} releases each, a tenth of them without a curator; {version}."
        RESULTS.write_text(
            f"# What `privatize` states, and its luck\n\n{head}\n\n{sheet.markdown()}\n{note}\n", encoding="utf-8"
        )


if __name__ == "__main__":
    typer.run(main)
