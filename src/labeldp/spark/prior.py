"""`estimate_prior` on a DataFrame: one aggregation, and noise on the driver."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from labeldp._validation import as_epsilon, as_fraction, as_roomy_bounds
from labeldp.histogram import Histogram
from labeldp.ledger import Budget, Ledger, group_budget
from labeldp.ledger.repetition import warn_if_seen
from labeldp.priors.curator import adaptive_histogram
from labeldp.randomness import WordSource, resolve_source
from labeldp.spark.asked import as_ledger
from labeldp.spark.columns import column, label_column, need_spark
from labeldp.spark.counting import count_labels, count_rows
from labeldp.spark.related import refuse_related
from labeldp.spark.repeatable import stable_frame

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

__all__ = ["estimate_prior"]


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
        What the histogram may cost.
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
    """
    need_spark()
    exact, pair = as_fraction(as_epsilon(epsilon)), as_roomy_bounds(bounds)
    group_budget(Budget(0), rows_per_person)
    source = resolve_source(random_state)
    ledger = as_ledger(ledger)
    name = label_column(df, label)
    refuse_related(df.select(column(name)), name, rows_per_person=rows_per_person)
    rows = stable_frame(df, materialize)
    try:
        counted = count_labels(rows.frame, name, pair, count_rows(rows.frame, name))
    finally:
        rows.drop()
    if ledger is None:
        warn_if_seen(df)
    else:
        ledger.charge("prior (curator)", epsilon=epsilon, purpose="prior", rows_per_person=rows_per_person)
    return adaptive_histogram(counted.fine, exact, pair, source)
