"""Before labels are released, whoever holds them: charge, estimate the prior, design, state the terms."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from labeldp.histogram import Histogram
from labeldp.ledger import Charge, Ledger
from labeldp.mechanisms.base import Mechanism, fingerprint
from labeldp.randomness import SecureWords, WordSource
from labeldp.release.plan import Plan
from labeldp.release.terms import Terms

__all__ = ["Payment", "prepare"]


class Payment:
    """Charges that a ledger has accepted, all of them or none, before anything is released.

    Parameters
    ----------
    ledger : Ledger
    charges : sequence of Charge
    """

    def __init__(self, ledger: Ledger, charges: Sequence[Charge]) -> None:
        self._ledger = ledger
        self._places = ledger.charge_all(charges)

    def describe(self, mechanisms: Sequence[str]) -> None:
        """Note in the ledger what the first charges were spent on, once that is decided."""
        for place, mechanism in zip(self._places, mechanisms, strict=False):
            self._ledger.describe(place, mechanism)

    def terms(
        self,
        rows: int,
        bounds: tuple[tuple[float, float], ...],
        source: WordSource,
        *,
        mechanisms: Sequence[Mechanism] = (),
        priors: Sequence[Histogram | None] = (),
        trust: str = "curator",
    ) -> Terms:
        """Return the terms of what was paid for, with the charges as the ledger has them."""
        recorded = self._ledger.charges
        return Terms(
            rows=rows,
            mechanisms=tuple(mechanisms),
            priors=tuple(priors),
            charges=tuple(recorded[place] for place in self._places),
            bounds=bounds,
            trust=trust,
            secure=isinstance(source, SecureWords),
        )


def prepare(
    plan: Plan, *, ledger: Ledger, source: WordSource, estimate_prior: Callable[[int], Histogram | None]
) -> Terms:
    """Charge the ledger, estimate priors, and design mechanisms; return the terms on which labels may leave.

    Parameters
    ----------
    plan : Plan
    ledger : Ledger
        Is charged before any noise is drawn; if it refuses, nothing was released.
    source : source of words
        The one that labels will be randomised with.
    estimate_prior : callable
        Returns the private prior of a label column, for ``plan.for_prior``; called once it is paid for.
    """
    request = plan.request
    ready = []
    if not plan.for_prior:  # what fails here costs nothing
        ready = [plan.design(prior, pair) for prior, pair in zip(request.prior, request.bounds, strict=True)]
    payment = Payment(ledger, plan.charges())
    priors = tuple(estimate_prior(k) for k in range(len(request.bounds))) if plan.for_prior else request.prior
    mechanisms = ready or [plan.design(prior, pair) for prior, pair in zip(priors, request.bounds, strict=True)]
    payment.describe([fingerprint(mechanism.channel) for mechanism in mechanisms])
    return payment.terms(
        plan.rows, request.bounds, source, mechanisms=mechanisms, priors=priors, trust=request.trust
    )
