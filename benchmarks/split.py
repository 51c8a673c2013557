"""How much of ε the prior should get: the library's rule beside a sweep, ``python -m benchmarks.split``.

For each distribution and ε, labels are released with every share of ε for the prior, and the mechanism that
came out is judged by the true labels: J = bias² + variance · weight. A learner has an error of its own, taken
as a tenth of the labels' variance; so a share is as good as (J + 0.1·Var(y)) / (J* + 0.1·Var(y)), J* being
the best of the sweep. Housing and Crime join in where ``LABELDP_DATA`` names a folder that has them.
"""

from __future__ import annotations

import gzip
import os
import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import Annotated

import numpy as np
import typer
from numpy.typing import NDArray
from rich.console import Console
from rich.progress import Progress

import labeldp as ldp
from benchmarks.speed import Sheet, commit
from labeldp.mechanisms.interval import noise_weight

RESULTS = Path(__file__).with_suffix(".md")
EPSILONS = (0.1, 0.5, 1.0, 3.0)
SHARES = (0.0, 0.01, 0.02, 0.05, 0.1, 0.2, 0.3)
RULE = "rule"

Labels = NDArray[np.float64]
Risks = dict[float | str, float]
Bounds = tuple[float, float]


def spike_and_gamma(rng: np.random.Generator, n: int) -> Labels:
    """Return sales: mostly none, else of any size."""
    return np.where(rng.random(n) < 0.7, 0.0, rng.gamma(1.5, 40.0, n))


MADE = {
    "uniform, n = 20,000": (lambda rng: rng.uniform(0, 1, 20_000), (0.0, 1.0)),
    "lognormal with a cap, n = 20,000": (lambda rng: rng.lognormal(3, 1, 20_000), (0.0, 400.0)),
    "normal in loose bounds, n = 20,000": (lambda rng: rng.normal(70, 3, 20_000), (0.0, 1000.0)),
    "zeros and gamma, n = 100,000": (lambda rng: spike_and_gamma(rng, 100_000), (0.0, 400.0)),
    "beta, n = 1,000": (lambda rng: rng.beta(2, 8, 1000), (0.0, 1.0)),
}


def distributions() -> Iterator[tuple[str, Labels, Bounds]]:
    """Yield what is made, and what is found."""
    for seed, (name, (draw, bounds)) in enumerate(MADE.items()):
        yield name, np.clip(draw(np.random.default_rng(seed)), *bounds), bounds
    folder = Path(os.environ.get("LABELDP_DATA", "nowhere"))
    if (folder / "california_housing.csv.gz").exists():
        with gzip.open(folder / "california_housing.csv.gz", "rt") as file:
            yield "Housing, n = 20,640", np.loadtxt(file, delimiter=",", skiprows=1, usecols=8), (0.0, 5.0)
    if (folder / "communities.data.gz").exists():
        with gzip.open(folder / "communities.data.gz", "rt") as file:
            rows = [float(line.rsplit(",", 1)[1]) for line in file]
        yield "Crime, n = 1,994", np.array(rows), (0.0, 1.0)


def true_risk(labels: Labels, bounds: Bounds, epsilon: float, share: float | None, seed: int) -> float:
    """Return J of the mechanism that one release ends up with."""
    part = None if share is None else round(share * epsilon, 12)
    made = ldp.privatize(
        labels, epsilon=epsilon, bounds=bounds, mechanism="rp", epsilon_prior=part, random_state=seed
    ).mechanism
    bias = np.clip(labels, *made.interval) - labels
    noise = made.unbiased_variance(labels)
    return float(np.mean(bias**2) + np.mean(noise) * noise_weight(labels.size))


def sweep(labels: Labels, bounds: Bounds, epsilon: float, repeats: int) -> Risks:
    """Return how good the rule and every share are, 1 being the best of the shares."""
    shares: dict[float | str, float | None] = {RULE: None, **{share: share for share in SHARES}}
    risks = {
        name: np.mean([true_risk(labels, bounds, epsilon, share, seed) for seed in range(repeats)])
        for name, share in shares.items()
    }
    own = 0.1 * float(np.var(labels))
    best = min(risks[share] for share in SHARES)
    return {name: float((risk + own) / (best + own)) for name, risk in risks.items()}


def rule_share(labels: Labels, bounds: Bounds, epsilon: float) -> float:
    """Return the part of ε that the library gives to the prior."""
    spent = ldp.privatize(labels, epsilon=epsilon, bounds=bounds, mechanism="rp").charges[-1].budget
    return spent.epsilon / epsilon


def main(repeats: Annotated[int, typer.Option(help="Releases to average over.")] = 24) -> None:
    """Measure, show and keep the results."""
    warnings.simplefilter("ignore", ldp.InsecureRandomnessWarning)
    console, data = Console(width=140), list(distributions())
    columns = ["labels", "ε", "rule's share", "rule", *[f"{share:g}" for share in SHARES]]
    sheet = Sheet("Risk relative to the best share of the sweep", columns)
    seen: list[Risks] = []
    with Progress(console=console, transient=True) as progress:
        task = progress.add_task("Releasing", total=len(data) * len(EPSILONS))
        for name, labels, bounds in data:
            for epsilon in EPSILONS:
                risks = sweep(labels, bounds, epsilon, repeats)
                seen.append(risks)
                share = rule_share(labels, bounds, epsilon)
                cells = [f"{risk:.3f}" for risk in risks.values()]
                sheet.rows.append([name, f"{epsilon:g}", f"{share:.3f}", f"**{cells[0]}**", *cells[1:]])
                progress.advance(task)
    for title, function in (("median", np.median), ("mean", np.mean), ("worst", np.max)):
        cells = [f"{function([risks[name] for risks in seen]):.3f}" for name in seen[0]]
        sheet.rows.append([title, "", "", f"**{cells[0]}**", *cells[1:]])
    console.print(sheet.rich())
    note = f"{repeats} releases each; labeldp {ldp.__version__} ({commit()}). `python -m benchmarks.split`."
    head = (__doc__ or "").split("\n\n", 1)[1].strip()
    RESULTS.write_text(
        f"# The budget's split between prior and labels\n\n{head}\n\n{sheet.markdown()}\n{note}\n",
        encoding="utf-8",
    )


if __name__ == "__main__":
    typer.run(main)
