"""The encoded log as a Parquet file in the user's cache folder, used while its source is unchanged."""

from __future__ import annotations

import hashlib
import json
import warnings
from pathlib import Path
from typing import Any

import numpy as np

from labeldp._atomic import atomic_file
from labeldp.datasets.home import cache_folder
from labeldp.datasets.table import Dataset
from labeldp.tabular.arrow import arrow

__all__ = ["cached_path", "read_cached", "write_cached"]

_VERSION = 1
"""Goes up when encoding changes, so that older files are no longer used."""

_META = b"labeldp"


def cached_path(source: Path, protocol: str, threshold: int) -> Path:
    """Return where the encoded table of a file as it is now would be kept.

    Ask before reading the file: should it change meanwhile, what was read is not taken for the new one.
    """
    state = source.stat()
    key = [_VERSION, str(source.resolve()), state.st_size, state.st_mtime_ns, protocol, threshold]
    name = hashlib.sha256(json.dumps(key).encode()).hexdigest()[:20]
    return cache_folder() / f"criteo-{name}.parquet"


def write_cached(dataset: Dataset, path: Path) -> None:
    """Keep an encoded table; a folder that cannot be written to is a warning, not an error."""
    pa, _, _, parquet = arrow()
    assert dataset.ids is not None  # noqa: S101, for the type checker: Criteo has categories
    arrays = dict(zip(dataset.columns, dataset.X.T, strict=True)) | {"y": dataset.y}
    arrays |= dict(zip(dataset.categories, dataset.ids.T, strict=True))
    meta = {
        "columns": dataset.columns,
        "categories": dataset.categories,
        "sizes": dataset.sizes,
        "bounds": dataset.bounds,
        "notes": dataset.notes,
    }
    table = pa.table({name: np.ascontiguousarray(array) for name, array in arrays.items()})
    table = table.replace_schema_metadata({_META: json.dumps(meta).encode()})
    try:
        with atomic_file(path) as draft:
            parquet.write_table(table, draft, compression="zstd")
    except OSError as error:
        warnings.warn(f"the encoded table could not be kept for next time: {error}", RuntimeWarning, stacklevel=3)


def read_cached(path: Path) -> Dataset | None:
    """Return the encoded table kept there, or None if there is none that can be read."""
    pa, _, _, parquet = arrow()
    try:
        table = parquet.read_table(path)
        found = _dataset(table, json.loads(table.schema.metadata[_META]))
        _refuse_misfit(found)
    except (OSError, pa.ArrowException, LookupError, TypeError, ValueError, OverflowError, RecursionError):
        return None  # not there, or damaged: it is made again
    return found


def _dataset(table: Any, meta: dict[str, Any]) -> Dataset:
    ids = np.empty((table.num_rows, len(meta["categories"])), dtype=np.int32)
    for k, name in enumerate(meta["categories"]):
        column = table.column(name).cast("int32")
        if column.null_count:  # a number of its own stands for what is missing
            raise ValueError
        ids[:, k] = column.to_numpy()
    return Dataset(
        "criteo",
        np.column_stack([table.column(name).cast("double").to_numpy() for name in meta["columns"]]),
        np.array(table.column("y").cast("double")),
        (float(meta["bounds"][0]), float(meta["bounds"][1])),
        tuple(meta["columns"]),
        ids,
        tuple(meta["categories"]),
        tuple(meta["sizes"]),
        tuple(meta["notes"]),
    )


def _refuse_misfit(found: Dataset) -> None:
    """Raise where parts do not go together: whatever wrote the file, it was not this module."""
    low, high = found.bounds
    sizes = np.array(found.sizes, dtype=np.int64)
    words = (*found.columns, *found.categories, *found.notes)
    if found.ids is None or sizes.shape != (found.ids.shape[1],) or not all(isinstance(w, str) for w in words):
        raise ValueError
    if not (np.isfinite([low, high]).all() and low < high and np.isfinite(found.y).all()):
        raise ValueError
    if (found.ids < 0).any() or (found.ids >= sizes).any():
        raise ValueError
