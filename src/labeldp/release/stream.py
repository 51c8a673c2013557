"""Labels that come in batches, from a file or a cluster: the same plan, charges, prior and channel as `privatize`.

Labels are read twice: once to be counted, once to be released. Between the two, the ledger is charged; what was
counted before stays in memory until it is paid for.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any, NoReturn

import numpy as np
from numpy.typing import NDArray

from labeldp._validation import as_labels, as_roomy_bounds, float_below
from labeldp.errors import DataError, LabelError, ParameterError
from labeldp.histogram import Histogram
from labeldp.ledger import Budget, Ledger, group_budget
from labeldp.mechanisms.base import Mechanism, fingerprint
from labeldp.priors import Reports, check_method
from labeldp.priors.curator import FINE, adaptive_histogram, count
from labeldp.randomness import SecureWords, WordSource, resolve_source
from labeldp.release.plan import Plan
from labeldp.release.terms import Terms

__all__ = ["Counted", "LabelStream", "Order", "settle"]

Batches = Callable[[], Iterable[Any]]
Counts = NDArray[np.int64]

_MANY = 1 << 40
"""Rows for which a prior is estimated, if one ever is."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Order:
    """What is asked of a release, checked as far as it can be before any label is seen.

    Parameters are those of `privatize`, for one label column.
    """

    epsilon: float
    bounds: tuple[float, float]
    mechanism: str | Mechanism = "auto"
    prior: Histogram | None = None
    trust: str = "curator"
    epsilon_prior: float | None = None
    zeta: float | None = None
    delta: float = 0.0
    rows_per_person: int = 1

    def __post_init__(self) -> None:
        object.__setattr__(self, "bounds", as_roomy_bounds(self.bounds))
        check_method(self.trust, None)
        group_budget(Budget(0), self.rows_per_person)
        self.plan(1)

    def plan(self, rows: int) -> Plan:
        """Return the plan for this many rows."""
        return Plan.make(
            rows=rows,
            bounds=(self.bounds,),
            epsilon=self.epsilon,
            epsilon_prior=self.epsilon_prior,
            mechanism=self.mechanism,
            prior=self.prior,
            zeta=self.zeta,
            delta=self.delta,
            trust=self.trust,
            method=None,
        )

    @property
    def needs_counts(self) -> bool:
        """Whether a curator makes the prior, for one number of rows or another: else nobody may count labels."""
        return self.trust == "curator" and bool(self.plan(_MANY).for_prior)


@dataclass(frozen=True, slots=True)
class Counted:
    """How many labels there are, and how many lie in each cell of a fine grid; parts add up.

    These are exact counts of private labels: they never leave the curator without noise.
    """

    rows: int
    fine: Counts

    @classmethod
    def none(cls) -> Counted:
        """Return the count of no labels."""
        return cls(0, np.zeros(FINE, dtype=np.int64))

    @classmethod
    def of(cls, labels: Any, bounds: tuple[float, float] | None) -> Counted:
        """Count a batch of labels, which may be empty; without bounds, only its rows."""
        array = as_labels(labels, or_none=True).reshape(-1)
        fine = np.zeros(FINE, dtype=np.int64) if bounds is None else count(array, bounds, FINE)
        return cls(array.size, fine)

    def __add__(self, other: Counted) -> Counted:
        return Counted(self.rows + other.rows, self.fine + other.fine)

    def __repr__(self) -> str:
        return f"<{self.rows:,} labels, counted>"


def settle(
    order: Order,
    counted: Counted,
    *,
    ledger: Ledger,
    source: WordSource,
    reports: Callable[[Reports], Counts] | None = None,
) -> Terms:
    """Charge the ledger, make the prior, and design the mechanism: all that comes before labels are released.

    Parameters
    ----------
    order : Order
    counted : Counted
    ledger : Ledger
        Is charged before any noise is drawn; if it refuses, nothing was released.
    source : source of words
        For the prior's noise.
    reports : callable, optional
        Randomises every label with ``Reports.mechanism`` and returns the sum of ``Reports.count``: needed for
        ``trust="local"``.
    """
    if counted.rows == 0:
        raise LabelError("there are no labels: give at least one")
    plan = order.plan(counted.rows)
    ready = plan.ready()
    if plan.for_prior and order.trust == "local" and reports is None:
        raise ParameterError('trust="local" needs each label to be randomised for the prior first')
    places = ledger.charge_all(plan.charges(order.rows_per_person))
    prior = plan.priors[0]
    if plan.for_prior and reports is not None and order.trust == "local":
        asked = Reports(float_below(plan.for_prior), order.bounds, counted.rows)
        prior = asked.histogram(reports(asked))
    elif plan.for_prior:
        prior = adaptive_histogram(counted.fine, plan.for_prior, order.bounds, source)
    mechanism = ready[0] if ready else plan.design(prior, order.bounds)
    ledger.describe(places[0], fingerprint(mechanism.channel))
    recorded = ledger.charges
    return Terms(
        rows=counted.rows,
        mechanisms=(mechanism,),
        priors=(prior,),
        charges=tuple(recorded[place] for place in places),
        bounds=(order.bounds,),
        trust=order.trust,
        secure=isinstance(source, SecureWords),
    )


class LabelStream:
    """Private labels, batch by batch.

    Parameters
    ----------
    batches : callable
        Returns the labels from the start, in batches of any length; called once, or twice where nobody is
        trusted. Its labels must be the ones later passed to `release`, in any order.
    order : Order
    ledger : Ledger, or callable that returns one, optional
        A callable is asked once all labels are counted, so that what cannot be used makes no new ledger.
    random_state : None, int or source of words
        Leave it out for a release.

    Attributes
    ----------
    terms : Terms
        What was decided and paid for.

    Examples
    --------
    >>> labels = np.linspace(1, 4, 5000)
    >>> stream = LabelStream(lambda: np.split(labels, 5), Order(epsilon=1.0, bounds=(0, 5)))
    >>> private = [stream.release(batch) for batch in np.split(labels, 5)]
    >>> stream.finish().cost
    Budget(epsilon=1.0)
    """

    def __init__(
        self,
        batches: Batches,
        order: Order,
        *,
        ledger: Ledger | Callable[[], Ledger] | None = None,
        random_state: int | WordSource | None = None,
    ) -> None:
        self._source = resolve_source(random_state)
        counted, bounds = Counted.none(), order.bounds if order.needs_counts else None
        for batch in batches():
            counted += Counted.of(batch, bounds)

        def reports(asked: Reports) -> Counts:
            randomize = asked.mechanism.randomize
            full = (labels for batch in batches() if (labels := as_labels(batch, or_none=True)).size)
            counts = [asked.count(randomize(labels, random_state=self._source)) for labels in full]
            return np.asarray(np.sum(counts, axis=0))

        if not isinstance(ledger, Ledger):
            ledger = Ledger() if ledger is None else ledger()
        self.terms = settle(order, counted, ledger=ledger, source=self._source, reports=reports)
        self._left = counted.rows
        self._owner = os.getpid()
        self._lock = threading.Lock()

    @property
    def mechanism(self) -> Mechanism:
        """What each label is randomised with."""
        return self.terms.mechanisms[0]

    def release(self, labels: Any) -> NDArray[np.float64]:
        """Return the private labels of a batch. Each label may be passed once."""
        if self._owner != os.getpid():
            raise ParameterError("a stream releases its labels once, in the process that made it: make it there")
        array = as_labels(labels, or_none=True)  # once: what is released is what is counted
        if array.size == 0:
            return np.zeros(0)
        with self._lock:
            self._left -= array.size
            left = self._left
        if left < 0:
            raise DataError("there are more labels now than were counted: the table changed while it was read")
        return self.mechanism.randomize(array, random_state=self._source)

    def finish(self) -> Terms:
        """Return the terms, if all labels that were paid for were released."""
        if self._left:
            raise DataError("there are fewer labels now than were counted: the table changed while it was read")
        return self.terms

    def __reduce__(self) -> NoReturn:
        raise TypeError("a stream cannot be copied or pickled: a copy would release the labels again at no cost")
