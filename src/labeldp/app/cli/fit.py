"""``labeldp fit``, ``regress`` and ``predict``: private models, regression tables, and predictions."""

from __future__ import annotations

import shlex
from pathlib import Path
from typing import Annotated

from typer import Argument, Option

from labeldp._values import Epsilon
from labeldp.accounts.ledger import ledger_notes
from labeldp.app.cli.commands import command
from labeldp.app.cli.shell import hint_prompt, hints_note, print_result, print_status, progress
from labeldp.app.options import (
    ColumnOptions,
    DialectOptions,
    Field,
    Force,
    Format,
    Formulas,
    Label,
    LedgerOptions,
    Names,
    ReleaseOptions,
    Source,
)
from labeldp.errors import ParameterError, Setting


@command(
    "Release",
    "homes.parquet --label price --bounds 0 5 --epsilon 1 -o model",
    stopped="Stopped. A model that is there is whole; the ledger, if there is one, lists its charges.",
)
def fit(
    source: Source,
    out: Annotated[
        Path | None,
        Option("--out", "-o", metavar="FOLDER", help="The folder for the model; with --update, by default that."),
    ] = None,
    *,
    label: Label,
    ledger: LedgerOptions,
    update: Annotated[
        Path | None,
        Option(
            metavar="FOLDER",
            help="The folder of a model that learns on from these rows: they alone cost, and with --segment they "
            "do not add to rows of other segments; a first fit without "
            "one counts for all rows. Columns, bounds and transform stay those of the model.",
        ),
    ] = None,
    keep_rows: Annotated[
        bool,
        Option(
            "--keep-rows",
            help="Keep private labels one by one in the folder, with the public columns of their rows as codes: "
            "trees learn on from them.",
        ),
    ] = False,
    release: Annotated[
        str,
        Option(
            metavar="model|labels",
            help="Release the model alone, or private labels too; both predict about as well.",
        ),
    ] = "model",
    columns: ColumnOptions,
    label_transform: Annotated[
        str | None,
        Option(
            metavar="log|sqrt",
            help="Learn this function of a skewed label, such as an income: log, which needs a lower bound above "
            "0, or sqrt. Predictions are in the label's own unit.",
        ),
        Field(
            "Scale that it learns on",
            {"": "as it is", "log": "logarithm, for incomes and prices", "sqrt": "square root, for counts"},
        ),
    ] = None,
    score: Annotated[
        Epsilon | None,
        Option(
            help="ε of a tenth of the rows, held out to measure the error; no more than --epsilon costs nothing "
            "beyond it."
        ),
        Field("Budget (ε) for a score"),
    ] = None,
    **shared: ReleaseOptions,
) -> None:
    """Learn to predict a private column, and save a model that is ε-differentially private for every label.

    All other columns are public features: numbers, booleans, dates and text, and values may be missing. The budget
    is charged after everything that can be checked without labels.

    Releases: the model's folder, with the model as plain numbers, the measurements of labels, and its card. With
    --release labels, private labels are in it too; true labels never are.
    """
    from labeldp.app.model_fit import fit_file

    folder = out or update
    if folder is None:
        raise ParameterError(Setting("out"), " is missing: give the folder for the model")
    with progress() as bars:
        hints = hint_prompt(bars, "Fit a model to these columns?")
        model = fit_file(
            source,
            folder,
            label=label,
            ledger=ledger,
            update=update,
            keep_rows=keep_rows,
            release=release,
            **columns,
            label_transform=label_transform,
            score=score,
            progress=bars,
            hints=hints,
            **shared,
        )
    locations = [f"The model is in {folder}:  labeldp predict {shlex.quote(str(folder))} TABLE -o OUT"]
    if release == "labels":
        locations.append(f"The private labels are in {folder / 'release.npz'} too; both may be made public.")
    print_result(model.summary, *model.notes, *hints_note(hints), *locations, *ledger_notes(ledger))
    if model.score_error is not None:
        print_status("The error of the model could not be measured.", style="red")
        raise model.score_error


@command(
    "Release",
    "survey.csv --label income --bounds 0 200000 --epsilon 1 --on 'schooling + C(region)' -o table.html",
    stopped="Stopped. A table that is there is whole; the ledger, if there is one, lists its charges.",
)
def regress(
    source: Source,
    out: Annotated[
        list[Path],
        Option(
            "--out",
            "-o",
            metavar="FILE",
            help="The table to write: .html (a report), .csv, .tex or .txt; may be repeated, for one charge.",
        ),
    ],
    label: Label,
    *,
    ledger: LedgerOptions,
    on: Annotated[
        Formulas | None,
        Option(
            metavar="FORMULA",
            help="A formula of columns, such as 'schooling + age**2 + C(region, ref=\"north\")'; by default all "
            "columns. May be repeated: each is a column of the table, for one charge.",
        ),
        Field("Formula"),
    ] = None,
    weights: Annotated[
        str | None, Option(metavar="COLUMN", help="A public column with weights of rows, such as a survey's.")
    ] = None,
    family: Annotated[
        str,
        Option(metavar="ols|logit|poisson", help="A linear regression, one of yes or no (0 and 1), or of counts."),
        Field(
            "The private column is", {"ols": "a number", "logit": "yes or no, as 1 and 0", "poisson": "a count"}
        ),
    ] = "ols",
    **shared: ReleaseOptions,
) -> None:
    """Estimate regressions of a private column: coefficients, standard errors, intervals and p-values.

    All other columns are public. Intervals include the noise. The budget is charged after
    everything that can be checked without labels.

    Releases: the table and its card, OUT.card.json; several formulas and files cost no more than one. True labels
    are in none.
    """
    from labeldp.app.regression import regress_file

    with progress() as bars:
        hints = hint_prompt(bars, "Estimate the regression on these columns?")
        regression = regress_file(
            source,
            out,
            label=label,
            on=on,
            family=family,
            weights=weights,
            ledger=ledger,
            progress=bars,
            hints=hints,
            **shared,
        )
    print_status(*regression.notes, *hints_note(hints))
    files = " and ".join(map(str, out))
    locations = f"The table is in {files}, its card in {regression.card}:  labeldp verify {regression.card}"
    print_result(str(regression), locations, *ledger_notes(ledger))


@command("Release", "model new-homes.csv -o priced.csv")
def predict(
    model: Annotated[Path, Argument(metavar="MODEL", help="The folder that labeldp fit wrote.")],
    source: Source,
    out: Annotated[str, Option("--out", "-o", metavar="OUT", help="The table to write.")],
    *,
    column: Annotated[str, Option(help="Name of the new column.")] = "prediction",
    keep: Annotated[
        Names,
        Option(
            help="Columns to copy though the model does not use them, such as id,name. Others are left out: they "
            "may hold true labels, and with true labels OUT is not private."
        ),
    ] = (),
    format: Format = None,
    dialect: DialectOptions,
    force: Force = False,
) -> None:
    """Add a private model's predictions to a table.

    Columns are found by name, in any order. Whatever is done with a private model costs no more ε.

    Releases: OUT, with the columns of IN that the model uses, those that you --keep, and the predictions.
    Other columns may hold true labels, whatever they are called: they are not read, and left out. The column that
    the model predicts is never copied.
    """
    from labeldp.app.model_predictions import predict_file

    with progress() as bars:
        predictions = predict_file(
            model,
            source,
            out,
            column=column,
            keep=keep,
            format=format,
            dialect=dialect,
            force=force,
            progress=bars,
        )
    print_status(
        f"{predictions.rows:,} rows, with {predictions.label!r} as predicted in the column {column!r}: {out}",
        *predictions.notes,
    )
    if keep:
        print_status("With true labels among the columns that you keep, the output is not private.")
