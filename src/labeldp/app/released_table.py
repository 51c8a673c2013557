"""A released table: the facts about its file on its card, and the table read as its card says."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from labeldp._atomic import StrPath
from labeldp._values import Data
from labeldp.accounts.card import Card

if TYPE_CHECKING:
    from labeldp.tables.tables import Table
    from labeldp.tables.writer import TableWriter

NOT_COPIED = "metadata of the files and columns, row groups, batches, file names, sort orders"


def describe_file(
    writer: TableWriter,
    path: StrPath,
    *,
    rows: int,
    left_out: int,
    labels: Sequence[str],
    is_shuffled: bool = False,
) -> Data:
    """Return the facts about a table for its card, once all rows are written."""
    return {
        "name": Path(path).name,
        "format": writer.format,
        **writer.text_facts(),
        "rows": rows,
        "rows_left_out": left_out,
        **({"column": labels[0]} if len(labels) == 1 else {}),
        "columns": list(writer.schema.names),
        "types_changed": {},
        "sha256": writer.finish(),
        "row_order": "shuffled" if is_shuffled else "public, and kept",
        "not_copied": NOT_COPIED,
    }


def open_release(path: Path, card: Card, **reading: Any) -> Table:
    """Open the table of a card; the other arguments are those of `labeldp.tables.open_table`."""
    from labeldp.tables import Dialect, open_table  # noqa: PLC0415 (an extra)

    facts = card.content["file"]
    marks = {name: facts[name] for name in ("separator", "decimal", "encoding") if name in facts}
    return open_table(path, facts["format"], dialect=Dialect(header=True, **marks), **reading)
