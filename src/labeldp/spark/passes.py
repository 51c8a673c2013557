"""What runs on the executors when a model is fitted: sums over labels, and rounds of private labels."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from labeldp.estimators.drawing import Round, draw_part
from labeldp.estimators.features import PublicFeatures
from labeldp.estimators.labels import LabelSums
from labeldp.estimators.sums import Stage
from labeldp.estimators.table import FeatureTable
from labeldp.row_ids import public_places
from labeldp.row_words import RowWords
from labeldp.spark.executor import floats, ids_of
from labeldp.spark.vectors import SAMPLED, Batches, Work, batch_of, chunks

if TYPE_CHECKING:
    import pyarrow as pa

    from labeldp.spark.secret import Sealed

__all__ = ["Gathered", "drawer", "sampler", "stage_adder", "surveyor"]

Array = NDArray[np.float64]
Words = NDArray[np.uint64]


def surveyor(bounds: tuple[float, float]) -> Work:
    """Return what sums labels, the only column: their total, then their counts."""

    def survey(batches: Batches) -> Batches:
        total = LabelSums.of(np.empty(0), bounds)
        for batch in batches:
            total += LabelSums.of(floats(batch.column(0)), bounds)
        if total.rows:
            yield batch_of({0: np.concatenate([[total.total], total.counts])})

    return survey


def sampler(below: float) -> Work:
    """Return what picks a public sample by id; columns: id, features. Each row's place comes with it."""

    def sample(batches: Batches) -> Batches:
        for batch in batches:
            places = public_places(ids_of(batch.column(0)))
            chosen = _sampled(places, below)
            data = _bits(places[chosen, 0], _table(batch, 1)[chosen])
            if len(data):
                yield batch_of({SAMPLED: data})

    return sample


def stage_adder(stage: Stage, places: Words) -> Work:
    """Return what adds up a stage's labels; columns: label, id.

    ``places`` are those of the design's rows, sorted.
    """
    lean = replace(stage, design=replace(stage.design, features=stage.design.features[:, :0]))

    def add_up(batches: Batches) -> Batches:
        total: Any = 0
        for batch in batches:
            rows = np.searchsorted(places, public_places(ids_of(batch.column(1)))[:, 0])
            total = total + lean.sums(floats(batch.column(0)), rows)
        if not isinstance(total, int):
            yield batch_of(chunks(total))

    return add_up


@dataclass
class Gathered:
    """A round's statistics, as they add up; its last vector is (sum of squares, rows, sum of noise)."""

    gram: Array
    moment: Array
    last: Array

    @classmethod
    def none(cls, size: int) -> Gathered:
        """Return the statistics of no rows, of this many features."""
        return cls(np.zeros((size, size)), np.zeros(size), np.zeros(3))

    @classmethod
    def of(cls, vectors: dict[int, Array], size: int) -> Gathered:
        """Return the statistics that were sent as vectors."""
        if not vectors:
            return cls.none(size)
        return cls(np.array([vectors[k] for k in range(size)]), vectors[size], vectors[size + 1])

    def vectors(self) -> dict[int, Array]:
        """Return the statistics as vectors with keys."""
        return dict(enumerate([*self.gram, self.moment, self.last])) if self.last[1] else {}


def drawer(now: Round, public: PublicFeatures, sealed: Sealed, sampled: float) -> Work:
    """Return what randomises a round's labels and sums what a linear model needs; columns: label, id, features.

    Private labels of the sample are sent along.
    """

    def draw(batches: Batches) -> Batches:
        import pyarrow as pa  # noqa: PLC0415

        secret = sealed.open()
        found = Gathered.none(public.block.size + 1)
        for batch in batches:
            share = _unit(public_places(ids_of(batch.column(1)))[:, 0])
            now_drawn = batch.filter(pa.array((share >= now.share[0]) & (share < now.share[1])))
            if not now_drawn.num_rows:
                continue
            ids = ids_of(now_drawn.column(1))
            table, rows = FeatureTable(public, _table(now_drawn, 2)), np.arange(now_drawn.num_rows)
            labels, words = floats(now_drawn.column(0)), RowWords(secret, ids)
            part = draw_part(rows, labels, now.centre(table, rows), now, words)
            private = part.private.labels
            seen = table.observations(rows, private - now.known.mean, 0.0)
            found.gram += seen.gram
            found.moment += seen.moment
            found.last += (seen.square, seen.count, float(part.noise.sum()))
            places = public_places(ids)
            chosen = _sampled(places, sampled)
            data = _bits(places[chosen, 0], private[chosen])
            if len(data):
                yield batch_of({SAMPLED: data})
        yield batch_of(found.vectors())

    return draw


def _sampled(places: Words, below: float) -> NDArray[np.bool_]:
    """Return which rows are in the sample: by the second word, so that it is spread evenly over rounds."""
    return _unit(places[:, 1]) < below


def _unit(words: Words) -> Array:
    """Return words as numbers from 0 to just below 1."""
    return np.asarray((words >> np.uint64(11)) * 2.0**-53, dtype=np.float64)


def _bits(places: Words, values: Array) -> NDArray[np.int64]:
    """Return places and floats side by side, as bits."""
    return np.column_stack([places.view(np.int64), np.ascontiguousarray(values).view(np.int64)])


def _table(batch: pa.RecordBatch, start: int) -> Array:
    """Return the columns from ``start`` on as numbers."""
    columns: list[Array] = [floats(batch.column(k)) for k in range(start, batch.num_columns)]
    return np.column_stack(columns)
