"""`private_ols` on a DataFrame: a pass over the rows for each stage of sums, and noise on the driver."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from pyspark.sql import DataFrame

from labeldp._values import Sums
from labeldp.accounts.ledger import Ledger, as_ledger, ledger_to_charge
from labeldp.errors import DataError
from labeldp.exact.word_sources import resolve_source
from labeldp.learning.fit_plan import FitRequest
from labeldp.learning.formula import Formula
from labeldp.learning.ols import pay_for_table, public_design
from labeldp.learning.ols_sums import Count
from labeldp.learning.regression_table import RegressionTable
from labeldp.spark.dataframe_model import public_sample
from labeldp.spark.executor import sum_integers
from labeldp.spark.frame_checks import checked_inputs
from labeldp.spark.model_passes import label_summer
from labeldp.spark.session import as_seed

MOST_NUMBERS = 1 << 25
"""Features that the driver takes, and that weights are computed from."""


def private_ols(
    df: DataFrame,
    *,
    features: Sequence[str],
    label: str,
    id: str,
    epsilon: float,
    bounds: Any,
    ledger: Ledger | None = None,
    rows_per_person: int = 1,
    random_state: int | None = None,
) -> RegressionTable:
    """Return a regression table, as `labeldp.private_ols` does, from sums that the cluster makes.

    The driver gets all features, which are public; of labels it gets integer sums, to which it adds the noise.
    They are those of one machine on which rows lie in the order of their ids' hashes. Rows are read once to be
    checked, once for the features, and once for each of up to four stages.

    Parameters
    ----------
    df : DataFrame
        Classic or Spark Connect.
    features : list of str
        Public columns of numbers; encode others first.
    label, id : str
        As for `privatize`.
    epsilon, bounds, ledger, rows_per_person
        As for `labeldp.private_ols`.
    random_state
        As for `privatize`. Ids that two rows share are always found: the driver gets all of their hashes.

    Raises
    ------
    ParameterError, LabelError, DataError
        Before anything is charged.
    BudgetError
        If the ledger refuses; then nothing was released.

    Examples
    --------
    ``spark`` is a session of Spark 4, classic or Connect.

    >>> from labeldp import spark as private
    >>> rows = [(k, float(k % 7), 10.0 + k % 7) for k in range(300)]
    >>> df = spark.createDataFrame(rows, ["order", "items", "amount"])
    >>> table = private.private_ols(
    ...     df, features=["items"], label="amount", id="order", epsilon=2.0, bounds=(0, 50))
    >>> table.names
    ['Intercept', 'items']
    """
    seed, ledger = as_seed(random_state), as_ledger(ledger)
    request = FitRequest(epsilon=epsilon, bounds=bounds, rows_per_person=rows_per_person, labels=False)
    with checked_inputs(df, label, id, features) as (frame, rows):
        most = MOST_NUMBERS // len(features)
        if rows > most:
            raise DataError(f"{rows:,} rows are more than the driver takes: give a sample of up to {most:,}")
        places, X = public_sample(frame, 1.0, rows)
        design = public_design(X, list(features), float(request.epsilon))

        def add_up(count: Count) -> Sums:
            pairs = frame.select(*frame.columns[:2])
            return sum_integers(pairs, label_summer(count, places, request.bounds), rows)

        source, ledger = resolve_source(seed), ledger_to_charge(ledger, df)
        table = pay_for_table(request, design, add_up, ledger, source, label=label)
    return replace(table, columns=Formula.plain(list(features)))
