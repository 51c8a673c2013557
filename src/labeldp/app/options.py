"""The table of options: each is declared here once, for the command line, the page and messages.

The command line makes its commands from the table (`labeldp.app.cli.command`), the page its forms. An error names
options by `labeldp.errors.Setting`, which `labeldp.app.sentences` spells as a flag or as a field of the page.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

from labeldp._values import (
    Count,
    Delta,
    Epsilon,
    LabelBounds,
    parse_choice,
    parse_integer,
    parse_number,
    parse_positive,
)
from labeldp.accounts.scores import DEFAULT_METRICS
from labeldp.app.option import REQUIRED, Option, split_names
from labeldp.errors import ParameterError, Setting


def _choice(name: str, *choices: str) -> dict[str, Any]:
    return {"parse": partial(parse_choice, name=name, choices=choices), "metavar": "|".join(choices)}


def _number(metavar: str, parse: Callable[[Any], Any]) -> dict[str, Any]:
    return {"type": float, "parse": parse, "metavar": metavar}


def integer(name: str, least: int = 1, most: float = math.inf) -> dict[str, Any]:
    """Return what an option of integers has."""
    return {"type": int, "parse": partial(parse_integer, name=name, least=least, most=most), "metavar": "N"}


def _listed(name: str, example: str) -> dict[str, Any]:
    return {"parse": partial(_numbers, name=name, example=example), "metavar": "NUMBERS"}


def _between(low: float, high: float, name: str) -> Callable[[Any], float]:
    def parse(value: Any) -> float:
        number = parse_number(value, name)
        if not low <= number <= high:
            raise ParameterError(Setting(name), f" must lie between {low:g} and {high!r}, got {number:g}")
        return number

    return parse


def _numbers(value: str, name: str, example: str) -> list[float]:
    """Return numbers that were typed with commas between."""
    try:
        numbers = [float(part) for part in split_names(value)]
    except ValueError:
        numbers = []
    if not numbers:
        raise ParameterError(Setting(name), f" must be numbers with commas between them, such as {example}")
    return numbers


_NAMES: dict[str, Any] = {"default": (), "parse": split_names, "metavar": "COLUMNS"}
_FILE: dict[str, Any] = {"type": Path, "metavar": "FILE"}
_FLAG: dict[str, Any] = {"type": bool, "default": False}
_BUDGET = "Budget"
_LEDGER: dict[str, Any] = {"panel": _BUDGET, "part_of": "ledger"}
_TEXT: dict[str, Any] = {"panel": "How a text file is written, where it does not show", "part_of": "dialect"}
_HEADER: dict[str, Any] = {"panel": "Names of columns, of text files and sheets", "part_of": "dialect"}
_EXCEL: dict[str, Any] = {"panel": "Excel", "part_of": "dialect"}

_TABLE = (
    # what is read and written
    Option(
        "source",
        "A table: CSV, TSV, Excel, Parquet, Arrow or Feather; a file, a folder, a glob in quotes, or - (pipe).",
        default=REQUIRED,
        metavar="IN",
        flags=(),
    ),
    Option(
        "out",
        "The file to write; a folder if it ends in /, or - for a pipe.",
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
        "The whole privacy budget; less is more private.",
        default=REQUIRED,
        **_number("ε", Epsilon),
        flags=("--epsilon", "-e"),
        field="Privacy budget (ε)",
    ),
    Option(
        "release",
        "What is released: the model alone, which mostly predicts better, or private labels too.",
        default="model",
        **_choice("release", "model", "labels"),
    ),
    # how labels are randomised
    Option(
        "mechanism",
        "How labels are randomised: {mechanisms}. auto takes the one with the least expected error.",
        default="auto",
        metavar="NAME",
    ),
    Option("delta", "δ, for mechanisms that need one.", default=0.0, **_number("δ", Delta)),
    Option(
        "zeta", "Half-width of rp's window, as in the paper.", **_number("ζ", partial(parse_positive, name="zeta"))
    ),
    Option(
        "epsilon_prior",
        "The part of ε for the prior, an estimate of where labels lie; by default it follows from the number of "
        "rows and ε.",
        **_number("ε", partial(parse_number, name="epsilon_prior")),
    ),
    Option(
        "trust",
        "Who sees labels before noise: a curator, or nobody (each is randomised on its own).",
        default="curator",
        **_choice("trust", "curator", "local"),
    ),
    Option(
        "debiased",
        "Values as released may be pulled to the middle, and a model trained on them is wrong then. replace: the "
        "label column holds unbiased labels, which are right to train on. add: it holds the values as released, "
        "and LABEL_debiased beside it what to train on. no: only the values as released.",
        default="replace",
        **_choice("debiased", "replace", "add", "no"),
    ),
    Option(
        "missing",
        "Rows whose label is missing or not finite: stop, or leave them out (which rows is public then).",
        default="error",
        **_choice("missing", "error", "drop"),
        field="Leave out rows without a label",
    ),
    Option(
        "shuffle",
        "Write the rows in random order; without it their order is public.",
        **_FLAG,
        field="Random order of rows",
    ),
    # columns
    Option("features", "Columns to learn from, such as a,b,c; all by default.", **_NAMES),
    Option("drop", "Columns to leave out, such as id,name.", **_NAMES, field="Leave out"),
    Option("categories", "Columns of numbers that name things, such as zip,region.", **_NAMES),
    Option(
        "keep",
        "Columns to copy though the model does not use them, such as id,name. Others are left out: they may hold "
        "true labels, and with true labels OUT is not private.",
        **_NAMES,
    ),
    Option("column", "The new column's name.", default="prediction", metavar="NAME"),
    # the score of a model
    Option(
        "score",
        "ε more, to measure the error on a tenth of the rows, held out.",
        **_number("ε", partial(Epsilon, name="score")),
        field="ε more for a score",
    ),
    Option(
        "metrics",
        "What --score measures, such as rmse,mae,r2: they share its ε.",
        default=DEFAULT_METRICS,
        parse=split_names,
        metavar="NAMES",
    ),
    # the ledger
    Option(
        "ledger",
        "Keeps what was spent on these labels, and refuses more than its limit; created if new.",
        **_FILE,
        **_LEDGER,
        field="Ledger file",
    ),
    Option(
        "limit",
        "The most ε that a new ledger ever lets be spent.",
        **_number("ε", _between(0, math.inf, "limit")),
        **_LEDGER,
        field="Limit of the ledger (ε)",
    ),
    Option(
        "limit_delta",
        "The most δ that a new ledger ever lets be spent.",
        default=0.0,
        **_number("δ", _between(0, 1, "limit_delta")),
        **_LEDGER,
    ),
    Option(
        "rows_per_person",
        "Rows that one person may have; the cost covers them all.",
        type=int,
        default=1,
        parse=partial(Count, name="rows_per_person"),
        metavar="N",
        panel=_BUDGET,
        field="Rows that one person may have",
    ),
    # how a file is written
    Option(
        "format",
        "Format of the table, where its name does not show it: csv, tsv, xlsx, parquet, arrow or arrow-stream.",
        metavar="NAME",
    ),
    Option(
        "separator",
        "What stands between values, such as ';' or tab; the header shows it.",
        metavar="MARK",
        **_TEXT,
        field="Between values",
        choices={"": "as the header shows", ",": "comma", ";": "semicolon", "tab": "tab", "|": "vertical bar"},
    ),
    Option(
        "decimal",
        "The decimal mark, . or ','; public columns show it.",
        metavar="MARK",
        **_TEXT,
        field="Decimal mark",
        choices={"": "as the public columns show", ".": "point: 1.5", ",": "comma: 1,5"},
    ),
    Option(
        "thousands",
        "The mark between thousands: . or ',' or space; public columns show it.",
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
        "Such as latin-1 or utf-16; public columns show the usual ones.",
        metavar="NAME",
        **_TEXT,
        field="Encoding",
    ),
    Option(
        "na",
        "A word for missing values beside the usual ones; may be repeated.",
        type=list[str],
        default=(),
        parse=split_names,
        metavar="WORD",
        **_TEXT,
        field="Words for missing values",
    ),
    Option(
        "multiline",
        "The public column whose values may have line breaks, never the label.",
        metavar="COLUMN",
        **_TEXT,
        field="Column with line breaks",
    ),
    Option(
        "header",
        "The first row names the columns, though names read as numbers (years).",
        **_FLAG,
        **_HEADER,
        field="The first row names the columns",
    ),
    Option(
        "names",
        "Names of all columns, such as a,b,c, if there is no header.",
        **_NAMES,
        **_HEADER,
        field="Names of all columns",
    ),
    Option("sheet", "Which sheet; by default the only one.", metavar="NAME", **_EXCEL, field="Sheet"),
    Option(
        "formulas",
        "Columns whose formulas may be used, such as a,b: public ones that do not use the label, or the label "
        "itself, if each formula uses its own row only. Others are refused.",
        **_NAMES,
        **_EXCEL,
        field="Columns whose formulas may be used",
    ),
    # cards, reports and figures
    Option(
        "card_file",
        "A card, the file it lies beside, a model's folder, or - for a pipe.",
        type=Path,
        default=REQUIRED,
        metavar="CARD",
        flags=(),
    ),
    Option("file", "What was released with it; found by its name beside the card.", **_FILE, flags=()),
    Option("card", "Where the card goes; by default OUT.card.json.", **_FILE),
    Option("report", "Write a page (HTML) that explains it all.", **_FILE, field="With a report"),
    Option("plot", "Draw the curves: a .png, .svg or .pdf file.", **_FILE),
    Option("force", "Replace what is there.", **_FLAG),
    Option("as_json", "For scripts: the same as JSON.", **_FLAG, flags=("--json",)),
    Option(
        "modules",
        "A module, or a .py file, with mechanisms of your own. It is run: name only what you trust.",
        type=list[str],
        default=(),
        parse=split_names,
        metavar="MODULE",
        flags=("--import",),
    ),
    Option(
        "trusted",
        "A public Ed25519 key, as OpenSSH writes it, that must have signed the card.",
        type=list[Path],
        default=(),
        parse=lambda paths: list(paths or ()),
        metavar="KEY.pub",
        flags=("--trust",),
    ),
    Option("signature", "The card's signature, if it is not beside it as CARD.sig.", **_FILE),
    Option(
        "key",
        "Your private Ed25519 key, as OpenSSH writes it; ssh-keygen -t ed25519 makes one.",
        type=Path,
        default=REQUIRED,
        metavar="KEY",
    ),
    Option("model", "The folder that labeldp fit wrote.", type=Path, default=REQUIRED, metavar="MODEL", flags=()),
    # plans, comparisons and audits
    Option("budgets", "Values of ε, with commas.", default="0.1,0.3,1,3", **_listed("budgets", "0.1,0.3,1,3")),
    Option("rows", "Rows at most; of more, a random part is taken.", default=20_000, **integer("rows")),
    Option(
        "repeats",
        "Fits of each regressor at each ε: their errors vary by chance.",
        default=2,
        **integer("repeats", 1, 100),
    ),
    Option(
        "mechanisms",
        "Some of {mechanisms}, with commas; by default all that the options allow.",
        default=(),
        parse=split_names,
        metavar="NAMES",
    ),
    Option("public", "The labels are public, or synthetic.", **_FLAG),
    Option(
        "wanted",
        "An error that would be good enough, in the label's unit: show which ε gives it.",
        **_number("±", partial(parse_positive, name="wanted")),
    ),
    Option(
        "edges", "Public bins of the label, such as 0,20,50,200; with --masses.", **_listed("edges", "0,20,50,200")
    ),
    Option("masses", "What share lies in each bin, such as 50,30,20.", **_listed("masses", "50,30,20")),
    Option("samples", "Outputs to draw for each of four labels.", default=1_000_000, **integer("samples", 100)),
    Option(
        "confidence",
        "Probability that a true claim is not refuted.",
        default=0.999999,
        **_number("P", _between(0.5, 1 - 1e-12, "confidence")),
    ),
    # the page
    Option("folder", "The folder with your tables.", type=Path, default=Path(), metavar="FOLDER", flags=()),
    Option("no_open", "Do not open the browser; only show the address.", **_FLAG),
    Option("port", "The port; 0 takes any that is free.", default=0, **integer("port", 0, 65535)),
)

OPTIONS = {option.name: option for option in _TABLE}
"""Every option, by its name."""
