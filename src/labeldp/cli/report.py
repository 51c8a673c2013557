"""``labeldp report``: a card as one page that explains what was done."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from labeldp.cli.card_file import read_card_file
from labeldp.cli.options import Force
from labeldp.cli.shell import explained, news, tell

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
    force: Force = False,
) -> None:
    """Explain a card on one HTML page: what left, what it cost, what it protects, what to expect.

    The card is checked and its proof run again. The page is one file, to send or to print; it loads nothing.
    """
    with explained():
        from labeldp.files.places import refuse_same  # noqa: PLC0415
        from labeldp.ledger import Ledger  # noqa: PLC0415
        from labeldp.report import write_report  # noqa: PLC0415

        path, text = read_card_file(card)
        target = out or path.with_name(f"{path.name.removesuffix('.json').removesuffix('.card')}.report.html")
        refuse_same({"the report": target}, {"the card": path, "the ledger": ledger})
        spent = None if ledger is None else Ledger.open(ledger, create="never")
        write_report(target, text, ledger=spent, force=force)
        tell(news(), f"The report is in {target}")
