"""The fields of each kind of card: docs/formats.md in types. Nothing else is accepted."""

from __future__ import annotations

import json
import re
from fractions import Fraction
from functools import lru_cache
from typing import Annotated, Any, Literal, NotRequired, TypedDict

from labeldp._values import Bounds, Data, Interval
from labeldp.accounts.budget import Charge, Statement
from labeldp.accounts.scope import People
from labeldp.accounts.scores import Figure, StandardError
from labeldp.accounts.statistic import Origin, Statistic
from labeldp.accounts.terms import Split
from labeldp.errors import CardError
from labeldp.mechanisms.base import Mechanism
from labeldp.mechanisms.histogram import Histogram
from labeldp.mechanisms.registry import registered_class
from labeldp.mechanisms.typed_data import (
    READERS,
    Hash,
    Natural,
    Positive,
    at_most,
    between,
    canonical,
    matching,
    read,
)

Statistics = Annotated[list[Statistic], at_most(256)]
MAX_MECHANISMS = 16
"""A card with more distinct ones is refused: proving one can take a second."""
MAX_LABELS = 16
"""A card of more labels is refused: each has mechanisms of its own."""
MAX_FITS = 512
"""A card of more fits and updates of a model is refused: each has mechanisms of its own."""
Trust = Literal["curator", "local"]
Transform = Literal["log", "sqrt"]
ReleasePurpose = Literal["training", "statistics", "values"]


class Envelope(TypedDict):
    """The entries of every card."""

    schema: str
    version: int


class Amounts(TypedDict):
    """ε for all rows of a person, and for one label, rounded up."""

    epsilon: float
    label: float


class ProofEntry(TypedDict):
    """The result of a proof; compared with the proof that is made again."""

    epsilon: float
    delta: float
    ratio: Fraction | None


class MechanismEntry(TypedDict):
    """A mechanism; parameters and channel depend on it, and are compared with a new build."""

    mechanism: str
    parameters: Data
    channel: Data
    proof: ProofEntry
    origin: NotRequired[Origin]


class MechanismCard(Envelope, MechanismEntry):
    """The card of a mechanism alone."""


class PriorEntry(TypedDict):
    """A prior; without origin it is public."""

    nodes: list[float]
    masses: list[float]
    origin: NotRequired[Origin]


class Statements(Envelope):
    """The statements of every card of labels that were used."""

    guarantee: str
    cost: Amounts
    secure: bool
    rows: Positive


class Common(Statements):
    """The common entries of the cards of a release, of rows and of a model."""

    trust: Trust
    bounds: list[Bounds]
    mechanisms: Annotated[list[Mechanism], at_most(MAX_MECHANISMS)]
    parts: list[Natural]
    priors: list[Histogram | None]
    charges: list[Charge]
    statistics: Statistics
    intended_use: NotRequired[Statement]
    recipient: NotRequired[Statement]
    bounds_reason: NotRequired[Statement]
    rounding: NotRequired[list[Annotated[float, between(5e-324)] | None]]
    people: NotRequired[People]


Share = Annotated[float, between(0, 1)]


class QualityEntry(TypedDict):
    """The score of a model."""

    rows: Positive
    figures: dict[Annotated[str, matching("rmse|rmse_limit|mse|mae|r2", "a known figure")], Figure]


class FileEntry(TypedDict):
    """The file that private labels are in."""

    name: str
    format: str
    separator: NotRequired[str]
    decimal: NotRequired[str]
    encoding: NotRequired[str]
    rows: Natural
    rows_left_out: Natural
    column: NotRequired[str]
    columns: list[str]
    types_changed: dict[str, tuple[str, str]]
    sha256: Hash | dict[str, Hash]
    row_order: str
    not_copied: str


class ReleaseCard(Common):
    """The card of a release; with features, its labels are posterior means under a model of them."""

    purpose: ReleasePurpose
    features: NotRequired[list[str]]
    residual_variance: NotRequired[Annotated[float, between(0)]]
    quality: NotRequired[QualityEntry]
    split: NotRequired[Split]
    file: NotRequired[FileEntry]
    label: NotRequired[str]
    id: NotRequired[str]
    release: NotRequired[str]


class ReleasesCard(Statements):
    """The card of several labels of the same rows; each has the entries of a release, and is read as one."""

    labels: Annotated[list[Data], at_most(MAX_LABELS)]
    file: NotRequired[FileEntry]


class LabelSummaryEntry(TypedDict):
    """The private knowledge of all labels before they were released in rounds."""

    low: float
    high: float
    variance: float
    sums: Natural


class RowsCard(Common):
    """The card of labels that were released in rounds."""

    rounds: Positive
    knowledge: LabelSummaryEntry
    arrays: NotRequired[dict[str, Hash]]
    label_transform: NotRequired[Transform]


class RegressionEntry(TypedDict):
    """A table of coefficients."""

    names: list[str]
    params: list[float]
    bse: list[StandardError]
    pvalues: NotRequired[list[Share]]
    conf_int: NotRequired[list[Interval]]
    bse_ols: NotRequired[list[StandardError]]
    odds_ratios: NotRequired[list[StandardError]]
    rate_ratios: NotRequired[list[StandardError]]


class FitEntry(TypedDict):
    """The fit of a table of coefficients."""

    rsquared: NotRequired[Share]
    standard_error: NotRequired[StandardError]
    pvalue: NotRequired[Share]


class ModelFacts(TypedDict):
    """The public facts of a model."""

    model: str
    label: NotRequired[str]
    note: NotRequired[str]
    features: NotRequired[list[str]]
    format: NotRequired[Natural]
    files: NotRequired[dict[str, Hash]]
    versions: NotRequired[dict[str, str]]


class ModelCard(Common, ModelFacts):
    """The card of a model."""

    quality: NotRequired[QualityEntry]
    split: NotRequired[Split]
    label_transform: NotRequired[Transform]
    regression: NotRequired[RegressionEntry]
    side_by_side: NotRequired[list[list[str]]]
    fit: NotRequired[FitEntry]


class UpdatedModelCard(Statements, ModelFacts):
    """The card of a model that learnt on; each fit has the entries of a model, and is read as one."""

    fits: Annotated[list[Data], at_most(MAX_FITS)]


CARDS: dict[str, Any] = {
    "labeldp.mechanism": MechanismCard,
    "labeldp.release": ReleaseCard,
    "labeldp.releases": ReleasesCard,
    "labeldp.row-release": RowsCard,
    "labeldp.model": ModelCard,
    "labeldp.updated-model": UpdatedModelCard,
}
"""The schema of each kind of card."""


def _mechanism(data: Any) -> Mechanism:
    """Return a mechanism, built and proven anew, if its channel and its proof are those that are stated."""
    entry: MechanismEntry = read(MechanismEntry, data, "the mechanism")
    return _rebuild(registered_class(entry["mechanism"]), canonical(data))


_LARGE = re.compile("[1-9][0-9]{15,19}", re.ASCII)
"""An integer above 2^53 in text, and below 2^67; a channel is compared with the text of its own integers."""


def _integers(data: Any) -> Any:
    """Return large integers, alone or in lists, that stand on a card as text."""
    if isinstance(data, list):
        return [_integers(item) for item in data]
    return int(data) if isinstance(data, str) and _LARGE.fullmatch(data) else data


_BUILT = {
    "channel": "the card's counts cannot be rebuilt from its parameters",
    "parameters": "the card's parameters are not written as its mechanism writes them",
}
"""Entries of a mechanism that follow from its parameters to the letter, and the fault if they do not."""


@lru_cache(maxsize=64)
def _rebuild(cls: Any, text: str) -> Mechanism:
    """Return the mechanism that an entry describes; one that several parts share is proven once."""
    data = json.loads(text)
    entry: MechanismEntry = read(MechanismEntry, data, "the mechanism")
    repeated = {name: _integers(entry["channel"][field]) for name, field in cls.in_channel.items()}
    if repeated.keys() & entry["parameters"].keys():
        raise CardError("a parameter that is in the channel must not be repeated")
    mechanism: Mechanism = cls(**entry["parameters"], **repeated)
    built = mechanism.as_data()
    for name in [name for name in _BUILT if canonical(data[name]) != canonical(built[name])]:
        raise CardError(_BUILT[name])
    if entry["proof"] != read(ProofEntry, built["proof"]):  # as numbers: a card may write 0 for 0.0
        raise CardError("the card claims another proof than its counts give")
    return mechanism.with_origin(entry["origin"]) if "origin" in entry else mechanism


def _prior(data: Any) -> Histogram:
    entry: PriorEntry = read(PriorEntry, data, "the prior")
    return Histogram(entry["nodes"], entry["masses"], entry.get("origin"))


READERS[Bounds] = lambda data: Bounds(read(Interval, data, "bounds"))
READERS[Mechanism] = _mechanism
READERS[Histogram] = _prior
