"""The figures of README.md, from the pages that benchmarks wrote: ``python -m benchmarks.readme`` puts them there.

Pages measured at this version of labeldp are quoted, and those of ``QUOTED`` with their version; README links to
the others. A test fails while README.md says something else than those pages.
"""

from __future__ import annotations

import re
from pathlib import Path

import labeldp as ldp

QUOTED = [ldp.__version__]
ROOT = Path(__file__).parent.parent
BEGIN, END = "<!-- figures: written by python -m benchmarks.readme -->\n", "<!-- end of figures -->"


def table(page: str, after: str) -> list[list[str]]:
    """Return the rows of the first table after some words on a page of this repository."""
    text = (ROOT / page).read_text(encoding="utf-8").partition(after)[2]
    lines = re.findall(r"^\|.*\|$", text.split("\n\n", 2)[1], re.MULTILINE)[2:]
    if not lines:
        raise ValueError(f"{page} has no table after {after!r}: its benchmark writes it in another form now")
    return [[cell.strip(" *") for cell in line.split("|")[1:-1]] for line in lines]


def span(values: list[str]) -> str:
    """Return the least and the largest of some numbers, as text."""
    return " to ".join(dict.fromkeys([min(values, key=float), max(values, key=float)]))


def speed() -> str:
    rows = [
        row for row in table("benchmarks/README.md", "### Million labels a second, and") if "NumPy" not in row[0]
    ]
    opendp, diffprivlib = (min(int(row[place]) for row in rows) for place in (6, 7))
    return (
        f"{span([row[3] for row in rows])} million labels a second on one core: {span([row[4] for row in rows])} "
        f"times NumPy's insecure Laplace noise, at least {opendp} times OpenDP and {diffprivlib} times diffprivlib"
    )


def files() -> str:
    rows = {row[0]: row for row in table("benchmarks/files.md", "### Private files")}
    row = rows["csv, 16 Mi rows: labeldp privatize"]
    return (
        f"16 million rows of CSV take {row[5]} MiB of memory, and {row[3]} of the time in which PyArrow reads and "
        "writes them"
    )


def models() -> str:
    means = {
        row[0]: row
        for row in table("benchmarks/accuracy.md", "Error over the private constant's")
        if "mean" in row[1]
    }
    constant, trees = means["model"][2].split(" / ")
    return (
        f"at ε = 1 a private model has {trees} times the squared error of boosted trees without privacy, and "
        f"{constant} of a private constant's, on 15 tables on which nothing of it was tuned"
    )


def intervals() -> str:
    rows = [row for row in table("benchmarks/intervals.md", "over 100 draws") if row[1] == "1,000"]
    wider = span([f"{100 * float(row[5].split()[0]) - 100:.0f}" for row in rows])
    return f"prediction intervals for 90 % from 1,000 rows at ε = 1 are {wider} % wider than without privacy"


def audits() -> str:
    passed, audited = (
        sum(int(row[-1].split(" of ")[place]) for row in table("benchmarks/audit.md", "### Our mechanisms"))
        for place in (0, 1)
    )
    others = [row for row in table("benchmarks/audit.md", "### Other libraries") if "diffprivlib" in row[0]]
    detected = sum(row[-1] == "VIOLATION" for row in others)
    return (
        f"{passed} of {audited} audits from samples find no violation in these mechanisms; {detected} of "
        f"{len(others)} detect the leak in diffprivlib's floating-point noise"
    )


def mutants() -> str:
    text = (ROOT / "docs/mutants.md").read_text(encoding="utf-8")
    total, noticed, equivalent, left = re.findall(
        r"\*\*([\d,]+) mutants .*?: ([\d,]+) noticed, ([\d,]+) equivalent, ([\d,]+) left", text
    )[0]
    return (
        f"of {total} deliberate mistakes in privacy-critical code, tests and types detect {noticed}; {equivalent} "
        f"change no behaviour; {left} was left (counted before those tests were merged)"
    )


FIGURES = {
    "speed": (speed, "benchmarks/README.md"),
    "memory": (files, "benchmarks/files.md"),
    "accuracy": (models, "benchmarks/accuracy.md"),
    "intervals": (intervals, "benchmarks/intervals.md"),
    "audits": (audits, "benchmarks/audit.md"),
    "mutation tests": (mutants, "docs/mutants.md"),
}


def measured_version(page: str) -> str:
    """Return the version that all figures of a page were measured at, or no text if there are several."""
    versions = set(re.findall(r"labeldp (\d+\.\d+\.\d+)", (ROOT / page).read_text(encoding="utf-8")))
    return versions.pop() if len(versions) == 1 else ""


def figures() -> str:
    """Return the lines of README.md: figures of quoted versions, and links to pages of others."""
    lines: list[str] = []
    others: list[str] = []
    for name, (text, page) in FIGURES.items():
        version = measured_version(page)
        if version not in QUOTED:
            others.append(f"[{name}]({page})")
            continue
        mark = "" if version == ldp.__version__ else f" (version {version})"
        lines.append(f"- **{name.capitalize()}**{mark}: {text()} ([how]({page})).")
    if others:
        lines.append(f"- Measured with earlier versions: {', '.join(others)}.")
    return "\n".join([*lines, ""])


def refreshed(readme: str) -> str:
    """Return the text of README.md with the figures of now."""
    before, _, rest = readme.partition(BEGIN)
    return before + BEGIN + figures() + END + rest.partition(END)[2]


def main() -> None:
    path = ROOT / "README.md"
    path.write_text(refreshed(path.read_text(encoding="utf-8")), encoding="utf-8", newline="\n")


if __name__ == "__main__":
    main()
