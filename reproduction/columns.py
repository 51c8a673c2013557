"""The columns of the tables, and why each differs from the paper's."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal

from labeldp.errors import ParameterError
from labeldp.mechanisms import mechanism_class, mechanism_names

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
    """Columns with the same release have the same noise, such as two uses of the same private labels."""
    zeta_factor: float = 1.0
    sigma_factor: float = 1.0
    """Multiples of the paper's ζ and of its bin width σ."""

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
        why="The optimal unbiased table, on 40 outputs, for a private prior that is paid for. The paper used 5 "
        "outputs, which costs accuracy at every ε.",
    ),
    Column(
        key="algorithm-4",
        title="RPWithPrior, Algorithm 4",
        published="Ours",
        why="Algorithm 4 with the paper's ε1 and ζ: Algorithm 3's histogram of Laplace reports, then Algorithm 1, "
        "then the released values as they are. In one point not as printed: α is a density, as Lemma 3.5 needs, "
        "where Algorithm 3 has a mass. At the paper's ε1 the reports are mostly noise, so the interval is "
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
        why="The same release, made unbiased for the label clipped to the interval, by (ỹ − (1−ρ)m)/ρ. The noise "
        "is larger, and the interval was chosen for it.",
    ),
    Column(
        key="labels-without-x",
        title="labels without X",
        why="`privatize(y)`: unbiased for the label clipped to an interval, by the mechanism that the library "
        "chooses; where rows and ε are too few to learn from, the private mean.",
    ),
    Column(
        key="labels-with-x",
        title="labels that know X",
        why="`privatize(y, X=X)` on the training rows: noisy sums and labels in rounds around a model of the "
        "public features, handed over as posterior means. The network is trained on them as on any labels.",
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
        key="gaussian-published",
        title="Gaussian as published",
        published="Gaussian",
        private=False,
        why="What the published code does: the classical formula σ = Δ√(2 ln(1.25/δ))/ε in floating point, with a "
        "sensitivity Δ that was read off Housing's labels. The formula is unproven for ε > 1.",
    ),
    Column(
        key="rr-on-bins-published",
        title="RR-on-Bins as published",
        published="RRonBins",
        private=False,
        why="Labels rounded to two digits (Criteo: to whole euros), and the optimal bins for the histogram of the "
        "rounded labels themselves, which is not charged. The published code leaves this mechanism out; rounding "
        "follows from the paper's numbers of distinct labels.",
    ),
    Column(
        key="unbiased-published",
        title="Unbiased as published",
        published="Unbiased",
        private=False,
        why="Five labels and five outputs, optimal for the histogram of the labels themselves, which is not "
        "charged. The published code leaves this mechanism out; the outputs' positions are this library's.",
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
"""All columns that have a text of their own, by key."""

HAS_PARAMETERS = ("algorithm-4", "as-published")
"""Columns with the paper's ζ and σ."""

TOO_SLOW = {"criteo": ("labels-with-x", "labels-regressor", "model-regressor")}
"""Columns that run on a data set only if named: 1.3 million rows would take them days."""

NO_PRIVACY = Column(
    key="no-privacy",
    title="network on true labels",
    private=False,
    why="ε = +∞: no mechanism at all; one network a trial stands for every column.",
)


def find_column(key: str) -> Column:
    """Return a column of the tables, a variant of one, or the column of a registered mechanism.

    Examples
    --------
    >>> find_column("algorithm-4*zeta=2").title
    'RPWithPrior, Algorithm 4, ζ × 2'
    >>> find_column("two-point").why
    'The mechanism that is registered as two-point.'
    """
    if key == NO_PRIVACY.key:
        return NO_PRIVACY
    base, *changes = key.split("*")
    column = COLUMNS.get(base) or _mechanism_column(base)
    for change in changes:
        parameter, _, factor = change.partition("=")
        column = _scaled(column, parameter, factor)
    return column


def _mechanism_column(name: str) -> Column:
    if name not in mechanism_names():
        names = sorted({*COLUMNS, *mechanism_names()})
        raise ParameterError(
            f"no column {name}; there are {', '.join(names)}, and mechanisms of modules that are imported"
        )
    biased = "" if mechanism_class(name).unbiased else " It has no unbiased labels: its values as they are."
    return Column(key=name, title=name, why=f"The mechanism that is registered as {name}.{biased}")


def _scaled(column: Column, parameter: str, factor: str) -> Column:
    """Return a column with a multiple of the paper's ζ or σ, and the noise of the column itself."""
    symbols = {"zeta": "ζ", "sigma": "σ"}
    if column.key.split("*")[0] not in HAS_PARAMETERS or parameter not in symbols:
        raise ParameterError(f"{' and '.join(HAS_PARAMETERS)} have zeta and sigma, not {column.key}")
    changes: dict[str, Any] = {f"{parameter}_factor": _positive(factor)}
    return replace(
        column,
        key=f"{column.key}*{parameter}={factor}",
        title=f"{column.title}, {symbols[parameter]} × {factor}",
        published=None,
        why=f"The same noise, with {factor} times the paper's {symbols[parameter]}.",
        release=column.release or column.key,
        **changes,
    )


def _positive(factor: str) -> float:
    try:
        value = float(factor)
    except ValueError:
        value = 0.0
    if not 0 < value < 1e6:
        raise ParameterError(f"factors must be positive numbers, such as 0.5,1,2, got {factor}")
    return value


def choose_columns(
    keys: Sequence[str] | None = None,
    *,
    dataset: str = "",
    include_non_private: bool = False,
    zeta: str = "",
    sigma: str = "",
) -> tuple[Column, ...]:
    """Return columns by key; by default all that are private, and with ``include_non_private`` simply all.

    ``zeta`` and ``sigma`` are multiples of the paper's, such as ``"0.5,1,2"``: each is another column beside
    those that have the parameter.

    Columns in `TOO_SLOW` run only if named.
    """
    if keys is None:
        keys = [key for key in COLUMNS if key not in TOO_SLOW.get(dataset, ())]
        keys = [key for key in keys if COLUMNS[key].private or include_non_private]
    if not keys:
        raise ParameterError("no column was named")
    variants = [
        f"{key}*{parameter}={factor}"
        for parameter, factors in (("zeta", zeta), ("sigma", sigma))
        for key in keys
        if key in HAS_PARAMETERS
        for factor in factors.lstrip("×x").split(",")
        if factor and _positive(factor) != 1.0
    ]
    if (zeta or sigma) and not set(keys) & set(HAS_PARAMETERS):
        raise ParameterError(f"zeta and sigma need the column {' or '.join(HAS_PARAMETERS)}")
    columns = tuple(find_column(key) for key in dict.fromkeys([*keys, *variants]))
    if not include_non_private and not all(column.private for column in columns):
        raise ParameterError("columns as published leak labels: add --include-non-private if you mean it")
    return columns
