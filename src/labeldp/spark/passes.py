"""What runs on the executors when a model is fitted: sums over labels, and rounds of private labels."""

from __future__ import annotations

from collections.abc import Iterator
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
from labeldp.spark.executor import (
    MISSING_FEATURE,
    MISSING_ID,
    MISSING_LABEL,
    ROWS,
    Batches,
    Work,
    floats,
    ids_of,
    sparse,
)

if TYPE_CHECKING:
    import pyarrow as pa

    from labeldp.spark.secret import Sealed

__all__ = ["SAMPLED", "TOTAL", "VECTORS", "Gathered", "adder", "drawer", "sampler", "stage_adder", "surveyor"]

Array = NDArray[np.float64]
Words = NDArray[np.uint64]

TOTAL = -5
"""The cell of the labels' sum, beside those of `executor`."""

VECTORS = "key int, data binary"
"""The schema of vectors that are added up by their keys."""

SAMPLED = -1
"""The key of a part of the sample: places and private labels, which are not added up."""


def surveyor(bounds: tuple[float, float]) -> Work:
    """Return what sums labels and counts what is missing; columns: label, whether its id is missing, features."""

    def survey(batches: Batches) -> Batches:
        total = LabelSums.of(np.empty(0), bounds)
        missing = no_id = no_feature = rows = 0
        for batch in batches:
            labels = floats(batch.column(0))
            finite = np.isfinite(labels)
            total += LabelSums.of(labels[finite], bounds)
            rows += labels.size
            missing += labels.size - int(np.count_nonzero(finite))
            no_id += batch.column(1).true_count
            no_feature += int(np.count_nonzero(~np.isfinite(_table(batch, 2)).all(axis=1)))
        also = {ROWS: rows, MISSING_LABEL: missing, MISSING_ID: no_id, MISSING_FEATURE: no_feature}
        yield sparse(total.counts, {**also, TOTAL: total.total})

    return survey


def sampler(below: float) -> Work:
    """Return what picks a public sample by id; columns: id, features. Each row's place comes with it."""

    def sample(batches: Batches) -> Batches:
        import pyarrow as pa  # noqa: PLC0415

        for batch in batches:
            places = public_places(ids_of(batch.column(0)))
            chosen = _sampled(places, below)
            data = _bits(places[chosen, 0], _table(batch, 1)[chosen])
            yield _vectors({SAMPLED: data}) if len(data) else pa.RecordBatch.from_pylist([], _schema())

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
        yield _vectors({} if isinstance(total, int) else {0: total})

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
                yield _vectors({SAMPLED: data})
        yield _vectors(found.vectors())

    return draw


def adder(kind: str) -> Work:
    """Return what adds up vectors of a kind of number by their keys, and hands on the sample."""

    def add(batches: Batches) -> Batches:
        import pyarrow as pa  # noqa: PLC0415
        import pyarrow.compute as pc  # noqa: PLC0415

        sums: dict[int, NDArray[Any]] = {}
        for batch in batches:
            sample = pc.equal(batch.column(0), SAMPLED)
            yield batch.filter(sample)
            for key, data in _pairs(batch.filter(pc.invert(sample))):
                vector = np.frombuffer(data, dtype=kind)
                sums[key] = sums[key] + vector if key in sums else vector
        yield _vectors(sums) if sums else pa.RecordBatch.from_pylist([], _schema())

    return add


def _pairs(batch: pa.RecordBatch) -> Iterator[tuple[int, bytes]]:
    return zip(batch.column(0).to_pylist(), batch.column(1).to_pylist(), strict=True)


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


def _schema() -> Any:
    import pyarrow as pa  # noqa: PLC0415

    return pa.schema([("key", pa.int32()), ("data", pa.binary())])


def _vectors(vectors: dict[int, Any]) -> pa.RecordBatch:
    import pyarrow as pa  # noqa: PLC0415

    data = [np.ascontiguousarray(vector).tobytes() for vector in vectors.values()]
    arrays = [pa.array(list(vectors), pa.int32()), pa.array(data, pa.binary())]
    return pa.RecordBatch.from_arrays(arrays, schema=_schema())
