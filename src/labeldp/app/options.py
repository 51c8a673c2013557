"""The table of options: each is declared here once, for the command line, the page and messages.

The command line makes its commands from the table (`labeldp.app.cli.shell`), the page its forms. An error names
options by `labeldp.errors.Setting`, which `labeldp.app.sentences` spells as a flag or as a field of the page.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

from labeldp._values import Epsilon, LabelBounds, parse_integer, parse_positive
from labeldp.accounts.budget import parse_statement
from labeldp.app.option import REQUIRED, Option, parse_amount, split_names

Fields = dict[str, Any]
"""Fields of `Option`, by name."""


def _number(metavar: str, parse: Callable[[Any], Any] | None = None) -> Fields:
    return {"type": float, "metavar": metavar, "parse": parse}


def _parse_epsilons(text: str) -> list[float]:
    return [parse_amount(part, "epsilon") for part in split_names(text)]


def _statement(name: str) -> Fields:
    """Return the fields of an option that takes a line of text for the card."""
    fields = {"purpose": "What it is for", "recipient": "Who gets it", "bounds_reason": "Why these bounds"}
    parse = partial(parse_statement, name=name)
    return {"parse": parse, "metavar": "TEXT", "panel": "For the record", "field": fields[name]}


_POSITIONAL: Fields = {"default": REQUIRED, "flags": ()}
_COLUMNS: Fields = {"default": (), "parse": split_names, "metavar": "COLUMNS"}
_SEVERAL: Fields = {"type": list[str], "default": (), "parse": split_names}
_INTEGER: Fields = {"type": int, "metavar": "N"}
_FILE: Fields = {"type": Path, "metavar": "FILE"}
_FLAG: Fields = {"type": bool, "default": False}
_LEDGER: Fields = {"panel": "Budget", "part_of": "ledger"}
_TEXT: Fields = {"panel": "How a text file is written, where it does not show", "part_of": "dialect"}
_HEADER: Fields = {"panel": "Header and totals, of text files and sheets", "part_of": "dialect"}
_EXCEL: Fields = {"panel": "Excel", "part_of": "dialect"}

_TABLE = (
    # what is read and written
    Option(
        "source",
        "A table: a CSV, TSV, Excel or Parquet file.",
        metavar="IN",
        **_POSITIONAL,
    ),
    Option(
        "out",
        "The file to write.",
        default=REQUIRED,
        metavar="OUT",
        flags=("--out", "-o"),
        field="Name of the output",
    ),
    Option("label", "The private column, a number.", default=REQUIRED, metavar="COLUMN", field="Private column"),
    Option(
        "bounds",
        "Public bounds of the label, known without looking at the data; labels outside are clipped.",
        type=tuple[float, float],
        default=REQUIRED,
        parse=LabelBounds,
        metavar="LOW HIGH",
        field="Lowest and highest possible value",
    ),
    Option(
        "epsilon",
        "The whole privacy budget; a smaller ε is more private.",
        default=REQUIRED,
        **_number("ε", Epsilon),
        flags=("--epsilon", "-e"),
        field="Privacy budget (ε)",
    ),
    Option(
        "release",
        "What is released: the model alone, or private labels too; both predict about as well.",
        default="model",
        metavar="model|labels",
    ),
    Option(
        "label_transform",
        "Learn this function of a skewed label, such as an income: log, which needs a lower bound above 0, or "
        "sqrt. Predictions are in the label's own unit.",
        metavar="log|sqrt",
        field="Scale that it learns on",
        choices={
            "": "as it is",
            "log": "logarithm, for incomes and prices",
            "sqrt": "square root, for counts",
        },
    ),
    # how labels are randomised
    Option(
        "mechanism",
        "How labels are randomised: {mechanisms}. auto takes the one with the least expected error.",
        default="auto",
        metavar="NAME",
    ),
    Option("zeta", "Half-width of rp's window, as in the paper.", **_number("ζ")),
    Option(
        "epsilon_prior",
        "The part of ε for the prior, an estimate of where labels lie; by default it follows from the number of "
        "rows and ε.",
        **_number("ε"),
    ),
    Option(
        "trust",
        "Who sees labels before noise: a curator, or nobody (each is randomised on its own).",
        default="curator",
        metavar="curator|local",
    ),
    Option(
        "debiased",
        "Values as released may be biased towards the middle, and so is a model trained on them. replace: the "
        "label column holds unbiased labels, to train on. no: it holds the values as released.",
        default="replace",
        metavar="replace|no",
    ),
    Option(
        "missing",
        "Rows whose label is missing or not finite: stop, or leave them out (which rows is public then).",
        default="error",
        metavar="error|drop",
        field="Leave out rows without a private value",
    ),
    Option(
        "shuffle",
        "Write the rows in random order; without it their order is public.",
        **_FLAG,
        field="Random order of rows",
    ),
    # columns
    Option("features", "Columns to learn from, such as a,b,c; all by default.", **_COLUMNS),
    Option("drop", "Columns to leave out, such as id,name.", **_COLUMNS, field="Leave out"),
    Option("categories", "Columns of numbers that are categories, such as zip,region.", **_COLUMNS),
    Option(
        "keep",
        "Columns to copy though the model does not use them, such as id,name. Others are left out: they may hold "
        "true labels, and with true labels OUT is not private.",
        **_COLUMNS,
    ),
    Option("column", "Name of the new column.", default="prediction", metavar="NAME"),
    # a regression
    Option(
        "on",
        "A formula of columns, such as 'schooling + age**2 + C(region, ref=\"north\")'; by default all columns.",
        metavar="FORMULA",
        field="Formula",
    ),
    # the score of a model
    Option(
        "score",
        "Additional ε, to measure the error on a tenth of the rows, held out.",
        **_number("ε", partial(Epsilon, name="score")),
        field="More budget (ε) for a score",
    ),
    # the ledger
    Option(
        "ledger",
        "File that records what is spent on these labels, and refuses more than its limit; created if new.",
        **_FILE,
        **_LEDGER,
        field="Ledger file",
    ),
    Option(
        "limit",
        "The limit of ε, for a new ledger.",
        **_number("ε", partial(parse_positive, name="limit")),
        **_LEDGER,
        field="Limit of the ledger (ε)",
    ),
    Option(
        "rows_per_person",
        "Rows that one person may have; the cost covers them all.",
        default=1,
        parse=partial(parse_integer, name="rows_per_person"),
        **_INTEGER,
        panel="Budget",
        field="Rows that one person may have",
    ),
    # what the owner says of it
    Option("purpose", "What the release is for: on the card and in the ledger.", **_statement("purpose")),
    Option("recipient", "Who gets it: on the card and in the ledger.", **_statement("recipient")),
    Option(
        "bounds_reason",
        "How the bounds were chosen without looking at the labels: on the card and in the ledger.",
        **_statement("bounds_reason"),
    ),
    # how a file is written
    Option(
        "format",
        "Format of the table, where its name does not show it: csv, tsv, xlsx or parquet.",
        metavar="NAME",
    ),
    Option(
        "separator",
        "Character between values, such as ';' or tab; by default as the header shows.",
        metavar="MARK",
        **_TEXT,
        field="Between values",
        choices={"": "as the header shows", ",": "comma", ";": "semicolon", "tab": "tab", "|": "vertical bar"},
    ),
    Option(
        "decimal",
        "Decimal mark, . or ','; by default as public columns show.",
        metavar="MARK",
        **_TEXT,
        field="Decimal mark",
        choices={"": "as the public columns show", ".": "point: 1.5", ",": "comma: 1,5"},
    ),
    Option(
        "thousands",
        "Mark between thousands, . or ',' or space; by default as public columns show.",
        metavar="MARK",
        **_TEXT,
        field="Between thousands",
        choices={
            "": "as the public columns show",
            ",": "comma: 1,000",
            ".": "point: 1.000",
            "space": "space: 1 000",
            "'": "apostrophe: 1'000",
        },
    ),
    Option(
        "encoding",
        "Such as cp1252 or utf-16; by default as a byte-order mark shows, else utf-8.",
        metavar="NAME",
        **_TEXT,
        field="Encoding",
        choices={
            "": "as the file shows, or UTF-8",
            "cp1252": "Western Europe, Windows (cp1252)",
            "cp1250": "Central Europe, Windows (cp1250)",
            "cp1251": "Cyrillic, Windows (cp1251)",
            "iso8859-1": "Latin 1 (ISO 8859-1)",
            "mac-roman": "old Mac (mac-roman)",
            **{name: name.upper() for name in ("utf-8", "utf-8-sig", "utf-16", "utf-16-le", "utf-16-be")},
        },
    ),
    Option(
        "na",
        "A word for missing values beside the usual ones; may be repeated.",
        metavar="WORD",
        **_SEVERAL,
        **_TEXT,
        field="Words for missing values",
    ),
    Option(
        "header",
        "The first row names the columns, though names read as values (years).",
        **_FLAG,
        **_HEADER,
        field="The first row names the columns",
    ),
    Option(
        "skip",
        "Title lines above the header, or rows of a sheet, that are not read, such as 3.",
        default=0,
        **_INTEGER,
        **_HEADER,
        field="Lines above the header",
    ),
    Option(
        "skip_last",
        "Totals below the table, such as 1: lines, or rows of a sheet, that are not read, for a total releases "
        "every label again. 0 keeps a last row that looks like one.",
        **_INTEGER,
        **_HEADER,
        field="Totals below the table",
    ),
    Option("sheet", "Which sheet; by default the only one.", metavar="NAME", **_EXCEL, field="Sheet"),
    # cards, reports and figures
    Option(
        "card_file",
        "A card, the file it lies beside, or a model's folder.",
        type=Path,
        metavar="CARD",
        **_POSITIONAL,
    ),
    Option("summary", "One A4 page for a data-protection impact assessment.", **_FLAG),
    Option(
        "paid_from",
        "The ledger that it was charged to: it must hold these charges, and a report shows what is left.",
        **_FILE,
        flags=("--ledger",),
    ),
    Option("ledgers", "Ledger files.", type=list[Path], metavar="LEDGER...", **_POSITIONAL),
    Option("file", "What was released with it; found by its name beside the card.", **_FILE, flags=()),
    Option("report", "Write a report, an HTML page that explains the release.", **_FILE, field="With a report"),
    Option("plot", "Draw the curves: a .png, .svg or .pdf file.", **_FILE),
    Option("force", "Replace what is there.", **_FLAG),
    Option("csv", "Write every figure in full, as CSV.", **_FILE),
    Option("latex", "Write the tables for a paper, as LaTeX with booktabs.", **_FILE),
    Option("as_json", "For scripts: the same as JSON.", **_FLAG, flags=("--json",)),
    Option(
        "modules",
        "Mechanisms of your own: a file, such as ./mine.py, or an installed module; the current folder is not "
        "searched. It is run: name only what you trust.",
        metavar="MODULE",
        **_SEVERAL,
        flags=("--import",),
    ),
    Option("model", "The folder that labeldp fit wrote.", type=Path, metavar="MODEL", **_POSITIONAL),
    # previews, comparisons and audits
    Option("rows", "How many rows the table has.", default=REQUIRED, **_INTEGER),
    Option("columns", "Columns of a regression table, to show the ± of its intervals.", **_INTEGER),
    Option(
        "repeats",
        "Fits of each regressor at each ε: their errors vary by chance.",
        default=2,
        parse=partial(parse_integer, name="repeats", low=1, high=100),
        **_INTEGER,
    ),
    Option(
        "mechanisms",
        "Some of {mechanisms}, with commas; by default all.",
        default=(),
        parse=split_names,
        metavar="NAMES",
    ),
    Option("public", "The labels are public, or synthetic.", **_FLAG),
    Option("samples", "Outputs to draw for each of four labels.", default=1_000_000, **_INTEGER),
    Option("confidence", "Probability that a true claim is not refuted.", default=0.999999, **_number("P")),
    # the page
    Option("folder", "The folder with your tables.", type=Path, default=Path(), metavar="FOLDER", flags=()),
    Option("no_open", "Do not open the browser; only show the address.", **_FLAG),
    Option(
        "port",
        "The port; 0 takes any that is free.",
        default=0,
        parse=partial(parse_integer, name="port", low=0, high=65535),
        **_INTEGER,
    ),
)

EPSILONS: Fields = {
    "type": str,
    "parse": _parse_epsilons,
    "metavar": "NUMBERS",
    "default": (0.1, 0.3, 1.0, 3.0),
    "help": "Values of ε, with commas.",
}
"""How the option ``epsilon`` differs where several values can be given."""

OPTIONS = {option.name: option for option in _TABLE}
"""Every option, by its name."""

DIALECT = tuple(name for name, option in OPTIONS.items() if option.part_of == "dialect")
LEDGER = tuple(name for name, option in OPTIONS.items() if option.part_of == "ledger")
RECORD = ("purpose", "recipient", "bounds_reason")
"""Options of how a file is written, of the ledger, and of what the owner says of a release."""
