"""Before labels are released, whoever holds them: `Request`, `Plan`, and `prepare`, which gives the `Terms`.

A plan is decided by what is public, before any label is used. To prepare is to charge the ledger, estimate the
prior, and design the mechanism.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from functools import partial
from inspect import signature
from typing import Any

from labeldp._values import (
    EPSILON_RANGE,
    Bounds,
    Count,
    Delta,
    Epsilon,
    as_fraction,
    float_below,
    parse_label_bounds,
    parse_method,
    parse_number,
    parse_positive,
)
from labeldp.accounts.budget import Budget, Charge, Purpose, new_charge
from labeldp.accounts.ledger import Ledger
from labeldp.accounts.terms import Terms
from labeldp.errors import NotUnbiasedError, ParameterError, Setting
from labeldp.exact.integers import Statistic
from labeldp.exact.proof import fingerprint, join_fingerprints
from labeldp.exact.word_sources import SecureWords, WordSource
from labeldp.mechanisms.base import Mechanism
from labeldp.mechanisms.gaussian import SMALLEST_DELTA
from labeldp.mechanisms.histogram import Histogram
from labeldp.mechanisms.registry import choose_mechanism, mechanism_class, mechanism_names

LEAST, MOST = map(as_fraction, EPSILON_RANGE)
"""What a mechanism may spend, exactly."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Request:
    """The parameters of a release, checked as far as they can be before any label is seen.

    Parameters are those of `privatize`. ``bounds`` is a pair, or one pair for each label column, and so is
    ``prior``; both are kept as tuples, priors cut to their bounds.

    Attributes
    ----------
    share : Fraction
        The part of ε for each label column.
    prior_share : Fraction or None
        The part of that for the prior, where ``epsilon_prior`` was given.
    """

    epsilon: float
    bounds: Any
    mechanism: str | Mechanism = "auto"
    prior: Any = None
    trust: str = "curator"
    method: str | None = None
    epsilon_prior: float | None = None
    zeta: float | None = None
    delta: float = 0.0
    rows_per_person: int = 1
    share: Fraction = field(init=False)
    prior_share: Fraction | None = field(init=False)

    def __post_init__(self) -> None:
        store = partial(object.__setattr__, self)  # the instance is frozen
        store("method", parse_method(self.trust, self.method))
        store("rows_per_person", int(Count(self.rows_per_person, "rows_per_person")))
        store("epsilon", Epsilon(self.epsilon))
        store("bounds", parse_label_bounds(self.bounds))
        store("zeta", None if self.zeta is None else parse_positive(self.zeta, "zeta"))
        store("delta", Delta(self.delta))
        amount = None if self.epsilon_prior is None else parse_number(self.epsilon_prior, "epsilon_prior")
        share = as_fraction(self.epsilon) / len(self.bounds)
        store("share", share)
        asked = None if amount is None or not math.isfinite(amount) else as_fraction(amount) / len(self.bounds)
        store("prior_share", asked)
        self._refuse_split(amount)
        if self.zeta is not None:
            store("mechanism", "rp" if self.mechanism == "auto" else self.mechanism)
            is_instance = isinstance(self.mechanism, Mechanism)
            if is_instance or "zeta" not in signature(mechanism_class(self.mechanism)).parameters:
                raise ParameterError(
                    Setting("zeta"), " goes with a mechanism that has one, such as ", Setting("mechanism", "rp")
                )
        store("delta", self._delta())
        is_known = self.prior is not None
        store("prior", _priors(self.prior, self.bounds) if is_known else (None,) * len(self.bounds))
        if is_known or isinstance(self.mechanism, Mechanism):
            self._refuse_origins()

    def _refuse_split(self, for_prior: float | None) -> None:
        """Refuse parts of ε for priors and labels that no mechanism supports."""
        if for_prior is not None and not 0 <= for_prior < self.epsilon:
            raise ParameterError(Setting("epsilon_prior"), f" must lie in [0, epsilon), got {for_prior}")
        if for_prior and (self.prior is not None or isinstance(self.mechanism, Mechanism)):
            raise ParameterError(
                Setting("epsilon_prior"), " is for a prior that must be estimated; none is needed here"
            )
        asked, columns = self.prior_share or Fraction(0), len(self.bounds)
        for part, what in ((asked, "prior"), (self.share - asked, "labels")):
            if not (LEAST <= part <= MOST or (what == "prior" and not part)):
                of = f" of each of {columns} columns" if columns > 1 else ""
                raise ParameterError(
                    "the part of ",
                    Setting("epsilon"),
                    f" for the {what}{of} is {float(part):.3g}: it must lie between {EPSILON_RANGE[0]:g} and "
                    f"{EPSILON_RANGE[1]:g}",
                )

    def _delta(self) -> float:
        """Return the δ to spend in all, if it goes with the mechanism."""
        columns, delta = len(self.bounds), self.delta
        if isinstance(self.mechanism, Mechanism):
            epsilon = self.mechanism.epsilon
            if columns > 1 or not math.isfinite(epsilon) or as_fraction(epsilon) != self.share:
                raise ParameterError(
                    "a mechanism instance serves one label column and its own ",
                    Setting("epsilon", epsilon),
                    ": pass that, or the mechanism's name",
                    option="mechanism",
                )
            return self.mechanism.delta
        needs_delta = self.mechanism != "auto" and mechanism_class(self.mechanism).needs_delta
        if bool(delta) != needs_delta:
            raise ParameterError(
                Setting("delta"),
                " goes with a mechanism that needs one, such as ",
                Setting("mechanism", "gaussian"),
            )
        if needs_delta and delta < SMALLEST_DELTA * columns:
            raise ParameterError(Setting("delta"), f" must lie in [{SMALLEST_DELTA * columns}, 1), got {delta}")
        return delta

    def _refuse_origins(self) -> None:
        """Refuse a private prior, or a mechanism designed with one, that was paid for another number of rows."""
        for one in (*self.prior, self.mechanism if isinstance(self.mechanism, Mechanism) else None):
            charge = None if one is None or one.origin is None else one.origin.charge
            if charge is not None and charge.rows_per_person != self.rows_per_person:
                people = Setting("rows_per_person", charge.rows_per_person)
                raise ParameterError("the prior was paid for with ", people, ": pass that")

    def plan(self, rows: int) -> Plan:
        """Return the plan for this many rows: how ε is split, and all else that no label decides."""
        for_prior = self.prior_share or Fraction(0)
        name, is_open = self.mechanism, self.prior_share is None and self.prior[0] is None
        if is_open and isinstance(name, str) and (name == "auto" or mechanism_class(name).needs_prior):
            for_prior = prior_budget(rows, self.share, self.trust)
        return Plan(self, rows, self.share - for_prior, for_prior=for_prior)

    def design(self, prior: Histogram | None, column: int, epsilon: Epsilon, rows: int) -> Mechanism:
        """Return the mechanism for a column: the instance that was given, or one designed by its class."""
        if isinstance(self.mechanism, Mechanism):
            return self.mechanism
        given: dict[str, Any] = {} if self.zeta is None else {"zeta": self.zeta}
        if self.delta:
            given["delta"] = float_below(as_fraction(self.delta) / len(self.bounds))
        bounds = self.bounds[column]
        return choose_mechanism(self.mechanism, prior, bounds=bounds, epsilon=epsilon, rows=rows, **given)

    def refuse_biased(self) -> None:
        """Refuse a mechanism that has no unbiased labels, by a trial that needs no data."""
        if self.mechanism == "auto":  # it chooses among those that have some
            return
        for column, (prior, pair) in enumerate(zip(self.prior, self.bounds, strict=True)):
            trial = self.plan(1000).mechanism_for(prior or Histogram(pair, [1.0]), column)
            try:
                trial.debias(trial.mean([pair[0]]))
            except NotUnbiasedError:
                raise ParameterError(
                    f"{type(trial).__name__} has no unbiased labels, and a model trained on biased ones is wrong: "
                    "choose another mechanism, or take its labels as they are if you know how to use them",
                    option="mechanism",
                ) from None

    def counts_labels(self) -> bool:
        """Return whether a curator makes the prior, for one number of rows or another: else nobody may count."""
        return self.trust == "curator" and bool(self.plan(1 << 40).for_prior)


@dataclass(frozen=True, slots=True)
class Plan:
    """A request for a number of rows: the budget's parts, and how each column's mechanism is made.

    Attributes
    ----------
    request : Request
    rows : int
    for_labels, for_prior, for_sums : Fraction
        Parts of ε, of each label column; a fit has noisy sums in place of a prior.
    """

    request: Request
    rows: int
    for_labels: Fraction
    for_prior: Fraction = Fraction(0)
    for_sums: Fraction = Fraction(0)

    @property
    def epsilon(self) -> Epsilon:
        """What a label's mechanism may spend."""
        return Epsilon(float_below(self.for_labels))

    def charges(self) -> list[Charge]:
        """Return the labels' charges, one for each column, then the priors' or that of sums."""
        request, columns = self.request, len(self.request.bounds)
        delta = as_fraction(request.delta) / columns if request.delta else Fraction(0)
        parts: list[tuple[Purpose, str, Fraction, Fraction]] = [
            ("labels", "labels", self.for_labels, delta),
            ("prior", f"prior ({request.trust})", self.for_prior, Fraction(0)),
            ("sums", "sums", self.for_sums, Fraction(0)),
        ]
        return [
            new_charge(
                what if columns == 1 else f"{what}, column {k}",
                Budget.of(epsilon, delta),
                purpose=purpose,
                column=k,
                rows_per_person=request.rows_per_person,
            )
            for purpose, what, epsilon, delta in parts
            for k in range(columns if epsilon else 0)
        ]

    def pay(self, ledger: Ledger) -> Payment:
        """Charge a ledger for all parts, or for none."""
        charges = self.charges()
        return Payment(ledger, charges, ledger.charge_all(charges))

    def mechanism_for(self, prior: Histogram | None, column: int = 0) -> Mechanism:
        """Return the mechanism for a column, by what is known of its labels."""
        return self.request.design(prior, column, self.epsilon, self.rows)


def mechanism_choices() -> list[str]:
    """Return the names that ``mechanism`` may have: "auto", and every mechanism registered."""
    return ["auto", *mechanism_names()]


def prior_budget(rows: int, epsilon: Fraction, trust: str) -> Fraction:
    """Return the part of ε for the prior, by the number of labels and ε alone.

    A curator's share ε₁ raises the labels' variance by about 2ε₁/ε, and misplaces labels in proportion to 1/(nε₁):
    best is ε₁ ∝ √(ε/n). With 20√(ε/n), 0.3 at most, two releases of the same labels have about the same noise
    (``benchmarks/privatize.py``). A local prior gains little from more than a twentieth.

    Examples
    --------
    >>> prior_budget(20_000, Fraction(1), "curator")
    Fraction(141, 1000)
    """
    most = epsilon * Fraction(3, 10)
    ideal = 20 * math.sqrt(epsilon / rows) if trust == "curator" else float(epsilon) / 20
    enough = rows * most >= 5 if trust == "curator" else rows * ideal**2 >= 200
    if most < LEAST or not enough:  # it would be all noise, and clipping by it a guess
        return Fraction(0)
    return min(max(Fraction(f"{ideal:.3g}"), LEAST), most)


def _priors(prior: Any, bounds: tuple[Bounds, ...]) -> tuple[Histogram | None, ...]:
    """Return a known prior for each column, cut to its bounds."""
    listed = [prior] if isinstance(prior, Histogram) else prior
    if not isinstance(listed, list | tuple) or len(listed) != len(bounds):
        raise ParameterError(Setting("prior"), f" must be a Histogram for each label column, here {len(bounds)}")
    parsed = map(Histogram.parse, listed)
    return tuple(one.restricted(*pair) for one, pair in zip(parsed, bounds, strict=True))


# ---- charge, estimate, design -------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Payment:
    """Charges that a ledger has accepted, all of them or none, before anything is released."""

    ledger: Ledger
    charges: Sequence[Charge]
    places: Sequence[int]

    def terms(
        self,
        plan: Plan,
        source: WordSource,
        *,
        mechanisms: Sequence[Mechanism] = (),
        priors: Sequence[Histogram | None] = (),
        statistics: Sequence[Statistic] = (),
    ) -> Terms:
        """Return the terms of what was paid for: charges as the ledger has them, and those of priors before.

        The ledger notes what labels and sums were spent on: mechanisms, of a column or of all rounds, and noise.
        """
        prints, columns = [fingerprint(mechanism.channel) for mechanism in mechanisms], len(plan.request.bounds)
        texts: list[str | None] = []
        for charge in self.charges:
            own = prints if columns == 1 else prints[charge.column or 0 :][:1]
            spent = {"labels": join_fingerprints(own), "sums": "; ".join(map(str, statistics))}
            texts.append(spent.get(charge.purpose))
        charges = self.ledger.describe_all(self.places, texts)
        origins = [one.origin for one in (*priors, *mechanisms) if one is not None and one.origin is not None]
        known = set(charges)
        paid = [origin.charge for origin in origins if origin.charge is not None]
        charges += dict.fromkeys(charge for charge in paid if charge not in known)
        return Terms(
            rows=plan.rows,
            mechanisms=tuple(mechanisms),
            priors=tuple(priors),
            charges=tuple(charges),
            bounds=plan.request.bounds,
            trust=plan.request.trust,
            secure=isinstance(source, SecureWords) and all(origin.secure for origin in origins),
            statistics=tuple(statistics),
        )


def prepare(
    plan: Plan, *, ledger: Ledger, source: WordSource, estimate_prior: Callable[[int], Histogram]
) -> Terms:
    """Charge the ledger, estimate priors, and design mechanisms; return the terms on which labels are released.

    Parameters
    ----------
    plan : Plan
    ledger : Ledger
        Is charged before any noise is drawn; if it refuses, nothing was released.
    source : source of words
        The one that labels will be randomised with.
    estimate_prior : callable
        Returns the private prior of a label column, for ``plan.for_prior``, once it is paid for.
    """
    priors, secure = plan.request.prior, isinstance(source, SecureWords)
    if not plan.for_prior:
        mechanisms = [plan.mechanism_for(prior, column) for column, prior in enumerate(priors)]  # fails unpaid
    payment = plan.pay(ledger)
    if plan.for_prior:
        paid = [charge for charge in payment.charges if charge.purpose == "prior"]
        priors = [estimate_prior(k).paid_by(charge, secure=secure) for k, charge in enumerate(paid)]
        mechanisms = [plan.mechanism_for(prior, column) for column, prior in enumerate(priors)]
    return payment.terms(plan, source, mechanisms=mechanisms, priors=priors)
