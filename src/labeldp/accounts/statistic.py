"""Sources of private priors, and proven costs of mechanisms.

A card lists statistics: integers of all rows with their noise. Whoever gets the card computes the noise again: the
sensitivity follows from the kind of statistic by a rule of this library, and the scale from sensitivity and ε, in
exact fractions.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Annotated

from labeldp.accounts.budget import Budget, Charge, exact_sum, rounded_up
from labeldp.exact.integers import RULES, Statistic
from labeldp.mechanisms.base import Mechanism, proof_of, require_pure
from labeldp.mechanisms.histogram import Histogram
from labeldp.mechanisms.typed_data import Limit, at_most, optional

__all__ = ["RULES", "Origin", "Statistic", "describe_proof", "origins_of", "proof_of", "proven_cost"]


def proven_cost(mechanism: Mechanism) -> Budget:
    """Return the proven ε of each use of a mechanism; one with a δ is refused.

    Raises
    ------
    ParameterError
        If the guarantee has a δ.
    """
    require_pure(mechanism)
    return Budget(proof_of(mechanism).epsilon)


def describe_proof(mechanism: Mechanism) -> str:
    """Return the proven ε, and the proven δ where there is one, in words."""
    proof = proof_of(mechanism)
    delta = f" and δ = {rounded_up(proof.delta, 3)}" if proof.delta else ""
    return f"{Budget(proof.epsilon)}{delta}"


has_no_origin = Limit(lambda mechanism: mechanism.origin is None, "a mechanism without a private prior")


@dataclass(frozen=True, slots=True)
class Origin:
    """The source of a private prior.

    Attributes
    ----------
    statistics : tuple of Statistic
        The counts that a curator released.
    reports : Mechanism or None
        The mechanism of each label, where nobody is trusted.
    charge : Charge or None
        The charge that paid for it; None until that is known.
    secure : bool
        False if the noise came from a seed.
    """

    statistics: Annotated[tuple[Statistic, ...], at_most(256)] = ()
    reports: Annotated[Mechanism, has_no_origin] | None = optional()
    charge: Charge | None = None
    secure: bool = True

    @property
    def cost(self) -> Budget | None:
        """The cost of the noise for one row, or None if it is not known."""
        if self.reports is not None:
            return proven_cost(self.reports)
        if not self.statistics:
            return None
        return Budget(exact_sum(statistic.epsilon for statistic in self.statistics))


def origins_of(priors: Iterable[Histogram | Mechanism | None]) -> list[Origin]:
    """Return where priors come from that are not public: of themselves, or of mechanisms designed with them."""
    return [source.origin for source in priors if source is not None and source.origin is not None]
