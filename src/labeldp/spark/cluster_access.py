"""`LabelAccess` on a cluster: executors add up queries where the rows are."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Any

import numpy as np
import pyarrow as pa
from pyspark.sql import DataFrame

from labeldp._values import Array, Counts, Interval, Labels, Sums
from labeldp.accounts.budget import Purpose
from labeldp.exact.word_sources import WordSource
from labeldp.learning.fit_plan import unit_labels
from labeldp.learning.label_queries import DistanceCounts, GroupSums
from labeldp.release.label_access import LabelAccess
from labeldp.release.queries import Cells, Query
from labeldp.spark.executor import feature_table, floats, sum_integers
from labeldp.spark.session import column


class ClusterAccess(LabelAccess):
    """Labels of a frame's first column, of which a sample may be in memory to be randomised.

    Parameters
    ----------
    frame : DataFrame
        Labels; or labels, ids and features.
    rows : int
        The number of rows of the frame.
    source : source of words
    purpose : str
        As for `LabelAccess`.
    bounds : (lo, hi), optional
        Labels are converted to unit scale by them.
    sample : array, optional
        Converted labels in memory.
    """

    def __init__(
        self,
        frame: DataFrame,
        rows: int,
        source: WordSource,
        purpose: Purpose,
        *,
        bounds: Interval | None = None,
        sample: Array | None = None,
    ) -> None:
        super().__init__(np.zeros(0) if sample is None else sample, source, purpose)
        self._frame, self._rows, self._bounds = frame, rows, bounds

    @property
    def rows(self) -> int:
        """The number of rows on the cluster."""
        return self._rows

    def _add_up(self, query: Query | Cells) -> Sums:
        """Return the exact answer of a query over all rows, in one pass; executors apply its rules."""
        frame, bounds = self._frame, self._bounds
        rules = None
        if isinstance(query, GroupSums | DistanceCounts):
            rules = query.row_rules.without_rows()
            query = replace(query, row_rules=rules)
        else:
            frame = frame.select(column(frame.columns[0]).cast("double").alias("label"))  # a name resolved once
        plan: Any = query

        def answer(batch: pa.RecordBatch) -> Counts:
            labels = Labels.parse(floats(batch.column(0))).values
            units = labels if bounds is None else unit_labels(labels, bounds)
            if rules is None:
                return np.asarray(plan.answer(units).ravel())
            of_batch = replace(plan, row_rules=rules.on(feature_table(batch)))
            return np.asarray(of_batch.answer(units).ravel())

        return sum_integers(frame, answer, math.prod(query.shape), self.rows).reshape(query.shape)
