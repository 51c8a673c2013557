"""``labeldp design`` and ``collect``: a card for a form, and what its reports show."""

from __future__ import annotations

import json
import shlex
from pathlib import Path
from typing import Annotated

from typer import Option

from labeldp._atomic import atomic_file
from labeldp._values import Epsilon, LabelBounds
from labeldp.accounts.numbers import number, percent
from labeldp.app.cli.commands import command
from labeldp.app.cli.shell import print_result, print_table, progress
from labeldp.app.options import (
    Bounds,
    ColumnOptions,
    DialectOptions,
    Force,
    Format,
    Label,
    Missing,
    RowsPerPerson,
    Source,
)
from labeldp.tables.paths import Target, refuse_same


@command("Survey", "--bounds 0 200000 --epsilon 1 -o salary.card.json")
def design(
    bounds: Bounds,
    epsilon: Annotated[
        Epsilon, Option("--epsilon", "-e", help="The cost of one answer; a smaller ε is more private.")
    ],
    out: Annotated[
        Path, Option("--out", "-o", metavar="CARD", help="The card to write, such as salary.card.json.")
    ],
    public_prior: Annotated[
        Path | None,
        Option(
            "--prior",
            metavar="FILE",
            help="About where answers lie, by public knowledge: a CSV file with the columns low, high and share, "
            "a line for each bin.",
        ),
    ] = None,
    mechanism: Annotated[
        str,
        Option(
            help="How answers are randomised: auto, rp, two-point, unbiased, laplace or staircase. auto takes the "
            "least noise of means and models; two-point shows no histogram."
        ),
    ] = "auto",
    for_model: Annotated[
        int | None,
        Option(
            metavar="REPORTS",
            help="For a model of so many reports alone: clips answers that are rare by --prior, for less noise.",
        ),
    ] = None,
    force: Force = False,
) -> None:
    """Design a card for a form: people randomise their answers on their own devices, before they send them.

    Releases: nothing. No answer is read, and nothing is spent.
    """
    from labeldp.app.histogram_files import read_histogram
    from labeldp.evidence.designs import certainty, design_card, forecast, forecast_table

    refuse_same({"the card": out}, {"the prior": public_prior})
    Target(str(out), force).refuse()
    histogram = None if public_prior is None else read_histogram(public_prior).restricted(*LabelBounds(bounds))
    designed = design_card(bounds=bounds, epsilon=epsilon, prior=histogram, mechanism=mechanism, rows=for_model)
    text = designed.to_json()
    with atomic_file(out, public=True, replace=force) as draft:
        draft.write_text(text, encoding="ascii", newline="\n")
    print_result(f"The card is in {out}: {designed.name}, of {len(text):,} characters.")
    print_table(*forecast_table(forecast(designed, histogram)), "Typical errors")
    if for_model is not None:
        low, high = map(number, designed.domain)
        print_result(
            f"The card counts answers below {low} as {low}, and above {high} as {high}: for models alone."
        )
    print_result(
        "The errors assume answers "
        + (
            "as in the prior. Shares are those of ten equal bins."
            if histogram
            else "that are mostly in the lower half of the bounds. Shares are those of ten equal bins: if most "
            "answers lie in few of these, errors are up to five times as large."
        )
        + " A model is one of ten columns; its error comes on top of what "
        "columns cannot explain.",
        f"Say on the form: from the answer that is sent, nobody can be more than {percent(certainty(epsilon))} "
        "sure which of two answers you gave, if both were equally likely before.",
        f"Its checksum, for the page: {json.loads(text)['checksum']}",
    )


@command("Survey", "reports.csv --label salary --card salary.card.json -o model")
def collect(
    source: Source,
    label: Label,
    card: Annotated[
        list[Path],
        Option(metavar="CARD", help="The card of the form; several, one after another, if it was changed."),
    ],
    out: Annotated[
        str, Option("--out", "-o", metavar="OUT", help="A folder for a model, or a .csv, .tsv or .parquet file.")
    ],
    *,
    card_column: Annotated[
        str,
        Option(metavar="COLUMN", help="The column with the checksum of each value's card, as the form sends it."),
    ] = "card",
    histogram: Annotated[
        Path | None,
        Option(metavar="FILE", help="Write the histogram of the answers: low, high, share. A prior for design."),
    ] = None,
    columns: ColumnOptions,
    missing: Missing = "error",
    rows_per_person: RowsPerPerson = 1,
    force: Force = False,
    format: Format = None,
    dialect: DialectOptions,
) -> None:
    """Turn answers that people randomised themselves into a mean, and into a model or a table of unbiased labels.

    IN has a row for each respondent: the released value in the column --label, and public answers in the others. A
    value that its card cannot draw is refused by its row; rows are counted without the header and without those
    that have no value. No ledger is charged: the respondents spent the ε, and the card of OUT states it.

    Releases: OUT with its card and its report page. All of it follows from the reports.
    """
    from labeldp.app.collection import collect_file

    with progress() as bars:
        collection = collect_file(
            source,
            out,
            card=card,
            label=label,
            card_column=card_column,
            histogram=histogram,
            **columns,
            missing=missing,
            rows_per_person=rows_per_person,
            force=force,
            format=format,
            dialect=dialect,
            progress=bars,
        )
    is_model = collection.card.name == "card.json"
    use = f":  labeldp predict {shlex.quote(out)} TABLE -o OUT" if is_model else ""
    print_result(
        f"{len(collection.reports):,} reports, {collection.reports.charge.budget} for each respondent.",
        *collection.notes,
        f"The {'model' if is_model else 'table'} is in {out}{use}",
        f"Its report is in {collection.page}.",
        *([] if histogram is None else [f"The histogram is in {histogram}: a prior for labeldp design."]),
    )
