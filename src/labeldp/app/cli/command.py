"""Commands made from the table of options: their signatures, and what was typed parsed before they run."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from functools import wraps
from inspect import Parameter, Signature
from typing import Annotated, Any

import typer

from labeldp.app.cli.shell import explained
from labeldp.app.option import REQUIRED, Option, join_names, parse_options, split_names
from labeldp.app.options import OPTIONS

DIALECT = tuple(name for name, option in OPTIONS.items() if option.part_of == "dialect")
LEDGER = tuple(name for name, option in OPTIONS.items() if option.part_of == "ledger")


def command(
    *names: str, stopped: str = "Stopped; nothing was written.", **changes: Mapping[str, Any]
) -> Callable[[Callable[..., None]], Callable[..., None]]:
    """Make a function a command with these options; it is called with their parsed values.

    Parameters
    ----------
    *names : str
        Options, in the order of help. Those of a text file's dialect become one argument ``dialect``, and those
        of a ledger ``ledger``.
    stopped : str
        What to say after Ctrl-C.
    **changes : mapping
        What an option has otherwise here, by its name.
    """
    options = [replace(OPTIONS[name], **changes.get(name, {})) for name in names]

    def decorate(function: Callable[..., None]) -> Callable[..., None]:
        @wraps(function)
        def run(**typed: Any) -> None:
            with explained():
                given = parse_options(options, typed)
            with explained(stopped, given["ledger"] if "limit" in typed else None):
                function(**given)

        parameters = [_parameter(option) for option in options]
        run.__signature__ = Signature(parameters)  # type: ignore[attr-defined]  # what Typer reads
        run.__annotations__ = {parameter.name: parameter.annotation for parameter in parameters}
        return run

    return decorate


def _parameter(option: Option) -> Parameter:
    """Return an option as a parameter that Typer understands."""
    info: dict[str, Any] = {"metavar": option.metavar or None, "help": option.help}
    if "{mechanisms}" in option.help:
        from labeldp.release.plan import mechanism_choices  # noqa: PLC0415 (slow to import)

        info["help"] = option.help.format(mechanisms=", ".join(mechanism_choices()))
    if option.panel:
        info["rich_help_panel"] = option.panel
    default = option.default
    if option.parse is split_names and option.type is str:
        default = join_names(default) or None
    declared: Any = option.type if default not in (None, ()) else option.type | None
    kind = typer.Option(*option.all_flags, **info) if option.all_flags else typer.Argument(**info)
    return Parameter(
        option.name,
        Parameter.KEYWORD_ONLY,
        default=Parameter.empty if default is REQUIRED else default or (False if option.type is bool else default),
        annotation=Annotated[declared, kind],
    )
