"""The program and its commands: Typer functions with options that are read as people write numbers and names.

Modules of commands import at their top only light packages: none waits for a package that another one needs.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from copy import copy
from functools import wraps
from inspect import Parameter, Signature
from pathlib import Path
from typing import Annotated, Any

import typer
from typer.core import TyperCommand, TyperGroup

from labeldp import __version__
from labeldp._values import LabelBounds
from labeldp.accounts.ledger import Ledger, note_other_ledgers
from labeldp.app.cli.shell import (
    UsageError,
    confirm,
    exit_on_error,
    is_interactive,
    plain_usage,
    print_status,
    transliterate_output,
    warnings_as_status,
)
from labeldp.app.options import METAVARS, OPTIONS, TYPED, CommandOption, arguments, parameters

EXIT_CODES = {
    0: "done",
    1: "the machine failed (no space, no permission, a missing package)",
    2: "the input or an option cannot be used",
    3: "the ledger refused (its limit would be passed, or its file cannot be trusted)",
    4: "a card, a proof or a file is not valid",
    5: "this version cannot verify a card (a mechanism is unknown, or an entry is missing)",
    130: "stopped by Ctrl-C, a signal, or an answer",
}
"""Meanings of a command's exit code, for scripts."""


class Commands(TyperGroup):
    """All commands. Their errors are plain text that any terminal shows."""

    def make_context(self, *args: Any, **kwargs: Any) -> Any:
        """Prepare the terminal or pipe before the first word is printed."""
        transliterate_output()
        with plain_usage():
            return super().make_context(*args, **kwargs)

    def invoke(self, ctx: Any) -> Any:
        """Run a command."""
        with plain_usage():
            return super().invoke(ctx)


class OnceCommand(TyperCommand):
    """A command that takes no option twice: only the last would count, and `--drop a --drop b` would publish a."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        """Let bounds, which may be repeated, be two words each: Typer has no list of pairs."""
        super().__init__(*args, **kwargs)
        for parameter in self.params:
            if parameter.metavar == METAVARS[LabelBounds]:
                parameter.nargs = 2

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        """Refuse an option that is there twice, unless it may be repeated."""
        names = set[str]()
        is_for_several = any(parameter.name == "shares" for parameter in self.params)
        for parameter in self.make_parser(ctx).parse_args(args=list(args))[2]:
            is_repeatable = getattr(parameter, "multiple", True) and (parameter.nargs != 2 or is_for_several)
            if parameter.name in names and not is_repeatable:
                several = ", with commas between names" if parameter.metavar == "COLUMNS" else ""
                raise UsageError(f"{parameter.opts[0]} is given twice: give it once{several}", ctx)
            names.add(parameter.name)
        return super().parse_args(ctx, args)


app = typer.Typer(
    cls=Commands,
    help="Label differential privacy for regression: exact, proven, fast.",
    epilog="Start here:  labeldp demo\n\nExit codes:  "
    + "; ".join(f"{code} {meaning}" for code, meaning in EXIT_CODES.items()),
    no_args_is_help=True,
    pretty_exceptions_show_locals=False,  # locals hold labels
)


def _show_version(show: bool) -> None:
    if show:
        typer.echo(f"labeldp {__version__}")
        raise typer.Exit


@app.callback()
def main(
    version: Annotated[
        bool, typer.Option("--version", callback=_show_version, is_eager=True, help="Show the version.")
    ] = False,
) -> None:
    """Label differential privacy for regression: exact, proven, fast."""


def command(
    panel: str, example: str, *, stopped: str = "Stopped; nothing was written."
) -> Callable[[Callable[..., None]], Callable[..., None]]:
    """Add a function to the program, as the command of its name.

    Parameters
    ----------
    panel : str
        The heading in the list of commands.
    example : str
        Words after the command, for its help.
    stopped : str
        The message after Ctrl-C.
    """

    def add(function: Callable[..., None]) -> Callable[..., None]:
        @wraps(function)
        def run(**typed: Any) -> None:
            ledgers: list[Ledger] = []
            with exit_on_error(stopped, ledgers), warnings_as_status():
                values = arguments(function, typed)
                if "ledger" in values:
                    ledgers.append(values["ledger"])
                    _confirm_ledger(values["ledger"], values["out"] or values["update"], values["label"])
                function(**values)

        declared = [CommandOption.of(parameter) for parameter in parameters(function)]
        declared.sort(key=lambda option: option.default is not Parameter.empty)  # required ones come first in help
        for option in declared:
            OPTIONS.setdefault(option.name, option)
        run.__signature__ = Signature([_text_parameter(option) for option in declared])  # type: ignore[attr-defined]  # read by Typer
        paragraphs = (" ".join(paragraph.split()) for paragraph in str(function.__doc__).split("\n\n"))
        app.command(
            cls=OnceCommand,
            help="\n\n".join(paragraphs),  # lines fit the screen
            epilog=f"Example:  labeldp {function.__name__} {example}",
            rich_help_panel=panel,
        )(run)
        return function

    return add


def _as_typed(words: Any) -> Any:
    """Return the words of a pair: Typer has no list of pairs."""
    return words


def _text_parameter(option: CommandOption) -> Parameter:
    """Return an option for Typer, as text: None where it is not given."""
    info = copy(option.typer)
    info.metavar = info.metavar or METAVARS.get(option.type)
    if option.flag and not isinstance(info.default, str):
        info.default = option.flag  # as in ``Option("--flag")``
    default = option.default
    if default not in (None, (), False, True, Parameter.empty) and info.show_default is True:
        info.show_default = str(default)
    typed: Any = TYPED.get(option.type, str)
    if option.type is LabelBounds:
        info.parser = _as_typed
    if option.type is bool or default is not Parameter.empty:
        default = False if option.type is bool else None
        typed = typed | None
    return Parameter(option.name, Parameter.KEYWORD_ONLY, default=default, annotation=Annotated[typed, info])


def _confirm_ledger(ledger: Ledger, out: str | Path | list[Path] | None, label: str | Sequence[str]) -> None:
    """Warn of another ledger of the same columns beside the one in use, and ask where somebody can answer."""
    folder = Path(ledger.path or (out[0] if isinstance(out, list) else out) or "").parent
    ledgers = {str(path): path for path in sorted(folder.glob("*.db"))}
    labels = [label] if isinstance(label, str) else label
    notes = dict.fromkeys(filter(None, (note_other_ledgers(ledger, ledgers, name) for name in labels)))
    print_status(*notes, style="yellow")
    if notes and is_interactive():
        confirm("Go on with this ledger?" if ledger.path else "Go on without a ledger?")
