"""What the page is asked to do, as the call and as the command that does the same."""

from __future__ import annotations

import csv
import io
import secrets
import shlex
from collections.abc import Callable, Collection, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

from labeldp.files import Dialect, FileRelease
from labeldp.files.door import Progress
from labeldp.jobs.model_fit import FileFit, fit_file
from labeldp.jobs.reports import Problems, privatize_and_report
from labeldp.ledger import Budget, Ledger

Stamp = tuple[tuple[str, int, int, int, int], ...]


@dataclass(frozen=True, slots=True)
class Choice:
    """All that is said of a table and its label. Two are equal only if nothing was changed, in the file neither.

    Attributes
    ----------
    source : Path
    source_name : str
        What it is called, for people.
    stamp : tuple
        What shows that its files were changed.
    columns : tuple of str
        The public columns that leave.
    """

    source: Path
    source_name: str
    stamp: Stamp
    dialect: Dialect
    label: str
    bounds: tuple[float, float]
    columns: tuple[str, ...]
    drop: tuple[str, ...]
    missing: Literal["error", "drop"]
    shuffle: bool
    rows_per_person: int


@dataclass(frozen=True, slots=True)
class Order:
    """A release that was asked for: what is shown is what is carried out.

    Attributes
    ----------
    leaves : {"table", "model"}
    choice : Choice
        What was said of the table when it was asked for.
    out, ledger : Path
    out_name, ledger_name : str
        What they are called in the folder, for people.
    limit : float or None
        Of a ledger that is new; one that is there must have the same, or it refuses.
    report : Path or None
    score : float or None
        ε more, to measure how wrong a model is.
    id : str
        Goes with the button: it releases the order that it was shown with.
    """

    leaves: Literal["table", "model"]
    choice: Choice
    out: Path
    ledger: Path
    out_name: str
    ledger_name: str
    epsilon: float
    limit: float | None = None
    report: Path | None = None
    score: float | None = None
    id: str = field(default_factory=lambda: secrets.token_urlsafe(9), compare=False)

    def open_ledger(self) -> Ledger:
        """Return the ledger to charge; a new file is created with its first charge."""
        limit = None if self.limit is None else Budget(self.limit)
        return Ledger.open(self.ledger, limit=limit, create="late")

    def carry_out(
        self,
        ledger: Ledger,
        progress: Progress,
        ask: Callable[[list[str]], None],
        reading: AbstractContextManager[Progress],
    ) -> tuple[FileRelease | FileFit, Problems]:
        """Release the table, or fit the model, just as the command does; return what went wrong afterwards too."""
        choice = self.choice
        shared: dict[str, Any] = {
            "label": choice.label,
            "bounds": choice.bounds,
            "epsilon": self.epsilon,
            "ledger": ledger,
            "drop": choice.drop,
            "missing": choice.missing,
            "rows_per_person": choice.rows_per_person,
            "dialect": choice.dialect,
            "report": self.report,
        }
        if self.leaves == "model":
            fit = fit_file(
                choice.source, self.out, **shared, score=self.score, left_out=ask, while_reading=reading
            )
            return fit, fit.problems
        return privatize_and_report(
            choice.source,
            self.out,
            **shared,
            shuffle=choice.shuffle,
            progress=progress,
            hints=ask,
        )

    def words(self) -> list[str]:
        """Return the command line for the same job, word by word."""
        choice = self.choice
        dialect, (low, high) = choice.dialect, choice.bounds
        words = ["labeldp", "privatize" if self.leaves == "table" else "fit", _file(choice.source_name)]
        words += ["-o", _file(self.out_name), *_option("--label", choice.label)]
        words += ["--bounds", _number(low), _number(high), "--epsilon", _number(self.epsilon)]
        words += ["--ledger", _file(self.ledger_name)]
        words += ["--limit", _number(self.limit)] if self.limit is not None else []
        words += ["--score", _number(self.score)] if self.score is not None else []
        words += _option("--drop", _list(choice.drop)) if choice.drop else []
        words += ["--missing", "drop"] if choice.missing == "drop" else []
        words += ["--shuffle"] if choice.shuffle and self.leaves == "table" else []
        words += ["--rows-per-person", str(choice.rows_per_person)] if choice.rows_per_person > 1 else []
        for name in ("separator", "decimal", "thousands", "encoding", "sheet"):
            value = getattr(dialect, name)
            words += [f"--{name}", {"\t": "tab", " ": "space"}.get(value, value)] if value is not None else []
        words += [word for value in dialect.na for word in ("--na", value)]
        words += ["--formulas", _list(dialect.formulas)] if dialect.formulas else []
        words += ["--header"] if dialect.header else []
        words += _option("--names", _list(dialect.names)) if dialect.names else []
        words += _option("--multiline", dialect.multiline) if dialect.multiline is not None else []
        words += ["--report", _file(str(Path(self.out_name).with_name(self.report.name)))] if self.report else []
        return words

    def command(self, gap: str | None = None) -> str:
        """Return the command line for the same job, to copy into a terminal; with a gap where ε goes, if given."""
        words = [shlex.quote(word) for word in self.words()]
        if gap is not None:
            words[words.index("--epsilon") + 1] = gap
        return _joined(words)


def _joined(words: Sequence[str]) -> str:
    """Return words in several lines, one for each option."""
    lines = [" ".join(words[:3])]
    for word in words[3:]:
        if word.startswith("--") or word == "-o":
            lines.append(word)
        else:
            lines[-1] += f" {word}"
    return " \\\n  ".join(lines)


def _file(name: str) -> str:
    """Return a file's name so that no command takes it for an option."""
    return f"./{name}" if name.startswith("-") else name


def _option(name: str, value: str) -> list[str]:
    """Return an option and its value, which may look like an option."""
    return [f"{name}={value}"] if value.startswith("-") else [name, value]


def _list(names: Collection[str]) -> str:
    """Return names with commas between, as the command line reads them."""
    text = io.StringIO()
    csv.writer(text, lineterminator="").writerow(names)
    return text.getvalue()


def _number(value: float) -> str:
    return repr(int(value)) if float(value).is_integer() and abs(value) < 1e15 else repr(float(value))
