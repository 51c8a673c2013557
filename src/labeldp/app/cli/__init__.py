"""The command line: ``labeldp --help`` leads the way.

Commands are made from the table of options, and imported when they are called, so that none waits for what it does
not use.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from functools import wraps
from importlib import import_module
from inspect import Parameter, Signature
from pathlib import Path
from typing import Annotated, Any, NamedTuple

import typer
from typer.core import TyperCommand, TyperGroup

from labeldp import __version__
from labeldp.accounts.ledger import Ledger, note_other_ledgers
from labeldp.app.cli.own_mechanisms import import_modules
from labeldp.app.cli.shell import (
    UsageError,
    confirm,
    explained,
    news,
    plain_usage,
    someone_looks,
    spell_out,
    tell,
)
from labeldp.app.option import REQUIRED, Option, parse_options
from labeldp.app.options import DIALECT, LEDGER, OPTIONS, RECORD
from labeldp.errors import LabelDPError

__all__ = ["COMMANDS", "DIALECT", "EXIT_CODES", "LEDGER", "RECORD", "app", "command", "load_command"]


class Command(NamedTuple):
    """A command before it is imported: the function of its name in a module."""

    help: str
    module: str
    example: str


COMMANDS = {
    "Start here": {
        "demo": Command(
            "See it work: private incomes of a synthetic survey, and what privacy costs.",
            "planning",
            "--rows 50000",
        ),
        "page": Command("Do the whole job in a browser, on this machine.", "privatize", "tables/"),
    },
    "Plan": {
        "preview": Command(
            "What each ε would give, before any label is read.",
            "planning",
            "--rows 20000 --bounds 0 200",
        ),
        "compare": Command(
            "For public labels: what each mechanism, regressor and ε would cost in accuracy.",
            "planning",
            "homes.parquet --label price --bounds 0 5 --public --plot compare.png",
        ),
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
        "regress": Command(
            "A table in, a regression table with intervals out, and a card.",
            "fit",
            "survey.csv --label income --bounds 0 200000 --epsilon 1 --on 'schooling + C(region)' -o table.html",
        ),
        "predict": Command(
            "Add a private model's predictions to a table.", "fit", "model new-homes.csv -o priced.csv"
        ),
    },
    "Check": {
        "explain": Command("Say in plain words what a card promises.", "cards", "private.parquet.card.json"),
        "verify": Command(
            "Run a card's proof again, and compare its file.",
            "cards",
            "private.parquet --ledger budget.jsonl",
        ),
        "audit": Command(
            "Sample a card's mechanisms, and try to break what it promises.",
            "audit",
            "private.parquet.card.json --samples 200000",
        ),
        "ledger": Command(
            "Show what was spent on what, and what is left; of several, their sums.", "ledgers", "budget.jsonl"
        ),
        "report": Command(
            "Explain a card on one HTML page, for a colleague.",
            "cards",
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


def command(
    *names: str, stopped: str = "Stopped; nothing was written.", **changes: Mapping[str, Any]
) -> Callable[[Callable[..., None]], Callable[..., None]]:
    """Make a function a command with these options; it is called with their parsed values.

    Parameters
    ----------
    *names : str
        Options, in the order of help. Those of a text file's dialect become one argument ``dialect``, and those
        of a ledger ``ledger``. Modules are imported before anything else.
    stopped : str
        What to say after Ctrl-C.
    **changes : mapping
        What an option has otherwise here, by its name.
    """
    options = {name: replace(OPTIONS[name], **changes.get(name, {})) for name in names}

    def decorate(function: Callable[..., None]) -> Callable[..., None]:
        @wraps(function)
        def run(**typed: Any) -> None:
            ledgers: list[Ledger] = []
            with explained(stopped, ledgers):
                if modules := typed.pop("modules", None):
                    import_modules(modules)
                given = parse_options(options, typed)
                if "ledger" in given:
                    ledgers.append(given["ledger"])
                    _ask_about_ledgers(given["ledger"], given["out"])
                try:
                    function(**given)
                except LabelDPError as error:
                    raise _with_others(error, given) from None

        parameters = [_parameter(option) for option in options.values()]
        run.__signature__ = Signature(parameters)  # type: ignore[attr-defined]  # what Typer reads
        run.__annotations__ = {parameter.name: parameter.annotation for parameter in parameters}
        return run

    return decorate


def _with_others(error: LabelDPError, given: dict[str, Any]) -> LabelDPError:
    """Return an error with whatever else is wrong with the table, so that all of it can be mended at once."""
    reading = {name: given[name] for name in ("source", "format", "label", "dialect", "missing") if name in given}
    if len(reading) < 5:
        return error
    from labeldp.tables.opening import all_problems  # noqa: PLC0415 (an extra)

    return all_problems(error, drop=given.get("drop", ()), **reading)


def _ask_about_ledgers(ledger: Ledger, out: str | Path) -> None:
    """Say that there is another ledger with charges beside the one in use, and ask where somebody can answer."""
    folder = Path(ledger.path or out).parent
    note = note_other_ledgers(ledger, {str(path): path for path in sorted(folder.glob("*.jsonl"))})
    if note is not None:
        tell(news(), note, style="yellow")
        if someone_looks():
            confirm(news(), "Go on with this ledger?" if ledger.path else "Go on without a ledger?")


_TYPED = {bool: bool, tuple[float, float]: tuple[str, str], list[str]: list[str], list[Path]: list[str]}
"""What Typer hands over, if it is not one text."""


def _parameter(option: Option) -> Parameter:
    """Return an option as a parameter that Typer understands; one that is not typed is None."""
    is_flag, is_required = option.type is bool, option.default is REQUIRED
    info: dict[str, Any] = {"metavar": option.metavar or ("" if is_flag else None), "help": option.help}
    info["rich_help_panel"] = option.panel or None
    if "{mechanisms}" in option.help:
        from labeldp.release.plan import mechanism_choices  # noqa: PLC0415 (slow to import)

        info["help"] = option.help.format(mechanisms=", ".join(mechanism_choices()))
    if not is_required and option.default not in (None, ()):
        info["show_default"] = _text(option.default)
    kind = typer.Option(*option.all_flags, **info) if option.all_flags else typer.Argument(**info)
    typed: Any = _TYPED.get(option.type, str)
    return Parameter(
        option.name,
        Parameter.KEYWORD_ONLY,
        default=Parameter.empty if is_required else False if is_flag else None,
        annotation=Annotated[typed if is_flag or is_required else typed | None, kind],
    )


def _text(default: object) -> str:
    return ",".join(f"{part:g}" for part in default) if isinstance(default, tuple) else str(default)


def load_command(name: str) -> Any:
    """Import a command, and return it with the help that people read."""
    found = next(panel[name] for panel in COMMANDS.values() if name in panel)
    app = typer.Typer(add_completion=False, pretty_exceptions_show_locals=False)
    function = getattr(import_module(f"labeldp.app.cli.{found.module}"), name)
    paragraphs = (" ".join(part.split()) for part in str(function.__doc__).split("\n\n"))  # lines fit the screen
    example = f"Example:  labeldp {name} {found.example}"
    app.command(name, cls=OnceCommand, help="\n\n".join(paragraphs), epilog=example)(function)
    return typer.main.get_command(app)


class OnceCommand(TyperCommand):
    """A command that takes no option twice: only the last would count, and `--drop a --drop b` would publish a."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        """Refuse an option that is there twice, unless it may be repeated."""
        seen = set()
        for parameter in self.make_parser(ctx).parse_args(args=list(args))[2]:
            if parameter.name in seen and not getattr(parameter, "multiple", True):
                several = ", with commas between names" if parameter.metavar == "COLUMNS" else ""
                raise UsageError(f"{parameter.opts[0]} is given twice: give it once{several}", ctx)
            seen.add(parameter.name)
        return super().parse_args(ctx, args)


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
