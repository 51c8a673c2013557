"""Before labels are released, whoever holds them: `Request`, `Plan`, and `prepare`, which gives the `Terms`.

A plan is decided by what is public, before any label is used. To prepare is to charge the ledger, estimate the
prior, and design the mechanism.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from fractions import Fraction
from functools import partial
from inspect import signature
from typing import Any

import numpy as np

from labeldp._values import (
    EPSILON_RANGE,
    Bounds,
    Count,
    Delta,
    Epsilon,
    LabelBounds,
    as_fraction,
    float_below,
    parse_method,
    parse_number,
    parse_positive,
)
from labeldp.channels.proof import fingerprint, join_fingerprints
from labeldp.errors import NotUnbiasedError, ParameterError
from labeldp.histogram import Histogram
from labeldp.ledger import Budget, Charge, Ledger, Purpose, Statistic, name_of_charge, new_charge
from labeldp.mechanisms import Mechanism, mechanism_class, mechanism_names
from labeldp.mechanisms.gaussian import SMALLEST_DELTA
from labeldp.mechanisms.interval import expected_risk
from labeldp.mechanisms.registry import auto_classes
from labeldp.priors.origin import origins_of, paid_by
from labeldp.randomness import SecureWords, WordSource
from labeldp.release.terms import Terms


@dataclass(frozen=True, slots=True, kw_only=True)
class Request:
    """The parameters of a release, checked as far as they can be before any label is seen.

    Parameters are those of `privatize`. ``bounds`` is a pair, or one pair for each label column, and so is
    ``prior``; both are kept as tuples, priors cut to their bounds.
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

    def __post_init__(self) -> None:
        store = partial(object.__setattr__, self)  # the instance is frozen
        store("method", parse_method(self.trust, self.method))
        store("rows_per_person", Count(self.rows_per_person, "rows_per_person"))
        store("epsilon", Epsilon(self.epsilon))
        store("bounds", _bounds(self.bounds))
        if self.zeta is not None:
            parse_positive(self.zeta, "zeta")
            store("mechanism", "rp" if self.mechanism == "auto" else self.mechanism)
            made = isinstance(self.mechanism, Mechanism)
            if made or "zeta" not in signature(mechanism_class(self.mechanism)).parameters:
                raise ParameterError('zeta goes with a mechanism that has one, such as mechanism="rp"')
        store("delta", self._delta())
        known = None if self.prior is None else _priors(self.prior, self.bounds)
        store("prior", known or (None,) * len(self.bounds))
        designed = [self.mechanism] if isinstance(self.mechanism, Mechanism) else []
        for origin in origins_of([*self.prior, *designed]):
            if origin.charge and origin.charge.rows_per_person != self.rows_per_person:
                people = origin.charge.rows_per_person
                raise ParameterError(f"the prior was paid for with rows_per_person={people}: pass that")
        self.plan(1)

    def _delta(self) -> float:
        """Return the δ to spend in all, if it goes with the mechanism."""
        delta, columns = Delta(self.delta), len(self.bounds)
        if isinstance(self.mechanism, Mechanism):
            epsilon = self.mechanism.epsilon
            if columns > 1 or not math.isfinite(epsilon) or as_fraction(epsilon) != self.share:
                raise ParameterError(
                    f"a mechanism instance serves one label column and its own epsilon={epsilon}: pass that "
                    "epsilon, or the mechanism's name"
                )
            return self.mechanism.delta
        needs_delta = self.mechanism != "auto" and mechanism_class(self.mechanism).needs_delta
        if bool(delta) != needs_delta:
            raise ParameterError('delta goes with a mechanism that needs one, such as mechanism="gaussian"')
        if needs_delta and not SMALLEST_DELTA * columns <= delta < 1:
            raise ParameterError(f"delta must lie in [{SMALLEST_DELTA * columns}, 1), got {delta}")
        return delta

    @property
    def share(self) -> Fraction:
        """The part of ε for each label column."""
        return as_fraction(self.epsilon) / len(self.bounds)

    def plan(self, rows: int) -> Plan:
        """Return the plan for this many rows: how ε is split, and all else that no label decides."""
        columns, has_prior = len(self.bounds), self.prior[0] is not None
        if self.epsilon_prior is not None:
            amount = parse_number(self.epsilon_prior, "epsilon_prior")
            if not 0 <= amount < self.epsilon:
                raise ParameterError(f"epsilon_prior must lie in [0, epsilon), got {amount}")
            if amount and (has_prior or isinstance(self.mechanism, Mechanism)):
                raise ParameterError("epsilon_prior is for a prior that must be estimated; none is needed here")
            for_prior = as_fraction(amount) / columns
        else:
            name, for_prior = self.mechanism, Fraction(0)
            needed = isinstance(name, str) and (name == "auto" or mechanism_class(name).needs_prior)
            if needed and not has_prior:
                for_prior = prior_budget(rows, self.share, self.trust)
        low, high = map(as_fraction, EPSILON_RANGE)
        for part, what in ((for_prior, "prior"), (self.share - for_prior, "labels")):
            if not (low <= part <= high or (what == "prior" and not part)):
                of = f" of each of {columns} columns" if columns > 1 else ""
                raise ParameterError(
                    f"the part of epsilon for the {what}{of} is {float(part):.3g}: it must lie between "
                    f"{EPSILON_RANGE[0]:g} and {EPSILON_RANGE[1]:g}"
                )
        return Plan(self, rows, self.share - for_prior, for_prior=for_prior)

    def design(self, prior: Histogram | None, column: int, epsilon: Epsilon, rows: int) -> Mechanism:
        """Return the mechanism for a column: the instance that was given, or one designed by its class."""
        if isinstance(self.mechanism, Mechanism):
            return self.mechanism
        options = {"delta": float_below(as_fraction(self.delta) / len(self.bounds)), "zeta": self.zeta}
        given: dict[str, Any] = {name: value for name, value in options.items() if value}
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
                    "choose another mechanism, or take its labels as they are if you know how to use them"
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
        parts: list[tuple[Purpose, str, Budget]] = [
            ("labels", "labels", Budget.of(self.for_labels, as_fraction(request.delta) / columns)),
            ("prior", f"prior ({request.trust})", Budget.of(self.for_prior)),
            ("sums", "sums", Budget.of(self.for_sums)),
        ]
        return [
            new_charge(
                name_of_charge(what, k, columns),
                budget,
                purpose=purpose,
                column=k,
                rows_per_person=request.rows_per_person,
            )
            for purpose, what, budget in parts
            if budget.exact_epsilon
            for k in range(columns)
        ]

    def mechanism_for(self, prior: Histogram | None, column: int = 0) -> Mechanism:
        """Return the mechanism for a column, by what is known of its labels."""
        return self.request.design(prior, column, self.epsilon, Count(self.rows, "rows"))


def mechanism_choices() -> list[str]:
    """Return the names that ``mechanism`` may have: "auto", and every mechanism registered."""
    return ["auto", *mechanism_names()]


def choose_mechanism(
    name: str,
    prior: Histogram | None,
    *,
    bounds: Bounds,
    epsilon: float,
    rows: int | None = 1,
    clips: bool = True,
    **options: Any,
) -> Mechanism:
    """Return the mechanism called ``name``, by `Mechanism.design`; for "auto" the one of least expected risk.

    Unless it ``clips``, it is for labels anywhere in the bounds, which somebody else has chosen.
    """

    def design(cls: type[Mechanism]) -> Mechanism:
        if prior is None:
            return cls.for_bounds(bounds, epsilon, **options)
        if not clips:
            return cls.for_bounds(bounds, epsilon, prior=prior, **options)
        return cls.design(prior, epsilon, rows=rows, **options)

    if name != "auto":
        return design(mechanism_class(name))
    candidates: list[Mechanism] = []
    for cls in auto_classes():
        with suppress(ParameterError):  # a linear programme may find no table; the others always exist
            candidates.append(design(cls))
    known = (Histogram(bounds, [1.0]), None) if prior is None else (prior, rows if clips else None)
    return min(candidates, key=lambda mechanism: expected_risk(mechanism, *known))


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
    least, most = Fraction(str(EPSILON_RANGE[0])), epsilon * Fraction(3, 10)
    ideal = 20 * math.sqrt(epsilon / rows) if trust == "curator" else float(epsilon) / 20
    enough = rows * most >= 5 if trust == "curator" else rows * ideal**2 >= 200
    if most < least or not enough:  # it would be all noise, and clipping by it a guess
        return Fraction(0)
    return min(max(Fraction(f"{ideal:.3g}"), least), most)


def _bounds(bounds: Any) -> tuple[Bounds, ...]:
    """Return a pair for each label column."""
    if not (isinstance(bounds, Sequence | np.ndarray) and len(bounds) > 0 and np.ndim(bounds[0]) == 1):
        return (LabelBounds(bounds),)
    return tuple(LabelBounds(pair, f"bounds[{i}]") for i, pair in enumerate(bounds))


def _priors(prior: Any, bounds: tuple[Bounds, ...]) -> tuple[Histogram | None, ...]:
    """Return a known prior for each column, cut to its bounds."""
    listed = [prior] if isinstance(prior, Histogram) else prior
    if not isinstance(listed, list | tuple) or len(listed) != len(bounds):
        raise ParameterError(f"prior must be a Histogram for each label column, here {len(bounds)}")
    parsed = map(Histogram.parse, listed)
    return tuple(one.restricted(*pair) for one, pair in zip(parsed, bounds, strict=True))


# ---- charge, estimate, design -------------------------------------------------------------------------


class Payment:
    """Charges that a ledger has accepted, all of them or none, before anything is released."""

    def __init__(self, ledger: Ledger, charges: Sequence[Charge]) -> None:
        self._ledger, self._charges = ledger, charges
        self._places = ledger.charge_all(charges)

    def describe(self, texts: Sequence[str | None]) -> None:
        """Note in the ledger what each charge was spent on, once that is decided."""
        for place, text in zip(self._places, texts, strict=True):
            if text is not None:
                self._ledger.describe(place, text)

    def for_prior(self, prior: Histogram | None, column: int, *, secure: bool) -> Histogram | None:
        """Return the prior of a column that says what paid for it."""
        (charge,) = [one for one in self._charges if (one.purpose, one.column) == ("prior", column)]
        return None if prior is None else paid_by(prior, charge, secure=secure)

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
        for charge in self._charges:
            own = prints if columns == 1 else prints[charge.column or 0 :][:1]
            spent = {"labels": join_fingerprints(own), "sums": "; ".join(map(str, statistics))}
            texts.append(spent.get(charge.purpose))
        self.describe(texts)
        recorded = self._ledger.charges
        charges, origins = [recorded[place] for place in self._places], origins_of([*priors, *mechanisms])
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
        Returns the private prior of a label column, for ``plan.for_prior``, once it is paid for.
    """
    request = plan.request

    def design(priors: tuple[Histogram | None, ...]) -> list[Mechanism]:
        return [plan.mechanism_for(prior, column) for column, prior in enumerate(priors)]

    mechanisms = [] if plan.for_prior else design(request.prior)  # what fails here costs nothing
    payment, priors = Payment(ledger, plan.charges()), request.prior
    if plan.for_prior:
        secure = isinstance(source, SecureWords)
        columns = range(len(request.bounds))
        priors = tuple(payment.for_prior(estimate_prior(column), column, secure=secure) for column in columns)
        mechanisms = design(priors)
    return payment.terms(plan, source, mechanisms=mechanisms, priors=priors)
