"""``labeldp privatize``: a file in, the same file with private labels out, and its card."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

from labeldp.cli.late_ledger import LateLedger
from labeldp.cli.options import (
    Bounds,
    Delta,
    Epsilon,
    Force,
    Format,
    Label,
    LedgerFile,
    Limit,
    LimitDelta,
    Missing,
    Policy,
    Report,
    RowsPerPerson,
    Source,
)
from labeldp.cli.shell import as_options, explained, news, printable, someone_looks, tell
from labeldp.ledger import Ledger
from labeldp.release.choice import NEEDS_PRIOR

if TYPE_CHECKING:
    from labeldp.files import FileRelease

__all__ = ["privatize"]

EXAMPLE = (
    "Example:  labeldp privatize homes.parquet -o private.parquet --label price --bounds 0 5 "
    "--epsilon 1 --ledger budget.jsonl --limit 3"
)


class Unbiased(StrEnum):
    """Where unbiased labels go."""

    REPLACE = "replace"
    ADD = "add"
    NO = "no"


class Trust(StrEnum):
    """Who sees labels before noise."""

    CURATOR = "curator"
    LOCAL = "local"


def privatize(
    source: Source,
    out: Annotated[
        str,
        typer.Option(
            "--out", "-o", help="The file to write; a folder if it ends in /, or - for a pipe.", show_default=False
        ),
    ],
    label: Label,
    bounds: Bounds,
    epsilon: Epsilon,
    mechanism: Annotated[
        str,
        typer.Option(help=f"How labels are randomised: {', '.join(NEEDS_PRIOR)}. auto takes what serves best."),
    ] = "auto",
    delta: Delta = 0.0,
    zeta: Annotated[
        float | None, typer.Option(help="Half-width of rp's window, as in the paper.", show_default=False)
    ] = None,
    epsilon_prior: Annotated[
        float | None,
        typer.Option(help="The part of ε spent on where labels are; by default it follows.", show_default=False),
    ] = None,
    trust: Annotated[
        Trust, typer.Option(help="Who sees labels before noise: a curator, or nobody (each randomised alone).")
    ] = Trust.CURATOR,
    debiased: Annotated[
        Unbiased,
        typer.Option(
            help="Values as released may be pulled to the middle, and a model trained on them is wrong then. "
            "replace: the label column holds unbiased labels, so whoever trains on the file does the right thing. "
            "add: it holds the values as released, and LABEL_debiased beside it what to train on. no: only the "
            "values as released."
        ),
    ] = Unbiased.REPLACE,
    missing: Missing = Policy.error,
    shuffle: Annotated[
        bool, typer.Option("--shuffle", help="Write the rows in random order; without it their order is public.")
    ] = False,
    ledger: LedgerFile = None,
    limit: Limit = None,
    limit_delta: LimitDelta = 0.0,
    rows_per_person: RowsPerPerson = 1,
    format: Format = None,
    card: Annotated[
        Path | None, typer.Option(help="Where the card goes; by default OUT.card.json.", show_default=False)
    ] = None,
    report: Report = None,
    force: Force = False,
) -> None:
    """Write a table again with private labels; all its other columns stay as they are.

    Labels become numbers that keep ε: whoever sees one, and knows everything
    else, can raise their odds on the true one by at most e^ε. All but labels
    is public: columns, the number of rows, and their order unless you
    --shuffle. OUT.card.json says what was done; pass it on with the file.
    """
    screen = news()
    with explained():
        till = LateLedger(ledger, limit, limit_delta)
    with explained(
        "Stopped. A table that is there is whole, with its card beside it. What the ledger shows as spent stays "
        "spent: labels may have been read.",
        till.spent_for_nothing,
    ):
        from labeldp.files import privatize_file  # noqa: PLC0415 (slow to import)
        from labeldp.files.places import refuse_target  # noqa: PLC0415

        if report is not None:
            import matplotlib as _  # noqa: F401, PLC0415 (if it is missing, say so before labels are paid for)

            from labeldp.report import write_report  # noqa: PLC0415

            refuse_target(str(report), force=force)
        hints: list[str] = []
        with _shown(screen) as progress:
            done = privatize_file(
                source,
                out,
                label=label,
                bounds=bounds,
                epsilon=epsilon,
                mechanism=mechanism,
                delta=delta,
                zeta=zeta,
                epsilon_prior=epsilon_prior,
                trust=trust.value,
                debiased=debiased.value,
                missing=missing.value,
                shuffle=shuffle,
                ledger=till,
                rows_per_person=rows_per_person,
                format=format,
                force=force,
                card=card,
                others={"the ledger": ledger, "the report": report},
                progress=progress,
                hints=hints.append if someone_looks() else None,
            )
        if report is not None:
            write_report(report, done.card, ledger=till, force=force)
        tell(screen, done.terms.summary())
        for name, (old, new) in done.types_changed.items():
            tell(screen, printable(f"The column {name!r} could not stay {old}: it is {new} now."))
        seen = _tell_hints(screen, hints)
        _tell_where(screen, done, report, warned=seen)
        _tell_ledger(screen, ledger, till)


@contextmanager
def _shown(screen: Console) -> Iterator[Callable[[str, int, int | None], None] | None]:
    """Show a bar where someone is looking."""
    if not screen.is_terminal:
        yield None
        return
    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeRemainingColumn())
    with Progress(*columns, console=screen, transient=True) as bar:
        tasks: dict[str, Any] = {}

        def update(what: str, done: int, total: int | None) -> None:
            if what not in tasks:
                tasks[what] = bar.add_task(f"{what} labels", total=total)
            bar.update(tasks[what], completed=done)

        yield update


def _tell_hints(screen: Console, hints: Sequence[str]) -> bool:
    """Show what gives labels away to eyes only, since logs are kept and read by others; return whether it was."""
    if not someone_looks():
        tell(screen, "Hints on what may give labels away are shown on a terminal only.")
        return False
    for hint in hints:
        tell(screen, f"For you alone: {as_options(hint)}", "yellow")
    return bool(hints)


def _tell_where(screen: Console, done: FileRelease, report: Path | None, *, warned: bool) -> None:
    if done.card_path is None:
        tell(screen, "No card was kept, because the table went through a pipe: --card FILE keeps one.")
    else:
        what = "The table's card is" if done.path == "-" else f"The table is in {done.path}, its card"
        then = "look at the hints above before you pass them on" if warned else "both may be made public"
        tell(screen, f"{what} in {done.card_path}; {then}.")
    if report is not None:
        tell(screen, f"The report is in {report}.")


def _tell_ledger(screen: Console, path: Path | None, ledger: Ledger | None) -> None:
    if path is None:
        tell(screen, "Nobody adds up what is spent on these labels: --ledger FILE --limit 3 would.")
    elif ledger is not None and ledger.remaining is not None:
        tell(screen, f"The ledger {path} has {ledger.remaining} left.")
