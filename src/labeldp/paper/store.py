"""A folder of results that a run can be killed in and resumed from: chunks are there whole or not at all."""

from __future__ import annotations

import json
import math
import os
import tempfile
from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass, fields
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from labeldp.errors import ParameterError

__all__ = ["Result", "Store", "write_whole"]

_TYPES = {"int": pa.int32(), "float": pa.float64(), "str": pa.string(), "bool": pa.bool_()}


@dataclass(frozen=True, slots=True)
class Result:
    """One number that was found, and what it cost."""

    dataset: str
    trial: int
    column: str
    epsilon: float
    mse: float
    private: bool
    cost_epsilon: float
    cost_delta: float
    detail: str


_SCHEMA = pa.schema([(f.name, _TYPES[str(f.type)]) for f in fields(Result)])


class Store:
    """Results in a folder, with the settings that made them.

    Parameters
    ----------
    folder : path
        Is made if it is not there.
    settings : dict
        Pure data. A folder that was begun with other settings is refused.

    Raises
    ------
    ParameterError
        If the folder holds results of other settings, or other things.
    """

    def __init__(self, folder: str | os.PathLike[str], settings: dict[str, Any]) -> None:
        self.folder = Path(folder)
        self._chunks = self.folder / "chunks"
        written = _as_text(settings)
        manifest = self.folder / "manifest.json"
        if manifest.exists():
            _refuse_other(json.loads(manifest.read_text(encoding="utf-8")), json.loads(written), self.folder)
        elif self.folder.exists() and any(self.folder.iterdir()):
            raise ParameterError(f"{self.folder} holds other things: give a new folder with --out")
        self._chunks.mkdir(parents=True, exist_ok=True)
        if not manifest.exists():
            write_whole(manifest, written.encode())

    def has(self, name: str) -> bool:
        """Whether a chunk is done."""
        return self._path(name).exists()

    def keep(self, name: str, results: Sequence[Result]) -> None:
        """Write a chunk, whole or not at all."""
        write_whole(self._path(name), _parquet(results))

    def read(self, names: Iterable[str]) -> list[Result]:
        """Return the results of chunks, in order."""
        found: list[Result] = []
        for name in names:
            rows = pq.ParquetFile(self._path(name)).read().to_pylist()
            found.extend(Result(**row) for row in rows)
        return found

    def finish(self, results: Sequence[Result]) -> Path:
        """Write all results into one file; return where."""
        order = sorted(results, key=lambda r: (r.trial, r.column, r.epsilon))
        path = self.folder / "results.parquet"
        write_whole(path, _parquet(order))
        return path

    def _path(self, name: str) -> Path:
        return self._chunks / f"{name}.parquet"


def write_whole(path: Path, content: bytes) -> None:
    """Write a file so that whoever looks sees the old one or the new one, never a part."""
    handle, draft = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.")
    try:
        with os.fdopen(handle, "wb") as file:
            file.write(content)
            file.flush()
            os.fsync(file.fileno())
        Path(draft).chmod(0o644)
        Path(draft).replace(path)
    except BaseException:
        Path(draft).unlink(missing_ok=True)
        raise


def _parquet(results: Sequence[Result]) -> bytes:
    table = pa.Table.from_pylist([asdict(r) for r in results], schema=_SCHEMA)
    sink = pa.BufferOutputStream()
    pq.write_table(table, sink, compression="zstd")
    return bytes(sink.getvalue().to_pybytes())


def _as_text(settings: dict[str, Any]) -> str:
    return json.dumps(_plain(settings), indent=2, sort_keys=True, ensure_ascii=False, allow_nan=False) + "\n"


def _plain(value: Any) -> Any:
    if isinstance(value, dict):
        return {str(k): _plain(v) for k, v in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(v) for v in value]
    return "inf" if isinstance(value, float) and math.isinf(value) else value


def _refuse_other(old: dict[str, Any], new: dict[str, Any], folder: Path) -> None:
    differ = sorted(key for key in {*old, *new} if old.get(key) != new.get(key))
    if differ:
        told = "; ".join(f"{key} was {old.get(key)}, is {new.get(key)}" for key in differ)
        raise ParameterError(f"{folder} was begun with other settings ({told}): give a new folder with --out")
