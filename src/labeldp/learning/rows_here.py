"""Rows of a fit that are in memory."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from labeldp._values import Array, Sums
from labeldp.exact.word_sources import WordSource
from labeldp.learning.feature_table import FeatureTable
from labeldp.learning.label_queries import Query
from labeldp.learning.label_range import CELLS
from labeldp.learning.label_rounds import Round, RowPart, draw_part
from labeldp.learning.label_units import UNIT
from labeldp.learning.threads import Step
from labeldp.release.curator import count


@dataclass(frozen=True, slots=True, repr=False)
class RowsHere:
    """Rows whose labels are in memory, in units of their bounds. Their text form shows no label."""

    table: FeatureTable
    labels: Array
    source: WordSource
    announce: Step

    @property
    def count(self) -> int:
        """How many rows there are."""
        return int(self.labels.size)

    def counts(self) -> Sums:
        """Return how many labels lie in each cell of the bounds."""
        return count(self.labels, UNIT, CELLS)

    def add_up(self, query: Query) -> Sums:
        """Return the exact answer of a query."""
        return query.answer(self.labels)

    def draw(self, plan: Round, table: FeatureTable) -> RowPart | None:
        """Randomise the round's labels."""
        order = np.random.default_rng(0).permutation(self.count)  # public: which row in which round
        start, end = np.rint(np.array(plan.share) * self.count).astype(np.int64)
        rows = np.sort(order[start:end])
        if not rows.size:
            return None
        return draw_part(rows, self.labels[rows], plan.ensemble.predict(table, rows), plan, self.source)
