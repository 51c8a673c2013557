"""Where a prior comes from, if it is not public: what left with which noise, and which charge paid for it."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

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
        What paid for it, if that was before the release that uses it.
    secure : bool
        False if the noise came from a seed.
    """

    statistics: tuple[Statistic, ...] = ()
    reports: Mechanism | None = None
    charge: Charge | None = None
    secure: bool = True

    @property
    def cost(self) -> Budget | None:
        """What the noise costs one row, or None if it is not known."""
        if self.reports is not None:
            proof = self.reports.verify()
            return Budget(proof.epsilon, proof.delta)
        return cost_of(self.statistics) if self.statistics else None

    def as_data(self) -> dict[str, Any]:
        """Return the noise as pure data."""
        if self.reports is not None:
            return {"reports": self.reports.to_json()}
        return {"statistics": [one.as_data() for one in self.statistics]} if self.statistics else {}


def paid_by(prior: Histogram, charge: Charge, *, secure: bool) -> Histogram:
    """Return a prior that was paid for on its own, so that the card of a release that uses it says so."""
    origin = replace(prior.origin or Origin(), charge=charge, secure=secure)
    return Histogram(prior.nodes, prior.masses, origin)
