"""`estimate_prior` on a DataFrame: one aggregation, and noise on the driver."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from labeldp._checks import as_epsilon, as_fraction, as_roomy_bounds
from labeldp.curator import adaptive_histogram
from labeldp.errors import ParameterError
from labeldp.histogram import Histogram
from labeldp.ledger import Budget, Ledger, group_budget
from labeldp.randomness import WordSource, resolve_source
from labeldp.spark.columns import label_column, need_spark
from labeldp.spark.counting import checked_rows, count_labels

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

__all__ = ["as_ledger", "estimate_prior"]


def as_ledger(ledger: object) -> Ledger | None:
    """Return a ledger, or None, or say what is one."""
    if ledger is not None and not isinstance(ledger, Ledger):
        raise ParameterError("ledger must be a Ledger; for a file use Ledger.open(path, limit=...)")
    return ledger


def estimate_prior(
    df: DataFrame,
    *,
    label: str,
    epsilon: float,
    bounds: Any = None,
    ledger: Ledger | None = None,
    rows_per_person: int = 1,
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
    random_state : None, int or source of words
        Leave it out for a release.
    """
    need_spark()
    exact, pair = as_fraction(as_epsilon(epsilon)), as_roomy_bounds(bounds)
    group_budget(Budget(0), rows_per_person)
    source = resolve_source(random_state)
    ledger = as_ledger(ledger)
    name = label_column(df, label)
    counted = count_labels(df, name, pair, checked_rows(df, name))
    if ledger is not None:
        ledger.charge("prior (curator)", epsilon=epsilon, rows_per_person=rows_per_person)
    return adaptive_histogram(counted.fine, exact, pair, source)
