"""`estimate_prior` on a DataFrame, and the counts of labels that it is computed from."""

from __future__ import annotations

from typing import Any

from pyspark.sql import DataFrame

from labeldp._values import Epsilon, LabelBounds, as_fraction
from labeldp.errors import DataError
from labeldp.histogram import Histogram
from labeldp.ledger import Budget, Ledger, as_ledger, group_budget, new_charge, warn_if_seen
from labeldp.priors.curator import FINE, adaptive_histogram
from labeldp.priors.origin import paid_by
from labeldp.randomness import SecureWords, WordSource, resolve_source
from labeldp.release.stream import LabelCounts
from labeldp.spark.executor import label_counter, sum_integers
from labeldp.spark.frame_checks import count_rows, label_column, stable_frame
from labeldp.spark.plan_checks import refuse_related
from labeldp.spark.session import column


def estimate_prior(
    df: DataFrame,
    *,
    label: str,
    epsilon: float,
    bounds: Any = None,
    ledger: Ledger | None = None,
    rows_per_person: int = 1,
    materialize: bool | None = None,
    random_state: int | WordSource | None = None,
) -> Histogram:
    """Return a private histogram of a label column, for ε: ``labeldp.estimate_prior(method="adaptive")``.

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
        How many rows one person may have; the ledger is charged for all of them.
    materialize : bool, optional
        As for `privatize`: a row that changes between two attempts at a task could be counted twice.
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
    >>> prior = private.estimate_prior(df, label="amount", epsilon=1.0, bounds=(0, 50), materialize=True)
    >>> prior.bounds
    (0.0, 50.0)
    """
    exact, pair = as_fraction(Epsilon(epsilon)), LabelBounds(bounds)
    group_budget(Budget(0), rows_per_person)
    source = resolve_source(random_state)
    ledger = as_ledger(ledger)
    name = label_column(df, label)
    refuse_related(df.select(column(name)), name, rows_per_person=rows_per_person)
    rows = stable_frame(df, materialize)
    try:
        counts = count_labels(rows.frame, name, pair, count_rows(rows.frame, name))
    finally:
        rows.drop()
    charge = new_charge("prior (curator)", Budget(exact), purpose="prior", rows_per_person=rows_per_person)
    if ledger is None:
        warn_if_seen(df)
    else:
        ledger.charge_all([charge])
    prior = adaptive_histogram(counts.fine, exact, pair, source)
    return paid_by(prior, charge, secure=isinstance(source, SecureWords))


def count_labels(df: DataFrame, label: str, bounds: tuple[float, float], rows: int) -> LabelCounts:
    """Return exact counts of the labels of ``rows`` rows, which `count_rows` has checked, in one pass."""
    fine = sum_integers(df.select(column(label).cast("double")), label_counter(bounds, FINE))
    if int(fine.sum()) != rows:
        raise DataError("there are more or fewer labels now than before: the table changed while it was read")
    return LabelCounts(rows, fine)
