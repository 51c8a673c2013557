"""`estimate_prior`: a private histogram of labels in one call."""

from __future__ import annotations

from collections.abc import Callable
from fractions import Fraction
from typing import Any, Literal

from numpy.typing import ArrayLike

from labeldp._values import Epsilon, LabelBounds, Labels, parse_integer, parse_method, parse_positive
from labeldp.accounts.budget import Budget, new_charge
from labeldp.accounts.ledger import Ledger, as_ledger, ledger_to_charge
from labeldp.errors import LabelError
from labeldp.exact.word_sources import SecureWords, WordSource, resolve_source
from labeldp.mechanisms.histogram import Histogram
from labeldp.release.curator import curator_histogram
from labeldp.release.local import local_histogram

Trust = Literal["curator", "local"]
Method = Literal["counts", "adaptive", "square-wave", "laplace"]


def estimate_prior(
    labels: ArrayLike,
    *,
    epsilon: float,
    bounds: Any = None,
    trust: Trust = "curator",
    method: Method | None = None,
    sigma: float | None = None,
    bins: int | None = None,
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
        What the histogram may cost.
    bounds : (lo, hi)
        Public bounds; labels outside are clipped.
    trust : {"curator", "local"}
        With a curator, counts get two-sided geometric noise. Without, every label is randomised on
        its own first, which needs far more labels for the same accuracy.
    method : str, optional
        For a curator ``"counts"`` in equally wide bins (the default here, since a histogram that is looked at is
        easier to read in equal bins), or ``"adaptive"``, which first looks where labels are, counts in bins
        around there, and returns what these lead to expect: few bins, smooth tails, for bounds that may be loose
        (the default of `privatize`, whose designs use it).
        Without one ``"square-wave"`` with smoothed expectation maximisation (the default), or ``"laplace"``, the
        paper's Algorithm 3 to the letter.
    sigma : float, optional
        Bin width of Algorithm 3; by default the standard deviation of the randomised labels.
    bins : int, optional
        For ``"counts"``: how many bins. By default it follows from the number of labels and ε;
        choose it by anything but the labels.
    ledger : Ledger, optional
        Is charged before any label is counted.
    rows_per_person : int
        How many rows one person may have; the ledger is charged for all of them.
    random_state : None, int or source of words
        Leave it out for a release.

    Examples
    --------
    >>> import numpy as np, labeldp as ldp
    >>> prior = ldp.estimate_prior(np.full(10_000, 3.0), epsilon=0.5, bounds=(0, 5))
    >>> 2.9 < prior.mean < 3.1
    True
    """
    array = Labels.parse(labels).values
    if array.ndim != 1 and array.shape[1:] != (1,):
        raise LabelError(f"a prior is of one label column, of shape (n,), got {array.shape}")
    array = array.reshape(-1)
    exact, bounds = Epsilon(epsilon).exact, LabelBounds(bounds)
    way = parse_method(trust, method, default="counts")
    sigma = None if sigma is None else parse_positive(sigma, "sigma")
    bins = None if bins is None else parse_integer(bins, "bins", most=1 << 20)
    people = parse_integer(rows_per_person, "rows_per_person")
    source, ledger = resolve_source(random_state), as_ledger(ledger)

    def estimate() -> Histogram:
        if trust == "curator":
            return curator_histogram(array, exact, bounds, source, method=way, bins=bins)
        return local_histogram(array, exact, bounds, source, method=way, sigma=sigma)

    ledger = ledger_to_charge(ledger, labels)
    return pay_for_prior(estimate, exact, trust=trust, rows_per_person=people, ledger=ledger, source=source)


def pay_for_prior(
    estimate: Callable[[], Histogram],
    epsilon: Fraction,
    *,
    trust: str = "curator",
    rows_per_person: int,
    ledger: Ledger,
    source: WordSource,
) -> Histogram:
    """Charge a ledger for a prior alone, then estimate it."""
    charge = new_charge(f"prior ({trust})", Budget(epsilon), purpose="prior", rows_per_person=rows_per_person)
    ledger.charge_all([charge])
    return estimate().paid_by(charge, secure=isinstance(source, SecureWords))
