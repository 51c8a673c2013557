"""Tables for people and for Markdown, and what was measured where."""

from __future__ import annotations

import os
import platform
import subprocess
from dataclasses import dataclass, field
from pathlib import Path

from rich.table import Table

HERE = Path(__file__).parent
README = HERE / "README.md"
BEGIN, END = "<!-- results: written by make bench -->", "<!-- end of results -->"


@dataclass
class Sheet:
    """A table for both the terminal and the README."""

    title: str
    columns: list[str]
    rows: list[list[str]] = field(default_factory=list)

    def rich(self) -> Table:
        table = Table(title=self.title, title_justify="left")
        for i, column in enumerate(self.columns):
            table.add_column(column, justify="right" if i else "left")
        for row in self.rows:
            table.add_row(*row)
        return table

    def markdown(self) -> str:
        rule = ["---", *["---:"] * (len(self.columns) - 1)]
        lines = [f"| {' | '.join(row)} |" for row in (self.columns, rule, *self.rows)]
        return "\n".join([f"### {self.title}", "", *lines, ""])


def met(value: float, target: float, *, at_most: bool = False) -> str:
    good = value <= target if at_most else value >= target
    return ("≤ " if at_most else "≥ ") + f"{target:g}: " + ("met" if good else "**MISSED**")


def cpu() -> str:
    try:
        lines = Path("/proc/cpuinfo").read_text().splitlines()
    except OSError:
        return platform.processor()
    return next((line.split(":")[1].strip() for line in lines if line.startswith("model name")), "?")


def load() -> float:
    """Return how many processes wanted a core during the last minute; NaN where nobody counts."""
    return os.getloadavg()[0] if hasattr(os, "getloadavg") else float("nan")


def commit() -> str:
    command = ["git", "describe", "--always", "--dirty"]
    done = subprocess.run(command, capture_output=True, text=True, check=False, cwd=HERE)
    return done.stdout.strip() or "no commit"


def keep(text: str) -> None:
    """Write the results between the README's markers."""
    page = README.read_text(encoding="utf-8")
    before, rest = page.split(BEGIN)
    after = rest.split(END)[1]
    README.write_text(f"{before}{BEGIN}\n{text}\n{END}{after}", encoding="utf-8")


# ---- all of it --------------------------------------------------------------------------------------
