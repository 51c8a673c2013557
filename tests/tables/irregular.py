"""A program: put something that is not a regular file at each path that labeldp opens, and report what happens.

Run as ``python irregular.py SAMPLES FOLDER``; prints the kind and the name of each entry point as it starts, and
what came of it. An entry point that is the last to start, without an outcome, hangs.
"""

import os
import shutil
import sys
import traceback
from itertools import product
from pathlib import Path

from typer.testing import CliRunner

import labeldp as ldp
from labeldp.app.card_check import verify_files
from labeldp.app.card_files import read_card_file
from labeldp.app.cli import app
from labeldp.app.page import ChosenFolder

LABELS = ["--label", "income", "--bounds", "0", "100", "--epsilon", "1"]
PRIVATIZE = ["privatize", "table.csv", "-o", "out.csv", *LABELS]
CARD = "table.csv.card.json"
OPTIONS = {"label": "income", "bounds": (0, 9), "epsilon": 1}

READ = {  # what is replaced, and what reads it: a command, or a function
    "privatize IN": ("table.csv", PRIVATIZE),
    "privatize --ledger": ("book.jsonl", [*PRIVATIZE, "--ledger", "book.jsonl"]),
    "fit IN": ("table.csv", ["fit", "table.csv", "-o", "new", *LABELS]),
    "predict IN": ("table.csv", ["predict", "model", "table.csv", "-o", "out.csv"]),
    "explain CARD": (CARD, ["explain", CARD]),
    "explain the card beside": (CARD, ["explain", "table.csv"]),
    "audit CARD": (CARD, ["audit", CARD]),
    "report CARD": (CARD, ["report", CARD]),
    "report --ledger": ("book.jsonl", ["report", CARD, "--ledger", "book.jsonl"]),
    "verify CARD": (CARD, ["verify", CARD]),
    "verify the card of a folder": ("model/card.json", ["verify", "model"]),
    "verify FILE": ("table.csv", ["verify", CARD, "table.csv"]),
    "verify the file beside": ("table.csv", ["verify", CARD]),
    "verify a part of a model": ("model/model.npz", ["verify", "model"]),
    "verify --import": ("own.py", ["verify", CARD, "--import", "own.py"]),
    "ledger FILE": ("book.jsonl", ["ledger", "book.jsonl"]),
    "page FOLDER": ("nowhere", ["page", "nowhere", "--no-open"]),
    "privatize_file": ("table.csv", lambda: ldp.privatize_file("table.csv", "o.csv", **OPTIONS)),
    "open_table": ("table.csv", lambda: ldp.tables.open_table("table.csv")),
    "Ledger.open": ("book.jsonl", lambda: ldp.Ledger.open("book.jsonl")),
    "read_card_file": (CARD, lambda: read_card_file(Path(CARD))),
    "verify_files": ("table.csv", lambda: require(verify_files(Path(CARD).read_text(), file="table.csv"))),
    "RowRelease.load": ("rows.npz", lambda: ldp.learning.RowRelease.load("rows.npz")),
    "load_model, its card": ("model/card.json", lambda: ldp.load_model("model")),
    "load_model, its columns": ("model/columns.json", lambda: ldp.load_model("model")),
    "load_model, its arrays": ("model/model.npz", lambda: ldp.load_model("model")),
    "load_model, its labels": ("labels/release.npz", lambda: ldp.load_model("labels")),
    "predict MODEL": ("model/card.json", ["predict", "model", "table.csv", "-o", "out.csv"]),
    "ChosenFolder.source": ("table.csv", lambda: ChosenFolder(".").source("table.csv")),
}  # fmt: skip
WRITTEN = {  # what may be replaced, where nothing is lost by it
    "privatize -o": ("out.csv", PRIVATIZE),
    "privatize -o --force": ("out.csv", [*PRIVATIZE, "--force"]),
    "fit -o": ("new", ["fit", "table.csv", "-o", "new", *LABELS, "--force"]),
    "predict -o": ("out.csv", ["predict", "model", "table.csv", "-o", "out.csv", "--force"]),
    "report -o": ("r.html", ["report", CARD, "-o", "r.html", "--force"]),
    "preview --plot": ("p.svg", ["preview", "--rows", "500", "--bounds", "0", "9", "--plot", "p.svg", "--force"]),
}
KINDS = {
    "fifo": os.mkfifo,
    "device": lambda path: os.symlink("/dev/zero", path),
    "loop": lambda path: os.symlink(path.name, path),
    "dangling": lambda path: os.symlink("no such file", path),
    "folder": os.mkdir,
}
FINE = {
    ("page FOLDER", "folder"),
    ("ChosenFolder.source", "folder"),
}
"""What may well succeed: a folder in the place of a folder, and folders in it that hold nothing."""


def require(result):
    if not result.holds:
        raise ldp.errors.CardError("it does not hold")


def outcome(call):
    """Return "refused", "done", or what else happened."""
    if callable(call):
        try:
            call()
        except ldp.LabelDPError:
            return "refused"
        except BaseException:
            return f"broken: {traceback.format_exc()}"
        return "done"
    result = CliRunner().invoke(app, call)
    if result.exit_code == 0:
        return "done"
    is_clean = isinstance(result.exception, SystemExit) and "Traceback" not in result.output
    return "refused" if is_clean else f"broken: {result.output} {result.exception!r}"


def main(samples, folder):
    """Try all entry points with everything that is not a regular file, each in a folder of its own."""
    for kind, (name, (bad, call)) in product(KINDS, {**READ, **WRITTEN}.items()):
        if name == "page FOLDER" and kind == "folder":
            continue  # it would be served
        here = Path(folder, kind, name.replace(" ", "-"))
        shutil.copytree(samples, here)
        (here / "parts").mkdir()
        shutil.copy(here / "table.csv", here / "parts" / "a.csv")
        os.chdir(here)
        path = Path(bad)
        shutil.rmtree(path) if path.is_dir() else path.unlink(missing_ok=True)
        KINDS[kind](path)
        print(f"start {name}, {kind}", flush=True)
        found = outcome(call)
        may_succeed = name in WRITTEN or (name, kind) in FINE
        print("fine" if found == "refused" or (found == "done" and may_succeed) else found, name, kind, flush=True)


if __name__ == "__main__":
    main(*sys.argv[1:])
