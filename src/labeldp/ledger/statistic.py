"""What a part of a charge bought: integers of all rows, and the noise that they left with.

A card lists them, so that whoever gets it computes the noise again: the sensitivity follows from the kind of
statistic by a rule of this library, and the scale from sensitivity and ε, in exact fractions.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, ClassVar, NamedTuple

from labeldp._schema import Positive
from labeldp.errors import ParameterError, UncheckableError
from labeldp.ledger.budget import Budget
from labeldp.noise import DiscreteLaplace

NOISE = "discrete Laplace"


class Rule(NamedTuple):
    """By how many steps one label moves a statistic, in the sum of absolute values, and why; and how many steps.

    How many steps there are may depend on how many integers there are: ``steps`` has 0 for any number of them.
    """

    factor: int
    reason: str
    steps: Mapping[int, int]


RULES = {
    "counts": Rule(2, "another label takes 1 from one count and adds 1 to another", {0: 1}),
    "largest count": Rule(1, "another label moves every count by 1 at most, and so the largest of them", {1: 1}),
    "sums": Rule(1, "each label is in one sum, as an integer from 0 to the number of steps", {0: 1 << 16}),
    "score": Rule(
        1,
        "another label moves all sums of errors, or of labels, by as many steps together: scores.md",
        {1: 1 << 36, 2: 1 << 36, 3: 1 << 37, 4: 1 << 37},
    ),
}
"""Each kind of statistic; docs/proofs/regressors.md and scores.md have the proofs."""


@dataclass(frozen=True, slots=True)
class Statistic:
    """Integers that left with two-sided geometric noise on each.

    Attributes
    ----------
    what : str
        What they are, in words.
    kind : str
        Which of `RULES` says how far one label moves them.
    size : int
        How many integers there are.
    steps : int
        The largest integer that one label adds; 1 for counts. Of a score, what its sums move by in all.
    epsilon : Fraction
        What they cost.
    purpose : str
        That of the charge which paid for them.

    Examples
    --------
    >>> from fractions import Fraction
    >>> from labeldp.ledger import Statistic
    >>> counts = Statistic("counts of windows", "counts", 16, 1, Fraction(1, 10))
    >>> counts.sensitivity, counts.noise.scale
    (2, Fraction(20, 1))
    """

    DERIVED: ClassVar[tuple[str, ...]] = ("sensitivity", "noise", "scale")
    what: str
    kind: str
    size: Positive
    steps: Positive
    epsilon: Fraction
    purpose: str = "sums"

    def __post_init__(self) -> None:
        self.refuse_unknown({"kind": self.kind})
        if self.epsilon <= 0:
            raise ParameterError("the epsilon of a statistic must be positive")
        steps = RULES[self.kind].steps
        if self.steps != steps.get(self.size, steps.get(0)):
            raise ParameterError(
                f"a statistic of the kind {self.kind!r} does not hold {self.size:,} integers of {self.steps} steps"
            )

    def __str__(self) -> str:
        return f"{self.what}: {NOISE} noise of scale {self.noise.scale}"

    @property
    def sensitivity(self) -> int:
        """By how much one label moves the integers, in the sum of absolute values."""
        return RULES[self.kind].factor * self.steps

    @property
    def noise(self) -> DiscreteLaplace:
        """The noise on each integer."""
        return DiscreteLaplace.calibrated(sensitivity=self.sensitivity, epsilon=self.epsilon)

    def derived(self) -> dict[str, Any]:
        """Return what a card states of it beside its fields."""
        return {"sensitivity": self.sensitivity, "noise": NOISE, "scale": self.noise.scale}

    @classmethod
    def refuse_unknown(cls, data: dict[str, Any]) -> None:
        """Refuse a kind or noise that another version may know."""
        kind, noise = data.get("kind"), data.get("noise", NOISE)
        if isinstance(kind, str) and isinstance(noise, str) and (kind not in RULES or noise != NOISE):
            raise UncheckableError(
                f"the card has a statistic of the kind {kind[:60]!r} with {noise[:60]!r} noise, "
                "which this version of labeldp does not know, so it cannot be checked here"
            )


def cost_of(statistics: Iterable[Statistic]) -> Budget:
    """Return what statistics cost together, for one row."""
    return sum((Budget(one.epsilon) for one in statistics), Budget(0))
