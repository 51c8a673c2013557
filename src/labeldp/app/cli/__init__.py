"""The command line: ``labeldp --help`` leads the way.

Commands are imported when they are called, so that none waits for what it does not use.
"""

from __future__ import annotations

from importlib import import_module
from typing import Annotated, Any, NamedTuple

import typer
from typer.core import TyperCommand, TyperGroup

from labeldp import __version__
from labeldp.app.cli.shell import plain_usage, spell_out

__all__ = ["COMMANDS", "EXIT_CODES", "app", "load_command"]


class Command(NamedTuple):
    """A command before it is imported: the function of its name in a module."""

    help: str
    module: str
    example: str


COMMANDS = {
    "Start here": {
        "demo": Command(
            "See it work: private incomes of a synthetic survey, and what privacy costs.",
            "demo",
            "--rows 50000 --plot price.png",
        ),
        "page": Command("Do the whole job in a browser, on this machine.", "local_page", "tables/"),
    },
    "Plan": {
        "preview": Command(
            "What each ε would give, before any label is read.",
            "preview",
            "--rows 20000 --bounds 0 200 --wanted 2 --plot preview.png",
        )
    },
    "Release": {
        "privatize": Command(
            "A table in, the same table with private labels out, and a card.",
            "privatize",
            "homes.parquet -o private.parquet --label price --bounds 0 5 --epsilon 1 --ledger budget.jsonl",
        ),
        "fit": Command(
            "A table in, a private model out, and a card.",
            "fit",
            "homes.parquet --label price --bounds 0 5 --epsilon 1 -o model",
        ),
        "predict": Command(
            "Add a private model's predictions to a table.", "predict", "model new-homes.csv -o priced.csv"
        ),
        "compare": Command(
            "For PUBLIC labels: which mechanism and ε suit a table like yours.",
            "compare",
            "old-homes.csv --label price --bounds 0 5 --public --plot compare.png",
        ),
    },
    "Check": {
        "explain": Command(
            "Say in plain words what a card promises.", "check_commands", "private.parquet.card.json"
        ),
        "verify": Command(
            "Run a card's proof again, and check its file and its signature.",
            "check_commands",
            "private.parquet.card.json --trust owner.pub",
        ),
        "sign": Command(
            "Sign a card, so that others can tell that it is as you wrote it.",
            "sign",
            "private.parquet.card.json --key ~/.ssh/id_ed25519",
        ),
        "audit": Command(
            "Sample a card's mechanisms, and try to break what it promises.",
            "audit",
            "private.parquet.card.json --samples 200000",
        ),
        "ledger": Command("Show what was spent on what, and what is left.", "check_commands", "budget.jsonl"),
        "report": Command(
            "Explain a card on one HTML page, for a colleague.",
            "check_commands",
            "private.parquet.card.json --ledger budget.jsonl",
        ),
    },
}


EXIT_CODES = {
    0: "done",
    1: "the machine failed (no space, no permission, a missing package)",
    2: "the input or an option cannot be used",
    3: "the ledger refused (its limit would be passed, or its file cannot be trusted)",
    4: "a card, a proof or a file does not hold what it claims",
    5: "a card cannot be checked here (it names what is not known, or does not say enough)",
    130: "stopped by Ctrl-C, a signal, or an answer",
}
"""What the end of a command says to a script."""


def load_command(name: str) -> Any:
    """Import a command, and return it with the help that people read."""
    command = next(panel[name] for panel in COMMANDS.values() if name in panel)
    app = typer.Typer(add_completion=False, pretty_exceptions_show_locals=False)
    function = getattr(import_module(f"labeldp.app.cli.{command.module}"), name)
    paragraphs = (" ".join(part.split()) for part in str(function.__doc__).split("\n\n"))  # lines fit the screen
    example = f"Example:  labeldp {name} {command.example}"
    app.command(name, help="\n\n".join(paragraphs), epilog=example)(function)
    return typer.main.get_command(app)


class LazyCommand(TyperCommand):
    """A command known by its name and a line of help, until it is called."""

    def make_context(self, *args: Any, **kwargs: Any) -> Any:
        """Import the command, and let it take over."""
        return load_command(str(self.name)).make_context(*args, **kwargs)


class Commands(TyperGroup):
    """All commands, each imported when it is called."""

    def make_context(self, *args: Any, **kwargs: Any) -> Any:
        """Make the terminal or pipe take all characters, before the first word is said."""
        spell_out()
        with plain_usage():
            return super().make_context(*args, **kwargs)

    def invoke(self, ctx: Any) -> Any:
        """Run a command."""
        with plain_usage():
            return super().invoke(ctx)

    def list_commands(self, ctx: Any) -> list[str]:
        """Return the names in the order in which people need them."""
        return [name for panel in COMMANDS.values() for name in panel]

    def get_command(self, ctx: Any, cmd_name: str) -> Any:
        """Return a command that is not imported yet, or None."""
        for panel, commands in COMMANDS.items():
            if cmd_name in commands:
                return LazyCommand(cmd_name, short_help=commands[cmd_name].help, rich_help_panel=panel)
        return None


app = typer.Typer(
    cls=Commands,
    help="Label differential privacy for regression: exact, proven, fast.",
    epilog="Start here:  labeldp demo\n\nExit codes:  "
    + "; ".join(f"{code} {meaning}" for code, meaning in EXIT_CODES.items()),
    no_args_is_help=True,
    pretty_exceptions_show_locals=False,  # locals hold labels
)


def _version(show: bool) -> None:
    if show:
        typer.echo(f"labeldp {__version__}")
        raise typer.Exit


@app.callback()
def main(
    version: Annotated[
        bool, typer.Option("--version", callback=_version, is_eager=True, help="Show the version.")
    ] = False,
) -> None:
    """Label differential privacy for regression: exact, proven, fast."""
