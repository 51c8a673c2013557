"""The frame of a release: private labels in the place of labels, and nothing of them behind it."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from labeldp.errors import DataError
from labeldp.spark.columns import RowColumns
from labeldp.spark.executor import Release, whole_rows
from labeldp.spark.plans import Lineage, analyzed, attribute_ids, node_name
from labeldp.spark.secret import is_connect

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

__all__ = ["refuse_label_in_output", "released_frame"]


def released_frame(rows: DataFrame, columns: RowColumns, release: Release, schema: Any) -> DataFrame:
    """Return the rows with private labels, computed when Spark is asked to.

    Where Spark can do so (from 4.1 on) only labels and ids go to Python; else all columns do, by `mapInArrow`.
    """
    from pyspark.sql import functions as F  # noqa: N812, PLC0415

    label, id = columns.label_place, columns.id_place
    extra = len(schema) > len(columns.names)
    arrow_udf = getattr(F, "arrow_udf", None)
    if arrow_udf is None:
        frame = rows.mapInArrow(whole_rows(release, label, id, schema.names), schema)
    else:
        rows = _with_ids(rows, id)
        kind = "private double, debiased double" if extra else "double"
        private = arrow_udf(_hinted(release), kind)(rows[f"c{label}"], rows[f"c{id}"])
        made = rows.withColumn(f"c{label}", private)
        chosen = [made[name].alias(field.name) for name, field in zip(rows.columns, schema, strict=False)]
        if extra:
            chosen[label] = made[f"c{label}"]["private"].alias(columns.label)
            chosen.append(made[f"c{label}"]["debiased"].alias(schema.names[-1]))
        frame = _walled(made.select(*chosen))
    refuse_label_in_output(frame, rows, label)
    return frame


def _with_ids(rows: DataFrame, id: int) -> DataFrame:
    """Return the rows, of which one without an id is an error: they were checked, but may have changed since.

    It also keeps Spark from copying columns twice: what a filter has seen goes on in rows, and with Spark 4.3 a
    table of 24 columns then takes three quarters of the time.
    """
    from pyspark.sql import functions as F  # noqa: N812, PLC0415

    said = "some ids are missing now that were not before: the table changed while it was read"
    return rows.where(F.when(rows[f"c{id}"].isNull(), F.raise_error(F.lit(said))).isNull())


def _hinted(release: Release) -> Any:
    """Return the function with the hints by which Spark learns what it takes and gives."""
    import pyarrow as pa  # noqa: PLC0415

    def private_labels(arrays: Any) -> Any:
        return release(arrays)

    private_labels.__annotations__ = {
        "arrays": Iterator[tuple[pa.Array, pa.Array]],
        "return": Iterator[pa.Array],
    }
    return private_labels


def _walled(frame: DataFrame) -> DataFrame:
    """Return the frame behind a wall: a union with nothing, which costs nothing.

    Spark lets a filter or an order on a frame reach back to columns that a projection has dropped; not through a
    union.
    """
    from pyspark.sql import functions as F  # noqa: N812, PLC0415

    return frame.union(frame.where(F.lit(False)))


def refuse_label_in_output(frame: DataFrame, rows: DataFrame, label: int) -> None:
    """Check that a release's plan ends in a step that hands no raw label on.

    Parameters
    ----------
    frame : DataFrame
        What is about to be released.
    rows : DataFrame
        What it was made from.
    label : int
        Where the label is in that.
    """
    if is_connect(frame):
        step: Any = frame._plan
        closed = type(step).__name__ in ("MapPartitions", "SetOperation")
    else:
        plan, made_from = analyzed(frame), analyzed(rows)
        name = node_name(plan)
        lineage = Lineage(start=made_from, released_by="PythonUDF" if name == "Union" else "MapInArrow")
        lineage.walk(plan)
        raw = attribute_ids(made_from)[label]
        carried = any(raw in lineage.origin(one) for one in attribute_ids(plan))
        closed = name in ("MapInArrow", "Union") and not carried
    if not closed:
        raise DataError("the plan of the release would carry raw labels along; nothing may be released")
