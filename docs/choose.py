"""The tables of choose.md, by `labeldp.preview`: ``python docs/choose.py`` writes them anew."""

from __future__ import annotations

from pathlib import Path

import labeldp as ldp

PAGE = Path(__file__).with_name("choose.md")
EPSILONS = (0.1, 0.3, 1.0, 3.0)
ROWS = (500, 5_000, 50_000)
START, END = "<!-- tables of docs/choose.py -->\n", "<!-- end of the tables -->\n"


def tables() -> str:
    """Return a table for each number of rows, for bounds from 0 to 100."""
    parts = []
    for rows in ROWS:
        header, lines = ldp.preview(rows=rows, bounds=(0, 100), epsilon=EPSILONS).table()
        parts += [f"## {rows:,} rows\n", "| " + " | ".join(header) + " |"]
        parts += ["| --- |" + " ---: |" * len(EPSILONS), *("| " + " | ".join(line) + " |" for line in lines), ""]
    return "\n".join(parts) + "\n"


def with_tables(text: str) -> str:
    """Return the page with tables of today."""
    before, _, rest = text.partition(START)
    return f"{before}{START}\n{tables()}{END}{rest.partition(END)[2]}"


if __name__ == "__main__":
    PAGE.write_text(with_tables(PAGE.read_text(encoding="utf-8")), encoding="utf-8")
