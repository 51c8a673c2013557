"""``labeldp privatize``: a file in, the same file with private labels out, and its card."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from contextlib import nullcontext
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

import typer
from rich.console import Console

from labeldp.cli import options
from labeldp.cli.shell import EXIT, Bars, explained, news, progress, raise_problem, someone_looks, tell
from labeldp.jobs.reports import privatize_and_report
from labeldp.jobs.sentences import as_options, printable
from labeldp.release.plan import mechanism_choices

if TYPE_CHECKING:
    from labeldp.files import FileRelease


def privatize(
    source: options.Source,
    out: Annotated[
        str,
        typer.Option(
            "--out", "-o", metavar="OUT", help="The file to write; a folder if it ends in /, or - for a pipe."
        ),
    ],
    label: options.Label,
    bounds: options.Bounds,
    epsilon: options.Epsilon,
    mechanism: Annotated[
        str,
        typer.Option(
            metavar="NAME",
            help=f"How labels are randomised: {', '.join(mechanism_choices())}. auto takes what serves best.",
        ),
    ] = "auto",
    delta: options.Delta = 0.0,
    zeta: Annotated[
        float | None, typer.Option(metavar="ζ", help="Half-width of rp's window, as in the paper.")
    ] = None,
    epsilon_prior: Annotated[
        float | None,
        typer.Option(
            metavar="ε",
            help="The part of ε for the prior, an estimate of where labels lie; by default it follows from the "
            "number of rows and ε.",
        ),
    ] = None,
    trust: Annotated[
        Literal["curator", "local"],
        typer.Option(
            metavar="curator|local",
            help="Who sees labels before noise: a curator, or nobody (each randomised alone).",
        ),
    ] = "curator",
    debiased: Annotated[
        Literal["replace", "add", "no"],
        typer.Option(
            metavar="replace|add|no",
            help="Values as released may be pulled to the middle, and a model trained on them is wrong then. "
            "replace: the label column holds unbiased labels, so whoever trains on the file does the right thing. "
            "add: it holds the values as released, and LABEL_debiased beside it what to train on. no: only the "
            "values as released.",
        ),
    ] = "replace",
    missing: options.Missing = "error",
    shuffle: Annotated[
        bool, typer.Option("--shuffle", help="Write the rows in random order; without it their order is public.")
    ] = False,
    ledger: options.LedgerFile = None,
    limit: options.Limit = None,
    limit_delta: options.LimitDelta = 0.0,
    rows_per_person: options.RowsPerPerson = 1,
    drop: options.Drop = None,
    format: options.Format = None,
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
    card: Annotated[
        Path | None, typer.Option(metavar="FILE", help="Where the card goes; by default OUT.card.json.")
    ] = None,
    report: options.Report = None,
    force: options.Force = False,
) -> None:
    """Write a table again with private labels; all its other columns stay as they are.

    Labels become numbers that keep ε: whoever sees one, and knows everything
    else, can raise their odds on the true one by at most e^ε.

    What leaves: OUT, and OUT.card.json, which says what was done; pass it on
    with the file. All but labels is public: columns, the number of rows, and
    their order unless you --shuffle.
    """
    screen, asked = news(), someone_looks()  # now: while bars are drawn, Rich 14 says that nobody looks
    with explained():
        book = options.open_ledger(ledger, limit, limit_delta)
    with explained(
        "Stopped. A table that is there is whole, with its card beside it. What the ledger shows as spent stays "
        "spent: labels may have been read.",
        book,
    ):
        dialect = options.as_dialect(
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
        )
        with progress() as update:
            done, problems = privatize_and_report(
                source,
                out,
                label=label,
                bounds=bounds,
                epsilon=epsilon,
                mechanism=mechanism,
                delta=delta,
                zeta=zeta,
                epsilon_prior=epsilon_prior,
                trust=trust,
                debiased=debiased,
                missing=missing,
                shuffle=shuffle,
                ledger=book,
                rows_per_person=rows_per_person,
                format=format,
                dialect=dialect,
                drop=options.split_names(drop),
                force=force,
                card=card,
                report=report,
                progress=update,
                hints=partial(_ask, screen, update) if asked else None,
            )
        tell(screen, done.terms.summary())
        for note in done.notes:
            tell(screen, note)
        for name, (old, new) in done.types_changed.items():
            tell(screen, printable(f"The column {name!r} could not stay {old}: it is {new} now."))
        if not asked:
            tell(screen, "Hints on what may give labels away are shown on a terminal only.")
        _tell_where(screen, done, None if problems else report)
        if ledger is None:
            tell(screen, "Nobody adds up what is spent on these labels: --ledger FILE --limit 3 would.")
        elif book.remaining is not None:
            tell(screen, f"The ledger {ledger} has {book.remaining} left.")
        raise_problem(problems)


def _ask(screen: Console, bars: Bars | None, hints: Sequence[str]) -> None:
    """Show what gives labels away to the one who can answer, since logs are kept; stop unless told to go on."""
    with nullcontext() if bars is None else bars.aside():
        for hint in hints:
            tell(screen, f"For you alone: {as_options(hint)}", "yellow")
        tell(screen, "What you see here, and what you answer, tells something about labels: keep it to yourself.")
        screen.print("Release the table as it is? [y/N] ", end="")
        if sys.stdin.readline().strip().lower() not in ("y", "yes"):  # typer's own question writes to stdout
            tell(screen, "Stopped. Nothing was charged, and nothing written.")
            raise typer.Exit(EXIT["stopped"])


def _tell_where(screen: Console, done: FileRelease, report: Path | None) -> None:
    if done.card_path is None:
        tell(screen, "No card was kept, because the table went through a pipe: --card FILE keeps one.")
    else:
        what = "The table's card is" if done.path == "-" else f"The table is in {done.path}, its card"
        tell(screen, f"{what} in {done.card_path}; both may be made public.")
    if report is not None:
        tell(screen, f"The report is in {report}.")
