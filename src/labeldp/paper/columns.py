"""The columns of the tables: how each makes the labels that its network is trained on, and what that costs."""

from __future__ import annotations

import math
import warnings
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

import labeldp as ldp
from labeldp.channels.noise import DiscreteLaplace
from labeldp.paper.as_published import leaking_labels
from labeldp.paper.protocol import seed_of
from labeldp.paper.published import parameters
from labeldp.randomness import SeededWords

__all__ = [
    "COLUMNS",
    "NO_PRIVACY",
    "Cell",
    "Column",
    "Labels",
    "chosen_columns",
    "constant",
    "labels_for",
    "regressor",
]

DELTA = 1e-4
"""The paper's δ for Gaussian noise. It exceeds 1/n on two of the three data sets."""

Array = NDArray[np.float64]
NOT_PRIVATE = "NOT PRIVATE"


@dataclass(frozen=True, slots=True)
class Column:
    """A column of a table."""

    key: str
    title: str
    kind: Literal["network", "regressor", "constant"]
    why: str
    published: str | None = None
    private: bool = True
    release: str = ""
    """Columns with the same release show two uses of the same private labels."""

    @property
    def heading(self) -> str:
        """The title, marked where the column gives no privacy."""
        return self.title if self.private else f"{self.title}, {NOT_PRIVATE}"


@dataclass(frozen=True, slots=True)
class Labels:
    """Labels to train on, and what they cost."""

    values: Array
    epsilon: float
    delta: float
    detail: str


@dataclass(frozen=True, slots=True)
class Cell:
    """One number to find: the test error of a column at a budget in a trial."""

    trial: int
    column: str
    epsilon: float


def _columns() -> Iterator[Column]:
    yield Column(
        "laplace",
        "Laplace",
        "network",
        "The same noise as the paper's, made exactly. The paper took the sensitivity from the data's own range; "
        "here it is that of the public bounds.",
        "Laplace",
    )
    yield Column(
        "gaussian",
        "Gaussian",
        "network",
        "The paper uses the classical formula for σ, which is unproven for ε > 1 and adds more noise than needed. "
        "Here σ is the smallest that can be proven for (ε, δ = 1e-4). That δ is the paper's; it exceeds 1/n on "
        "Housing and Criteo, where it would allow publishing a label or two outright.",
        "Gaussian",
    )
    yield Column(
        "staircase",
        "Staircase",
        "network",
        "The published sampler mixes up {-1, 1} and {0, 1}: its density has a hole and it is private at no ε. Its "
        "errors stop falling as ε grows. Here the noise is the real staircase, with the least variance.",
        "Staircase",
    )
    yield Column(
        "rr-on-bins",
        "RR-on-Bins",
        "network",
        "The bins need a prior. Here a curator's private histogram pays for it out of ε; bins and outputs are the "
        "exact optimum. The paper rounds labels and does not charge for their histogram.",
        "RRonBins",
    )
    yield Column(
        "unbiased",
        "Unbiased",
        "network",
        "The optimal unbiased table, on 64 outputs, for a private prior that is paid for. The paper used 5 "
        "outputs, which costs accuracy at every ε.",
        "Unbiased",
    )
    yield Column(
        "rp-letter",
        "RPWithPrior, to the letter",
        "network",
        "Algorithm 4 with the paper's ε1 and ζ: Algorithm 3's histogram of Laplace reports, then Algorithm 1, "
        "then the released values as they are. At the paper's ε1 the reports are nearly all noise, so the "
        "interval is far from the labels. The published figures cannot come from this: the published code made "
        "the histogram from raw labels.",
        "Ours",
    )
    yield Column(
        "rp",
        "RPWithPrior, curator's prior",
        "network",
        "A curator's private histogram instead of local reports, interval and ζ chosen by the library, the "
        "released values as they are. They are biased towards the middle of the interval, the more the smaller ε.",
        release="rp-curator",
    )
    yield Column(
        "rp-debiased",
        "RPWithPrior, debiased",
        "network",
        "The same release, made unbiased by (ỹ − (1−ρ)m)/ρ. The bias is gone, and the noise is larger: the "
        "paper's network, which knows nothing of noise, follows it at small ε.",
        release="rp-curator",
    )
    yield Column(
        "labels-regressor",
        "LabelReleaseRegressor",
        "regressor",
        "This library's regressor on private labels: released in rounds, learnt by a model that knows the noise.",
    )
    yield Column(
        "model-regressor",
        "ModelReleaseRegressor",
        "regressor",
        "This library's regressor that releases a model and no label: noise on few sums instead of on all labels.",
    )
    yield Column(
        "constant",
        "private constant",
        "constant",
        "The curator's mean with all of ε, predicted for everybody. A column above it has learnt less than "
        "nothing.",
    )
    yield Column(
        "as-published",
        "RPWithPrior as published",
        "network",
        "What the published code does: the histogram is made of all raw labels and one batch of noisy ones, ε1 "
        "stands where ε2 belongs, and ζ shrinks by an undocumented rule. Raw labels decide the interval, so this "
        "is private at no ε, whatever its column says.",
        "Ours",
        private=False,
    )


COLUMNS = {column.key: column for column in _columns()}
"""All columns, by key."""

NO_PRIVACY = Column(
    "no-privacy",
    "network on true labels",
    "network",
    "ε = +∞: no mechanism at all; one network a trial stands for every column.",
    private=False,
)


def chosen_columns(
    keys: Sequence[str] | None = None, *, dataset: str = "", include_non_private: bool = False
) -> tuple[Column, ...]:
    """Return columns by key; by default all that are private.

    Parameters
    ----------
    keys : sequence of str, optional
    dataset : str
        Criteo's 1.3 million rows would take the regressors days: there they run only if named.
    include_non_private : bool
        Whether what leaks labels may be run at all.
    """
    usual = [key for key, column in COLUMNS.items() if dataset != "criteo" or column.kind != "regressor"]
    wanted = usual if keys is None else list(dict.fromkeys(keys))
    unknown = [key for key in wanted if key not in COLUMNS]
    if unknown or not wanted:
        raise ldp.ParameterError(f"no column {', '.join(unknown)}; there are {', '.join(COLUMNS)}")
    leaking = [key for key in wanted if not COLUMNS[key].private]
    if keys is not None and leaking and not include_non_private:
        raise ldp.ParameterError(f"{', '.join(leaking)} leaks labels: say --include-non-private if you mean it")
    return tuple(COLUMNS[key] for key in wanted if COLUMNS[key].private or include_non_private)


def labels_for(
    column: Column, y: Array, bounds: tuple[float, float], dataset: str, cell: Cell, batch: int
) -> Labels:
    """Return the labels that a column's network is trained on, repeatably.

    Noise comes from a seed: this is an experiment, and no release.
    """
    if column.key == NO_PRIVACY.key:
        return Labels(ldp.NoPrivacy().randomize(y), math.inf, 0.0, NOT_PRIVATE)
    source = _words(dataset, cell.trial, column.release or column.key, cell.epsilon)
    if column.key == "as-published":
        values, detail = leaking_labels(y, dataset, cell.epsilon, batch, source)
        return Labels(values, math.inf, 0.0, detail)
    options = _OPTIONS.get(column.key, {"mechanism": column.key})
    if column.key == "rp-letter":
        share, zeta = _letter(dataset, cell.epsilon, bounds)
        options = {**options, "epsilon_prior": share, "zeta": zeta}
    limit = ldp.Budget(cell.epsilon, options.get("delta", 0.0))
    release = ldp.privatize(
        y, epsilon=cell.epsilon, bounds=bounds, ledger=ldp.Ledger(limit=limit), random_state=source, **options
    )
    values = release.debiased if column.key == "rp-debiased" else release.labels
    return Labels(values, release.cost.epsilon, release.cost.delta, _detail(release.mechanism))


def constant(y: Array, bounds: tuple[float, float], dataset: str, cell: Cell) -> tuple[float, ldp.Budget]:
    """Return the curator's private mean, with all of ε, and what it cost.

    Labels are rounded to a public grid of 2^20 steps, so their sum is an integer and its noise is exact.
    """
    low, high = bounds
    steps = 1 << 20
    ledger = ldp.Ledger(limit=ldp.Budget(cell.epsilon))
    ledger.charge("mean", epsilon=cell.epsilon)
    total = int(np.rint((np.clip(y, low, high) - low) / (high - low) * steps).astype(np.int64).sum())
    noise = DiscreteLaplace.calibrated(sensitivity=steps, epsilon=Fraction(repr(cell.epsilon)))
    noisy = total + int(noise.sample(1, _words(dataset, cell.trial, "constant", cell.epsilon))[0])
    mean = low + (high - low) * noisy / steps / y.size
    return float(np.clip(mean, low, high)), ledger.total


def regressor(column: Column, bounds: tuple[float, float], dataset: str, cell: Cell) -> Any:
    """Return one of the library's regressors, with repeatable noise and a ledger that allows ε and no more."""
    make: Callable[..., Any] = {
        "labels-regressor": ldp.LabelReleaseRegressor,
        "model-regressor": ldp.ModelReleaseRegressor,
    }[column.key]
    seed = seed_of(dataset, cell.trial, column.key, cell.epsilon)
    limit = ldp.Ledger(limit=ldp.Budget(cell.epsilon))
    return make(epsilon=cell.epsilon, bounds=bounds, ledger=limit, random_state=seed)


_OPTIONS: dict[str, dict[str, Any]] = {
    "gaussian": {"mechanism": "gaussian", "delta": DELTA},
    "rp-letter": {"mechanism": "rp", "trust": "local", "method": "laplace"},
    "rp": {"mechanism": "rp"},
    "rp-debiased": {"mechanism": "rp"},
}


def _letter(dataset: str, epsilon: float, bounds: tuple[float, float]) -> tuple[float, float]:
    """Return the paper's ε1 and ζ; where it has none, half of ε and 0.4 label ranges."""
    return parameters(dataset, epsilon) or (epsilon / 2, 0.4 * (bounds[1] - bounds[0]))


def _detail(mechanism: Any) -> str:
    if isinstance(mechanism, ldp.RPWithPrior):
        low, high = mechanism.interval
        return f"rp on ({low:.4g}, {high:.4g}), zeta {mechanism.zeta:.4g}, epsilon {mechanism.epsilon:.4g}"
    return f"{mechanism.name}, epsilon {mechanism.epsilon:.4g}"


@contextmanager
def experiment() -> Iterator[None]:
    """Allow seeds: this is an experiment, and says so in its notes."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ldp.InsecureRandomnessWarning)
        yield


def _words(*parts: object) -> SeededWords:
    with experiment():
        return SeededWords(seed_of(*parts))
