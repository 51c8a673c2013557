"""Labels in memory, randomised once by one mechanism; and `estimate_prior`, a private histogram of them.

First validate, then charge, then randomise. The budget is split between prior and labels by public numbers (the
number of rows, ε); the prior is estimated; the mechanism is designed for it; every label is randomised
once.
"""

from __future__ import annotations

from typing import Any, Literal, Unpack

import numpy as np
from numpy.typing import ArrayLike

from labeldp._values import Array, Labels, Numbers
from labeldp.accounts.ledger import Ledger, as_ledger, ledger_to_charge
from labeldp.accounts.scope import RowOptions, Scope
from labeldp.accounts.terms import Terms
from labeldp.errors import LabelError
from labeldp.exact.word_sources import RandomState, WordSource, resolve_source
from labeldp.mechanisms.histogram import Histogram
from labeldp.release.curator import equal_bins_histogram
from labeldp.release.label_access import LabelAccess
from labeldp.release.names import name_of_labels
from labeldp.release.plan import Request, prepare


def randomize_labels(request: Request, labels: Numbers, ledger: Ledger, source: WordSource) -> tuple[Array, Terms]:
    """Charge a ledger, and return each label as one mechanism draws it, once, with the terms of the release.

    Examples
    --------
    >>> import numpy as np, labeldp as ldp
    >>> request = Request(epsilon=1.0, bounds=(0, 5), mechanism="laplace")
    >>> values, terms = randomize_labels(request, np.array([2.5, 4.0]), ldp.Ledger(), resolve_source(None))
    >>> values.shape, terms.cost
    ((2,), Budget(epsilon=1.0))
    """
    access = LabelAccess(labels.reshape(-1), source, "prior")
    terms = prepare(request.plan(len(labels)), ledger, access)
    values: Array = access.randomize(terms.mechanisms[0]).values
    return values.reshape(labels.shape), terms


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
    random_state: RandomState = None,
    **rows: Unpack[RowOptions],
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
        ``trust="local", method="laplace"`` is the paper's Algorithm 3, with its masses
        divided by bin widths: the paper's Algorithm 1 needs a density.
    sigma : float, optional
        Bin width of Algorithm 3; by default the standard deviation of the randomised labels.
    ledger : Ledger, optional
        Is charged before any label is counted.
    rows_per_person : int
        The most rows of one person; the ledger is charged for all of them.
    random_state : None, int or source of words
        Leave it out for a release.
    **rows
        ``segment``, ``id``, ``person`` and ``most_rows_per_person``, as in `privatize`.

    Examples
    --------
    >>> import numpy as np, labeldp as ldp
    >>> prior = ldp.estimate_prior(np.full(10_000, 3.0), epsilon=0.5, bounds=(0, 5))
    >>> 2.9 < prior.mean < 3.1
    True
    """
    array = one_column(labels)
    scope = Scope.parse(rows_per_person, labels=labels, **rows)
    request = Request(epsilon=epsilon, bounds=bounds, trust=trust, method=method, sigma=sigma, scope=scope)
    source = resolve_source(random_state)
    ledger = ledger_to_charge(as_ledger(ledger), labels)
    request = request.admit(ledger, len(array))
    access = LabelAccess(request.scope.select(array.reshape(-1)), source, "prior")
    if request.trust == "curator":  # easier to look at than the prior of a release, which serves a design
        return request.pay_for_prior(ledger, access, equal_bins_histogram)
    return request.pay_for_prior(ledger, access)


def one_column(labels: ArrayLike) -> Numbers:
    """Return checked labels, of shape (n,) or (n, 1)."""
    if type(labels) is not np.ndarray:
        name_of_labels(labels)
    array = Labels.parse(labels).values
    if array.ndim != 1 and array.shape[1:] != (1,):
        raise LabelError(f"labels must be one column, of shape (n,), got {array.shape}: release each by itself")
    return array
