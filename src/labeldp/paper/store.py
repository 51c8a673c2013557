"""A folder of results that a run can be killed in and resumed from: chunks are there whole or not at all."""

from __future__ import annotations

import csv
import io
import json
import math
import os
from collections.abc import Callable, Iterable, Sequence
from dataclasses import asdict, dataclass, fields
from pathlib import Path
from typing import Any

from labeldp._atomic import atomic_file
from labeldp.errors import ParameterError

__all__ = ["Result", "Store", "write_whole"]


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


_READ: dict[str, Callable[[str], Any]] = {"int": int, "float": float, "str": str, "bool": "True".__eq__}
_FIELDS = {f.name: _READ[str(f.type)] for f in fields(Result)}


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
        before = self.settings_in(self.folder)
        if before:
            _refuse_other(before, json.loads(written), self.folder)
        elif self.folder.exists() and any(self.folder.iterdir()):
            raise ParameterError(f"{self.folder} holds other things: give a new folder with --out")
        self._chunks.mkdir(parents=True, exist_ok=True)
        if not before:
            write_whole(manifest, written.encode())

    @staticmethod
    def settings_in(folder: str | os.PathLike[str]) -> dict[str, Any]:
        """Return the settings that a folder was begun with; none if it was not begun."""
        manifest = Path(folder) / "manifest.json"
        return dict(json.loads(manifest.read_text(encoding="utf-8"))) if manifest.exists() else {}

    def has(self, name: str) -> bool:
        """Whether a chunk is done."""
        return self._path(name).exists()

    def keep(self, name: str, results: Sequence[Result]) -> None:
        """Write a chunk, whole or not at all."""
        write_whole(self._path(name), _as_csv(results))

    def read(self, names: Iterable[str]) -> list[Result]:
        """Return the results of chunks, in order."""
        found: list[Result] = []
        for name in names:
            with self._path(name).open(newline="", encoding="utf-8") as file:
                rows = list(csv.DictReader(file))
            found.extend(Result(**{field: read(row[field]) for field, read in _FIELDS.items()}) for row in rows)
        return found

    def finish(self, results: Sequence[Result]) -> Path:
        """Write all results into one file; return where."""
        order = sorted(results, key=lambda r: (r.trial, r.column, r.epsilon))
        path = self.folder / "results.csv"
        write_whole(path, _as_csv(order))
        return path

    def _path(self, name: str) -> Path:
        return self._chunks / f"{name}.csv"


def write_whole(path: Path, content: bytes) -> None:
    """Write a file so that whoever looks sees the old one or the new one, never a part."""
    with atomic_file(path, public=True) as draft:
        draft.write_bytes(content)


def _as_csv(results: Sequence[Result]) -> bytes:
    """Return results as text; Python writes floats so that they are read back to the last bit."""
    sink = io.StringIO(newline="")
    writer = csv.DictWriter(sink, list(_FIELDS), lineterminator="\n")
    writer.writeheader()
    writer.writerows(asdict(r) for r in results)
    return sink.getvalue().encode()


def _as_text(settings: dict[str, Any]) -> str:
    return json.dumps(_plain(settings), indent=2, sort_keys=True, ensure_ascii=False, allow_nan=False) + "\n"


def _plain(value: Any) -> Any:
    if isinstance(value, dict):
        return {str(k): _plain(v) for k, v in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(v) for v in value]
    return "inf" if isinstance(value, float) and math.isinf(value) else value


def _refuse_other(old: dict[str, Any], new: dict[str, Any], folder: Path) -> None:
    before, now = _flat(old), _flat(new)
    differ = sorted(key for key in {*before, *now} if before.get(key) != now.get(key))
    if differ:
        told = "; ".join(f"{key} was {before.get(key)}, is {now.get(key)}" for key in differ)
        raise ParameterError(f"{folder} was begun with other settings ({told}): give a new folder with --out")


def _flat(settings: dict[str, Any]) -> dict[str, Any]:
    """Return nested settings under names such as ``protocol.epochs``."""
    found: dict[str, Any] = {}
    for key, value in settings.items():
        inner = _flat(value) if isinstance(value, dict) else None
        found.update({key: value} if inner is None else {f"{key}.{name}": part for name, part in inner.items()})
    return found
