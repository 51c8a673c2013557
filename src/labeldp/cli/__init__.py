"""The command line: ``labeldp --help`` leads the way."""

from __future__ import annotations

from typing import Annotated

import typer

from labeldp import __version__
from labeldp.cli import paper
from labeldp.cli.audit import audit_card
from labeldp.cli.demo import demo

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
app.command("audit")(audit_card)
app.add_typer(paper.app, name="paper")
