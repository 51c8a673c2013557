"""What a release cost, and what else a ledger counts."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from labeldp.ledger import Budget, Charge, total_of

if TYPE_CHECKING:
    from labeldp.release.terms import Terms


def charge_mark(charge: Charge) -> tuple[object, ...]:
    """Return what is the same of a charge in a ledger and on a card: the mechanism is noted later."""
    return charge.when, charge.budget, charge.purpose, charge.column, charge.rows_per_person


@dataclass(frozen=True, slots=True)
class Costs:
    """What was paid for a release, and for anything else that a ledger has.

    Attributes
    ----------
    own, others : sequences of Charge
    has_ledger : bool
        Whether a ledger is known; without one nobody knows of others.
    missing : bool
        Whether the ledger lacks what was paid.
    """

    own: Sequence[Charge]
    others: Sequence[Charge]
    has_ledger: bool
    missing: bool

    @classmethod
    def of(cls, terms: Terms, recorded: Sequence[Charge] | None = None) -> Costs:
        """Tell a ledger's charges that are not of this release, and whether it lacks one that is."""
        listed = [] if recorded is None else recorded
        own = [charge if charge.when else _found(charge, listed) for charge in terms.charges]
        remaining = Counter(map(charge_mark, own))
        others = []
        for charge in listed:
            if remaining[charge_mark(charge)] > 0:
                remaining[charge_mark(charge)] -= 1
            else:
                others.append(charge)
        has_ledger = recorded is not None
        return cls(own, others, has_ledger, has_ledger and remaining.total() > 0)

    @property
    def total(self) -> Budget:
        """What a ledger says in all."""
        return total_of([*self.own, *self.others])


def _found(charge: Charge, recorded: Sequence[Charge]) -> Charge:
    """Return a ledger's entry for a charge of which a card of version 2 does not say when it was."""
    same = [one for one in recorded if charge_mark(one)[1:] == charge_mark(charge)[1:]]
    return same[0] if same else charge
