"""`regress_file`: a table with a private label column in, a regression table with its card out."""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from labeldp._atomic import StrPath
from labeldp._values import Data
from labeldp.accounts.cells import as_csv
from labeldp.accounts.ledger import Ledger
from labeldp.app.inputs import LEFT_OUT, Hints, read_rows
from labeldp.app.report import render_report
from labeldp.errors import ParameterError, Setting
from labeldp.inference.formula import Formula
from labeldp.inference.regression_table import RegressionTable
from labeldp.inference.regressions import private_ols
from labeldp.tables.paths import refuse_same
from labeldp.tables.placement import OutputsAndCard

if TYPE_CHECKING:
    from labeldp.tables.dialect import Dialect
    from labeldp.tables.opening import Progress


@dataclass(frozen=True, slots=True, repr=False)
class FileRegression:
    """A regression table that was written.

    Attributes
    ----------
    card : Path
        The card beside the table.
    table : RegressionTable
    notes : list of str
        How the file was read; public.
    """

    card: Path
    table: RegressionTable
    notes: list[str]


def regress_file(
    source: StrPath,
    out: StrPath,
    *,
    label: str,
    ledger: Ledger,
    on: str | None = None,
    missing: str = "error",
    format: str | None = None,
    dialect: Dialect | None = None,
    force: bool = False,
    progress: Progress | None = None,
    hints: Hints | None = None,
    **options: Any,
) -> FileRegression:
    """Estimate a linear regression of a private column, and write its table with a card beside it.

    Parameters
    ----------
    source : path
        As in `labeldp.privatize_file`, which has most other parameters too.
    out : path
        The table: .html (a report), .csv, .tex or .txt.
    label, format, dialect, force
        As in `labeldp.privatize_file`.
    missing : {"error", "drop"}
        What to do with rows without a label, or with a gap in a column that is used; both are public.
    ledger : Ledger
        The ledger to charge.
    on : str, optional
        As in `labeldp.private_ols`; without a formula all other columns are used.
    progress : callable, optional
        As in `labeldp.privatize_file`; its exception before the charge stops the release, and nothing is spent.
    hints : callable, optional
        As in `labeldp.privatize_file`: **for the owner's eyes only**.
    **options
        All others of `labeldp.private_ols`: ``epsilon`` and ``bounds`` at least.
    """
    path = Path(out)
    card = path.with_name(f"{path.name}.card.json")
    if path.suffix not in _WRITERS:
        raise ParameterError(Setting("out"), f" must end in {', '.join(_WRITERS)}, got {path}")
    refuse_same({"the table": path, "its card": card, "the ledger": ledger.path}, {"the source": source})
    formula = None if on is None else Formula.parse(on, label)
    columns = {} if formula is None else {"features": formula.columns, "categories": list(formula.levels)}
    progress = progress or (lambda *_: None)
    reading: Data = {"missing": missing, "format": format, "dialect": dialect}
    with OutputsAndCard(path, force=force) as outputs:
        rows = read_rows(source, label, columns=columns, complete=True, progress=progress, hints=hints, **reading)
        progress("Fitting", 0, None)
        table = private_ols(rows.public, rows.labels, on=on, ledger=ledger, label=label, **options)
        table = _with_notes(table, [note for note in rows.notes if note.startswith(LEFT_OUT)])
        text = _WRITERS[path.suffix](table, ledger)
        checksum = hashlib.sha256(text.encode()).hexdigest()
        outputs.put_card(table.to_card(files={path.name: checksum}), rows.rights)
        outputs.put_text(path, text, rows.rights)
    return FileRegression(card, table, rows.notes)


def _with_notes(table: RegressionTable, notes: list[str]) -> RegressionTable:
    """Return a table with further notes."""
    estimates = table.estimates
    return replace(table, estimates=replace(estimates, notes=[*estimates.notes, *notes]))


def _as_csv(table: RegressionTable) -> str:
    columns = table.columns_of()
    return as_csv([columns, *zip(*columns.values(), strict=True)])


_WRITERS: dict[str, Callable[[RegressionTable, Ledger], str]] = {
    ".html": lambda table, ledger: render_report(table.to_card(), ledger=ledger if ledger.path else None),
    ".csv": lambda table, _: _as_csv(table),
    ".tex": lambda table, _: table.to_latex() + "\n",
    ".txt": lambda table, _: table.summary() + "\n",
}
