"""The error of a label that RPWithPrior releases: formula, exact counts, simulation, and the paper's E2.

With W = A2 − A1, L = W + 2ζ, m = (A1 + A2)/2, p = clip(y, A1, A2), γ = 2ζ + e^(−ε)W and ρ = 2ζ(1 − e^(−ε))/γ the
released value is uniform on [p − ζ, p + ζ] with probability ρ, else on [A1 − ζ, A2 + ζ]. So

    E[(ỹ − y)² | y] = ρ((p − y)² + ζ²/3) + (1 − ρ)((m − y)² + L²/12).

The paper's E2 is meant to be E[(ỹ − y)²/2]. What it computes is a first moment, with the window counted twice.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

import labeldp as ldp
from labeldp import __version__
from reproduction.datasets.dataset import Dataset
from reproduction.labels import experiment
from reproduction.protocol import paper_name, seed_of
from reproduction.published import BUDGETS, parameters
from reproduction.summary import markdown_table, number

Array = NDArray[np.float64]


def corrected_error(y: Array, interval: tuple[float, float], zeta: float, epsilon: float) -> Array:
    """Return E[(ỹ − y)² | y] for each label.

    Examples
    --------
    >>> y = np.array([0.0, 2.0, 5.0])
    >>> mech = ldp.RPWithPrior(interval=(0.5, 3.5), zeta=0.7, epsilon=1.0)
    >>> exact = mech.bias(y) ** 2 + mech.variance(y)
    >>> bool(np.allclose(corrected_error(y, (0.5, 3.5), 0.7, 1.0), exact, rtol=1e-3))
    True
    """
    low, high = interval
    width, middle = high - low, (low + high) / 2
    near = 2 * zeta * -math.expm1(-epsilon) / (2 * zeta + math.exp(-epsilon) * width)
    p = np.clip(y, low, high)
    window = (p - y) ** 2 + zeta**2 / 3
    anywhere = (middle - y) ** 2 + (width + 2 * zeta) ** 2 / 12
    return np.asarray(near * window + (1 - near) * anywhere)


def paper_e2(y: Array, interval: tuple[float, float], zeta: float, epsilon: float) -> Array:
    """Return the paper's E2 for each label, as printed: 2ζp/γ + e^(−ε)(A1 + A2)(A2 − A1 + 2ζ)/(2γ)."""
    low, high = interval
    gamma = 2 * zeta + math.exp(-epsilon) * (high - low)
    rest = math.exp(-epsilon) * (low + high) * (high - low + 2 * zeta) / (2 * gamma)
    return np.asarray(2 * zeta * np.clip(y, low, high) / gamma + rest)


@dataclass(frozen=True, slots=True)
class ErrorRow:
    """Mean errors over the labels of a data set at one budget."""

    dataset: str
    epsilon: float
    interval: tuple[float, float]
    zeta: float
    formula: float
    exact: float
    simulated: float
    spread: float
    paper: float

    @property
    def deviations(self) -> float:
        """How many standard errors the simulation is away from the exact counts."""
        return (self.simulated - self.exact) / self.spread


def error_rows(data: Dataset, budgets: Sequence[float] = BUDGETS, *, draws: int = 20) -> Iterator[ErrorRow]:
    """Yield a row for each finite budget, with a simulation that randomises every label ``draws`` times.

    ζ and ε1 are the paper's; the interval is Algorithm 1's under a curator's private histogram.
    """
    low, high = data.bounds
    for epsilon in filter(math.isfinite, budgets):
        share, zeta = parameters(paper_name(data), epsilon) or (epsilon / 10, 0.3 * (high - low))
        with experiment():
            mech = ldp.privatize(
                data.y,
                epsilon=epsilon,
                bounds=data.bounds,
                mechanism="rp",
                epsilon_prior=share,
                zeta=zeta,
                ledger=ldp.Ledger(),
                random_state=seed_of(data.name, epsilon, "error formula"),
            ).mechanism
            errors = [
                (mech.randomize(data.y, random_state=seed_of(data.name, epsilon, draw)) - data.y) ** 2
                for draw in range(draws)
            ]
        sample = np.array(errors)
        args = (mech.interval, mech.zeta, mech.epsilon)
        yield ErrorRow(
            data.name,
            epsilon,
            mech.interval,
            mech.zeta,
            float(corrected_error(data.y, *args).mean()),
            float((mech.bias(data.y) ** 2 + mech.variance(data.y)).mean()),
            float(sample.mean()),
            # Labels are fixed and draws are independent: what varies is each label's own noise.
            float(np.sqrt(sample.var(axis=0, ddof=1).mean() / sample.size)),
            float(paper_e2(data.y, *args).mean()),
        )


def as_markdown(rows: Sequence[ErrorRow]) -> str:
    """Return the rows as a table."""
    heads = ["data", "ε", "interval", "ζ", "formula", "exact counts", "simulation", "off by"]
    cells = [
        [
            r.dataset,
            f"{r.epsilon:g}",
            f"({r.interval[0]:.4g}, {r.interval[1]:.4g})",
            f"{r.zeta:g}",
            f"{r.formula:.6g}",
            f"{r.exact:.6g}",
            f"{r.simulated:.6g} ± {r.spread:.2g}",
            f"{r.deviations:+.1f}",
            number(r.paper),
            number(r.exact / 2),
        ]
        for r in rows
    ]
    lines = [
        "# The error of a released label",
        "",
        "E[(ỹ − y)²], averaged over the labels of each data set: our formula, the library's exact counts, and a "
        "simulation with its standard error, and by how many of those it is off. The last two columns are the "
        f"paper's E2, and half of the error, which it is meant to be. Version {__version__}.",
        "",
        *markdown_table([*heads, "paper's E2", "half of it"], cells, left=("data", "interval")),
    ]
    return "\n".join(lines) + "\n"
