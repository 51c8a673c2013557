"""The columns of the tables, and why each differs from the paper's."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Literal

from labeldp.errors import ParameterError

__all__ = ["COLUMNS", "NOT_PRIVATE", "NO_PRIVACY", "Cell", "Column", "chosen_columns"]

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
        "then the released values as they are. At the paper's ε1 the reports are mostly noise, so the "
        "interval is much too wide, or lies beside the labels. The published figures cannot come from this: the "
        "published code made the histogram from raw labels.",
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
        raise ParameterError(f"no column {', '.join(unknown)}; there are {', '.join(COLUMNS)}")
    leaking = [key for key in wanted if not COLUMNS[key].private]
    if keys is not None and leaking and not include_non_private:
        raise ParameterError(f"{', '.join(leaking)} leaks labels: say --include-non-private if you mean it")
    return tuple(COLUMNS[key] for key in wanted if COLUMNS[key].private or include_non_private)
