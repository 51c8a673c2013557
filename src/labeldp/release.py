"""`privatize`: from labels to private labels in one call, with the budget accounted for.

Order: validate, charge, randomise. The budget is split between prior and labels by what is public (the
number of rows, ε); the prior is estimated; the mechanism is designed for it; every label is randomised
once.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from typing import Any, Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray

from labeldp import cards
from labeldp._checks import (
    as_bounds,
    as_epsilon,
    as_fraction,
    as_labels,
    as_number,
    as_positive,
    float_below,
)
from labeldp.choice import NEEDS_PRIOR, design
from labeldp.errors import LabelError, ParameterError
from labeldp.histogram import Histogram
from labeldp.ledger import Budget, Charge, Ledger, new_charge
from labeldp.mechanisms.base import Mechanism, fingerprint
from labeldp.mechanisms.gaussian import SMALLEST_DELTA
from labeldp.priors import Method, check_method, histogram_from
from labeldp.randomness import WordSource, resolve_source
from labeldp.split import prior_budget

__all__ = ["Release", "privatize"]

SCHEMA = "labeldp.release"


@dataclass(frozen=True, slots=True)
class Release:
    """Private labels, and how they came about. Everything in here may be made public.

    Attributes
    ----------
    labels : array
        The released values, in the shape of the labels.
    mechanisms, priors : tuples
        One for each label column; a prior is None where none was needed.
    ledger : Ledger
        Where the budget went.
    charges : tuple of Charge
        What this release cost.
    bounds : tuple of (lo, hi)
    trust : str
    """

    labels: NDArray[np.float64]
    mechanisms: tuple[Mechanism, ...]
    priors: tuple[Histogram | None, ...]
    ledger: Ledger = field(repr=False)
    charges: tuple[Charge, ...]
    bounds: tuple[tuple[float, float], ...]
    trust: str

    @property
    def mechanism(self) -> Any:
        """The mechanism; a tuple of them if there are several label columns."""
        return self.mechanisms[0] if len(self.mechanisms) == 1 else self.mechanisms

    @property
    def prior(self) -> Any:
        """The prior; a tuple of them if there are several label columns."""
        return self.priors[0] if len(self.priors) == 1 else self.priors

    @property
    def debiased(self) -> NDArray[np.float64]:
        """Unbiased labels: on average each is its true label, clipped where `mechanism` clips.

        Raises
        ------
        NotUnbiasedError
            If the mechanism has none (RR-on-Bins).
        """
        columns = self.labels.reshape(len(self.labels), -1).T
        unbiased = [m.debias(z) for m, z in zip(self.mechanisms, columns, strict=True)]
        return np.column_stack(unbiased).reshape(self.labels.shape)

    @property
    def cost(self) -> Budget:
        """What this release cost in all."""
        total = Budget(0)
        for charge in self.charges:
            total = total + charge.budget
        return total

    def summary(self) -> str:
        """Return what was done, for people."""
        lines = [
            f"{len(self.labels):,} labels released with {self.cost}, trust={self.trust!r}.",
            *(f"  {c.budget.epsilon:.6g} for {c.what}" for c in self.charges),
        ]
        for number, mechanism in enumerate(self.mechanisms):
            proof = mechanism.verify()
            name = "" if len(self.mechanisms) == 1 else f"column {number}: "
            lines.append(
                f"  {name}{_short(mechanism)}; proven epsilon={proof.epsilon:.9g}"
                + (f", delta={proof.delta:.3g}" if proof.delta else "")
            )
        per_person = max(c.rows_per_person for c in self.charges)
        if per_person > 1:
            lines.append(f"  The cost covers persons with up to {per_person} rows (group privacy).")
        lines.append("Releasing the same labels again would cost again: keep this release and reuse it.")
        return "\n".join(lines)

    def to_card(self) -> str:
        """Return the card of the release: JSON with a checksum, and no label in it."""
        content = {
            "rows": len(self.labels),
            "trust": self.trust,
            "bounds": [list(pair) for pair in self.bounds],
            "mechanisms": [cards.parse(m.to_json()) for m in self.mechanisms],
            "priors": [
                None if p is None else {"nodes": p.nodes.tolist(), "masses": p.masses.tolist()}
                for p in self.priors
            ],
            "charges": [
                {
                    "what": c.what,
                    "epsilon": c.budget.epsilon,
                    "delta": c.budget.delta,
                    "when": c.when,
                    "mechanism": c.mechanism,
                    "rows_per_person": c.rows_per_person,
                }
                for c in self.charges
            ],
        }
        return cards.dump(content, SCHEMA)


def _short(mechanism: Mechanism) -> str:
    """Return a mechanism's name and its short parameters."""
    shown = {k: v for k, v in mechanism.parameters().items() if not isinstance(v, list) or len(v) < 4}
    text = ", ".join(f"{k}={_rounded(v)}" for k, v in shown.items())
    return f"{type(mechanism).__name__}({text})"


def _rounded(value: object) -> str:
    if isinstance(value, float):
        return f"{value:.6g}"
    if isinstance(value, list):
        return "(" + ", ".join(_rounded(item) for item in value) + ")"
    return repr(value)


def privatize(
    labels: ArrayLike,
    *,
    epsilon: float,
    bounds: Any,
    mechanism: str = "auto",
    prior: Histogram | None = None,
    trust: Literal["curator", "local"] = "curator",
    method: Method | None = None,
    epsilon_prior: float | None = None,
    zeta: float | None = None,
    delta: float = 0.0,
    ledger: Ledger | None = None,
    rows_per_person: int = 1,
    random_state: int | WordSource | None = None,
) -> Release:
    """Release private labels for ε in all: prior, design and noise included.

    A label should be released **once**. Calling this again on the same labels spends ε again, which the
    ledger shows; to try other learners, reuse the release.

    Parameters
    ----------
    labels : array-like, n or n × d
        Private labels. Those outside the bounds are clipped. With d columns, ε is split evenly.
    epsilon : float
        The total budget for a row.
    bounds : (lo, hi), or d of them
        Public bounds. Never read them off the data.
    mechanism : str
        ``"auto"`` takes the one whose unbiased label serves a learner best under the private prior;
        or ``"rp"``, ``"laplace"``, ``"gaussian"``, ``"staircase"``, ``"two-point"``, ``"rr-on-bins"``,
        ``"unbiased"``.
    prior : Histogram, optional
        What is publicly known about the labels; costs nothing. This is the paper's Algorithm 2.
    trust : {"curator", "local"}
        Who sees labels before noise: a curator, or nobody, so that each is randomised on its own.
    method : str, optional
        How the prior is made; see `estimate_prior`. ``trust="local", method="laplace"`` with
        ``epsilon_prior`` and ``zeta`` is the paper's Algorithm 4.
    epsilon_prior : float, optional
        The part of ε for the prior; by default it follows from the number of labels and ε. 0 for none.
    zeta : float, optional
        Half-width of RPWithPrior's window, with the paper's interval (Algorithm 1).
    delta : float
        For ``mechanism="gaussian"`` only.
    ledger : Ledger, optional
        Is asked after validation and before any label is used, and keeps the charges.
    rows_per_person : int
        How many rows one person may have; the ledger is charged for all of them.
    random_state : None, int or source of words
        Leave it out for a release.

    Returns
    -------
    Release

    Examples
    --------
    >>> import numpy as np
    >>> release = privatize(np.linspace(1, 4, 5000), epsilon=1.0, bounds=(0, 5))
    >>> release.debiased.shape, release.cost
    ((5000,), Budget(epsilon=1.0))
    """
    array = as_labels(labels)
    if array.ndim not in (1, 2) or array.shape[-1] == 0:
        raise LabelError(f"labels must be of shape (n,) or (n, d), got {array.shape}")
    columns = array.reshape(len(array), -1).T
    limits = _bounds_per_column(bounds, len(columns), array.ndim)
    check_method(trust, method)
    source = resolve_source(random_state)
    ledger = Ledger() if ledger is None else ledger
    plan = _Plan.make(
        rows=len(array),
        columns=len(columns),
        epsilon=epsilon,
        epsilon_prior=epsilon_prior,
        mechanism="rp" if zeta is not None and mechanism == "auto" else mechanism,
        prior=prior,
        zeta=zeta,
        delta=delta,
        trust=trust,
        method=method,
    )
    ready = plan.designs_without_labels(limits)  # what fails here costs nothing
    places = ledger.charge_all(plan.charges(rows_per_person))

    out = np.empty(array.shape, dtype=np.float64)
    mechanisms, priors = [], []
    targets = out.reshape(len(array), -1).T
    for number, (column, pair, target) in enumerate(zip(columns, limits, targets, strict=True)):
        known = plan.prior_for(column, pair, source)
        chosen = ready[number] if ready else plan.design(known, pair)
        with np.errstate(all="ignore"):
            chosen.channel.sample(column, source, target)
        ledger.describe(places[number], fingerprint(chosen.channel))
        mechanisms.append(chosen)
        priors.append(known)
    charges = ledger.charges
    spent = tuple(charges[place] for place in places)
    return Release(out, tuple(mechanisms), tuple(priors), ledger, spent, limits, trust)


def _bounds_per_column(bounds: Any, columns: int, ndim: int) -> tuple[tuple[float, float], ...]:
    if ndim == 1 or (columns == 1 and np.ndim(bounds) == 1):
        return (as_bounds(bounds),)
    try:
        pairs = list(bounds)
    except TypeError:
        pairs = []
    if len(pairs) != columns or any(np.ndim(pair) != 1 for pair in pairs):
        raise ParameterError(f"labels with {columns} columns need {columns} pairs of bounds")
    return tuple(as_bounds(pair, f"bounds[{i}]") for i, pair in enumerate(pairs))


@dataclass(frozen=True, slots=True, kw_only=True)
class _Plan:
    """What will be done for each column, decided by what is public."""

    rows: int
    columns: int
    for_prior: Fraction
    for_labels: Fraction
    mechanism: str
    prior: Histogram | None
    zeta: float | None
    delta: Fraction
    trust: str
    method: str | None

    @classmethod
    def make(
        cls,
        *,
        rows: int,
        columns: int,
        epsilon: float,
        epsilon_prior: float | None,
        mechanism: str,
        prior: Histogram | None,
        zeta: float | None,
        delta: float,
        **rest: Any,
    ) -> _Plan:
        total = as_fraction(as_epsilon(epsilon)) / columns
        if mechanism not in NEEDS_PRIOR:
            raise ParameterError(f"mechanism must be one of {', '.join(NEEDS_PRIOR)}, got {mechanism!r}")
        if (delta != 0) != (mechanism == "gaussian"):
            raise ParameterError('delta goes with mechanism="gaussian", which needs one')
        if mechanism == "gaussian" and not SMALLEST_DELTA * columns <= delta < 1:
            raise ParameterError(f"delta must lie in [{SMALLEST_DELTA * columns}, 1), got {delta}")
        if zeta is not None:
            as_positive(zeta, "zeta")
            if mechanism != "rp":
                raise ParameterError('zeta goes with mechanism="rp"')
        if prior is not None:
            Histogram.checked(prior)
        if prior is not None and epsilon_prior:
            raise ParameterError("give a known prior, or a budget to estimate one, not both")
        if epsilon_prior is not None:
            part = as_fraction(as_number(epsilon_prior, "epsilon_prior")) / columns
            if not 0 <= part < total:
                raise ParameterError("epsilon_prior must lie in [0, epsilon)")
        elif prior is not None or not NEEDS_PRIOR[mechanism]:
            part = Fraction(0)
        else:
            part = prior_budget(rows, total, rest["trust"])
        if part:
            as_epsilon(float(part))
        as_epsilon(float(total - part))
        return cls(
            rows=rows,
            columns=columns,
            for_prior=part,
            for_labels=total - part,
            mechanism=mechanism,
            prior=prior,
            zeta=zeta,
            delta=as_fraction(delta) / columns,
            **rest,
        )

    def charges(self, rows_per_person: int) -> Sequence[Charge]:
        """Return the labels' charges, one for each column, then the priors'."""

        def charge(what: str, column: int, budget: Budget) -> Charge:
            name = what if self.columns == 1 else f"{what}, column {column}"
            return new_charge(name, budget, rows_per_person=rows_per_person)

        columns = range(self.columns)
        labels = Budget(self.for_labels, self.delta)
        made = [charge("labels", column, labels) for column in columns]
        if self.for_prior:
            cost = Budget(self.for_prior)
            made += [charge(f"prior ({self.trust})", column, cost) for column in columns]
        return made

    def prior_for(
        self, labels: NDArray[Any], bounds: tuple[float, float], source: WordSource
    ) -> Histogram | None:
        """Return the known prior, or one paid for, or none."""
        if self.prior is not None or not self.for_prior:
            return self.prior
        method = self.method or ("adaptive" if self.trust == "curator" else None)
        return histogram_from(labels, self.for_prior, bounds, source, trust=self.trust, method=method)

    def designs_without_labels(self, bounds: Sequence[tuple[float, float]]) -> list[Mechanism]:
        """Return the mechanisms, where they depend on no private prior."""
        if self.for_prior:
            return []
        return [self.design(self.prior, pair) for pair in bounds]

    def design(self, prior: Histogram | None, bounds: tuple[float, float]) -> Mechanism:
        """Return the mechanism for a column."""
        return design(
            self.mechanism,
            prior,
            bounds=bounds,
            epsilon=self.for_labels,
            delta=float_below(self.delta),
            zeta=self.zeta,
            rows=self.rows,
        )
