"""What the page is asked to release, as the call and as the command that does the same."""

from __future__ import annotations

import secrets
import shlex
from collections.abc import Callable
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

from labeldp._values import as_fraction
from labeldp.accounts.budget import Budget, Charge, new_charge
from labeldp.accounts.ledger import Ledger
from labeldp.app.model_fit import FileFit, fit_file
from labeldp.app.option import Option, join_names, open_ledger
from labeldp.app.options import OPTIONS
from labeldp.app.page.typed_numbers import plain_number
from labeldp.app.reports import Problems, privatize_and_report
from labeldp.tables.file_release import FileRelease
from labeldp.tables.opening import Progress

Stamp = tuple[tuple[str, int, int, int, int], ...]


@dataclass(frozen=True)
class ReleaseRequest:
    """A release that was asked for: what is shown is what is carried out.

    Attributes
    ----------
    kind : {"table", "model"}
    source : Path
    stamp : tuple
        Shows whether its files were changed since.
    columns : tuple of str
        The public columns that are shared.
    out, ledger : Path
    report : Path or None
    limit : float or None
        Of a ledger that is new; one that is there must have the same, or it refuses.
    options : dict
        Of `labeldp.privatize_file` or `labeldp.fit_file`, by name.
    names : dict
        What the source, the output and the ledger are called in the folder.
    id : str
        Is sent with the button: it releases the request that it was shown with.
    """

    kind: Literal["table", "model"]
    source: Path
    stamp: Stamp
    columns: tuple[str, ...]
    out: Path
    ledger: Path
    report: Path | None
    limit: float | None
    options: dict[str, Any]
    names: dict[str, str]
    id: str = field(default_factory=lambda: secrets.token_urlsafe(9), compare=False)

    @property
    def price(self) -> Charge:
        """What it costs in all."""
        price = Budget(as_fraction(self.options["epsilon"]) + as_fraction(self.options.get("score") or 0))
        people = self.options["rows_per_person"]
        return new_charge(self.kind, price, purpose="other", rows_per_person=people)

    def open_ledger(self) -> Ledger:
        """Return the ledger to charge; a new file is created with its first charge."""
        return open_ledger(self.ledger, self.limit)

    def carry_out(
        self,
        ledger: Ledger,
        progress: Progress,
        ask: Callable[[list[Any]], None],
        reading: AbstractContextManager[Progress],
    ) -> tuple[FileRelease | FileFit, Problems]:
        """Release the table, or fit the model, as the command does; return what went wrong afterwards too."""
        options = {**self.options, "ledger": ledger, "report": self.report}
        if self.kind == "model":
            fit = fit_file(self.source, self.out, **options, left_out=ask, while_reading=reading)
            return fit, fit.problems
        return privatize_and_report(self.source, self.out, **options, progress=progress, hints=ask)

    def command(self) -> str:
        """Return the command line for the same job, to copy into a terminal."""
        dialect = {option.name: getattr(self.options["dialect"], option.name) for option in DIALECT}
        files = {what: f"./{name}" if name.startswith("-") else name for what, name in self.names.items()}
        values = {**self.options, **dialect, **files, "limit": self.limit}
        if self.report is not None:
            values["report"] = f"{files['out']}.report.html"
        verb = {"table": "privatize", "model": "fit"}[self.kind]
        lines = [["labeldp", verb, values.pop("source")]]
        for name, option in OPTIONS.items():
            value = values.get(name, option.default)
            if value not in (option.default, None):
                lines += _as_typed(option, value)
        return " \\\n  ".join(map(shlex.join, lines))


DIALECT = [option for option in OPTIONS.values() if option.part_of == "dialect"]
"""How a file is written."""


def _as_typed(option: Option, value: Any) -> list[list[str]]:
    """Return an option as it is typed in a shell, word by word; once for each value of a list that is repeated."""
    flag = option.all_flags[0]
    if option.type is bool:
        return [[flag]]
    if option.type == list[str]:
        return [[flag, each] for each in value]
    if option.name == "bounds":
        return [[flag, *map(plain_number, value)]]
    if isinstance(value, float | int):
        value = plain_number(float(value))
    text = {"\t": "tab", " ": "space"}.get(value, value) if isinstance(value, str) else join_names(value)
    return [[f"{flag}={text}"] if text.startswith("-") else [flag, text]]
