"""What the page is asked to do, as the call and as the command that does the same."""

from __future__ import annotations

import shlex
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from labeldp.files import Dialect, FileRelease, privatize_file
from labeldp.files.door import Progress
from labeldp.jobs.model_fit import FileFit, fit_file
from labeldp.ledger import Budget, Ledger

__all__ = ["Order"]


@dataclass(frozen=True, slots=True)
class Order:
    """A release that was asked for.

    Attributes
    ----------
    leaves : {"table", "model"}
    source, out, ledger : Path
    source_name, out_name, ledger_name : str
        What they are called in the folder, for people.
    limit : float or None
        Of a ledger that is new; one that is there must have the same, or it refuses.
    report : Path or None
    score : float or None
        ε more, to measure how wrong a model is.
    """

    leaves: Literal["table", "model"]
    source: Path
    out: Path
    ledger: Path
    source_name: str
    out_name: str
    ledger_name: str
    label: str
    bounds: tuple[float, float]
    epsilon: float
    limit: float | None = None
    drop: tuple[str, ...] = ()
    missing: Literal["error", "drop"] = "error"
    shuffle: bool = False
    rows_per_person: int = 1
    format: str | None = None
    dialect: Dialect = Dialect()
    report: Path | None = None
    score: float | None = None

    def open_ledger(self) -> Ledger:
        """Return the ledger to charge; a new file is created with its first charge."""
        limit = None if self.limit is None else Budget(self.limit)
        return Ledger.open(self.ledger, limit=limit, create="late")

    def carry_out(
        self, ledger: Ledger, progress: Progress, hints: Callable[[list[str]], None], reading: Any
    ) -> FileRelease | FileFit:
        """Release the table, or fit the model, just as the command does."""
        shared: dict[str, Any] = {
            "label": self.label,
            "bounds": self.bounds,
            "epsilon": self.epsilon,
            "ledger": ledger,
            "drop": self.drop,
            "missing": self.missing,
            "rows_per_person": self.rows_per_person,
            "format": self.format,
            "dialect": self.dialect,
        }
        if self.leaves == "model":
            return fit_file(
                self.source, self.out, **shared, score=self.score, report=self.report, while_reading=reading
            )
        return privatize_file(
            self.source,
            self.out,
            **shared,
            shuffle=self.shuffle,
            others={"the report": self.report},
            progress=progress,
            hints=hints,
        )

    def words(self) -> list[str]:
        """Return the command line for the same job, word by word."""
        low, high = self.bounds
        words = [
            "labeldp",
            "privatize" if self.leaves == "table" else "fit",
            self.source_name,
            "-o",
            self.out_name,
        ]
        words += [
            "--label",
            self.label,
            "--bounds",
            _number(low),
            _number(high),
            "--epsilon",
            _number(self.epsilon),
        ]
        words += ["--ledger", self.ledger_name]
        words += ["--limit", _number(self.limit)] if self.limit is not None else []
        words += ["--score", _number(self.score)] if self.score is not None else []
        words += ["--drop", ",".join(self.drop)] if self.drop else []
        words += ["--missing", "drop"] if self.missing == "drop" else []
        words += ["--shuffle"] if self.shuffle and self.leaves == "table" else []
        words += ["--rows-per-person", str(self.rows_per_person)] if self.rows_per_person > 1 else []
        words += ["--format", self.format] if self.format else []
        for name in ("separator", "decimal", "thousands", "encoding", "sheet"):
            value = getattr(self.dialect, name)
            words += [f"--{name}", {"\t": "tab", " ": "space"}.get(value, value)] if value is not None else []
        words += [word for value in self.dialect.na for word in ("--na", value)]
        words += ["--formulas", ",".join(self.dialect.formulas)] if self.dialect.formulas else []
        words += ["--report", str(Path(self.out_name).with_name(self.report.name))] if self.report else []
        return words

    def command(self, epsilon: str | None = None) -> str:
        """Return the command line for the same job, to copy into a terminal; with another text for ε, if given."""
        words = self.words()
        place = words.index("--epsilon") + 1
        quoted = [shlex.quote(word) for word in words]
        quoted[place] = quoted[place] if epsilon is None else epsilon
        return _joined(quoted)


def _joined(words: Sequence[str]) -> str:
    """Return words in several lines, one for each option."""
    lines = [" ".join(words[:3])]
    for word in words[3:]:
        if word.startswith("--") or word == "-o":
            lines.append(word)
        else:
            lines[-1] += f" {word}"
    return " \\\n  ".join(lines)


def _number(value: float) -> str:
    return repr(int(value)) if float(value).is_integer() and abs(value) < 1e15 else repr(float(value))
