"""`regress_file`: a table with a private label column in, regression tables with their card out."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Sequence
from contextlib import ExitStack
from dataclasses import dataclass, replace
from os import PathLike
from pathlib import Path
from typing import Any, Unpack

from labeldp._atomic import StrPath
from labeldp._values import Data, parse_choice
from labeldp.accounts.budget import charges_name
from labeldp.accounts.ledger import Ledger
from labeldp.app.file_job import FileJob, FileOptions
from labeldp.app.inputs import LEFT_OUT, Columns, read_rows
from labeldp.app.report import render_report
from labeldp.errors import NoSolutionError, ParameterError, Setting
from labeldp.inference.families import FAMILIES
from labeldp.inference.formula import Formula
from labeldp.inference.regression_table import RegressionTable
from labeldp.inference.regressions import private_moments
from labeldp.inference.released_moments import PrivateMoments
from labeldp.inference.table_columns import side_by_side, stated_columns
from labeldp.tables.placement import OutputAndCard

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
    bounds: Any,
    epsilon: float,
    ledger: Ledger,
    on: str | Sequence[str] | None = None,
    family: str = "ols",
    weights: str | None = None,
    **options: Unpack[FileOptions],
) -> FileRegression:
    """Estimate regressions of a private column for one charge, and write their table with a card beside it.

    Parameters
    ----------
    source : path
        As in `labeldp.privatize_file`.
    out : path or list of path
        The table: .html (a report), .csv, .tex or .txt, or several of them.
    label, bounds, epsilon
        As in `labeldp.privatize_file`.
    on : str or list of str, optional
        As in `labeldp.private_moments`; without a formula all other columns are used. Of several formulas
        each is a column of the table.
    family : {"ols", "logit", "poisson"}
        Linear, logistic or Poisson regressions.
    weights : str, optional
        A public column with weights of rows; only with a formula.
    ledger : Ledger
        The ledger to charge.
    **options
        As in `labeldp.fit_file`. Rows with a gap in a column that is used are rows without a label.
    """
    formulas = [on] if isinstance(on, str) else on or []
    job = FileJob(source=source, labels=(label,), ledger=ledger, **options)
    paths = _parse_outputs(job, out)
    parse_choice(family, "family", list(FAMILIES))
    columns = _columns(formulas, weights, label)
    with job.declared(), charges_name(label), ExitStack() as stack:
        outputs = {path: stack.enter_context(OutputAndCard(path, force=job.force)) for path in paths}
        is_mean_alone = formulas and not columns.features
        rows = read_rows(job, columns, complete=not is_mean_alone, bounds=bounds, option="on")
        if not is_mean_alone:
            job.warn_of_charged(rows.public.column_names)
        job.report("Fitting")
        model: Data = {"on": formulas or None, "bounds": bounds, "family": family, "weights": weights}
        request: Data = {**job.budget(epsilon), **rows.scope, **model}
        moments = private_moments(rows.public, rows.labels, label=label, **request)
        tables = _estimate(moments, family, formulas, rows.notes)
        for path, output in outputs.items():
            _write_file(path, output, tables, rows.rights, ledger)
    return FileRegression(outputs[paths[0]].card, tables, rows.notes)


def _columns(formulas: Sequence[str], weights: str | None, label: str) -> Columns:
    """Return the columns that formulas use, with that of weights; of all rows where there is no formula."""
    if len(formulas) > MAX_FORMULAS:
        raise ParameterError(Setting("on"), f" must be at most {MAX_FORMULAS} formulas, got {len(formulas)}")
    if formulas:
        formula = Formula.joined([Formula.parse(formula, label) for formula in formulas])
        weight_columns = [] if weights is None else [weights]
        return Columns(features=[*formula.columns, *weight_columns], categories=list(formula.levels))
    return Columns()


def _write_file(
    path: Path, output: OutputAndCard, tables: Sequence[RegressionTable], rights: int, ledger: Ledger
) -> None:
    """Write a report or tables alone, and the card."""
    card = _card(tables)
    if path.suffix == REPORT:
        text = render_report(card, ledger=ledger if ledger.path else None)
    else:
        text = write_card_table(card, path.suffix)
    checksum = hashlib.sha256(text.encode()).hexdigest()
    output.put_card(_card(tables, files={path.name: checksum}), rights)
    output.put_text(text, rights)


def _parse_outputs(job: FileJob, out: StrPath | Sequence[StrPath]) -> list[Path]:
    """Return the files to write; refuse other formats, and files in each other's places."""
    paths = list(dict.fromkeys(map(Path, [out] if isinstance(out, str | PathLike) else out)))
    for path in paths:
        if path.suffix not in (REPORT, *TABLES):
            raise ParameterError(Setting("out"), f" must end in {', '.join((REPORT, *TABLES))}, got {path}")
    files = {f"the table {path.name}": path for path in paths}
    cards = {f"the card of {path.name}": path.with_name(f"{path.name}.card.json") for path in paths}
    job.refuse_same(files | cards)
    return paths


def _estimate(
    moments: PrivateMoments, family: str, formulas: Sequence[str], notes: Sequence[str]
) -> list[RegressionTable]:
    """Return a table for each formula, or of all columns, with further notes.

    The release is paid for, so a linear regression takes the place of one that has no solution.
    """
    tables: list[RegressionTable] = []
    left_out = [note for note in notes if note.startswith(LEFT_OUT)]
    all_columns: list[str | None] = [None]
    for formula in formulas or all_columns:
        try:
            table: RegressionTable = getattr(moments, family)(formula)
            remarks = left_out
        except NoSolutionError as error:
            table = moments.ols(formula)
            remarks = [*left_out, f"A linear regression, because another was impossible. {error}"]
        tables.append(replace(table, remarks=[*table.remarks, *remarks]))
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
