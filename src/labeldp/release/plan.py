"""What `privatize` will do, decided by what is public, before any label is used."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np
from numpy.typing import NDArray

from labeldp._validation import as_epsilon, as_fraction, as_number, as_positive, as_roomy_bounds, float_below
from labeldp.errors import ParameterError
from labeldp.histogram import Histogram
from labeldp.ledger import Budget, Charge, Purpose, name_of_charge, new_charge
from labeldp.mechanisms.base import Mechanism
from labeldp.mechanisms.gaussian import SMALLEST_DELTA
from labeldp.priors import histogram_from
from labeldp.randomness import WordSource
from labeldp.release.choice import NEEDS_PRIOR, design
from labeldp.release.split import prior_budget

__all__ = ["Plan"]

Bounds = tuple[float, float]


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan:
    """The budget's parts, and how each column's mechanism is found."""

    rows: int
    bounds: tuple[Bounds, ...]
    for_prior: Fraction
    for_labels: Fraction
    delta: Fraction
    mechanism: str | Mechanism
    priors: tuple[Histogram | None, ...]
    zeta: float | None
    trust: str
    method: str | None

    @classmethod
    def make(
        cls,
        *,
        rows: int,
        bounds: tuple[Bounds, ...],
        epsilon: float,
        epsilon_prior: float | None,
        mechanism: str | Mechanism,
        prior: Any,
        zeta: float | None,
        delta: float,
        trust: str,
        method: str | None,
    ) -> Plan:
        """Check all that needs no label, and split the budget."""
        columns = len(bounds)
        total = as_fraction(as_epsilon(epsilon)) / columns
        if zeta is not None and mechanism == "auto":
            mechanism = "rp"
        mechanism, share = _mechanism(mechanism, zeta, delta, total, columns)
        priors = _known_priors(prior, bounds)
        needed = isinstance(mechanism, str) and NEEDS_PRIOR[mechanism]
        if epsilon_prior is not None:
            wanted = as_number(epsilon_prior, "epsilon_prior")
            if not 0 <= wanted < epsilon:
                raise ParameterError(f"epsilon_prior must lie in [0, epsilon), got {wanted}")
            if wanted and (prior is not None or isinstance(mechanism, Mechanism)):
                raise ParameterError("epsilon_prior is for a prior that must be estimated; none is needed here")
            part = as_fraction(wanted) / columns
        elif prior is not None or not needed:
            part = Fraction(0)
        else:
            part = prior_budget(rows, total, trust)
        if part:
            _check_part(part, "prior", columns)
        _check_part(total - part, "labels", columns)
        return cls(
            rows=rows,
            bounds=bounds,
            for_prior=part,
            for_labels=total - part,
            delta=share,
            mechanism=mechanism,
            priors=priors,
            zeta=zeta,
            trust=trust,
            method=method,
        )

    def charges(self, rows_per_person: int) -> list[Charge]:
        """Return the labels' charges, one for each column, then the priors'."""
        parts: list[tuple[Purpose, str, Budget]] = [("labels", "labels", Budget(self.for_labels, self.delta))]
        if self.for_prior:
            parts.append(("prior", f"prior ({self.trust})", Budget(self.for_prior)))
        columns = len(self.bounds)
        return [
            new_charge(
                name_of_charge(what, k, columns),
                budget,
                purpose=purpose,
                column=k,
                rows_per_person=rows_per_person,
            )
            for purpose, what, budget in parts
            for k in range(columns)
        ]

    def ready(self) -> list[Mechanism]:
        """Return the mechanisms where they depend on no private prior: what fails here costs nothing."""
        if self.for_prior:
            return []
        return [self.design(prior, pair) for prior, pair in zip(self.priors, self.bounds, strict=True)]

    def prior(self, column: int, labels: NDArray[Any], source: WordSource) -> Histogram | None:
        """Return the known prior, or one paid for, or none."""
        if not self.for_prior:
            return self.priors[column]
        method = self.method or ("adaptive" if self.trust == "curator" else None)
        return histogram_from(labels, self.for_prior, self.bounds[column], source, trust=self.trust, method=method)

    def design(self, prior: Histogram | None, bounds: Bounds) -> Mechanism:
        """Return the mechanism for a column."""
        if isinstance(self.mechanism, Mechanism):
            return self.mechanism
        return design(
            self.mechanism,
            prior,
            bounds=bounds,
            epsilon=self.for_labels,
            delta=float_below(self.delta),
            zeta=self.zeta,
            rows=self.rows,
        )


def bounds_per_column(bounds: Any, columns: int, ndim: int) -> tuple[Bounds, ...]:
    """Return a pair of bounds for each label column."""
    if ndim == 1 or (columns == 1 and np.ndim(bounds) == 1):
        return (as_roomy_bounds(bounds),)
    pairs = list(bounds) if isinstance(bounds, Sequence | np.ndarray) else []
    if len(pairs) != columns or any(np.ndim(pair) != 1 for pair in pairs):
        raise ParameterError(f"labels with {columns} columns need {columns} pairs of bounds")
    return tuple(as_roomy_bounds(pair, f"bounds[{i}]") for i, pair in enumerate(pairs))


def _mechanism(
    mechanism: str | Mechanism, zeta: float | None, delta: float, total: Fraction, columns: int
) -> tuple[str | Mechanism, Fraction]:
    """Return the mechanism, and each column's δ, if they go together."""
    if zeta is not None:
        as_positive(zeta, "zeta")
        if mechanism != "rp":
            raise ParameterError('zeta goes with mechanism="rp"')
    wanted = as_number(delta, "delta")
    if isinstance(mechanism, Mechanism):
        if columns > 1 or not math.isfinite(mechanism.epsilon) or as_fraction(mechanism.epsilon) != total:
            raise ParameterError(
                f"a mechanism that is made already serves one column and its own epsilon={mechanism.epsilon}"
            )
        return mechanism, as_fraction(getattr(mechanism, "delta", 0.0))
    if not isinstance(mechanism, str) or mechanism not in NEEDS_PRIOR:
        raise ParameterError(
            f"mechanism must be one of {', '.join(NEEDS_PRIOR)}, or a mechanism made already, got {mechanism!r}"
        )
    if (wanted != 0) != (mechanism == "gaussian"):
        raise ParameterError('delta goes with mechanism="gaussian", which needs one')
    if mechanism == "gaussian" and not SMALLEST_DELTA * columns <= wanted < 1:
        raise ParameterError(f"delta must lie in [{SMALLEST_DELTA * columns}, 1), got {wanted}")
    return mechanism, as_fraction(wanted) / columns


def _known_priors(prior: Any, bounds: tuple[Bounds, ...]) -> tuple[Histogram | None, ...]:
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
