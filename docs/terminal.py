"""Draw docs/terminal.svg from a real run: ``python docs/terminal.py``.

Each command is run in a terminal of its own, 92 columns wide, and what it prints is drawn as it came.
"""

from __future__ import annotations

import io
import os
import re
import shlex
import subprocess
import sys
import tempfile
from pathlib import Path

from rich.console import Console
from rich.text import Text

from labeldp.evidence.survey import make_survey

WIDTH = 92
UP = "\x1b[1A"
"""What a progress bar says before it writes its line again."""

OUT = Path(__file__).with_suffix(".svg")
COMMANDS = [
    "head -3 survey.csv",
    "labeldp privatize survey.csv -o private.csv --label income --bounds 0 200000 --epsilon 1 "
    "--ledger budget.db --limit 2",
    "head -3 private.csv",
    "labeldp verify private.csv",
    "labeldp ledger budget.db",
]


def run(command: str, folder: Path) -> str:
    """Return what a command prints on a terminal, colours included."""
    import pty  # noqa: PLC0415 - Windows lacks it, and its tests read the examples of all files here

    leader, follower = pty.openpty()
    environment = {**os.environ, "COLUMNS": str(WIDTH), "TERM": "xterm-256color", "FORCE_COLOR": "1"}
    environment["PATH"] = f"{Path(sys.executable).parent}:{environment['PATH']}"
    process = subprocess.Popen(
        shlex.split(command),
        cwd=folder,
        stdin=follower,
        stdout=follower,
        stderr=follower,
        env=environment,
        close_fds=True,
    )
    os.close(follower)
    shown = b""
    while True:
        try:
            part = os.read(leader, 65536)
        except OSError:  # the end of a terminal
            break
        if not part:
            break
        shown += part
    os.close(leader)
    if process.wait():
        raise SystemExit(f"{command} failed:\n{shown.decode()}")
    return final_screen(shown.decode())


def final_screen(text: str) -> str:
    """Return what stays on the screen: of a line that a progress bar wrote again and again, the last."""
    lines: list[str] = []
    for line in text.replace("\r\n", "\n").split("\n"):
        for _ in range(line.count(UP)):
            lines.pop()
        shown = line.rsplit(UP, 1)[-1].rsplit("\r", 1)[-1]
        lines.append(re.sub(r"\x1b\[(2K|\?25[lh])", "", shown))
    return "\n".join(lines).strip("\n")


def draw(shown: dict[str, str], path: Path) -> None:
    """Draw commands and what each printed."""
    console = Console(record=True, width=WIDTH, file=io.StringIO(), force_terminal=True)
    for command, output in shown.items():
        console.print(Text.assemble(("$ ", "bold green"), (command, "bold")))
        console.print(Text.from_ansi(output))
        console.print()
    drawn = re.sub(r"@font-face {.*?}\n", "", console.export_svg(title="labeldp"), flags=re.DOTALL)  # no network
    path.write_text(drawn, encoding="utf-8")


def main() -> None:
    """Write the survey, run all commands, and draw them."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        survey = make_survey(20_000)
        rows = [",".join([*survey.feature_names, "income"])]
        rows += [
            ",".join([*(f"{value:g}" for value in features), f"{income:.0f}"])
            for features, income in zip(survey.features, survey.income, strict=True)
        ]
        (folder / "survey.csv").write_text("\n".join(rows) + "\n")
        here = f"{folder.resolve()}/"  # the ledger is named by its whole path
        shown = {command: run(command, folder).replace(here, "") for command in COMMANDS}
    draw(shown, OUT)


if __name__ == "__main__":
    main()
