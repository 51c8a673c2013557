"""``labeldp report``: a card as one page that explains what was done."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Annotated

import typer

from labeldp.cli.card_file import read_card_file
from labeldp.cli.shell import explained, news

__all__ = ["report"]

EXAMPLE = "Example:  labeldp report private.parquet.card.json --ledger budget.jsonl"


def report(
    card: Annotated[
        Path, typer.Argument(help="The card, the file it lies beside, or a model's folder.", show_default=False)
    ],
    out: Annotated[
        Path | None,
        typer.Option("--out", "-o", help="Where to write; by default beside the card.", show_default=False),
    ] = None,
    ledger: Annotated[
        Path | None, typer.Option(help="A ledger, to show what is left.", show_default=False)
    ] = None,
    force: Annotated[bool, typer.Option("--force", help="Replace a file that is there.")] = False,
) -> None:
    """Explain a card on one HTML page: what left, what it cost, what it protects, what to expect.

    The card is checked and its proof run again. The page is one file, to send or to print; it loads nothing.
    """
    with explained():
        from labeldp.ledger_file import FileLedger  # noqa: PLC0415
        from labeldp.report import write_report  # noqa: PLC0415

        found, text = read_card_file(card)
        target = out or found.with_name(f"{found.name.removesuffix('.json').removesuffix('.card')}.report.html")
        spent = None if ledger is None else FileLedger(os.fspath(ledger), create=False)
        write_report(target, text, ledger=spent, force=force)
        news().print(f"The report is in {target}", markup=False, highlight=False, soft_wrap=True)
