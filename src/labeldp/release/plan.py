"""Before labels are released, from memory, a file or a cluster: `Request`, `Plan`, and `prepare`.

A plan follows from public numbers, before any label is used. `prepare` charges the ledger, estimates the prior and
designs the mechanism, and returns the `Terms`.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from copy import copy
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import partial
from inspect import signature
from typing import Any, Self

import numpy as np

from labeldp._values import (
    EPSILON_RANGE,
    Array,
    Data,
    Epsilon,
    Interval,
    LabelBounds,
    as_fraction,
    float_below,
    parse_choice,
    parse_number,
    parse_positive,
)
from labeldp.accounts.budget import Budget, Charge, Purpose, new_charge
from labeldp.accounts.ledger import Ledger
from labeldp.accounts.scope import Scope
from labeldp.accounts.statistic import origins_of
from labeldp.accounts.terms import Terms
from labeldp.errors import NotUnbiasedError, ParameterError, Setting, warn
from labeldp.exact.integers import Statistic
from labeldp.mechanisms.base import Mechanism, fingerprint, join_fingerprints, require_pure
from labeldp.mechanisms.histogram import Histogram
from labeldp.mechanisms.interval import choose_mechanism
from labeldp.mechanisms.registry import mechanism_class, mechanism_names
from labeldp.release.curator import adaptive_histogram
from labeldp.release.label_access import LabelAccess
from labeldp.release.local import algorithm_3, square_wave_histogram

PriorEstimate = Callable[[LabelAccess, Fraction, Interval], Histogram]

PURPOSES = ("training", "statistics", "values")
"""What released labels are for: to train models on, for means and totals, or values as a mechanism drew them."""

OUTSIDE = ("project", "uniform")
"""The answers of RPWithPrior to labels outside its interval."""

MECHANISM_OPTIONS = ("prior", "method", "epsilon_prior", "sigma", "zeta", "outside")
"""Options of a release by one mechanism that may clip labels to less than their bounds."""

MIN_EPSILON = as_fraction(EPSILON_RANGE[0])
"""The smallest ε of a mechanism, exactly."""

PARSERS: dict[str, Callable[..., Any]] = {
    "bounds": LabelBounds,
    "purpose": partial(parse_choice, choices=PURPOSES),
    "epsilon": Epsilon,
    "trust": partial(parse_choice, choices=("curator", "local")),
    "sigma": parse_positive,
    "zeta": parse_positive,
    "outside": partial(parse_choice, choices=OUTSIDE),
}
"""The parsers of parameters, in the order in which their faults are told."""

REQUIRED = {"bounds", "purpose", "epsilon", "trust"}
"""Parameters that are never None."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Request:
    """The parameters of a release, checked as far as they can be before any label is seen.

    Parameters are those of `privatize`; a prior is cut to the bounds.
    """

    epsilon: Any
    bounds: Any
    mechanism: str | Mechanism = "auto"
    prior: Any = None
    trust: str = "curator"
    method: str | None = None
    epsilon_prior: Any = None
    sigma: float | None = None
    zeta: float | None = None
    outside: str | None = None
    scope: Scope = Scope()
    purpose: str = "training"

    def __post_init__(self) -> None:
        """Parse each parameter by itself, then refuse parameters that contradict each other."""
        for name, parse in PARSERS.items():
            value = getattr(self, name)
            if value is not None or name in REQUIRED:
                self._set(name, parse(value, name))
        if self.prior is not None:
            self._set("prior", _within(Histogram.parse(self.prior), self.bounds))
        if self.method not in (None, "laplace") or (self.method and self.trust == "curator"):
            raise ParameterError(Setting("method"), ' is "laplace", or None; with ', Setting("trust", "local"))
        if self.sigma is not None and self.method != "laplace":
            raise ParameterError(Setting("sigma"), " is the bin width of ", Setting("method", "laplace"))
        self._refuse_other_people()
        if self.purpose == "statistics":
            self._refuse_narrow_interval()
        if self.epsilon_prior is not None:
            self._set("epsilon_prior", self._prior_share())
        for name in self._window:
            self._set("mechanism", self._windowed(name))
        self._refuse_mechanism()

    def _set(self, name: str, value: Any) -> None:
        """Set a field of this frozen instance."""
        object.__setattr__(self, name, value)

    def _refuse_other_people(self) -> None:
        """Refuse a prior that was charged for another number of rows of a person."""
        for designed in (self.prior, self.mechanism):
            charge = getattr(getattr(designed, "origin", None), "charge", None)  # a name has none
            if charge is not None and charge.rows_per_person != self.scope.rows_per_person:
                people = Setting("rows_per_person", charge.rows_per_person)
                raise ParameterError("the prior was paid for with ", people, ": pass that")

    def _refuse_narrow_interval(self) -> None:
        """Refuse parameters that would clip labels to less than their bounds, and spend nothing on a prior."""
        for name in MECHANISM_OPTIONS:
            if getattr(self, name):
                raise ParameterError(
                    Setting("purpose", "statistics"),
                    " is for labels clipped to their bounds alone: leave out ",
                    Setting(name),
                )
        if isinstance(self.mechanism, Mechanism) and self.mechanism.domain != self.bounds:
            raise ParameterError(
                "the mechanism is for labels from {:g} to {:g}, and ".format(*self.mechanism.domain),
                Setting("purpose", "statistics"),
                " needs one for all of the bounds",
                option="mechanism",
            )
        self._set("epsilon_prior", 0 if self._needs_prior() else None)

    def _prior_share(self) -> Fraction:
        """Return the part of ε for the prior, exactly; it must leave enough for the labels."""
        number = parse_number(self.epsilon_prior, "epsilon_prior")
        share = as_fraction(number) if 0 <= number < self.epsilon else self.epsilon.exact
        if share and (self.prior is not None or isinstance(self.mechanism, Mechanism)):
            raise ParameterError(
                Setting("epsilon_prior"), " is for a prior that must be estimated; none is needed here"
            )
        if self.epsilon.exact - share < MIN_EPSILON or 0 < share < MIN_EPSILON:
            raise ParameterError(
                Setting("epsilon_prior"),
                f" must be 0, or at least {EPSILON_RANGE[0]:g} and leave as much of ",
                Setting("epsilon"),
                f", got {number}",
            )
        return share

    @property
    def _window(self) -> Data:
        """The options of RPWithPrior that were given."""
        options = {"zeta": self.zeta, "outside": self.outside}
        return {name: value for name, value in options.items() if value is not None}

    def _windowed(self, option: str) -> str:
        """Return the name of the mechanism that an option such as zeta is for."""
        name = "rp" if self.mechanism == "auto" else self.mechanism
        if isinstance(name, Mechanism) or option not in signature(mechanism_class(name)).parameters:
            raise ParameterError(
                Setting(option), " goes with a mechanism that has one, such as ", Setting("mechanism", "rp")
            )
        return name

    def _refuse_mechanism(self) -> None:
        """Refuse a mechanism of another ε than that of the release, and one without pure ε."""
        if isinstance(self.mechanism, Mechanism) and self.mechanism.epsilon != self.epsilon:
            raise ParameterError(
                "a mechanism instance has its own ",
                Setting("epsilon", self.mechanism.epsilon),
                ": pass that, or the mechanism's name",
                option="mechanism",
            )
        if isinstance(self.mechanism, Mechanism):
            require_pure(self.mechanism)
        elif self.mechanism != "auto":
            require_pure(mechanism_class(self.mechanism))

    def admit(self, ledger: Ledger, rows: int) -> Self:
        """Return the request for the rows that a ledger admits; see `Ledger.admit`."""
        return self.with_scope(ledger.admit(self.scope, rows, self.epsilon.exact))

    def with_scope(self, scope: Scope) -> Self:
        """Return the request for other rows."""
        request = copy(self)
        request._set("scope", scope)
        request._refuse_other_people()
        return request

    @property
    def may_use_features(self) -> bool:
        """True if labels may come from a model of features: no option is for a mechanism alone."""
        has_default = self.mechanism == "auto" and self.prior is None and self.epsilon_prior is None
        return has_default and self.purpose == "training" and self.trust == "curator"

    @property
    def charge_note(self) -> str:
        """The text of a charge behind the name of its labels: none."""
        return ""

    def plan(self, rows: int) -> Plan:
        """Return the plan for this many rows: how ε is split, and all else that no label decides."""
        share, epsilon = self.epsilon_prior, self.epsilon.exact
        if share is None:
            share = prior_budget(rows, epsilon, self.trust) if self._needs_prior() else Fraction(0)
        return Plan(self, rows, epsilon - share, for_prior=share)

    def _needs_prior(self) -> bool:
        """Return whether a part of ε is for a prior though none was asked for."""
        if self.prior is not None or isinstance(self.mechanism, Mechanism):
            return False
        return self.mechanism == "auto" or mechanism_class(self.mechanism).needs_prior

    def estimate_prior(self, access: LabelAccess, epsilon: Fraction) -> Histogram:
        """Return the private histogram of labels, for an ε that is paid for."""
        if self.trust == "curator":
            return adaptive_histogram(access, epsilon, self.bounds)
        if self.method == "laplace":
            return algorithm_3(access, epsilon, self.bounds, self.sigma)
        return square_wave_histogram(access, epsilon, self.bounds)

    def pay_for_prior(
        self, ledger: Ledger, access: LabelAccess, estimate: PriorEstimate = adaptive_histogram
    ) -> Histogram:
        """Charge a ledger all of ε for a prior alone, then estimate it; a curator's, as ``estimate`` does."""
        description, exact = f"prior ({self.trust}), estimated alone", self.epsilon.exact
        charge = new_charge(description, Budget(self.epsilon), purpose="prior", scope=self.scope)
        access.charge(ledger, [charge], self.scope, epsilon=exact)
        is_curated = self.trust == "curator"
        prior = estimate(access, exact, self.bounds) if is_curated else self.estimate_prior(access, exact)
        return prior.paid_by(charge, secure=access.is_secure)

    def design(self, prior: Histogram | None, epsilon: Epsilon, rows: int) -> Mechanism:
        """Return the mechanism: the instance that was given, or one designed by its class."""
        if isinstance(self.mechanism, Mechanism):
            return self.mechanism
        basics: Data = {"bounds": self.bounds, "epsilon": epsilon, "rows": rows}
        return choose_mechanism(self.mechanism, prior, **basics, **self._window)

    def refuse_biased(self) -> None:
        """Refuse a mechanism without unbiased labels where purpose or design needs some; a trial reads no data."""
        if self.mechanism == "auto":
            return
        try:
            trial = self._trial()
            if self.purpose != "values":
                trial.debias(trial.mean([self.bounds[0]]))
        except NotUnbiasedError:
            mechanism = self.mechanism
            cls = type(mechanism) if isinstance(mechanism, Mechanism) else mechanism_class(mechanism)
            remedy: tuple[object, ...] = (
                "a model trained on biased ones is wrong: choose another mechanism, or take its values as they "
                "are drawn, with ",
                Setting("purpose", "values"),
            )
            if self.purpose == "values":
                remedy = "its design for a prior needs some: pass no prior, and ", Setting("epsilon_prior", 0)
            raise ParameterError(
                f"{cls.__name__} has no unbiased labels, and ", *remedy, option="mechanism"
            ) from None

    def _trial(self) -> Mechanism:
        """Return the mechanism for a flat prior, if a prior is to be estimated."""
        estimates = self._needs_prior() if self.epsilon_prior is None else bool(self.epsilon_prior)
        flat = Histogram(self.bounds, [1.0]) if estimates else None
        return self.plan(1000).mechanism_for(self.prior or flat)

    def labels_of(self, mechanism: Mechanism, values: Array) -> Array:
        """Return the labels for the purpose, from values as the mechanism drew them."""
        return values if self.purpose == "values" else np.asarray(mechanism.debias(values))

    def counts_labels(self) -> bool:
        """Return whether a curator makes the prior, for some number of rows: else nobody may count."""
        return self.trust == "curator" and bool(self.plan(1 << 40).for_prior)


def _within(prior: Histogram, bounds: LabelBounds) -> Histogram:
    """Return a prior that is cut to the bounds, with a warning if it reaches beyond them."""
    restricted = prior.restricted(*bounds)
    if restricted is not prior:
        warn(
            "The prior lies on ({:g}, {:g}), and the bounds are ({:g}, {:g}): its part outside counts as labels "
            "at the bounds".format(*prior.bounds, *bounds)
        )
    return restricted


@dataclass(frozen=True, slots=True)
class Plan:
    """A request for a number of rows: the budget's parts, and how the mechanism is made.

    Attributes
    ----------
    request : Request
    rows : int
    for_labels, for_prior, for_sums : Fraction
        Parts of ε; a fit has noisy sums in place of a prior.
    """

    request: Request
    rows: int
    for_labels: Fraction
    for_prior: Fraction = Fraction(0)
    for_sums: Fraction = Fraction(0)

    @property
    def epsilon(self) -> Epsilon:
        """The ε of a label's mechanism."""
        return Epsilon(float_below(self.for_labels))

    def charges(self) -> list[Charge]:
        """Return the charges: for labels and for their prior, or one for all sums and labels of a fit."""
        request, note = self.request, self.request.charge_note
        shares: list[tuple[Purpose, str, Fraction]] = [
            ("labels", f"labels{note}", self.for_labels),
            ("prior", f"prior ({request.trust})", self.for_prior),
            ("sums", f"sums{note}", self.for_sums),
        ]
        if self.for_labels and self.for_sums:  # the sums decide what part of it labels get
            shares = [("sums", f"sums and labels{note}", self.for_labels + self.for_sums)]
        return [
            new_charge(description, Budget(epsilon), purpose=purpose, scope=request.scope)
            for purpose, description, epsilon in shares
            if epsilon
        ]

    def pay(self, ledger: Ledger, access: LabelAccess) -> list[Charge]:
        """Charge a ledger for all parts, or for none, and allow measurements for them; return the charges."""
        charges = self.charges()
        access.charge(
            ledger,
            charges,
            self.request.scope,
            epsilon=self.for_prior + self.for_sums,
            for_labels=self.for_labels,
        )
        return charges

    @property
    def labels_share(self) -> float:
        """The share of ε for labels; 0 if they have a mechanism by name, which was tried for that ε alone."""
        if self.request.mechanism != "auto":
            return 0.0
        return float(self.for_labels / (self.for_labels + self.for_sums))

    def give_to_labels(self, epsilon: Fraction) -> Plan:
        """Return the plan with an unspent part of the ε for sums given to labels; it costs the same."""
        return replace(self, for_labels=self.for_labels + epsilon, for_sums=self.for_sums - epsilon)

    def mechanism_for(self, prior: Histogram | None) -> Mechanism:
        """Return the mechanism, designed for a prior of the labels."""
        return self.request.design(prior, self.epsilon, self.rows)


def mechanism_choices() -> list[str]:
    """Return the names that ``mechanism`` may have: "auto", and every mechanism registered that has no δ."""
    return ["auto", *(name for name in mechanism_names() if not mechanism_class(name).needs_delta)]


PRIOR_SCALE = 10.0
"""A curator's prior gets this many times √(ε/n)."""

PRIOR_ROWS_EPSILON = 350.0
"""A curator's prior gets at least so many rows · ε, from which it shows the tails of labels."""

PRIOR_SHARE = Fraction(1, 4)
"""A prior gets this share of ε at most."""

LOCAL_PRIOR_SHARE = Fraction(1, 20)
"""Without a curator a prior gets this share of ε: it gains little from more."""


def prior_budget(rows: int, epsilon: Fraction, trust: str) -> Fraction:
    """Return the part of ε for the prior, by the number of labels and ε alone.

    A curator's share ε₁ raises the variance of labels by about 2ε₁/ε, and misplaces the interval in proportion to
    1/(nε₁): best is ε₁ ∝ √(ε/n). With too little noise is taken for tails.

    Examples
    --------
    >>> prior_budget(20_000, Fraction(1), "curator")
    Fraction(707, 10000)
    """
    largest = epsilon * PRIOR_SHARE
    if trust == "curator":
        ideal = max(PRIOR_SCALE * math.sqrt(epsilon / rows), PRIOR_ROWS_EPSILON / rows)
        is_enough = rows * largest >= 5
    else:
        ideal = float(epsilon * LOCAL_PRIOR_SHARE)
        is_enough = rows * ideal**2 >= 200
    if largest < MIN_EPSILON or not is_enough:  # it would be all noise, and clipping by it a guess
        return Fraction(0)
    return min(max(Fraction(f"{ideal:.3g}"), MIN_EPSILON), largest)


# ---- charge, estimate, design -------------------------------------------------------------------------


def state_terms(
    plan: Plan,
    charges: Sequence[Charge],
    access: LabelAccess,
    *,
    mechanisms: Sequence[Mechanism] = (),
    priors: Sequence[Histogram | None] = (),
    statistics: Sequence[Statistic] = (),
) -> Terms:
    """Return the terms of a release that was paid for, with the charges of earlier priors.

    Charges of labels note the mechanisms of all rounds, and charges of sums their noise.
    """
    origins = origins_of([*priors, *mechanisms])
    labels = join_fingerprints([fingerprint(mechanism.channel) for mechanism in mechanisms])
    sums = [str(statistic) for statistic in statistics]
    notes = {"labels": labels, "sums": "; ".join([*sums, labels] if sums and mechanisms else sums)}
    annotated = [replace(charge, mechanism=notes.get(charge.purpose)) for charge in charges]
    earlier = [origin.charge for origin in origins if origin.charge is not None]
    return Terms(
        rows=plan.rows,
        mechanisms=tuple(mechanisms),
        priors=tuple(priors),
        charges=tuple(dict.fromkeys([*annotated, *earlier])),
        bounds=(plan.request.bounds,),
        trust=plan.request.trust,
        secure=access.is_secure and all(origin.secure for origin in origins),
        statistics=tuple(statistics),
        declaration=annotated[0].declaration,
        people=plan.request.scope.summary,
    )


def prepare(plan: Plan, ledger: Ledger, access: LabelAccess) -> Terms:
    """Charge the ledger, estimate the prior, and design the mechanism; return the terms of the release.

    Parameters
    ----------
    plan : Plan
    ledger : Ledger
        Is charged before any noise is drawn; if it refuses, nothing was released.
    access : LabelAccess
    """
    prior = plan.request.prior
    if not plan.for_prior:
        mechanism = plan.mechanism_for(prior)  # fails unpaid
    charges = plan.pay(ledger, access)
    if plan.for_prior:
        prior = plan.request.estimate_prior(access, plan.for_prior).paid_by(charges[1], secure=access.is_secure)
        mechanism = plan.mechanism_for(prior)
    return state_terms(plan, charges, access, mechanisms=[mechanism], priors=[prior])
