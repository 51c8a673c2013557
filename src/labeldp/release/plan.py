"""What a release will do, decided by what is public, before any label is used."""

from __future__ import annotations

import math
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np

from labeldp._validation import (
    EPSILON_RANGE,
    as_epsilon,
    as_fraction,
    as_number,
    as_positive,
    as_roomy_bounds,
    float_below,
)
from labeldp.errors import NotUnbiasedError, ParameterError
from labeldp.histogram import Histogram
from labeldp.ledger import Budget, Charge, Purpose, group_budget, name_of_charge, new_charge
from labeldp.mechanisms import Mechanism, mechanism_class, mechanism_names
from labeldp.mechanisms.clipping import noise_weight
from labeldp.mechanisms.gaussian import SMALLEST_DELTA
from labeldp.priors import check_method

__all__ = ["Plan", "Request", "design", "expected_risk", "mechanism_choices", "prior_budget"]

Bounds = tuple[float, float]


@dataclass(frozen=True, slots=True, kw_only=True)
class Request:
    """What is asked of a release, checked as far as it can be before any label is seen.

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
        check_method(self.trust, self.method)
        group_budget(Budget(0), self.rows_per_person)
        as_epsilon(self.epsilon)
        _set(self, bounds=_bounds(self.bounds))
        if self.zeta is not None:
            as_positive(self.zeta, "zeta")
            _set(self, mechanism="rp" if self.mechanism == "auto" else self.mechanism)
            if self.mechanism != "rp":
                raise ParameterError('zeta goes with mechanism="rp"')
        _set(self, delta=self._delta(), prior=_priors(self.prior, self.bounds))
        self.plan(1)

    def _delta(self) -> float:
        """Return the δ to spend in all, if it goes with the mechanism."""
        delta, columns = as_number(self.delta, "delta"), len(self.bounds)
        if isinstance(self.mechanism, Mechanism):
            made = self.mechanism
            if columns > 1 or not math.isfinite(made.epsilon) or as_fraction(made.epsilon) != self.share:
                raise ParameterError(
                    f"a mechanism that is made already serves one column and its own epsilon={made.epsilon}"
                )
            return made.delta
        needs_delta = self.mechanism != "auto" and mechanism_class(self.mechanism).needs_delta
        if (delta != 0) != needs_delta:
            raise ParameterError('delta goes with a mechanism that needs one, such as mechanism="gaussian"')
        if needs_delta and not SMALLEST_DELTA * columns <= delta < 1:
            raise ParameterError(f"delta must lie in [{SMALLEST_DELTA * columns}, 1), got {delta}")
        return delta

    @property
    def share(self) -> Fraction:
        """The part of ε for each label column."""
        return as_fraction(self.epsilon) / len(self.bounds)

    @property
    def knows_prior(self) -> bool:
        """Whether a prior was given."""
        return self.prior[0] is not None

    def plan(self, rows: int) -> Plan:
        """Return the plan for this many rows."""
        columns = len(self.bounds)
        if self.epsilon_prior is not None:
            wanted = as_number(self.epsilon_prior, "epsilon_prior")
            if not 0 <= wanted < self.epsilon:
                raise ParameterError(f"epsilon_prior must lie in [0, epsilon), got {wanted}")
            if wanted and (self.knows_prior or isinstance(self.mechanism, Mechanism)):
                raise ParameterError("epsilon_prior is for a prior that must be estimated; none is needed here")
            for_prior = as_fraction(wanted) / columns
        elif self.knows_prior or not self._needs_prior:
            for_prior = Fraction(0)
        else:
            for_prior = prior_budget(rows, self.share, self.trust)
        if for_prior:
            _check_part(for_prior, "prior", columns)
        _check_part(self.share - for_prior, "labels", columns)
        return Plan(self, rows, for_prior, self.share - for_prior)

    @property
    def _needs_prior(self) -> bool:
        name = self.mechanism
        return isinstance(name, str) and (name == "auto" or mechanism_class(name).needs_prior)

    def refuse_biased(self) -> None:
        """Refuse a mechanism that has no unbiased labels, by a trial that needs no data.

        Raises
        ------
        ParameterError
        """
        if self.mechanism == "auto":  # it chooses among those that have some
            return
        for prior, pair in zip(self.prior, self.bounds, strict=True):
            trial = self.plan(1000).design(prior or Histogram(pair, [1.0]), pair)
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
    for_prior, for_labels : Fraction
        Parts of ε, of each label column.
    """

    request: Request
    rows: int
    for_prior: Fraction
    for_labels: Fraction

    def charges(self) -> list[Charge]:
        """Return the labels' charges, one for each column, then the priors'."""
        asked, columns = self.request, len(self.request.bounds)
        parts: list[tuple[Purpose, str, Budget]] = [
            ("labels", "labels", Budget(self.for_labels, as_fraction(asked.delta) / columns))
        ]
        if self.for_prior:
            parts.append(("prior", f"prior ({asked.trust})", Budget(self.for_prior)))
        return [
            new_charge(
                name_of_charge(what, k, columns),
                budget,
                purpose=purpose,
                column=k,
                rows_per_person=asked.rows_per_person,
            )
            for purpose, what, budget in parts
            for k in range(columns)
        ]

    def design(self, prior: Histogram | None, bounds: Bounds) -> Mechanism:
        """Return the mechanism for a column."""
        asked = self.request
        if isinstance(asked.mechanism, Mechanism):
            return asked.mechanism
        share = float_below(as_fraction(asked.delta) / len(asked.bounds))
        options = {"delta": share, "zeta": asked.zeta}
        return design(
            asked.mechanism,
            prior,
            bounds=bounds,
            epsilon=float_below(self.for_labels),
            rows=self.rows,
            **{name: value for name, value in options.items() if value},
        )


def mechanism_choices() -> list[str]:
    """Return the names that ``mechanism`` may have: "auto", and every mechanism registered."""
    return ["auto", *mechanism_names()]


def expected_risk(mechanism: Mechanism, prior: Histogram, rows: int | None = None) -> float:
    """Return bias² + variance · d/n of the unbiased label, on average under the prior.

    Parameters
    ----------
    mechanism : Mechanism
    prior : Histogram
    rows : int, optional
        For a learner on n rows, with d = 20; by default for a single label.
    """
    fine = np.linspace(*prior.bounds, 1025)
    points = np.unique(np.concatenate([fine, prior.nodes])) if prior.nodes.size < 4096 else fine
    mass = np.diff(prior.cumulative(points))
    labels = (points[:-1] + points[1:]) / 2
    mean = mechanism.debias(mechanism.mean(labels))
    risk = (mean - labels) ** 2 + noise_weight(rows) * mechanism.unbiased_variance(labels)
    return float(mass @ risk)


def design(
    name: str,
    prior: Histogram | None,
    *,
    bounds: tuple[float, float],
    epsilon: float,
    rows: int | None = None,
    **options: Any,
) -> Mechanism:
    """Return the mechanism called ``name``, designed for the prior, or for the whole range without one.

    The prior is public by now, so that choosing is free. Without one, nothing is clipped.
    """
    if name != "auto":
        cls = mechanism_class(name)
        if prior is None:
            return cls.for_bounds(bounds, epsilon, **options)
        return cls.design(prior, epsilon, rows=rows, **options)
    known, rows = (Histogram(bounds, [1.0]), None) if prior is None else (prior, rows)
    candidates: list[Mechanism] = []
    for cls in map(mechanism_class, mechanism_names()):
        if cls.in_auto:
            with suppress(ParameterError):  # a linear programme may find no table; the others always exist
                fits = (
                    cls.for_bounds(bounds, epsilon)
                    if prior is None
                    else cls.design(prior, epsilon, rows=rows or 1)
                )
                candidates.append(fits)
    return min(candidates, key=lambda mechanism: expected_risk(mechanism, known, rows))


def prior_budget(rows: int, epsilon: Fraction, trust: str) -> Fraction:
    """Return the part of ε for the prior, by the number of labels and ε alone.

    A share ε₁ raises the labels' variance by about 2ε₁/ε. A curator's prior misplaces labels in proportion
    to 1/(nε₁), so the sum is least at an ε₁ ∝ √(ε/n); 5√(ε/n), and a quarter at most, is near the best of
    a sweep over distributions (``benchmarks/split.py``). A local prior gains little from more than a
    twentieth.

    Examples
    --------
    >>> prior_budget(20_000, Fraction(1), "curator")
    Fraction(177, 5000)
    """
    least, quarter = Fraction(str(EPSILON_RANGE[0])), epsilon / 4
    if quarter < least or rows * quarter < 5:  # a histogram of a handful of labels would be all noise
        return Fraction(0)
    wish = 5 * math.sqrt(epsilon / rows) if trust == "curator" else float(epsilon) / 20
    return min(max(Fraction(f"{wish:.3g}"), least), quarter)


def _set(request: Request, **fields: object) -> None:
    for name, value in fields.items():
        object.__setattr__(request, name, value)


def _bounds(bounds: Any) -> tuple[Bounds, ...]:
    """Return a pair for each label column."""
    several = isinstance(bounds, Sequence | np.ndarray) and len(bounds) > 0 and np.ndim(bounds[0]) == 1
    if not several:
        return (as_roomy_bounds(bounds),)
    return tuple(as_roomy_bounds(pair, f"bounds[{i}]") for i, pair in enumerate(bounds))


def _priors(prior: Any, bounds: tuple[Bounds, ...]) -> tuple[Histogram | None, ...]:
    """Return a known prior for each column, cut to its bounds."""
    if prior is None:
        return (None,) * len(bounds)
    listed = [prior] if isinstance(prior, Histogram) else prior
    if not isinstance(listed, list | tuple) or len(listed) != len(bounds):
        raise ParameterError(f"prior must be a Histogram for each label column, here {len(bounds)}")
    return tuple(Histogram.checked(one).restricted(*pair) for one, pair in zip(listed, bounds, strict=True))


def _check_part(part: Fraction, what: str, columns: int) -> None:
    try:
        as_epsilon(float(part))
    except ParameterError as error:
        of = f" of each of {columns} columns" if columns > 1 else ""
        raise ParameterError(f"the part of epsilon for the {what}{of} is {float(part):.3g}: {error}") from None
