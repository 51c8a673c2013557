"""The columns of the tables, and why each differs from the paper's."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from labeldp.errors import ParameterError

NOT_PRIVATE = "NOT PRIVATE"


@dataclass(frozen=True, slots=True, kw_only=True)
class Column:
    """A column of a table."""

    key: str
    title: str
    why: str
    published: str | None = None
    kind: Literal["network", "regressor", "constant"] = "network"
    private: bool = True
    release: str = ""
    """Columns with the same release show two uses of the same private labels."""

    @property
    def heading(self) -> str:
        """The title, marked where the column gives no privacy."""
        return self.title if self.private else f"{self.title}, {NOT_PRIVATE}"


@dataclass(frozen=True, slots=True)
class Cell:
    """One number of a table: the test error of a column at a budget in a trial."""

    trial: int
    column: str
    epsilon: float


_ALL = (
    Column(
        key="laplace",
        title="Laplace",
        published="Laplace",
        why="The same noise as the paper's, made exactly. The paper took the sensitivity from the data's own "
        "range; here it is that of the public bounds.",
    ),
    Column(
        key="gaussian",
        title="Gaussian",
        published="Gaussian",
        why="The paper uses the classical formula for σ, which is unproven for ε > 1 and adds more noise than "
        "needed. Here σ is the smallest that can be proven for (ε, δ = 1e-4). That δ is the paper's; it exceeds "
        "1/n on Housing and Criteo, where it would allow publishing a label or two outright.",
    ),
    Column(
        key="staircase",
        title="Staircase",
        published="Staircase",
        why="The published sampler mixes up {-1, 1} and {0, 1}: its density has a hole and it is private at no ε. "
        "Its errors stop falling as ε grows. Here the noise is the real staircase, with the least variance.",
    ),
    Column(
        key="rr-on-bins",
        title="RR-on-Bins",
        published="RRonBins",
        why="The bins need a prior. Here a curator's private histogram pays for it out of ε; bins and outputs are "
        "the exact optimum. The paper rounds labels and does not charge for their histogram.",
    ),
    Column(
        key="unbiased",
        title="Unbiased",
        published="Unbiased",
        why="The optimal unbiased table, on 64 outputs, for a private prior that is paid for. The paper used 5 "
        "outputs, which costs accuracy at every ε.",
    ),
    Column(
        key="rp-letter",
        title="RPWithPrior, to the letter",
        published="Ours",
        why="Algorithm 4 with the paper's ε1 and ζ: Algorithm 3's histogram of Laplace reports, then Algorithm 1, "
        "then the released values as they are. At the paper's ε1 the reports are mostly noise, so the interval is "
        "much too wide, or lies beside the labels. The published figures cannot come from this: the published "
        "code made the histogram from raw labels.",
    ),
    Column(
        key="rp",
        title="RPWithPrior, curator's prior",
        release="rp-curator",
        why="A curator's private histogram instead of local reports, interval and ζ chosen by the library, the "
        "released values as they are. They are biased towards the middle of the interval, the more the smaller ε.",
    ),
    Column(
        key="rp-debiased",
        title="RPWithPrior, debiased",
        release="rp-curator",
        why="The same release, made unbiased by (ỹ − (1−ρ)m)/ρ. The bias is gone, and the noise is larger: the "
        "paper's network, which knows nothing of noise, follows it at small ε.",
    ),
    Column(
        key="labels-regressor",
        title="LabelReleaseRegressor",
        kind="regressor",
        why="This library's regressor on private labels: released in rounds, learnt by a model that knows "
        "the noise.",
    ),
    Column(
        key="model-regressor",
        title="ModelReleaseRegressor",
        kind="regressor",
        why="This library's regressor that releases a model and no label: noise on few sums instead of on all "
        "labels.",
    ),
    Column(
        key="constant",
        title="private constant",
        kind="constant",
        why="The curator's mean with all of ε, predicted for everybody. A column above it has learnt less than "
        "nothing.",
    ),
    Column(
        key="as-published",
        title="RPWithPrior as published",
        published="Ours",
        private=False,
        why="What the published code does: the histogram is made of all raw labels and one batch of noisy ones, "
        "ε1 stands where ε2 belongs, and ζ shrinks by an undocumented rule. Raw labels decide the interval, so "
        "this is private at no ε, whatever its column says.",
    ),
)

COLUMNS = {column.key: column for column in _ALL}
"""All columns, by key."""

NO_PRIVACY = Column(
    key="no-privacy",
    title="network on true labels",
    private=False,
    why="ε = +∞: no mechanism at all; one network a trial stands for every column.",
)


def choose_columns(
    keys: Sequence[str] | None = None, *, dataset: str = "", include_non_private: bool = False
) -> tuple[Column, ...]:
    """Return columns by key; by default all that are private, and with ``include_non_private`` simply all.

    Criteo's 1.3 million rows would take the regressors days: there they run only if named.
    """
    if keys is None:
        keys = [c.key for c in _ALL if dataset != "criteo" or c.kind != "regressor"]
        return tuple(COLUMNS[key] for key in keys if COLUMNS[key].private or include_non_private)
    unknown = [key for key in keys if key not in COLUMNS]
    if unknown or not keys:
        raise ParameterError(f"no column {', '.join(unknown)}; there are {', '.join(COLUMNS)}")
    columns = tuple(COLUMNS[key] for key in dict.fromkeys(keys))
    if not include_non_private and not all(column.private for column in columns):
        raise ParameterError("as-published leaks labels: add --include-non-private if you mean it")
    return columns
