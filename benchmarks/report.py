"""Tables for people and for Markdown, and what was measured where."""

from __future__ import annotations

import os
import platform
import subprocess
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path

from rich.table import Table

import labeldp as ldp

HERE = Path(__file__).parent
README = HERE / "README.md"


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
    """Return the commit, and ``-dirty`` if the library differs from it: pages that are written do not count."""
    command = ["git", "rev-parse", "--short=8", "HEAD"]
    done = subprocess.run(command, capture_output=True, text=True, check=False, cwd=HERE)
    compare = ["git", "diff", "--quiet", "HEAD", "--", "../src"]
    changed = subprocess.run(compare, check=False, cwd=HERE).returncode
    return (done.stdout.strip() or "no commit") + ("-dirty" if changed else "")


def stamp() -> str:
    """Return the day, the version with its commit, and the machine with its load."""
    return (
        f"{datetime.now(UTC):%Y-%m-%d}, labeldp {ldp.__version__} ({commit()}), {cpu()}, {os.cpu_count()} cores, "
        f"load {load():.1f}"
    )


def keep(part: str, text: str, page: Path = README) -> None:
    """Write results between the markers of a part of a page."""
    begin, end = f"<!-- {part} -->", f"<!-- end of {part} -->"
    before, rest = page.read_text(encoding="utf-8").split(begin)
    after = rest.split(end)[1]
    page.write_text(f"{before}{begin}\n{text}\n{end}{after}", encoding="utf-8", newline="\n")
