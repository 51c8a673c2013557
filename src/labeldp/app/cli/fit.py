"""``labeldp fit``: a private model from a table, in a folder that is safe to open."""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import Any

from labeldp.accounts.ledger import Ledger
from labeldp.app.cli.command import DIALECT, LEDGER, command
from labeldp.app.cli.shell import PlainConsole, news, progress, raise_problem, tell
from labeldp.app.model_fit import fit_file
from labeldp.app.reports import NO_REPORT


@command(
    *("source", "label", "bounds", "epsilon", "out", "release", "features", "drop", "categories", "missing"),
    *(*LEDGER, "rows_per_person", "score", "metrics", "format", *DIALECT, "report", "force"),
    stopped="Stopped. A model that is there is whole; the ledger, if there is one, says what was paid.",
    out={"type": Path, "metavar": "FOLDER", "help": "The folder for the model."},
)
def fit(source: str, out: Path, ledger: Ledger, release: str, report: Path | None, **given: Any) -> None:
    """Learn to predict a private column, and save a model that is ε-differentially private for every label.

    All other columns are public features: numbers, booleans, dates and text, and a missing value is no obstacle.
    The budget is charged after everything that can be checked without labels.

    What is released: the model's folder, with the model as plain numbers and its card. With --release labels,
    private labels are in it too; true labels never are.
    """
    screen, console = news(), PlainConsole()
    done = fit_file(
        source,
        out,
        ledger=ledger,
        release=release,
        report=report,
        verbose=screen.is_terminal,
        say=partial(tell, screen),
        while_reading=progress(),
        **given,
    )
    for line in (done.summary, *done.expected):
        tell(console, line)
    tell(console, f"The model is in {out}:  labeldp predict {out} TABLE -o OUT")
    if release == "labels":
        tell(console, f"The private labels are in {out / 'release.npz'} too; both may be made public.")
    if report is not None and NO_REPORT not in done.problems:
        tell(console, f"The report is in {report}.")
    if ledger.path is None:
        tell(console, "No ledger was kept: fitting these labels again costs again, and nobody counts it.")
    elif (remaining := ledger.remaining) is not None:
        tell(console, f"The ledger {ledger.path} has {remaining} left.")
    raise_problem(done.problems)
