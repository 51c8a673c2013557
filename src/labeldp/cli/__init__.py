"""The command line: ``labeldp --help`` leads the way.

Commands are imported when they are called, so that none waits for what it does not use.
"""

from __future__ import annotations

from importlib import import_module
from typing import Annotated, Any

import typer
from typer.core import TyperCommand, TyperGroup

from labeldp import __version__

__all__ = ["app"]

COMMANDS = {
    "Start here": {
        "demo": "See it work: private incomes of a synthetic survey, and what privacy costs.",
    },
    "Release": {
        "privatize": "A table in, the same table with private labels out, and a card.",
        "fit": "A table in, a private model out, and a card.",
        "predict": "Add a private model's predictions to a table.",
        "compare": "Which mechanism and ε suit a table like yours, whose labels are public.",
    },
    "Check": {
        "explain": "Say in plain words what a card promises.",
        "verify": "Run a card's proof again, and check its file.",
        "audit": "Sample a card's mechanisms, and try to break what it promises.",
        "ledger": "Show what was spent on what, and what is left.",
        "report": "Explain a card on one HTML page, for a colleague.",
    },
}
"""Each command is the public function, or the app, of the module of its name."""


class Later(TyperCommand):
    """A command known by its name and a line of help, until it is called."""

    def make_context(self, *args: Any, **kwargs: Any) -> Any:
        """Import the command, and let it take over."""
        return _imported(str(self.name)).make_context(*args, **kwargs)


class Commands(TyperGroup):
    """All commands, each imported when it is called."""

    def list_commands(self, ctx: Any) -> list[str]:
        """Return the names in the order in which people need them."""
        return [name for panel in COMMANDS.values() for name in panel]

    def get_command(self, ctx: Any, cmd_name: str) -> Any:
        """Return a command that is not imported yet, or None."""
        for panel, commands in COMMANDS.items():
            if cmd_name in commands:
                return Later(cmd_name, short_help=commands[cmd_name], rich_help_panel=panel)
        return None


def _imported(name: str) -> Any:
    module = import_module(f"labeldp.cli.{name}")
    found = getattr(module, "app", None)
    if found is None:
        found = typer.Typer(add_completion=False, pretty_exceptions_show_locals=False)
        found.command(name, epilog=getattr(module, "EXAMPLE", None))(getattr(module, module.__all__[0]))
    command = typer.main.get_command(found)
    command.name = name
    return command


app = typer.Typer(
    cls=Commands,
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
