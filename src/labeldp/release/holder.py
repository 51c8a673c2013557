"""What every release has in common: it holds its terms, and says what they say."""

from __future__ import annotations

from labeldp.histogram import Histogram
from labeldp.ledger import Budget, Charge
from labeldp.mechanisms.base import Mechanism
from labeldp.release.terms import Terms

__all__ = ["HoldsTerms"]


class HoldsTerms:
    """Base of releases: the terms' facts as properties of the release."""

    __slots__ = ()
    terms: Terms

    @property
    def mechanisms(self) -> tuple[Mechanism, ...]:
        """What labels were randomised with; one for each label column, or each part of the rows."""
        return self.terms.mechanisms

    @property
    def priors(self) -> tuple[Histogram | None, ...]:
        """One for each label column; None where none was needed."""
        return self.terms.priors

    @property
    def charges(self) -> tuple[Charge, ...]:
        """What the release cost, part by part."""
        return self.terms.charges

    @property
    def cost(self) -> Budget:
        """What the release cost in all."""
        return self.terms.cost

    @property
    def bounds(self) -> tuple[tuple[float, float], ...]:
        """Public bounds, one pair for each label column."""
        return self.terms.bounds

    @property
    def trust(self) -> str:
        """Who saw labels before noise: "curator", or "local" for nobody."""
        return self.terms.trust

    @property
    def secure(self) -> bool:
        """False if the noise came from a seed: then this is an experiment, and **not private**."""
        return self.terms.secure

    def summary(self) -> str:
        """Return what was done, for people."""
        return self.terms.summary()

    def to_card(self) -> str:
        """Return the card of the release: JSON with a checksum, and no label in it."""
        return self.terms.to_card()
