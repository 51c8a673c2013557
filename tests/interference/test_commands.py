"""The command line where nobody looks on: what is written, printed and returned tells nothing of labels."""

import shutil
import sys
from unittest import mock

import pytest

from command_line import with_options
from interference import changes, tables
from interference.harness import Way, assert_same, compared
from labeldp.app import cli
from model_cases import with_columns

ROWS = 150
CHANGES = changes.changes(ROWS)
LOW, HIGH = map(str, changes.BOUNDS)
WHAT = ["--label", tables.LABEL, "--bounds", LOW, HIGH]


def typed(*words):
    """Type a command, and return its exit code."""
    try:
        cli.app([str(word) for word in words])
    except SystemExit as end:
        return end.code
    raise AssertionError("a command ends with an exit code")


def with_table(folder, labels, name="table", form="csv"):
    tables.write(folder, tables.Input(labels), form, name)


def way(*commands, prepare=with_table):
    """Return the way out of typing some commands one after the other, in a folder with a table."""

    def act(given):
        with mock.patch.dict("os.environ", {"COLUMNS": "100"}):
            return [typed(*words) for words in commands]

    return Way(act, prepare)


def assert_codes(expected, way, one, other, folder):
    """Return what left for the first of two inputs, which nothing distinguishes, if commands end as expected."""
    first = assert_same(way, one, other, folder)
    assert codes(first) == expected, first.stderr.decode()
    return first


PRIVATIZE = ["privatize", "table.csv", "-o", "out.parquet", *WHAT, "--epsilon", "1", "--ledger", "ledger.db"]
CHECKS = [
    ["verify", "out.parquet"],
    ["explain", "out.parquet"],
    ["ledger", "ledger.db"],
    ["report", "out.parquet", "--ledger", "ledger.db"],
]


def codes(observed):
    """Return the exit codes of commands."""
    return observed.result


@pytest.mark.slow
def test_privatize_and_all_that_is_made_of_its_card(tmp_path):
    out = way([*PRIVATIZE, "--limit", "3"], *CHECKS, prepare=with_table)
    first = assert_codes([0] * 5, out, *CHANGES["all rows"], tmp_path)
    endings = ("", ".card.json", ".report.html")
    assert set(first.files) == {"ledger.db", *(f"out.parquet{ending}" for ending in endings)}


@pytest.mark.parametrize("change", ["sorted", "first row -0.0", "constant"])
def test_privatize_with_changes_of_labels(change, tmp_path):
    """Hints on sorted labels, and on columns that tell them, are for eyes on a terminal."""
    out = way([*PRIVATIZE, "--mechanism", "rp"], ["ledger", "ledger.db"])
    assert_codes([0, 0], out, *CHANGES[change], tmp_path)


def test_hints_on_a_terminal_reach_nothing_else(tmp_path):
    """Somebody looks: what is told there follows from true labels. All else that leaves is equal."""

    def act(given):
        sys.stderr.isatty = sys.stdin.isatty = lambda: True
        return [typed(*PRIVATIZE, "--mechanism", "two-point")]

    both = CHANGES["sorted"][::-1]
    first, found = compared(Way(act, with_table, stdin=lambda _: b"y\n"), *both, tmp_path)
    assert codes(first) == [0]
    assert b"For you alone" in first.stderr
    assert set(found) == {"stderr"}


def test_canaries_of_a_table(tmp_path):
    out = way(["canaries", "table.csv", *WHAT, "--rows", "30", "-o", "canaries.csv"])
    assert_codes([0], out, *CHANGES["all rows"], tmp_path)


PRIVATIZE_WITH = {
    "as released": ["--for", "values", "--mechanism", "rp"],
    "shuffled": ["--shuffle", "--mechanism", "two-point"],
    "no ledger left": ["--limit", "0.5"],
    "biased": ["--mechanism", "rr-on-bins"],
}


@pytest.mark.parametrize("options", PRIVATIZE_WITH)
def test_privatize_with_options(options, tmp_path):
    assert_same(way([*PRIVATIZE, *PRIVATIZE_WITH[options]]), *CHANGES["all rows"], tmp_path)


FIT = ["fit", "table.csv", *WHAT, "--epsilon", "2", "-o", "model"]
FIT += ["--drop", "code,word", "--ledger", "ledger.db", "--limit", "9"]
FITS = {
    "model": [],
    "labels": ["--release", "labels"],
    "score": ["--score", "4"],
    "limits": ["--limit", "2", "--categories", "kind"],
}


REGRESS = ["regress", "table.csv", *WHAT, "--epsilon", "9", "--on", "ratio + C(kind)"]
REGRESS += ["--ledger", "ledger.db", "--limit", "20"]


@pytest.mark.parametrize("out", ["table.html", "table.csv"])
def test_regress(out, tmp_path):
    assert_same(way([*REGRESS, "-o", out]), *CHANGES["all rows"], tmp_path)


def test_several_tables_of_a_file_for_one_charge(tmp_path):
    more = ["--on", "ratio", "-o", "table.html", "-o", "table.csv"]
    assert_same(way([*REGRESS, *more]), *CHANGES["all rows"], tmp_path)


@pytest.mark.parametrize("options", FITS)
def test_fit_and_all_that_is_made_of_its_model(options, tmp_path):
    """The table to predict for has labels too: they are left out, and decide nothing."""

    def prepare(folder, labels):
        with_table(folder, labels)
        with_table(folder, labels, "new")

    commands = [
        with_options(FIT, *FITS[options]),
        ["predict", "model", "new.csv", "-o", "predicted.csv"],
        ["verify", "model"],
        ["explain", "model"],
        ["ledger", "ledger.db"],
        *([["report", "model"]] if options in ("model", "score") else []),
    ]
    first = assert_codes([0] * len(commands), way(*commands, prepare=prepare), *CHANGES["all rows"], tmp_path)
    assert {"model/model.npz", "model/columns.json", "model/card.json", "predicted.csv"} <= set(first.files)


@pytest.fixture(scope="module")
def model(tmp_path_factory):
    """The folder of a model that was fitted to a table of the same columns."""
    folder = tmp_path_factory.mktemp("model")
    with_table(folder, CHANGES["all rows"][0])
    options = ("--epsilon", 2, "--drop", "code,word", "-o", folder / "model")
    assert typed("fit", folder / "table.csv", *WHAT, *options) == 0
    return folder / "model"


def left_out(name, label=tables.LABEL):
    """Return how a forger says that a column was left out, or that another is the label."""
    entry = [name, "all its values are the same"]
    return lambda path: with_columns(path, lambda columns: columns["left_out"].append(entry), label=label)


def used(name, label=tables.LABEL):
    return lambda path: with_columns(path, lambda columns: columns["columns"][0].update(name=name), label=label)


PREDICT = {
    "honest": (None, [], 0),
    "honest, an id kept": (None, ["--keep", "id"], 0),
    "honest, the label kept": (None, ["--keep", tables.LABEL], 2),
    "the label in capitals left out": (left_out(tables.LABEL.upper()), [], 4),
    "the label used": (used(tables.LABEL), [], 4),
    "the label left out, and the card names another": (left_out(tables.LABEL, "other"), [], 0),
}


@pytest.mark.parametrize("case", PREDICT)
@pytest.mark.parametrize("form", ["csv", "parquet"])
def test_predictions_for_tables_that_differ_in_labels_only(case, form, model, tmp_path):
    """Whoever made the model: no column is copied but those that it uses and those that the user names."""
    forge, options, code = PREDICT[case]

    def prepare(folder, labels):
        with_table(folder, labels, form=form)
        path = shutil.copytree(model, folder / "model")
        if forge is not None:
            forge(path)

    command = ["predict", "model", f"table.{form}", "-o", "predicted.csv", *options]
    first = assert_codes([code], way(command, prepare=prepare), *CHANGES["all rows"], tmp_path)
    assert ("predicted.csv" in first.files) == (code == 0)


def test_a_model_that_uses_the_label_under_the_name_of_another_is_said_to_copy_it(model, tmp_path, capsys):
    """A forged card may name another label; then the column is one that the model says it uses, and is shown."""
    with_table(tmp_path, CHANGES["all rows"][0])
    used(tables.LABEL, "other")(shutil.copytree(model, tmp_path / "model"))
    typed("predict", tmp_path / "model", tmp_path / "table.csv", "-o", tmp_path / "out.csv")
    copied = capsys.readouterr().err.partition("Copied from the table: ")[2]
    assert repr(tables.LABEL) in copied.partition("Left out")[0]


# ---- what goes wrong ----------------------------------------------------------------------------------------


@pytest.mark.parametrize("bad", [("x", "a longer secret"), ("", ""), ('"1,5"', '"-1234,5"')])
@pytest.mark.parametrize("command", [PRIVATIZE, FIT], ids=["privatize", "fit"])
def test_what_is_said_of_labels_that_are_no_numbers(command, bad, tmp_path):
    pair = [changes.changed(labels, [17], [text]) for labels, text in zip(CHANGES["all rows"], bad, strict=True)]
    assert assert_codes([2], way(command), *pair, tmp_path).calls == ([], None)


@pytest.mark.parametrize("command", [PRIVATIZE, FIT], ids=["privatize", "fit"])
def test_rows_without_labels_are_left_out(command, tmp_path):
    gone = {3: "", 9: "", ROWS - 1: ""}
    pair = [[gone.get(row, text) for row, text in enumerate(labels)] for labels in CHANGES["all rows"]]
    assert_same(way([*command, "--missing", "drop"]), *pair, tmp_path)


IMPOSSIBLE = {
    "in place": ["privatize", "table.csv", "-o", "table.csv", *WHAT],
    "no table": ["privatize", "no-such.csv", "-o", "out.csv", *WHAT],
    "no folder": ["privatize", "table.csv", "-o", "no-such-folder/out.csv", *WHAT],
    "no label": ["privatize", "table.csv", "-o", "out.csv", "--label", "incom", "--bounds", LOW, HIGH],
    "no mechanism": ["privatize", "table.csv", "-o", "out.csv", *WHAT, "--mechanism", "no-such"],
    "no feature": ["fit", "table.csv", "-o", "model", *WHAT, "--drop", "id,word,day,ratio,code,kind"],
}


@pytest.mark.parametrize("words", IMPOSSIBLE.values(), ids=IMPOSSIBLE)
def test_what_is_said_of_commands_that_cannot_be_done(words, tmp_path):
    first = assert_same(way([*words, "--epsilon", "1"]), *CHANGES["all rows"], tmp_path)
    assert codes(first) != [0]
    assert first.calls == ([], None)
