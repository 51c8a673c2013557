"""The terms of a release: all but its labels, as a value, in words and as a card."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from labeldp import card_format
from labeldp._values import rounded_up
from labeldp.histogram import Histogram
from labeldp.ledger import Budget, Charge, Statistic, total_of
from labeldp.mechanisms.base import Mechanism
from labeldp.release.explanation import explain
from labeldp.release.notebook import panel
from labeldp.release.numbers import number

SUMMARY = ("What was done", "What it cost", "How noisy it is", "Do not")
"""The headings of an explanation that a summary shows."""


@dataclass(frozen=True, slots=True)
class Terms:
    """What was released how, and what it cost; no label is in here, and all may be made public.

    Attributes
    ----------
    rows : int
        How many labels each column has.
    mechanisms, priors : tuple
        One for each label column; a prior is None where none was needed. Rows that are released in rounds, and
        models, have one mechanism for each part of the rows; a model that learned from noisy sums has none.
    charges : tuple of Charge
        What it cost, part by part.
    bounds : tuple of (lo, hi)
        One pair for each label column.
    trust : {"curator", "local"}
        Who saw labels before noise: a curator, or nobody.
    secure : bool
        False if the noise came from a seed: then this is an experiment, and **not private**.
    statistics : tuple of Statistic
        Integers of all rows that left with noise, each part of a charge.

    Examples
    --------
    >>> import labeldp as ldp
    >>> terms = ldp.privatize([2.5, 4.0], epsilon=1.0, bounds=(0, 5), mechanism="laplace").terms
    >>> terms.rows, terms.mechanisms, terms.cost
    (2, (Laplace(bounds=(0.0, 5.0), epsilon=1.0),), Budget(epsilon=1.0))
    >>> print(terms.guarantee)
    label differential privacy with ε = 1: changing one row's label changes the probability of anything released by
    at most a factor e^1; features, the number and order of rows, and bounds are public
    """

    rows: int
    mechanisms: tuple[Mechanism, ...]
    priors: tuple[Histogram | None, ...]
    charges: tuple[Charge, ...]
    bounds: tuple[tuple[float, float], ...]
    trust: str
    secure: bool
    statistics: tuple[Statistic, ...] = ()
    _places: dict[int | Charge | None, int] = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        places: dict[int | Charge | None, int] = {}
        for place, charge in enumerate(self.charges):
            if charge.purpose == "prior":
                places.setdefault(charge.column, place)
                places.setdefault(charge, place)
        object.__setattr__(self, "_places", places)

    @property
    def cost(self) -> Budget:
        """What all of it cost."""
        return total_of(self.charges)

    @property
    def rows_per_person(self) -> int:
        """How many rows of one person it covers."""
        return max((charge.rows_per_person for charge in self.charges), default=1)

    @property
    def guarantee(self) -> str:
        """What is promised, in words."""
        if not self.secure:
            return "NOT PRIVATE: the noise can be repeated from a seed"
        cost, people = self.cost, self.rows_per_person
        who = "one row's label" if people == 1 else f"all labels of a person with up to {people} rows"
        return (
            f"label differential privacy with {cost}: changing {who} changes the probability of anything "
            f"released by at most a factor e^{rounded_up(cost.epsilon)}"
            + (f", up to {rounded_up(cost.delta, 3)}" if cost.delta else "")
            + "; features, the number and order of rows, and bounds are public"
        )

    def prior_charge(self, column: int) -> int | None:
        """Return which charge paid for a column's prior; None if it was public, or there is none."""
        before = getattr(getattr(self.priors[column], "origin", None), "charge", None)
        return self._places.get(column if before is None else before)

    def summary(self, kind: str = "release", **about: Any) -> str:
        """Return what was done, for people: the part of `explain` that tells releases apart."""
        return explain(self, kind, about).text(SUMMARY)

    def html(self, kind: str = "release", *, code: str = "", **about: Any) -> str:
        """Return the same as a panel for a notebook; no label is in it, and all text is escaped."""
        people = f", up to {self.rows_per_person} of a person" if self.rows_per_person > 1 else ""
        facts = {
            "labels": f"{self.rows:,}{people}",
            "cost": str(self.cost),
            "bounds": "; ".join(f"{number(low)} to {number(high)}" for low, high in self.bounds),
            "mechanism": ", ".join(dict.fromkeys(type(one).__name__ for one in self.mechanisms)) or "noisy sums",
            "noise": "secure" if self.secure else "repeatable from a seed: NOT PRIVATE",
        }
        return panel(explain(self, kind, about), facts, SUMMARY, code=code)

    def to_card(self, schema: str = "labeldp.release", **more: Any) -> str:
        """Return a card: JSON with a checksum, and no label in it.

        Parameters
        ----------
        schema : {"labeldp.release", "labeldp.row-release", "labeldp.model"}
            What these are the terms of.
        **more : pure data
            Further public entries, such as which file the labels are in.
        """
        content = {
            "guarantee": self.guarantee,
            "cost": {"epsilon": self.cost.epsilon, "delta": self.cost.delta},
            "words": "secure" if self.secure else "seeded, NOT PRIVATE",
            "rows": self.rows,
            "trust": self.trust,
            "bounds": [list(pair) for pair in self.bounds],
            "mechanisms": [mechanism.to_json() for mechanism in self.mechanisms],
            "priors": [self._prior_data(column) for column in range(len(self.priors))],
            "charges": [charge.as_data() for charge in self.charges],
            "statistics": [statistic.as_data() for statistic in self.statistics],
        }
        return card_format.dump({**more, **content}, schema)

    def _prior_data(self, column: int) -> dict[str, Any] | None:
        prior = self.priors[column]
        if prior is None:
            return None
        shown, place = {"nodes": prior.nodes.tolist(), "masses": prior.masses.tolist()}, self.prior_charge(column)
        if place is None:
            return {**shown, "source": "public"}
        noise = {} if prior.origin is None else prior.origin.as_data()
        return {**shown, "source": "paid for", "charge": place, **noise}


class HoldsTerms:
    """Base of releases: the terms' facts as properties of the release."""

    __slots__ = ()
    terms: Terms
    labels: NDArray[np.float64]
    kind = "release"

    @property
    def mechanisms(self) -> tuple[Mechanism, ...]:
        """The mechanisms that randomised labels; one for each label column, or each part of the rows."""
        return self.terms.mechanisms

    @property
    def priors(self) -> tuple[Histogram | None, ...]:
        """The priors; one for each label column, None where none was needed."""
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
        """Who saw labels before noise, a "curator", or nobody ("local")."""
        return self.terms.trust

    @property
    def secure(self) -> bool:
        """Whether the noise is secure; False if it came from a seed, and then this is **not private**."""
        return self.terms.secure

    def __repr__(self) -> str:
        words = "secure" if self.secure else "NOT PRIVATE"
        return f"<{type(self).__name__} of {len(self.labels):,} labels, {self.cost}, {words}>"

    def _repr_html_(self) -> str:
        return self.terms.html(self.kind)

    def summary(self) -> str:
        """Return in plain words what was done, what it cost, how noisy it is, and what not to do."""
        return self.terms.summary()

    def to_card(self) -> str:
        """Return the card of the release: JSON with a checksum, and no label in it."""
        return self.terms.to_card()
