"""The figures of README.md, from the pages that benchmarks wrote: ``python -m benchmarks.readme`` puts them there.

A figure is quoted with the day and the commit that its page states, if the page is of this version. A test fails
while README.md says something else than the pages.
"""

from __future__ import annotations

import re
from pathlib import Path

import labeldp as ldp

ROOT = Path(__file__).parent.parent
BEGIN, END = "<!-- figures: written by python -m benchmarks.readme -->\n", "<!-- end of figures -->"
STAMP = re.compile(rf"(\d{{4}}-\d\d-\d\d, )?labeldp {re.escape(ldp.__version__)} \((\w+)\)")
SECTION_END = re.compile(r"^(<!-- end|## )", re.MULTILINE)
Rows = list[dict[str, str]]
"""A table's rows: cells by their headings."""


def rows_of(text: str) -> Rows:
    """Return the rows of the first table of a text."""
    table = re.search(r"(^\|.*\|\n)+", text, re.MULTILINE)
    assert table is not None
    lines = [[cell.strip(" *`") for cell in line.split("|")[1:-1]] for line in table[0].splitlines()]
    return [dict(zip(lines[0], line, strict=True)) for line in lines[2:]]


def span(values: list[str]) -> str:
    """Return the least and the largest of some numbers, as text."""
    return " to ".join(dict.fromkeys([min(values, key=float), max(values, key=float)]))


def speed(rows: Rows) -> str:
    numpy = span([row["× NumPy"] for row in rows])
    opendp, diffprivlib = (min((row[name] for row in rows), key=float) for name in ("× OpenDP", "× diffprivlib"))
    return (
        f"labels are randomised at {numpy} times the rate of NumPy's insecure Laplace noise, at least {opendp} "
        f"times OpenDP's and {diffprivlib} times diffprivlib's"
    )


def files(rows: Rows) -> str:
    memory, time = rows[-1]["peak MiB"], rows[-1]["× PyArrow's time"]
    return (
        f"labels of 4 million rows of CSV take {memory} MiB of memory, and {time} times the time in which PyArrow "
        "reads and writes the file"
    )


def models(rows: Rows) -> str:
    constant, trees = rows[0]["model, ε = 1"].split(" / ")
    return (
        f"at ε = 1 a private model has {trees} times the squared error of boosted trees without privacy, and "
        f"{constant} of a private constant's, on {len(rows) - 1} tables on which nothing of it was tuned"
    )


def held_out_peers(rows: Rows) -> str:
    _, _, _, moments, cond_dp, ebm, dp_xgboost, laplace, _ = (row["ε = 1"].split()[0] for row in rows)
    return (
        f"on the same tables a linear model of one noisy X'y has {moments} times that error, Cond-DP {cond_dp}, "
        f"DP-EBM {ebm}, DP-XGBoost {dp_xgboost}, and boosted trees on labels with Laplace noise {laplace}"
    )


def peers(rows: Rows) -> str:
    ours, _, moments, cond_dp, ebm, laplace, _ = (row["squared error, × boosted trees'"] for row in rows)
    return (
        f"on four tables that it was developed on, and that `make bench` runs, a model has {ours} times that "
        f"error, one noisy X'y {moments}, Cond-DP {cond_dp}, DP-EBM {ebm}, and trees on labels with Laplace noise "
        f"{laplace}"
    )


def intervals(rows: Rows) -> str:
    widths = [row["ε = 1"].split()[0] for row in rows if row["calibration rows"] == "1,000"]
    wider = span([f"{100 * float(width) - 100:.0f}" for width in widths])
    return f"prediction intervals for 90 % from 1,000 rows at ε = 1 are {wider} % wider than without privacy"


def audits(rows: Rows) -> str:
    passed, audited = (sum(int(row["no violation"].split(" of ")[part]) for row in rows) for part in (0, 1))
    return f"{passed} of {audited} audits from samples find no violation in the mechanisms"


FIGURES = {
    "Accuracy": (models, "benchmarks/accuracy.md", "## On held-out tables"),
    "Peers": (held_out_peers, "benchmarks/accuracy.md", "## Peers on held-out tables"),
    "To run yourself": (peers, "benchmarks/README.md", "<!-- models -->"),
    "Intervals": (intervals, "benchmarks/intervals.md", "# Intervals"),
    "Speed": (speed, "benchmarks/README.md", "<!-- speed -->"),
    "Files": (files, "benchmarks/README.md", "<!-- files -->"),
    "Audits": (audits, "benchmarks/audit.md", "<!-- ours -->"),
}
"""Each figure's sentence, its page, and the words there with which the section of its table begins."""


def figures() -> str:
    """Return the lines of README.md: figures of this version, each with its day and commit."""
    lines = [line for line in map(_line, FIGURES) if line]
    return "\n".join([*lines, ""])


def _line(name: str) -> str:
    sentence, page, heading = FIGURES[name]
    text = (ROOT / page).read_text(encoding="utf-8").partition(heading)[2]
    section = SECTION_END.split(text)[0]
    found = STAMP.search(section)
    if found is None:
        return ""
    day, commit = found.groups(default="")
    return f"- **{name}**: {sentence(rows_of(section))} ([how]({page}), {day}{commit})."


def refreshed(readme: str) -> str:
    """Return the text of README.md with the figures of now."""
    before, _, rest = readme.partition(BEGIN)
    return before + BEGIN + figures() + END + rest.partition(END)[2]


def main() -> None:
    path = ROOT / "README.md"
    path.write_text(refreshed(path.read_text(encoding="utf-8")), encoding="utf-8", newline="\n")


if __name__ == "__main__":
    main()
