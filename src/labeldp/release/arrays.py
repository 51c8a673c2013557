"""`privatize` and `estimate_prior`: private labels, or a private histogram of them, in one call.

First validate, then charge, then randomise. The budget is split between prior and labels by public numbers (the
number of rows, ε); the prior is estimated; the mechanism is designed for it; every label is randomised
once.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
from numpy.typing import ArrayLike

from labeldp._values import Array, Labels, Numbers, parse_positive
from labeldp.accounts.budget import declared
from labeldp.accounts.ledger import Ledger, as_ledger, ledger_to_charge
from labeldp.accounts.terms import Terms, TermsMixin
from labeldp.errors import LabelError
from labeldp.exact.word_sources import WordSource, resolve_source
from labeldp.mechanisms.base import Mechanism
from labeldp.mechanisms.histogram import Histogram
from labeldp.release.curator import equal_bins_histogram
from labeldp.release.names import name_of_labels
from labeldp.release.plan import Request, prepare


@dataclass(frozen=True, slots=True, repr=False)
class Release(TermsMixin):
    """Private labels, and how they came about. Everything in here may be made public.

    Attributes
    ----------
    labels : array
        The released values, in the shape of the labels.
    terms : Terms
        On which terms: mechanisms, priors, charges, bounds.
    ledger : Ledger or None
        Where the budget went; None in a copy that was pickled.

    Examples
    --------
    >>> import numpy as np, labeldp as ldp
    >>> release = ldp.privatize(np.linspace(1, 4, 5000), epsilon=1.0, bounds=(0, 5))
    >>> private = release.debiased                  # train on these
    >>> [(charge.purpose, charge.budget.epsilon < 1) for charge in release.charges]
    [('labels', True), ('prior', True)]
    >>> release.cost, release.mechanism.verify().epsilon < 1
    (Budget(epsilon=1.0), True)
    >>> card = release.to_card()                    # hand it on with the labels
    """

    labels: Array
    terms: Terms
    ledger: Ledger | None

    @property
    def mechanism(self) -> Any:
        """The mechanism of each label."""
        return self.terms.mechanisms[0]

    @property
    def prior(self) -> Histogram | None:
        """About where labels lie, if that was known or estimated."""
        return self.terms.priors[0]

    @property
    def debiased(self) -> Array:
        """Unbiased labels, to train on; on average each is its true label, clipped where `summary` says.

        Raises
        ------
        NotUnbiasedError
            If the mechanism has none (RR-on-Bins).
        """
        return np.asarray(self.mechanism.debias(self.labels))

    def __reduce__(self) -> tuple[Any, ...]:
        on_file = self.ledger is not None and self.ledger.path  # one in memory stays here
        return Release, (self.labels, self.terms, self.ledger if on_file else None)


def privatize(
    labels: ArrayLike,
    *,
    epsilon: float,
    bounds: Any = None,
    mechanism: str | Mechanism = "auto",
    prior: Histogram | None = None,
    trust: Literal["curator", "local"] = "curator",
    method: Literal["laplace"] | None = None,
    epsilon_prior: float | None = None,
    zeta: float | None = None,
    ledger: Ledger | None = None,
    rows_per_person: int = 1,
    purpose: str | None = None,
    recipient: str | None = None,
    bounds_reason: str | None = None,
    random_state: int | WordSource | None = None,
) -> Release:
    """Release private labels for ε in all: prior, design and noise included.

    A label should be released **once**. Calling this again on the same labels spends ε again, which the
    ledger shows; to try other learners, reuse the release.

    Parameters
    ----------
    labels : array-like, n or n × 1
        Private labels. Those outside the bounds are clipped.
    epsilon : float
        The total budget for a row.
    bounds : (lo, hi)
        Public bounds. Never read them off the data.
    mechanism : str
        ``"auto"`` takes the one whose unbiased label serves a learner best under the private prior;
        or ``"rp"``, ``"laplace"``, ``"staircase"``, ``"two-point"``, ``"rr-on-bins"``,
        ``"unbiased"``; or a mechanism instance with this ε.
    prior : Histogram, optional
        A public distribution of the labels; costs nothing. This is the paper's Algorithm 2.
    trust : {"curator", "local"}
        Who sees labels before noise: a curator, or nobody, so that each is randomised on its own.
    method : {None, "laplace"}
        ``trust="local", method="laplace"`` with ``epsilon_prior`` and ``zeta`` is the paper's Algorithm 4.
    epsilon_prior : float, optional
        The part of ε for the prior; by default it follows from the number of labels and ε. 0 for none:
        then nothing but the bounds clips labels.
    zeta : float, optional
        Half-width of RPWithPrior's window, with the paper's interval (Algorithm 1).
    ledger : Ledger, optional
        Is charged after validation and before any label is used.
    rows_per_person : int
        The most rows of one person; the ledger is charged for all of them.
    purpose, recipient, bounds_reason : str, optional
        The aim, the recipient, and the source of the bounds; on the card and in the ledger.
    random_state : None, int or source of words
        Leave it out for a release.

    Returns
    -------
    Release
        Its ``debiased`` labels are those to train on; ``summary()`` describes the release in words.

    Raises
    ------
    ParameterError, LabelError
        Before anything is charged.
    BudgetError
        If the ledger refuses; then nothing was released.

    Warns
    -----
    RepeatedReleaseWarning
        If the same labels were released before without a ledger.
    InsecureRandomnessWarning
        If ``random_state`` is a seed.

    Examples
    --------
    >>> import numpy as np, labeldp as ldp
    >>> release = ldp.privatize(np.linspace(1, 4, 5000), epsilon=1.0, bounds=(0, 5))
    >>> release.debiased.shape, release.cost
    ((5000,), Budget(epsilon=1.0))
    """
    if type(labels) is not np.ndarray:
        name_of_labels(labels)
    array = _one_column(labels)
    request = Request(
        epsilon=epsilon,
        bounds=bounds,
        mechanism=mechanism,
        prior=prior,
        trust=trust,
        method=method,
        epsilon_prior=epsilon_prior,
        zeta=zeta,
        rows_per_person=rows_per_person,
    )
    plan = request.plan(len(array))
    source = resolve_source(random_state)
    ledger = ledger_to_charge(as_ledger(ledger), labels)
    with declared(purpose=purpose, recipient=recipient, bounds_reason=bounds_reason):
        terms = prepare(
            plan,
            ledger=ledger,
            source=source,
            estimate_prior=lambda: request.estimate_prior(array.reshape(-1), plan.for_prior, source),
        )
    out = np.full(array.shape, np.nan)
    terms.mechanisms[0].randomize_checked(array.reshape(-1), source, out.reshape(-1))
    return Release(out, terms, ledger)


def estimate_prior(
    labels: ArrayLike,
    *,
    epsilon: float,
    bounds: Any = None,
    trust: Literal["curator", "local"] = "curator",
    method: Literal["laplace"] | None = None,
    sigma: float | None = None,
    ledger: Ledger | None = None,
    rows_per_person: int = 1,
    random_state: int | WordSource | None = None,
) -> Histogram:
    """Return a private histogram of the labels, for ε.

    Parameters
    ----------
    labels : array-like
        Private labels.
    epsilon : float
        The cost of the histogram.
    bounds : (lo, hi)
        Public bounds; labels outside are clipped.
    trust : {"curator", "local"}
        A curator counts labels in equally wide bins, whose number follows from the number of labels and ε, with
        two-sided geometric noise. Without a curator every label is randomised on its own first (the square wave,
        with smoothed expectation maximisation): that needs far more labels.
    method : {None, "laplace"}
        ``trust="local", method="laplace"`` is the paper's Algorithm 3 to the letter.
    sigma : float, optional
        Bin width of Algorithm 3; by default the standard deviation of the randomised labels.
    ledger : Ledger, optional
        Is charged before any label is counted.
    rows_per_person : int
        The most rows of one person; the ledger is charged for all of them.
    random_state : None, int or source of words
        Leave it out for a release.

    Examples
    --------
    >>> import numpy as np, labeldp as ldp
    >>> prior = ldp.estimate_prior(np.full(10_000, 3.0), epsilon=0.5, bounds=(0, 5))
    >>> 2.9 < prior.mean < 3.1
    True
    """
    array = _one_column(labels)
    request = Request(epsilon=epsilon, bounds=bounds, trust=trust, method=method, rows_per_person=rows_per_person)
    sigma = None if sigma is None else parse_positive(sigma, "sigma")
    source = resolve_source(random_state)
    ledger = ledger_to_charge(as_ledger(ledger), labels)
    flat, exact = array.reshape(-1), request.epsilon.exact

    def estimate() -> Histogram:
        if request.trust == "curator":  # easier to look at than the prior of a release, which serves a design
            return equal_bins_histogram(flat, exact, request.bounds, source)
        return request.estimate_prior(flat, exact, source, sigma)

    return request.pay_for_prior(estimate, ledger, source)


def _one_column(labels: ArrayLike) -> Numbers:
    array = Labels.parse(labels).values
    if array.ndim != 1 and array.shape[1:] != (1,):
        raise LabelError(f"labels must be one column, of shape (n,), got {array.shape}: release each by itself")
    return array
