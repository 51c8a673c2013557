"""`privatize`: from labels to private labels in one call, with the budget accounted for.

Order: validate, charge, randomise. The budget is split between prior and labels by what is public (the
number of rows, ε); the prior is estimated; the mechanism is designed for it; every label is randomised
once.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray

from labeldp._validation import as_labels
from labeldp.errors import LabelError, ParameterError
from labeldp.histogram import Histogram
from labeldp.ledger import Budget, Charge, Ledger, total_of
from labeldp.ledger.repetition import warn_if_seen
from labeldp.mechanisms.base import Mechanism, fingerprint
from labeldp.priors import Method, check_method
from labeldp.randomness import SecureWords, WordSource, resolve_source
from labeldp.release.plan import Plan, bounds_per_column
from labeldp.release.terms import Terms

__all__ = ["Release", "privatize", "warn_if_seen"]


@dataclass(frozen=True, slots=True)
class Release:
    """Private labels, and how they came about. Everything in here may be made public.

    Attributes
    ----------
    labels : array
        The released values, in the shape of the labels.
    mechanisms, priors : tuples
        One for each label column; a prior is None where none was needed.
    ledger : Ledger or None
        Where the budget went; None in a copy that was pickled.
    charges : tuple of Charge
        What this release cost.
    bounds : tuple of (lo, hi)
    trust : str
    secure : bool
        False if the noise came from a seed: then this is an experiment, and **not private**.
    """

    labels: NDArray[np.float64]
    mechanisms: tuple[Mechanism, ...] = field(repr=False)
    priors: tuple[Histogram | None, ...] = field(repr=False)
    ledger: Ledger | None = field(repr=False)
    charges: tuple[Charge, ...] = field(repr=False)
    bounds: tuple[tuple[float, float], ...]
    trust: str
    secure: bool

    @property
    def terms(self) -> Terms:
        """All but the labels."""
        return Terms(
            rows=len(self.labels),
            mechanisms=self.mechanisms,
            priors=self.priors,
            charges=self.charges,
            bounds=self.bounds,
            trust=self.trust,
            secure=self.secure,
        )

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
        """Unbiased labels: on average each is its true label, clipped where `summary` says.

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
        return total_of(self.charges)

    def summary(self) -> str:
        """Return what was done, for people."""
        return self.terms.summary()

    def to_card(self) -> str:
        """Return the card of the release: JSON with a checksum, and no label in it.

        `read_release_card` checks it, and proves its mechanisms again.
        """
        return self.terms.to_card()

    def __reduce__(self) -> tuple[Any, ...]:
        kept = {f.name: getattr(self, f.name) for f in dataclasses.fields(self)}
        if type(self.ledger) is Ledger:  # a ledger in memory stays where it is
            kept["ledger"] = None
        return _rebuild, (kept,)


def _rebuild(fields: dict[str, Any]) -> Release:
    return Release(**fields)


def privatize(
    labels: ArrayLike,
    *,
    epsilon: float,
    bounds: Any = None,
    mechanism: str | Mechanism = "auto",
    prior: Histogram | Sequence[Histogram] | None = None,
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
        ``"unbiased"``; or a mechanism of your own, made for this ε.
    prior : Histogram, or one for each column, optional
        What is publicly known about the labels; costs nothing. This is the paper's Algorithm 2.
    trust : {"curator", "local"}
        Who sees labels before noise: a curator, or nobody, so that each is randomised on its own.
    method : str, optional
        How the prior is made; see `estimate_prior`. ``trust="local", method="laplace"`` with
        ``epsilon_prior`` and ``zeta`` is the paper's Algorithm 4.
    epsilon_prior : float, optional
        The part of ε for the prior; by default it follows from the number of labels and ε. 0 for none:
        then nothing but the bounds clips labels.
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
    if ledger is not None and not isinstance(ledger, Ledger):
        raise ParameterError("ledger must be a Ledger; for a file use Ledger.open(path, limit=...)")
    columns = array.reshape(len(array), -1).T
    check_method(trust, method)
    source = resolve_source(random_state)
    plan = Plan.make(
        rows=len(array),
        bounds=bounds_per_column(bounds, len(columns), array.ndim),
        epsilon=epsilon,
        epsilon_prior=epsilon_prior,
        mechanism=mechanism,
        prior=prior,
        zeta=zeta,
        delta=delta,
        trust=trust,
        method=method,
    )
    ready = plan.ready()
    charges = plan.charges(rows_per_person)
    if ledger is None:
        warn_if_seen(labels)
        ledger = Ledger()
    places = ledger.charge_all(charges)

    out = np.full(array.shape, np.nan)
    mechanisms, priors = [], []
    for k, (column, target) in enumerate(zip(columns, out.reshape(len(array), -1).T, strict=True)):
        known = plan.prior(k, column, source)
        chosen = ready[k] if ready else plan.design(known, plan.bounds[k])
        with np.errstate(all="ignore"):
            chosen.channel.sample(column, source, target)
        ledger.describe(places[k], fingerprint(chosen.channel))
        mechanisms.append(chosen)
        priors.append(known)
    recorded = ledger.charges
    return Release(
        labels=out,
        mechanisms=tuple(mechanisms),
        priors=tuple(priors),
        ledger=ledger,
        charges=tuple(recorded[place] for place in places),
        bounds=plan.bounds,
        trust=trust,
        secure=isinstance(source, SecureWords),
    )
