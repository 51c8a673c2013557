"""Results as a table: means, standard deviations, and who is best where."""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np
from scipy.stats import t as student

from reproduction.columns import NO_PRIVACY, Column
from reproduction.store import Result

LEVEL = 0.05
"""A column that is worse than the best at this level, in a one-sided test, is not bold."""

TEST_OVER_TRAINING = 0.25
"""Test rows over training rows of a split."""


def paired_p_value(differences: Sequence[float]) -> float:
    """Return the one-sided p-value that errors are larger, by differences of their logarithms in the same trials.

    The corrected resampled t-test: training sets of random splits overlap, so the variance of the mean is
    (1/k + 1/4) times that of a difference, not 1/k.

    Examples
    --------
    >>> round(paired_p_value([0.1, 0.2, 0.3, 0.2]), 4), paired_p_value([0.0, 0.0])
    (0.0203, 1.0)

    References
    ----------
    C. Nadeau and Y. Bengio, Inference for the generalization error, Machine Learning 52 (2003).
    """
    values = np.asarray(differences, dtype=np.float64)
    mean, trials = float(values.mean()), values.size
    if trials < 2 or np.ptp(values) == 0:
        return 1.0 if mean <= 0 else 0.0
    error = math.sqrt((1 / trials + TEST_OVER_TRAINING) * float(values.var(ddof=1)))
    return float(student.sf(mean / error, trials - 1))


@dataclass(frozen=True, slots=True)
class Mean:
    """Mean and standard deviation over trials."""

    mean: float
    std: float
    trials: int

    @property
    def text(self) -> str:
        """The figure, for people."""
        return f"{number(self.mean)} ± {number(self.std)}" if self.trials > 1 else number(self.mean)


def number(value: float) -> str:
    """Return a number with three or four significant digits, and no exponent.

    Examples
    --------
    >>> number(0.018234), number(1.5), number(16803328.9)
    ('0.0182', '1.500', '16,803,329')
    """
    if not math.isfinite(value):
        return "-"
    size = abs(value)
    if size >= 1000:
        return f"{value:,.0f}"
    digits = 1 if size >= 100 else 2 if size >= 10 else 3 if size >= 0.1 else 4
    return f"{value:.{digits}f}"


def plural(count: int, thing: str) -> str:
    """Return a count with its noun, in the plural where needed.

    Examples
    --------
    >>> plural(1, "epoch"), plural(50, "epoch")
    ('1 epoch', '50 epochs')
    """
    return f"{count:,} {thing}{'' if count == 1 else 's'}"


def markdown_table(heads: Sequence[str], rows: Sequence[Sequence[str]], left: Sequence[str] = ()) -> list[str]:
    """Return the lines of a table; columns are aligned to the right, but for those whose head is in ``left``."""
    rule = "".join("|---" if head in left else "|---:" for head in heads) + "|"
    return [f"| {' | '.join(heads)} |", rule, *(f"| {' | '.join(row)} |" for row in rows)]


def _mean(errors: list[float]) -> Mean:
    return Mean(float(np.mean(errors)), float(np.std(errors, ddof=1)) if len(errors) > 1 else 0.0, len(errors))


class Summary:
    """Means over trials, by column and budget.

    Parameters
    ----------
    results : iterable of Result
    columns : sequence of Column
        In the order to show them.
    """

    def __init__(self, results: Iterable[Result], columns: Sequence[Column]) -> None:
        errors: dict[tuple[str, float], dict[int, float]] = defaultdict(dict)
        for r in results:
            errors[r.column, r.epsilon][r.trial] = r.mse
        self.columns = tuple(columns)
        self._errors = errors
        self.means = {key: _mean(list(by_trial.values())) for key, by_trial in errors.items()}
        self.budgets = sorted({epsilon for _, epsilon in self.means})
        self.trials = max((m.trials for m in self.means.values()), default=0)

    def at(self, column: Column, epsilon: float) -> Mean | None:
        """Return a cell; at ε = ∞ every network is the one on true labels."""
        key = NO_PRIVACY.key if math.isinf(epsilon) and column.kind == "network" else column.key
        return self.means.get((key, epsilon))

    def best(self, epsilon: float) -> Column | None:
        """Return the private column of least mean error at a finite budget."""
        if math.isinf(epsilon):
            return None
        means = {c: mean.mean for c in self.columns if c.private and (mean := self.at(c, epsilon))}
        return min(means, key=means.__getitem__, default=None)

    def among_the_best(self, column: Column, epsilon: float) -> bool:
        """Whether a private column is not worse than the best one, by a paired test over trials."""
        best = self.best(epsilon)
        if best is None or not column.private or self.at(column, epsilon) is None:
            return False
        return best == column or self.p_value(column, best, epsilon) > LEVEL

    def p_value(self, column: Column, other: Column, epsilon: float) -> float:
        """Return the one-sided p-value that a column's error is larger than another's."""
        first, second = (self._errors[c.key, epsilon] for c in (column, other))
        common = sorted(first.keys() & second.keys())
        return paired_p_value([math.log(first[trial] / second[trial]) for trial in common])

    def ratio(self, column: Column, published: dict[float, float]) -> float | None:
        """Return the geometric mean, over finite budgets, of our error over the published one."""
        logs = [
            math.log(mean.mean / published[b])
            for b in self.budgets
            if math.isfinite(b) and b in published and (mean := self.at(column, b)) and mean.mean > 0
        ]
        return math.exp(float(np.mean(logs))) if logs else None
