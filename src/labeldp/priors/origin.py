"""Where a prior comes from, if it is not public: what left with which noise, and which charge paid for it."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import Annotated

from labeldp._schema import AtMost, optional
from labeldp.histogram import Histogram
from labeldp.ledger import Budget, Charge, Statistic, cost_of
from labeldp.mechanisms import Mechanism


@dataclass(frozen=True, slots=True)
class Origin:
    """What a prior was estimated from.

    Attributes
    ----------
    statistics : tuple of Statistic
        The counts that a curator released.
    reports : Mechanism or None
        What each label was randomised with, where nobody is trusted.
    charge : Charge or None
        What paid for it; None until that is known.
    secure : bool
        False if the noise came from a seed.
    """

    statistics: Annotated[tuple[Statistic, ...], AtMost(256)] = ()
    reports: Mechanism | None = optional()
    charge: Charge | None = None
    secure: bool = True

    @property
    def cost(self) -> Budget | None:
        """What the noise costs one row, or None if it is not known."""
        if self.reports is not None:
            proof = self.reports.verify()
            return Budget(proof.epsilon, proof.delta)
        return cost_of(self.statistics) if self.statistics else None


def origins_of(priors: Iterable[Histogram | Mechanism | None]) -> list[Origin]:
    """Return where priors come from that are not public: of themselves, or of mechanisms designed with them."""
    return [one.origin for one in priors if one is not None and one.origin is not None]


def paid_by(prior: Histogram, charge: Charge, *, secure: bool) -> Histogram:
    """Return a prior that says what paid for it, and so does every mechanism that is designed with it."""
    origin = replace(prior.origin or Origin(), charge=charge, secure=secure)
    return Histogram(prior.nodes, prior.masses, origin)
