"""``labeldp fit``: a private model from a table, in a folder that is safe to open."""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import Annotated, Literal

import typer

from labeldp.cli import options
from labeldp.cli.shell import PlainConsole, explained, news, progress, raise_problem, tell
from labeldp.jobs.model_fit import fit_file
from labeldp.jobs.reports import NO_REPORT


def fit(
    source: options.Source,
    label: options.Label,
    bounds: options.Bounds,
    epsilon: options.Epsilon,
    out: Annotated[Path, typer.Option("--out", "-o", metavar="FOLDER", help="The folder for the model.")],
    release: Annotated[
        Literal["model", "labels"],
        typer.Option(
            metavar="model|labels",
            help="What leaves: the model alone, which mostly predicts better, or private labels too.",
        ),
    ] = "model",
    features: options.Features = None,
    drop: options.Drop = None,
    categories: options.Categories = None,
    missing: options.Missing = "error",
    delta: options.Delta = 0.0,
    ledger: options.LedgerFile = None,
    limit: options.Limit = None,
    limit_delta: options.LimitDelta = 0.0,
    rows_per_person: options.RowsPerPerson = 1,
    score: Annotated[
        float | None,
        typer.Option(metavar="ε", help="ε more, to measure the error on a tenth of the rows, held out."),
    ] = None,
    metrics: Annotated[
        str, typer.Option(metavar="NAMES", help="What --score measures, such as rmse,mae,r2: they share its ε.")
    ] = "rmse,mae",
    format: options.InputFormat = None,
    separator: options.Separator = None,
    decimal: options.Decimal = None,
    thousands: options.Thousands = None,
    encoding: options.Encoding = None,
    na: options.Na = None,
    multiline: options.Multiline = None,
    header: options.Header = False,
    names: options.Names = None,
    sheet: options.SheetName = None,
    formulas: options.Formulas = None,
    report: options.Report = None,
    force: options.Force = False,
) -> None:
    """Learn to predict a private column, and save a model that keeps ε for every label.

    All other columns are public features: numbers, booleans, dates and text,
    and a missing value is no obstacle. The budget is charged after everything
    that can be checked without labels.

    What leaves: the model's folder, with the model as plain numbers and its
    card. With --release labels, private labels are in it too; true labels never
    are.
    """
    with explained():
        book = options.open_ledger(ledger, limit, limit_delta)
    with explained(
        "Stopped. A model that is there is whole; the ledger, if there is one, says what was paid.", book
    ):
        screen, console = news(), PlainConsole()
        done = fit_file(
            source,
            out,
            label=label,
            bounds=bounds,
            epsilon=epsilon,
            ledger=book,
            release=release,
            features=options.split_names(features),
            drop=options.split_names(drop),
            categories=options.split_names(categories),
            missing=missing,
            delta=delta,
            rows_per_person=rows_per_person,
            score=score,
            metrics=options.split_names(metrics),
            format=format,
            dialect=options.as_dialect(
                separator,
                decimal,
                thousands,
                encoding,
                na,
                sheet,
                formulas,
                header=header,
                names=names,
                multiline=multiline,
            ),
            report=report,
            force=force,
            verbose=screen.is_terminal,
            say=partial(tell, screen),
            while_reading=progress(),
        )
        tell(console, done.summary)
        for line in done.expected:
            tell(console, line)
        tell(console, f"The model is in {out}:  labeldp predict {out} TABLE -o OUT")
        if release == "labels":
            tell(console, f"The private labels are in {out / 'release.npz'} too; both may be made public.")
        if report is not None and NO_REPORT not in done.problems:
            tell(console, f"The report is in {report}.")
        if book.remaining is not None:
            tell(console, f"The ledger {ledger} has {book.remaining} left.")
        elif ledger is None:
            tell(console, "No ledger was kept: fitting these labels again costs again, and nobody counts it.")
        raise_problem(done.problems)
