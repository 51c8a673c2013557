"""The command line: ``labeldp --help`` leads the way."""

from __future__ import annotations

from typing import Annotated

import typer

from labeldp import __version__
from labeldp.cli import paper
from labeldp.cli.compare import compare
from labeldp.cli.demo import demo
from labeldp.cli.explain import explain
from labeldp.cli.fit import fit
from labeldp.cli.ledger import ledger
from labeldp.cli.predict import predict
from labeldp.cli.privatize import privatize
from labeldp.cli.report import report
from labeldp.cli.verify import verify

__all__ = ["app"]

app = typer.Typer(
    help="Label differential privacy for regression: exact, proven, fast.",
    epilog="Start here:  labeldp demo",
    no_args_is_help=True,
    pretty_exceptions_show_locals=False,  # locals hold labels
)


def _version(wanted: bool) -> None:
    if wanted:
        typer.echo(f"labeldp {__version__}")
        raise typer.Exit


@app.callback()
def main(
    version: Annotated[
        bool, typer.Option("--version", callback=_version, is_eager=True, help="Show the version.")
    ] = False,
) -> None:
    """Label differential privacy for regression: exact, proven, fast."""


app.command()(demo)
app.command(
    epilog="Example:  labeldp privatize homes.parquet -o private.parquet --label price --bounds 0 5 --epsilon 1 "
    "--ledger budget.jsonl --limit 3"
)(privatize)
app.command(epilog="Example:  labeldp fit homes.parquet --label price --bounds 0 5 --epsilon 1 -o model")(fit)
app.command(epilog="Example:  labeldp predict model new-homes.csv -o priced.csv")(predict)
app.command(
    epilog="Example:  labeldp compare old-homes.csv --label price --bounds 0 5 --public --plot compare.png"
)(compare)
app.command(epilog="Example:  labeldp explain private.parquet.card.json")(explain)
app.command(epilog="Example:  labeldp verify private.parquet.card.json")(verify)
app.command(epilog="Example:  labeldp ledger budget.jsonl")(ledger)
app.command(epilog="Example:  labeldp report sales.csv.card.json --ledger budget.jsonl")(report)
app.add_typer(paper.app, name="paper")
