"""Before labels are released, whoever holds them: `Request`, `Plan`, and `prepare`, which gives the `Terms`.

A plan is decided by what is public, before any label is used. To prepare is to charge the ledger, estimate the
prior, and design the mechanism.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from fractions import Fraction
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
from labeldp.accounts.budget import Budget, Charge, Purpose, name_of_charge, new_charge
from labeldp.accounts.ledger import Ledger
from labeldp.accounts.statistic import origins_of
from labeldp.accounts.terms import Terms
from labeldp.errors import NotUnbiasedError, ParameterError, Setting
from labeldp.exact.integers import Statistic
from labeldp.exact.proof import fingerprint, join_fingerprints
from labeldp.exact.word_sources import SecureWords, WordSource
from labeldp.mechanisms.base import Mechanism
from labeldp.mechanisms.gaussian import SMALLEST_DELTA
from labeldp.mechanisms.histogram import Histogram
from labeldp.mechanisms.interval import choose_mechanism
from labeldp.mechanisms.registry import mechanism_class, mechanism_names

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
        """Parse each parameter by itself, then refuse what does not go together."""
        bounds, epsilon = parse_label_bounds(self.bounds), Epsilon(self.epsilon)
        parsed = {
            "bounds": bounds,
            "epsilon": epsilon,
            "method": parse_method(self.trust, self.method),
            "rows_per_person": int(Count(self.rows_per_person, "rows_per_person")),
            "zeta": None if self.zeta is None else parse_positive(self.zeta, "zeta"),
            "delta": Delta(self.delta),
            "share": epsilon.exact / len(bounds),
            "prior": (None,) * len(bounds) if self.prior is None else _parse_priors(self.prior, bounds),
            "prior_share": None,
        }
        if self.epsilon_prior is not None:
            parsed["prior_share"] = _parse_prior_share(self.epsilon_prior, epsilon) / len(bounds)
        for name, value in parsed.items():
            object.__setattr__(self, name, value)  # the instance is frozen
        self._refuse_contradictions()
        if self.zeta is not None:
            object.__setattr__(self, "mechanism", self._windowed())
        object.__setattr__(self, "delta", self._delta())

    def _refuse_contradictions(self) -> None:
        """Refuse priors that were paid for another number of rows, and parts of ε that no mechanism supports."""
        for one in (*self.prior, self.mechanism):
            origin = getattr(one, "origin", None)  # a name has none
            if origin is not None and origin.charge is not None:
                people = origin.charge.rows_per_person
                if people != self.rows_per_person:
                    paid = Setting("rows_per_person", people)
                    raise ParameterError("the prior was paid for with ", paid, ": pass that")
        for_prior = self.prior_share or Fraction(0)
        if for_prior and (self.prior[0] is not None or isinstance(self.mechanism, Mechanism)):
            raise ParameterError(
                Setting("epsilon_prior"), " is for a prior that must be estimated; none is needed here"
            )
        parts = {"labels": self.share - for_prior} | ({"prior": for_prior} if for_prior else {})
        for what, part in parts.items():
            if not LEAST <= part <= MOST:
                columns = f" of each of {len(self.bounds)} columns" if len(self.bounds) > 1 else ""
                raise ParameterError(
                    "the part of ",
                    Setting("epsilon"),
                    f" for the {what}{columns} is {float(part):.3g}: it must lie between {EPSILON_RANGE[0]:g} and "
                    f"{EPSILON_RANGE[1]:g}",
                )

    def _windowed(self) -> str:
        """Return the name of the mechanism that zeta is for."""
        name = "rp" if self.mechanism == "auto" else self.mechanism
        if isinstance(name, Mechanism) or "zeta" not in signature(mechanism_class(name)).parameters:
            raise ParameterError(
                Setting("zeta"), " goes with a mechanism that has one, such as ", Setting("mechanism", "rp")
            )
        return name

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

    @property
    def charge_note(self) -> str:
        """What a charge says of its labels, behind their name; nothing."""
        return ""

    def plan(self, rows: int) -> Plan:
        """Return the plan for this many rows: how ε is split, and all else that no label decides."""
        for_prior = prior_budget(rows, self.share, self.trust) if self._needs_prior() else self.prior_share
        for_prior = for_prior or Fraction(0)
        return Plan(self, rows, self.share - for_prior, for_prior=for_prior)

    def _needs_prior(self) -> bool:
        """Return whether a part of ε is for a prior though none was asked for."""
        if self.prior_share is not None or self.prior[0] is not None or isinstance(self.mechanism, Mechanism):
            return False
        return self.mechanism == "auto" or mechanism_class(self.mechanism).needs_prior

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
        """Refuse a mechanism for one column that has no unbiased labels, by a trial that needs no data."""
        if self.mechanism == "auto":  # it chooses among those that have some
            return
        trial = self.plan(1000).mechanism_for(self.prior[0] or Histogram(self.bounds[0], [1.0]))
        try:
            trial.debias(trial.mean([self.bounds[0][0]]))
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
        columns, people = len(self.request.bounds), self.request.rows_per_person
        note = self.request.charge_note
        delta = as_fraction(self.request.delta) / columns if self.request.delta else Fraction(0)
        parts: list[tuple[Purpose, str, Fraction, Fraction]] = [
            ("labels", f"labels{note}", self.for_labels, delta),
            ("prior", f"prior ({self.request.trust})", self.for_prior, Fraction(0)),
            ("sums", f"sums{note}", self.for_sums, Fraction(0)),
        ]
        charges = []
        for purpose, name, epsilon, part in parts:
            for k in range(columns if epsilon else 0):
                what, budget = name_of_charge(name, k, columns), Budget.of(epsilon, part)
                charges.append(new_charge(what, budget, purpose=purpose, column=k, rows_per_person=people))
        return charges

    def pay(self, ledger: Ledger) -> list[Charge]:
        """Charge a ledger for all parts, or for none; return the charges."""
        charges = self.charges()
        ledger.charge_all(charges)
        return charges

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


def _parse_priors(prior: Any, bounds: tuple[Bounds, ...]) -> tuple[Histogram, ...]:
    """Return a known prior for each column, cut to its bounds."""
    listed = [prior] if isinstance(prior, Histogram) else prior
    if not isinstance(listed, list | tuple) or len(listed) != len(bounds):
        raise ParameterError(Setting("prior"), f" must be a Histogram for each label column, here {len(bounds)}")
    return tuple(Histogram.parse(one).restricted(*pair) for one, pair in zip(listed, bounds, strict=True))


def _parse_prior_share(amount: Any, epsilon: Epsilon) -> Fraction:
    """Return the part of ε for priors of all columns."""
    number = parse_number(amount, "epsilon_prior")
    if not 0 <= number < epsilon:
        raise ParameterError(Setting("epsilon_prior"), f" must lie in [0, epsilon), got {number}")
    return as_fraction(number)


# ---- charge, estimate, design -------------------------------------------------------------------------


def state_terms(
    plan: Plan,
    paid: Sequence[Charge],
    source: WordSource,
    *,
    mechanisms: Sequence[Mechanism] = (),
    priors: Sequence[Histogram | None] = (),
    statistics: Sequence[Statistic] = (),
) -> Terms:
    """Return the terms of what was paid for: with the charges, and those of priors before.

    Charges note what labels and sums were spent on: mechanisms, of a column or of all rounds, and noise.
    """
    origins = origins_of([*priors, *mechanisms])
    prints = [fingerprint(mechanism.channel) for mechanism in mechanisms]
    is_only = len(plan.request.bounds) == 1
    charges = []
    for charge in paid:
        note = "; ".join(map(str, statistics)) if charge.purpose == "sums" else None
        if charge.purpose == "labels":
            note = join_fingerprints(prints) if is_only else prints[charge.column or 0]
        charges.append(replace(charge, mechanism=note))
    charges += [origin.charge for origin in origins if origin.charge is not None]
    return Terms(
        rows=plan.rows,
        mechanisms=tuple(mechanisms),
        priors=tuple(priors),
        charges=tuple(dict.fromkeys(charges)),
        bounds=plan.request.bounds,
        trust=plan.request.trust,
        secure=isinstance(source, SecureWords) and all(origin.secure for origin in origins),
        statistics=tuple(statistics),
        declaration=charges[0].declaration,
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
    paid = plan.pay(ledger)
    if plan.for_prior:
        charges = [charge for charge in paid if charge.purpose == "prior"]
        priors = [estimate_prior(k).paid_by(charge, secure=secure) for k, charge in enumerate(charges)]
        mechanisms = [plan.mechanism_for(prior, column) for column, prior in enumerate(priors)]
    return state_terms(plan, paid, source, mechanisms=mechanisms, priors=priors)
