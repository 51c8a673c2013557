"""The command line reference, written from the help texts whenever the site is built: it cannot go stale.

`reference/cli.md` has two marks, for the exit codes and for the commands; `setup` puts what is written here there.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from itertools import groupby
from typing import Any

import typer

from labeldp.app.cli import EXIT_CODES, app

__all__ = ["command_text", "commands_text", "exit_codes_text", "setup"]

PAGE = "reference/cli"


def commands_text() -> str:
    """Return all commands in Markdown, in the order of ``labeldp --help``."""
    return "\n\n".join(map(command_text, typer.main.get_command(app).commands))


def exit_codes_text() -> str:
    """Return what each exit code means, as a table in Markdown."""
    lines = [f"| {code} | {meaning} |" for code, meaning in EXIT_CODES.items()]
    return "\n".join(["| code | meaning |", "| ---: | --- |", *lines])


def command_text(name: str) -> str:
    """Return one command in Markdown: what it does, an example, and every argument and option.

    Examples
    --------
    >>> print(command_text("ledger")[:21])
    (labeldp-ledger)=
    ##
    """
    command = typer.main.get_command(app).commands[name]
    first, *further = str(command.help).split("\n\n")
    example = str(command.epilog).removeprefix("Example:").strip()
    parts = [f"(labeldp-{name})=\n## labeldp {name}", _prose(first), f"```console\n$ {example}\n```"]
    parts += [_prose(paragraph) for paragraph in further]
    parts.append(f"```{{program}} labeldp {name}\n```")
    for panel, parameters in groupby(_by_panel(command.params), key=_panel):
        parts.append(f"**{panel}**")
        parts += [_parameter_text(parameter) for parameter in parameters]
    return "\n\n".join(parts)


def _panel(parameter: Any) -> str:
    argument = not parameter.opts[0].startswith("-")
    return parameter.rich_help_panel or ("Arguments" if argument else "Options")


def _by_panel(parameters: list[Any]) -> Iterator[Any]:
    """Yield parameters panel by panel, each panel where its first parameter is; the plain options come first."""
    panels = list(dict.fromkeys(["Arguments", "Options", *(_panel(parameter) for parameter in parameters)]))
    yield from sorted(parameters, key=lambda parameter: panels.index(_panel(parameter)))


def _parameter_text(parameter: Any) -> str:
    value = "" if getattr(parameter, "is_flag", False) else parameter.metavar or parameter.name.upper()
    names = parameter.opts if parameter.opts[0].startswith("-") else [value]
    usage = ", ".join(names if names == [value] else [f"{name} {value}".strip() for name in names])
    notes = [str(parameter.help)]
    if parameter.required:
        notes.append("*Required.*")
    elif parameter.show_default and parameter.default is not None and parameter.default is not False:
        notes.append(f"*Default:* `{parameter.default}`.")
    return f"```{{option}} {usage}\n{' '.join(notes)}\n```"


def _prose(text: str) -> str:
    """Return a paragraph of help with commands and options as code."""
    text = re.sub(r"(?<![\w-])(--[a-z][a-z-]*|labeldp [a-z]+)", r"`\1`", text)
    return re.sub(r"^Releases:", "**Releases:**", text)


def _fill(_app: Any, page: str, source: list[str]) -> None:
    if page == PAGE:
        source[0] = source[0].replace("% exit codes", exit_codes_text()).replace("% commands", commands_text())


def setup(app: Any) -> dict[str, bool]:
    """Let Sphinx fill the page."""
    app.connect("source-read", _fill)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
