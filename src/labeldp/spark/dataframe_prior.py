"""`estimate_prior` on a DataFrame."""

from __future__ import annotations

from typing import Any

from pyspark.sql import DataFrame

from labeldp.accounts.ledger import Ledger, as_ledger, ledger_to_charge
from labeldp.accounts.scope import Scope
from labeldp.exact.word_sources import RandomState, resolve_source
from labeldp.mechanisms.histogram import Histogram
from labeldp.release.curator import FINE
from labeldp.release.plan import Request
from labeldp.release.queries import Cells
from labeldp.spark.cluster_access import ClusterAccess
from labeldp.spark.frame_checks import check_label, check_rows, stable_frame
from labeldp.spark.session import column


def estimate_prior(
    df: DataFrame,
    *,
    label: str,
    epsilon: float,
    bounds: Any = None,
    ledger: Ledger | None = None,
    rows_per_person: int = 1,
    random_state: RandomState = None,
) -> Histogram:
    """Return a private histogram of a label column, for ε, as `privatize` makes it.

    Executors count labels in fine cells; the exact counts go to the driver, which adds the noise once. Whoever
    runs the driver is the curator, and trusted.

    Parameters
    ----------
    df : DataFrame
        Classic or Spark Connect.
    label : str
        A column of numbers. Labels outside the bounds are clipped.
    epsilon : float
        The budget for the histogram.
    bounds : (lo, hi)
        Public bounds. Never read them off the data.
    ledger : Ledger, optional
        Is charged after labels were counted, and before noise is drawn: what fails before costs nothing.
    rows_per_person : int
        The number of rows that one person may have; the ledger is charged for all of them.
    random_state : None, int or source of words
        Leave it out for a release.

    Returns
    -------
    Histogram

    Examples
    --------
    ``spark`` is a session of Spark 4, classic or Connect.

    >>> from labeldp import spark as private
    >>> df = spark.createDataFrame([(k, 10.0 + k % 40) for k in range(200)], ["order", "amount"])
    >>> prior = private.estimate_prior(df, label="amount", epsilon=1.0, bounds=(0, 50))
    >>> prior.bounds
    (0.0, 50.0)
    """
    request = Request(epsilon=epsilon, bounds=bounds, scope=Scope.parse(rows_per_person))
    source = resolve_source(random_state)
    ledger = as_ledger(ledger)
    check_label(df, label)
    rows = stable_frame(df, [column(label)])
    try:
        access = ClusterAccess(rows.frame, check_rows(rows.frame, label), source, "prior")
        access.count_ahead(Cells(request.bounds, FINE))
    finally:
        rows.drop()
    return request.pay_for_prior(ledger_to_charge(ledger, df), access)
