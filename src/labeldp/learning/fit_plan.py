"""How a fit is planned and run: ε split by what is public, mechanisms for each round, units, threads, progress.

All that learns works on labels in units of their bounds, on [0, 1], so no result depends on the label's unit.

Threads spin while they wait. Where another process, or a container's quota, has the core that one of them needs,
all of them wait for it, thousands of times in a fit: that took a hundred times as long. So numerical libraries get
no more threads than there are cores for them.
"""

from __future__ import annotations

import math
import os
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from fractions import Fraction
from functools import cache
from pathlib import Path
from typing import Any

import joblib
import numpy as np
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn
from threadpoolctl import ThreadpoolController

from labeldp._values import EPSILON_RANGE, Array, Bounds, Epsilon, Sums, parse_integer
from labeldp.accounts.statistic import Statistic
from labeldp.errors import ParameterError, PrivacyProofError, Setting
from labeldp.exact.word_sources import WordSource
from labeldp.mechanisms.base import Mechanism
from labeldp.mechanisms.histogram import Histogram
from labeldp.mechanisms.interval import UnitNoise, auto_classes, choose_mechanism
from labeldp.mechanisms.registry import mechanism_class
from labeldp.release.plan import Plan, Request

Pair = tuple[float, float]

UNIT = Bounds((0.0, 1.0))
"""The bounds of labels in their units."""

_FEWEST_FOR_LABELS, _LABELS_GROW, _MOST_FOR_LABELS = 400, 0.55, 0.9
"""Noise of sums falls with rows · ε, that of labels with its root: from so many rows · ε² on labels get a part of
ε that grows by so much with each power of ten, up to the most. Found on the choosing half of
`benchmarks.accuracy`."""

_LEAST_FOR_LABELS = 0.01
"""The part for labels where they add next to nothing, and must be released all the same."""

_WORTH_LABELS = 1000
"""From so many rows · ε² on labels are released also where nobody asks for them."""

ROUNDS = (0.2, 0.3, 0.5)
"""Parts of the rows in each round: the last and best intervals serve half of them."""

FEWEST = 200
"""With fewer rows all are released at once."""

MOST_ROUNDS = 10


@dataclass(frozen=True, slots=True, kw_only=True)
class FitRequest(Request):
    """The parameters of a fit, checked before any label is seen.

    ``rounds`` are those of `LabelReleaseRegressor`; ``labels`` says whether every label must be released: else
    they are where that pays; ``transform`` names a function of labels to learn instead.
    """

    rounds: Any = "auto"
    labels: bool = True
    transform: Any = None

    @property
    def charge_note(self) -> str:
        """What a charge says of labels that are transformed."""
        return "" if self.transform is None else f" ({self.transform})"

    def _delta(self) -> float:
        """Refuse mechanisms that a model cannot learn from; no δ is spent."""
        if len(self.bounds) != 1:
            raise ParameterError(
                Setting("bounds"),
                " must be one pair (lo, hi): fit a model for each label column, or privatize them",
            )
        if self.mechanism == "auto":
            return 0.0
        kind, named = mechanism_class(self.mechanism), Setting("mechanism", self.mechanism)
        if kind.needs_delta:
            raise ParameterError(named, " needs delta, and labels are released with pure epsilon here")
        if not kind.unbiased:
            raise ParameterError(named, " has no unbiased label to learn from; use it through privatize")
        return 0.0

    def plan(self, rows: int) -> Plan:
        """Return the plan for this many rows; under local trust there is no part for sums."""
        if self.trust == "local":
            return Plan(self, rows, self.share)
        total, least = self.epsilon, EPSILON_RANGE[0]
        share = _label_share(rows * total**2, always=self.labels)
        one_by_one = min(max(share * total, least), total - least) if share else 0.0
        if share and one_by_one < least:
            raise ParameterError(
                Setting("epsilon", total), f" is too small to be split; give at least {2 * least}"
            )
        for_labels = Fraction(f"{one_by_one:.4g}")
        return Plan(self, rows, for_labels, for_sums=self.share - for_labels)

    def round_ends(self, rows: int) -> Array:
        """Return where rounds begin and end among the rows, from 0 to 1; each has a row at least."""
        if self.rounds == "auto":
            parts: Sequence[float] = ROUNDS if rows >= FEWEST else (1.0,)
        else:
            parts = range(1, 1 + parse_integer(self.rounds, "rounds", most=MOST_ROUNDS))
            if rows < sum(parts):
                raise ParameterError(Setting("rounds", self.rounds), f" needs {sum(parts)} rows, got {rows}")
        total = np.cumsum([0.0, *parts])
        return np.asarray(total / total[-1])

    def design(self, prior: Histogram | None, column: int, epsilon: Epsilon, rows: int) -> Mechanism:
        """Return the mechanism for a round's labels in their interval, which is [0, 1]."""
        return choose_mechanism(str(self.mechanism), prior, bounds=UNIT, epsilon=epsilon, clips=False)

    def unit_noise(self, epsilon: Epsilon) -> UnitNoise:
        """Return the noise of the mechanisms that will be used, by which intervals are sized.

        A mechanism that was asked for is built once for it, before anything is spent.
        """
        if self.mechanism != "auto":
            return type(self.design(Histogram(UNIT, [1.0]), 0, epsilon, 1)).unit_noise(epsilon)
        noises = [cls.unit_noise(epsilon) for cls in auto_classes()]
        return lambda q: np.min([np.broadcast_to(noise(q), np.shape(q)) for noise in noises], axis=0)


def _label_share(power: float, *, always: bool) -> float:
    if not always and power < _WORTH_LABELS:
        return 0.0
    wish = _LABELS_GROW * math.log10(power / _FEWEST_FOR_LABELS)
    return min(max(wish, _LEAST_FOR_LABELS), _MOST_FOR_LABELS)


class SumBudget:
    """What is left of ε for statistics of all rows, each paid as it comes, and what was bought with it.

    How much the next one gets may depend on what the last one gave out: the parts add up to no more than there is.

    Parameters
    ----------
    epsilon : Fraction
    rows : int
    """

    def __init__(self, epsilon: Fraction, rows: int) -> None:
        self.left, self.rows = epsilon, rows
        self.noise: list[Statistic] = []

    @property
    def power(self) -> float:
        """What is left, times rows: a count of all rows has noise of about one over it."""
        return self.rows * float(self.left)

    def part(self, share: float, most: float) -> Fraction:
        """Return a share of what is left, or as much as is worth ``most`` rows; it is not taken yet."""
        wish = min(share * float(self.left), most / self.rows)
        return min(Fraction(f"{wish:.4g}"), self.left)

    def release(
        self, exact: Sums, epsilon: Fraction, source: WordSource, *, kind: str, what: str, steps: int = 1
    ) -> Sums:
        """Take a part, and return integers with noise for it; `RULES` say how far one label moves them."""
        if not 0 < epsilon <= self.left:
            raise PrivacyProofError(f"{what}: more than is left would be spent, so nothing was released")
        statistic = Statistic(what, kind, exact.size, steps, epsilon)
        self.left -= epsilon
        self.noise.append(statistic)
        return statistic.noise.release(exact, source)


@dataclass(frozen=True, slots=True)
class LabelSummary:
    """What is known of the labels before they are released one by one.

    Attributes
    ----------
    low, high : float
        The range to which they are clipped, inside the bounds.
    variance : float
        Of labels, a guess.
    residual : float
        In files of 0.2.0, the mean square of labels around the first predictions; not measured any more, and 0.
    sums : int
        How many noisy sums there are.
    """

    low: float
    high: float
    variance: float
    residual: float = 0.0
    sums: int = 0

    @property
    def width(self) -> float:
        """The range's width."""
        return self.high - self.low

    @property
    def middle(self) -> float:
        """What labels are measured from where they are summed."""
        return (self.low + self.high) / 2

    def in_bounds(self, bounds: Pair) -> LabelSummary:
        """Return knowledge of labels in units of the bounds as knowledge of the labels themselves."""
        low, high = from_units(np.array([self.low, self.high]), bounds).tolist()
        square = (bounds[1] - bounds[0]) ** 2
        return LabelSummary(low, high, self.variance * square, self.residual * square, self.sums)

    def clip(self, values: Array) -> Array:
        """Return values inside the range."""
        return np.asarray(np.clip(values, self.low, self.high))


@np.errstate(all="ignore")  # a warning that depends on labels would leak them
def unit_labels(labels: Array, bounds: Pair) -> Array:
    """Return labels, clipped to their bounds, in units of these: from 0 to 1."""
    low, high = bounds
    return np.asarray((np.clip(labels, low, high) - low) / (high - low))


def from_units(values: Array | float, bounds: Pair) -> Array:
    """Return values in units of the bounds in the label's unit, in the same order; 0 and 1 are the bounds.

    Examples
    --------
    >>> from_units(np.array([0.0, 0.25, 1.0]), (0.1, 0.3)).tolist()
    [0.1, 0.15, 0.3]
    """
    low, high = bounds
    units = np.asarray(values, dtype=np.float64)
    result = low + (high - low) * units  # 1 may miss the upper bound by a rounding error
    beyond = np.where(units > 1, np.maximum(result, high), high)
    return np.where(units < 1, np.minimum(result, high), beyond)


# ---- threads and progress ------------------------------------------------------------------------------------

_LOAD = Path("/proc/loadavg")


def usable_cores() -> int:
    """Return how many cores this process may use, by its affinity and its container's quota."""
    return max(1, int(joblib.cpu_count()))


def idle_cores() -> int:
    """Return how many of these nobody else is using now; at least one."""
    return max(1, min(usable_cores(), (os.cpu_count() or 1) - count_others()))


def count_others() -> int:
    """Return how many threads of other processes run or wait for a core now; 0 if the system does not say."""
    try:
        running = int(_LOAD.read_text().split()[3].split("/")[0])
        return max(0, running - sum(_is_running(task) for task in Path("/proc/self/task").iterdir()))
    except (OSError, ValueError, IndexError):
        return 0


def _is_running(task: Path) -> bool:
    try:
        return (task / "stat").read_text().rpartition(")")[2].split()[0] == "R"
    except (OSError, IndexError):  # it has ended
        return False


@cache
def _pools() -> Any:
    """Return the pools of all libraries: a search that takes a while, and all that matter are loaded by now."""
    return ThreadpoolController()


@contextmanager
def limit_threads(count: int) -> Iterator[None]:
    """Keep the pools of BLAS and OpenMP to so many threads, or to fewer if they had fewer."""
    pools = _pools()
    limits = {pool["prefix"]: min(count, pool["num_threads"]) for pool in pools.info()}
    with pools.limit(limits=limits):
        yield


Step = Callable[[str], None]
"""Shows which step begins."""


@contextmanager
def steps(total: int, *, shown: bool) -> Iterator[Step]:
    """Yield a function to call as each of ``total`` steps begins; it draws a bar on standard error if shown."""
    columns = (TextColumn("{task.description:<24}"), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn())
    with Progress(*columns, console=Console(stderr=True), disable=not shown) as bar:
        task = bar.add_task("checking", total=total)
        yield lambda what: bar.update(task, description=what, advance=1)
        bar.update(task, description="done", completed=total)
