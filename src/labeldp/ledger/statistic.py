"""What a part of a charge bought: integers of all rows, and the noise that they left with.

A card lists them, so that whoever gets it computes the noise again: the sensitivity follows from the kind of
statistic by a rule of this library, and the scale from sensitivity and ε, in exact fractions.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, NamedTuple

from labeldp.errors import ParameterError, UncheckableError
from labeldp.ledger.budget import Budget, parse_fraction
from labeldp.noise import DiscreteLaplace


class Rule(NamedTuple):
    """By how many steps one label moves a statistic, in the sum of absolute values, and why."""

    factor: int
    reason: str


RULES = {
    "counts": Rule(2, "another label takes 1 from one count and adds 1 to another"),
    "largest count": Rule(1, "another label moves every count by 1 at most, and so the largest of them"),
    "sums": Rule(1, "each label is in one sum, as an integer from 0 to the number of steps"),
    "score": Rule(1, "another label moves all sums of errors, or of labels, by as many steps together: scores.md"),
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
    >>> Statistic.from_data(counts.as_data()) == counts
    True
    """

    what: str
    kind: str
    size: int
    steps: int
    epsilon: Fraction
    purpose: str = "sums"

    def __str__(self) -> str:
        return f"{self.what}: {self.noise}"

    @property
    def sensitivity(self) -> int:
        """By how much one label moves the integers, in the sum of absolute values."""
        return RULES[self.kind].factor * self.steps

    @property
    def noise(self) -> DiscreteLaplace:
        """The noise on each integer."""
        return DiscreteLaplace.calibrated(sensitivity=self.sensitivity, epsilon=self.epsilon)

    def as_data(self) -> dict[str, Any]:
        """Return the statistic as pure data, with all that its noise follows from."""
        return {
            "what": self.what,
            "kind": self.kind,
            "integers": self.size,
            "steps": self.steps,
            "sensitivity": self.sensitivity,
            "because": RULES[self.kind].reason,
            "epsilon": str(self.epsilon),
            "noise": "discrete Laplace",
            "scale": str(self.noise.scale),
            "purpose": self.purpose,
        }

    @classmethod
    def from_data(cls, data: Any) -> Statistic:
        """Return the statistic that `as_data` wrote, if its noise is what its kind and ε ask for.

        Raises
        ------
        UncheckableError
            If its kind or its noise is not known here.
        ParameterError
            If it is not a valid statistic, or has another sensitivity or noise than follows.
        """
        names = {"what", "kind", "integers", "steps", "sensitivity", "because"}
        if not isinstance(data, dict) or set(data) != names | {"epsilon", "noise", "scale", "purpose"}:
            raise ParameterError("it must have the fields of a statistic and no others")
        if not all(isinstance(data[name], str) for name in ("what", "kind", "because", "noise", "purpose")):
            raise ParameterError("its words must be text")
        if data["kind"] not in RULES or data["noise"] != "discrete Laplace":
            raise UncheckableError(
                f"the card has a statistic of the kind {data['kind'][:60]!r} with {data['noise'][:60]!r} noise, "
                "which this version of labeldp does not know, so it cannot be checked here"
            )
        for name in ("integers", "steps", "sensitivity"):
            if type(data[name]) is not int or not 1 <= data[name] < 1 << 53:
                raise ParameterError(f"its {name} must be a positive integer of 53 bits")
        epsilon, scale = parse_fraction(data["epsilon"]), parse_fraction(data["scale"])
        made = cls(data["what"], data["kind"], data["integers"], data["steps"], epsilon, data["purpose"])
        if data["sensitivity"] != made.sensitivity:
            raise ParameterError(f"its sensitivity is {made.sensitivity}, and not {data['sensitivity']}")
        if data["because"] != RULES[made.kind].reason:
            raise ParameterError("its sensitivity follows from something else than it says")
        if scale != made.noise.scale:
            raise ParameterError("the scale of its noise is not its sensitivity over its epsilon")
        return made


def cost_of(statistics: Iterable[Statistic]) -> Budget:
    """Return what statistics cost together, for one row."""
    return sum((Budget(one.epsilon) for one in statistics), Budget(0))
