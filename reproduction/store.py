"""A folder of results: a run that is killed continues there, since chunks are there whole or not at all."""

from __future__ import annotations

import csv
import io
import json
import os
import subprocess
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, fields
from functools import cache
from pathlib import Path
from typing import Any

from labeldp.errors import ParameterError
from reproduction.files import write_whole

COMMITS = "commits"
"""Entry of a manifest: the commits at which its results were computed."""

TRIALS = "trials"
"""Entry of a manifest: the number of trials, which may grow."""


@cache
def current_commit(folder: Path = Path(__file__).parent) -> str:
    """Return the commit of this source; where there is no repository, what ``LABELDP_COMMIT`` says.

    ``-dirty`` follows if the library or this folder differs from it: pages that benchmarks write do not count.
    """
    describe = ["git", "describe", "--always", "--abbrev=12", "--exclude=*"]
    compare = ["git", "diff", "--quiet", "HEAD", "--", ".", "../src"]
    try:
        done = subprocess.run(describe, capture_output=True, text=True, check=False, cwd=folder)  # noqa: S603
        is_dirty = subprocess.run(compare, capture_output=True, check=False, cwd=folder).returncode == 1  # noqa: S603
    except OSError:  # no git
        return os.environ.get(COMMIT_VARIABLE, "unknown")
    commit = done.stdout.strip() + ("-dirty" if is_dirty else "")
    return commit or os.environ.get(COMMIT_VARIABLE, "unknown")


COMMIT_VARIABLE = "LABELDP_COMMIT"


@dataclass(frozen=True, slots=True)
class Result:
    """The test error of one cell, and what its labels cost."""

    dataset: str
    trial: int
    column: str
    epsilon: float
    mse: float
    private: bool
    cost_epsilon: float
    cost_delta: float
    detail: str


class Store:
    """Results in a folder, with the settings that gave them.

    Parameters
    ----------
    folder : path
        Is created by `begin` if it does not exist.
    """

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self._manifest = folder / "manifest.json"

    def settings(self) -> dict[str, Any]:
        """Return the settings that the folder was begun with; none if it was not begun."""
        return dict(json.loads(self._manifest.read_text("utf-8"))) if self._manifest.exists() else {}

    def begin(self, settings: Mapping[str, Any]) -> None:
        """Begin or continue with these settings, which are pure data; the commit may differ, and trials may grow.

        Raises
        ------
        ParameterError
            If the folder has results of other settings, or other files.
        """
        before, now = self.settings(), json.loads(json.dumps(settings, allow_nan=False))
        commits = before.pop(COMMITS, [])
        if before:
            differ = [key for key in sorted({*before, *now}) if before.get(key) != now.get(key)]
            if differ == [TRIALS] and before[TRIALS] < now[TRIALS]:  # a trial depends on no other one
                self._write_manifest(now | {COMMITS: commits})
            elif differ:
                changes = "; ".join(f"{key} was {before.get(key)}, is {now.get(key)}" for key in differ)
                raise ParameterError(
                    f"{self.folder} was begun with other settings ({changes}): give a new folder with --out"
                )
        elif self.folder.exists() and any(self.folder.iterdir()):
            raise ParameterError(f"{self.folder} has other files: give a new folder with --out")
        else:
            self._write_manifest(now)

    def has(self, chunk: str) -> bool:
        """Whether a chunk is done."""
        return self._path(chunk).exists()

    def write(self, chunk: str, results: Sequence[Result]) -> None:
        """Write a chunk, whole or not at all, and note the commit at which it was computed."""
        settings = self.settings()
        commits = [*settings.get(COMMITS, []), current_commit()]
        if commits.count(commits[-1]) == 1:
            self._write_manifest(settings | {COMMITS: commits})
        write_whole(self._path(chunk), json.dumps([asdict(r) for r in results], indent=1).encode())

    def _write_manifest(self, settings: Mapping[str, Any]) -> None:
        text = json.dumps(settings, indent=2, sort_keys=True, ensure_ascii=False)
        write_whole(self._manifest, f"{text}\n".encode())

    def read(self, chunks: Iterable[str]) -> list[Result]:
        """Return the results of chunks, in order; floats are the same to the last bit."""
        return [Result(**row) for chunk in chunks for row in json.loads(self._path(chunk).read_text("utf-8"))]

    def write_table(self, results: Sequence[Result]) -> None:
        """Write all results into one file, results.csv."""
        sink = io.StringIO(newline="")
        writer = csv.DictWriter(sink, [field.name for field in fields(Result)], lineterminator="\n")
        writer.writeheader()
        writer.writerows(asdict(r) for r in sorted(results, key=lambda r: (r.trial, r.column, r.epsilon)))
        write_whole(self.folder / "results.csv", sink.getvalue().encode())

    def _path(self, chunk: str) -> Path:
        return self.folder / "chunks" / f"{chunk}.json"
