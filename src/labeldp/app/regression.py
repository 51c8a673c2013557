"""`regress_file`: a table with a private label column in, regression tables with their card out."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Sequence
from contextlib import ExitStack
from dataclasses import dataclass, replace
from os import PathLike
from pathlib import Path
from typing import TYPE_CHECKING, Any

from labeldp._atomic import StrPath
from labeldp._values import Data, parse_choice
from labeldp.accounts.budget import charges_name
from labeldp.accounts.ledger import Ledger
from labeldp.app.inputs import LEFT_OUT, Hints, read_rows
from labeldp.app.report import render_report
from labeldp.app.row_columns import RowColumns
from labeldp.errors import NoSolutionError, ParameterError, Setting
from labeldp.inference.families import FAMILIES
from labeldp.inference.formula import Formula
from labeldp.inference.regression_table import RegressionTable
from labeldp.inference.regressions import private_moments
from labeldp.inference.released_moments import PrivateMoments
from labeldp.inference.table_columns import side_by_side, stated_columns
from labeldp.tables.paths import refuse_same
from labeldp.tables.placement import OutputsAndCard

if TYPE_CHECKING:
    from labeldp.tables.dialect import Dialect
    from labeldp.tables.opening import Progress


REPORT = ".html"
"""The ending of reports."""

TABLES = (".csv", ".tex", ".txt")
"""The endings of files that have a table alone."""

MAX_FORMULAS = 50
"""The largest number of tables side by side: a card of more might be longer than is read."""


@dataclass(frozen=True, slots=True, repr=False)
class FileRegression:
    """Regression tables that were written.

    Attributes
    ----------
    card : Path
        The card beside the first file.
    tables : list of RegressionTable
        One for each formula; all of them follow from one release.
    notes : list of str
        How the file was read; public.
    """

    card: Path
    tables: list[RegressionTable]
    notes: list[str]

    @property
    def table(self) -> RegressionTable:
        """The last of the tables, whose figures are on the card."""
        return self.tables[-1]

    def __str__(self) -> str:
        return self.table.summary() if len(self.tables) == 1 else str(side_by_side(*self.tables))


def regress_file(
    source: StrPath,
    out: StrPath | Sequence[StrPath],
    *,
    label: str,
    ledger: Ledger,
    on: str | Sequence[str] | None = None,
    family: str = "ols",
    weights: str | None = None,
    missing: str = "error",
    format: str | None = None,
    dialect: Dialect | None = None,
    force: bool = False,
    progress: Progress | None = None,
    hints: Hints | None = None,
    segment: str | None = None,
    segment_by: str | None = None,
    id: str | None = None,
    person: str | None = None,
    most_rows_per_person: int | None = None,
    **options: Any,
) -> FileRegression:
    """Estimate regressions of a private column for one charge, and write their table with a card beside it.

    Parameters
    ----------
    source : path
        As in `labeldp.privatize_file`, which has most other parameters too.
    out : path or list of path
        The table: .html (a report), .csv, .tex or .txt, or several of them.
    label, format, dialect, force
        As in `labeldp.privatize_file`.
    on : str or list of str, optional
        As in `labeldp.private_moments`; without a formula all other columns are used. Of several formulas
        each is a column of the table.
    family : {"ols", "logit", "poisson"}
        Linear, logistic or Poisson regressions.
    weights : str, optional
        A public column with weights of rows; only with a formula.
    missing : {"error", "drop"}
        What to do with rows without a label, or with a gap in a column that is used; both are public.
    ledger : Ledger
        The ledger to charge.
    progress : callable, optional
        As in `labeldp.privatize_file`; its exception before the charge stops the release, and nothing is spent.
    hints : callable, optional
        As in `labeldp.privatize_file`: **for the owner's eyes only**.
    segment, segment_by, id, person, most_rows_per_person
        As in `labeldp.privatize_file`.
    **options
        All others of `labeldp.private_moments`: ``epsilon`` and ``bounds`` at least.
    """
    paths = [Path(path) for path in ([out] if isinstance(out, str | PathLike) else out)]
    texts = [on] if isinstance(on, str) else list(on or [])
    if len(texts) > MAX_FORMULAS:
        raise ParameterError(Setting("on"), f" must be at most {MAX_FORMULAS} formulas, got {len(texts)}")
    outputs = {path: OutputsAndCard(path, force=force) for path in paths}
    _refuse_outputs(paths, source, ledger)
    parse_choice(family, "family", list(FAMILIES))
    formula = Formula.joined([Formula.parse(text, label) for text in texts]) if texts else None
    if weights is not None and formula is None:
        raise ParameterError(
            Setting("weights", weights), " needs a formula of the other columns: give ", Setting("on")
        )
    weight_columns = [] if weights is None else [weights]
    columns: Data = {}
    if formula is not None:
        columns = {"features": [*formula.columns, *weight_columns], "categories": list(formula.levels)}
    progress = progress or (lambda *_: None)
    scope = RowColumns(segment, segment_by, id, person, most_rows_per_person)
    reading: Data = {"missing": missing, "format": format, "dialect": dialect, "scope": scope}
    reading["bounds"] = options.get("bounds")
    with ExitStack() as stack:
        for output in outputs.values():
            stack.enter_context(output)
        rows = read_rows(source, label, columns=columns, complete=True, progress=progress, hints=hints, **reading)
        progress("Fitting", 0, None)
        shared = {"family": family, "ledger": ledger, "label": label, **options, **rows.scope}
        with charges_name(label):
            moments = private_moments(rows.public, rows.labels, on=texts or None, weights=weights, **shared)
        notes = [note for note in rows.notes if note.startswith(LEFT_OUT)]
        tables = _estimate(moments, family, texts or [None], notes)
        for path, output in outputs.items():
            text = _file_text(_card(tables), path.suffix, ledger)
            checksum = hashlib.sha256(text.encode()).hexdigest()
            output.put_card(_card(tables, files={path.name: checksum}), rows.rights)
            output.put_text(path, text, rows.rights)
    return FileRegression(outputs[paths[0]].card, tables, rows.notes)


def _file_text(card: str, ending: str, ledger: Ledger) -> str:
    """Return the text of a file: a report, or the table alone."""
    if ending == REPORT:
        return render_report(card, ledger=ledger if ledger.path else None)
    return write_card_table(card, ending)


def _refuse_outputs(paths: Sequence[Path], source: StrPath, ledger: Ledger) -> None:
    """Refuse files of other formats, and files in each other's places."""
    for path in paths:
        if path.suffix not in (REPORT, *TABLES):
            raise ParameterError(Setting("out"), f" must end in {', '.join((REPORT, *TABLES))}, got {path}")
    files = {f"the table {path.name}": path for path in paths}
    cards = {f"the card of {path.name}": path.with_name(f"{path.name}.card.json") for path in paths}
    refuse_same(files | cards | {"the ledger": ledger.path}, {"the source": source})


def _estimate(
    moments: PrivateMoments, family: str, texts: Sequence[str | None], notes: list[str]
) -> list[RegressionTable]:
    """Return a table for each formula, or of all columns, with further notes.

    The release is paid for, so a linear regression takes the place of one that has no solution.
    """
    tables: list[RegressionTable] = []
    for text in texts:
        table_notes = notes
        try:
            table: RegressionTable = getattr(moments, family)(text)
        except NoSolutionError as error:
            table = moments.ols(text)
            table_notes = [*notes, f"A linear regression, because another was impossible. {error}"]
        tables.append(replace(table, remarks=[*table.remarks, *table_notes]))
    return tables


def _card(tables: Sequence[RegressionTable], **entries: Any) -> str:
    """Return the card of the last table, with all tables side by side if there are several."""
    if len(tables) > 1:
        entries["side_by_side"] = side_by_side(*tables).cells
    return tables[-1].to_card(**entries)


def write_card_table(card: str, ending: str) -> str:
    """Return the regression table of a card, or its tables side by side, as text of a file.

    Parameters
    ----------
    card : str
    ending : {".csv", ".tex", ".txt"}
    """
    table = RegressionTable.from_card(card)
    columns = stated_columns(table, json.loads(card).get("side_by_side"))
    printed = table if columns is None else columns
    if ending == ".csv":
        return printed.to_csv()
    if ending == ".tex":
        return f"{printed.to_latex()}\n"
    return f"{table.summary() if columns is None else columns}\n"
