"""What a release cost, what was paid for together with it, and what else a ledger counts."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

from labeldp.ledger import Budget, Charge, total_of


def charge_mark(charge: Charge) -> tuple[object, ...]:
    """Return what is the same of a charge in a ledger and on a card: the mechanism is noted later."""
    return charge.when, charge.budget, charge.purpose, charge.column, charge.rows_per_person


@dataclass(frozen=True, slots=True)
class Costs:
    """What was paid: on the card, besides it for other rows, and for anything else that a ledger has.

    Attributes
    ----------
    own, besides, others : sequences of Charge
    has_ledger : bool
        Whether a ledger is known; without one nobody knows of others.
    missing : bool
        Whether the ledger lacks what was paid.
    """

    own: Sequence[Charge]
    besides: Sequence[Charge]
    others: Sequence[Charge]
    has_ledger: bool
    missing: bool

    @classmethod
    def of(
        cls, own: Sequence[Charge], besides: Sequence[Charge] = (), recorded: Sequence[Charge] | None = None
    ) -> Costs:
        """Tell a ledger's charges that are not of this release, and whether it lacks one that is."""
        listed = [] if recorded is None else recorded
        besides = [charge if charge.when else _found(charge, listed) for charge in besides]
        remaining = Counter(charge_mark(charge) for charge in [*own, *besides])
        others = []
        for charge in listed:
            if remaining[charge_mark(charge)] > 0:
                remaining[charge_mark(charge)] -= 1
            else:
                others.append(charge)
        has_ledger = recorded is not None
        return cls(own, besides, others, has_ledger, has_ledger and remaining.total() > 0)

    @property
    def paid(self) -> list[Charge]:
        """What was paid for together."""
        return [*self.own, *self.besides]

    @property
    def total(self) -> Budget:
        """What a ledger says in all."""
        return total_of([*self.paid, *self.others])

    @property
    def people(self) -> int:
        """How many rows a person may have."""
        return max((charge.rows_per_person for charge in self.paid), default=1)

    @property
    def for_one(self) -> Budget:
        """What one label can cost; or all labels of a person, who may have rows on both sides."""
        if self.people > 1:
            return total_of(self.paid)
        own, other = total_of(self.own), total_of(self.besides)
        return Budget(max(own.epsilon, other.epsilon), max(own.delta, other.delta))

    @property
    def exposure(self) -> Budget:
        """What odds follow from: whoever sees all releases has them by all that a ledger counts."""
        return self.total if self.has_ledger else self.for_one


def _found(charge: Charge, recorded: Sequence[Charge]) -> Charge:
    """Return a ledger's entry for a charge of which a card does not say when it was."""
    same = [one for one in recorded if charge_mark(one)[1:] == charge_mark(charge)[1:]]
    return same[0] if same else charge
