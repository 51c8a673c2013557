"""The command line where nobody looks on: what is written, printed and returned tells nothing of labels."""

import hashlib
import json
import sys
from unittest import mock

import pytest
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat

from forged_cards import forged
from interference import changes, tables
from interference.harness import Way, compared, interference
from labeldp.app.cli import app

ROWS = 150
CHANGES = {name: (one, other) for name, one, other in changes.changes(ROWS)}
LOW, HIGH = map(str, changes.BOUNDS)
WHAT = ["--label", tables.LABEL, "--bounds", LOW, HIGH]


def typed(*words):
    """Type a command, and return its exit code."""
    try:
        app([str(word) for word in words])
    except SystemExit as end:
        return end.code
    raise AssertionError("a command ends with an exit code")


def way(*commands, form="csv", kind="float64"):
    """Return the way out of typing some commands one after the other, in a folder with a table."""

    def act(given):
        return [typed(*words) for words in commands]

    def prepare(folder, labels):
        tables.write(folder, tables.Input(labels, kind=kind), form)

    return Way(act, prepare)


@pytest.fixture(autouse=True)
def screen(monkeypatch):
    monkeypatch.setenv("COLUMNS", "100")


PRIVATIZE = ["privatize", "table.csv", "-o", "out.parquet", *WHAT, "--epsilon", "1", "--ledger", "ledger.jsonl"]
CHECKS = [
    ["sign", "out.parquet", "--key", "key"],
    ["verify", "out.parquet"],
    ["explain", "out.parquet"],
    ["explain", "out.parquet", "--json"],
    ["ledger", "ledger.jsonl"],
    ["audit", "out.parquet", "--samples", "200"],
    ["report", "out.parquet", "--ledger", "ledger.jsonl"],
]


def codes(observed):
    """Return the exit codes of commands."""
    return [int(code) for _, code in observed.value[1]]


@pytest.mark.slow
def test_privatize_and_all_that_is_made_of_its_card(tmp_path):
    out = way([*PRIVATIZE, "--limit", "3"], *CHECKS)

    def prepare(folder, labels):
        key = Ed25519PrivateKey.from_private_bytes(bytes(32))
        (folder / "key").write_bytes(key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption()))
        out.prepare(folder, labels)

    first, found = compared(Way(out.act, prepare), *CHANGES["all rows"], tmp_path)
    assert codes(first) == [0] * 8, first.stderr.decode()
    made = {"out.parquet", "out.parquet.card.json", "out.parquet.card.json.sig", "out.parquet.report.html"}
    assert made | {"ledger.jsonl"} == set(first.files)
    assert found == {}


@pytest.mark.parametrize("change", ["sorted", "first row -0.0", "constant"])
def test_privatize_with_changes_of_labels(change, tmp_path):
    """Hints on sorted labels, and on columns that tell them, are for eyes on a terminal."""
    out = way([*PRIVATIZE, "--mechanism", "rp"], ["ledger", "ledger.jsonl"])
    first, found = compared(out, *CHANGES[change], tmp_path)
    assert codes(first) == [0, 0], first.stderr.decode()
    assert found == {}


def test_hints_on_a_terminal_reach_nothing_else(tmp_path):
    """Somebody looks: what is told there follows from true labels. All else that leaves is equal."""

    def act(given):
        terminal = mock.Mock(return_value=True)
        with mock.patch.object(sys.stderr, "isatty", terminal), mock.patch.object(sys.stdin, "isatty", terminal):
            return [typed(*PRIVATIZE, "--mechanism", "two-point")]

    both = CHANGES["sorted"][::-1]
    first, found = compared(Way(act, way().prepare, stdin=lambda _: b"y\n"), *both, tmp_path)
    assert codes(first) == [0]
    assert b"For you alone" in first.stderr
    assert set(found) == {"stderr"}


PRIVATIZE_WITH = {
    "added": ["--debiased", "add", "--mechanism", "rp"],
    "shuffled": ["--shuffle", "--mechanism", "two-point"],
    "report": ["--report", "page.html", "--mechanism", "two-point"],
    "no ledger left": ["--limit", "0.5"],
    "biased": ["--mechanism", "rr-on-bins"],
    "gaussian": ["--mechanism", "gaussian", "--delta", "1e-6", "--limit", "2", "--limit-delta", "1e-5"],
}


@pytest.mark.parametrize("options", PRIVATIZE_WITH)
def test_privatize_with_options(options, tmp_path):
    assert interference(way([*PRIVATIZE, *PRIVATIZE_WITH[options]]), *CHANGES["all rows"], tmp_path) == {}


FIT = ["fit", "table.csv", *WHAT, "--epsilon", "2", "-o", "model"]
FIT += ["--drop", "code,word", "--ledger", "ledger.jsonl", "--limit", "9"]
FITS = {
    "model": [],
    "labels": ["--release", "labels"],
    "score": ["--score", "4", "--metrics", "rmse,mae", "--report", "page.html"],
    "limits": ["--limit", "2", "--limit-delta", "1e-5", "--categories", "kind"],
}


@pytest.mark.parametrize("options", FITS)
def test_fit_and_all_that_is_made_of_its_model(options, tmp_path):
    """The table to predict for has labels too: they are left out, and decide nothing."""

    def prepare(folder, labels):
        tables.write(folder, tables.Input(labels), "csv")
        tables.write(folder, tables.Input(labels), "csv", "new")

    commands = [
        [*FIT, *FITS[options]],
        ["predict", "model", "new.csv", "-o", "predicted.csv"],
        ["verify", "model"],
        ["explain", "model"],
        ["ledger", "ledger.jsonl"],
        *([["report", "model"]] if options == "model" else []),
    ]
    first, found = compared(Way(way(*commands).act, prepare), *CHANGES["all rows"], tmp_path)
    assert codes(first) == [0] * len(commands), first.stderr.decode()
    assert {"model/model.npz", "model/columns.json", "model/card.json", "predicted.csv"} <= set(first.files)
    assert found == {}


@pytest.fixture(scope="module")
def model(tmp_path_factory):
    """The files of a model that was fitted to a table of the same columns."""
    folder = tmp_path_factory.mktemp("model")
    tables.write(folder, tables.Input(CHANGES["all rows"][0]), "csv")
    with mock.patch.dict("os.environ", {"COLUMNS": "100"}):
        options = ("--epsilon", 2, "--drop", "code,word", "-o", folder / "model")
        assert typed("fit", folder / "table.csv", *WHAT, *options) == 0
    return {path.name: path.read_bytes() for path in (folder / "model").iterdir()}


def with_columns(change, label=tables.LABEL):
    """Return how a forger lists columns and names the label, with hashes and checksums that fit."""

    def forge(files):
        columns, card = json.loads(files["columns.json"]), json.loads(files["card.json"])
        change(columns)
        text = json.dumps(columns).encode()
        card["features"] = [column["name"] for column in columns["columns"]]
        card["files"]["columns.json"] = hashlib.sha256(text).hexdigest()
        return {**files, "columns.json": text, "card.json": forged({**card, "label": label}).encode()}

    return forge


def left_out(name):
    return lambda columns: columns["left_out"].append([name, "all its values are the same"])


def used(name):
    return lambda columns: columns["columns"][0].update(name=name)


PREDICT = {
    "honest": (lambda files: files, [], 0),
    "honest, an id kept": (lambda files: files, ["--keep", "id"], 0),
    "honest, the label kept": (lambda files: files, ["--keep", tables.LABEL], 2),
    "honest, the label kept by another case": (lambda files: files, ["--keep", tables.LABEL.title()], 2),
    "the label left out": (with_columns(left_out(tables.LABEL)), [], 4),
    "the label in capitals left out": (with_columns(left_out(tables.LABEL.upper())), [], 4),
    "the label used": (with_columns(used(tables.LABEL)), [], 4),
    "the label left out, and the card names another": (with_columns(left_out(tables.LABEL), "other"), [], 0),
}


@pytest.mark.parametrize("case", PREDICT)
@pytest.mark.parametrize("form", ["csv", "parquet"])
def test_predictions_for_tables_that_differ_in_labels_only(case, form, model, tmp_path):
    """Whoever made the model: no column is copied but those that it uses and those that the user names."""
    forge, options, code = PREDICT[case]

    def prepare(folder, labels):
        tables.write(folder, tables.Input(labels), form)
        (folder / "model").mkdir()
        for name, content in forge(model).items():
            (folder / "model" / name).write_bytes(content)

    command = ["predict", "model", f"table.{form}", "-o", "predicted.csv", *options]
    first, found = compared(Way(way(command).act, prepare), *CHANGES["all rows"], tmp_path)
    assert codes(first) == [code], first.stderr.decode()
    assert ("predicted.csv" in first.files) == (code == 0)
    assert found == {}


def test_a_model_that_uses_the_label_under_the_name_of_another_is_said_to_copy_it(model, tmp_path, capsys):
    """A forged card may name another label; then the column is one that the model says it uses, and is shown."""
    tables.write(tmp_path, tables.Input(CHANGES["all rows"][0]), "csv")
    (tmp_path / "model").mkdir()
    for name, content in with_columns(used(tables.LABEL), "other")(model).items():
        (tmp_path / "model" / name).write_bytes(content)
    typed("predict", tmp_path / "model", tmp_path / "table.csv", "-o", tmp_path / "out.csv")
    copied = capsys.readouterr().err.partition("Copied from the table: ")[2]
    assert repr(tables.LABEL) in copied.partition("Left out")[0]


# ---- what goes wrong ----------------------------------------------------------------------------------------


BAD = {
    "text": ("x", "a longer secret"),
    "missing": ("", ""),
    "not a number": ("nan", "nan"),
    "decimal comma": ('"1,5"', '"-1234,5"'),
    "hyphens": ("--", "-"),
    "not text": ("\udc80", "\udc80\udc81"),
}


@pytest.mark.parametrize(
    ("command", "bad"), [*((PRIVATIZE, bad) for bad in BAD), *((FIT, bad) for bad in ("text", "missing"))]
)
def test_what_is_said_of_labels_that_are_no_numbers(command, bad, tmp_path):
    pair = [
        changes.changed(labels, [17], [text]) for labels, text in zip(CHANGES["all rows"], BAD[bad], strict=True)
    ]
    first, found = compared(way(command), *pair, tmp_path)
    assert codes(first) == [2]
    assert first.calls == ([], None)
    assert found == {}


@pytest.mark.parametrize("command", [PRIVATIZE, FIT], ids=["privatize", "fit"])
def test_rows_without_labels_are_left_out(command, tmp_path):
    gone = {3: "", 9: "", ROWS - 1: ""}
    pair = [[gone.get(row, text) for row, text in enumerate(labels)] for labels in CHANGES["all rows"]]
    assert interference(way([*command, "--missing", "drop"]), *pair, tmp_path) == {}


@pytest.mark.parametrize(
    "words",
    [
        ["privatize", "table.csv", "-o", "table.csv", *WHAT, "--epsilon", "1"],
        ["privatize", "no-such.csv", "-o", "out.csv", *WHAT, "--epsilon", "1"],
        ["privatize", "table.csv", "-o", "no-such-folder/out.csv", *WHAT, "--epsilon", "1"],
        ["privatize", "table.csv", "-o", "out.csv", "--label", "incom", "--bounds", LOW, HIGH, "--epsilon", "1"],
        ["privatize", "table.csv", "-o", "out.csv", *WHAT, "--epsilon", "1", "--mechanism", "no-such"],
        ["privatize", "table.csv", "-o", "out.csv", *WHAT, "--epsilon", "0"],
        ["fit", "table.csv", "-o", "model", *WHAT, "--epsilon", "1", "--drop", "id,word,day,ratio,code,kind"],
        ["compare", "table.csv", *WHAT],
    ],
    ids=lambda words: " ".join(words[:4]),
)
def test_what_is_said_of_commands_that_cannot_be_done(words, tmp_path):
    first, found = compared(way(words), *CHANGES["all rows"], tmp_path)
    assert codes(first) != [0]
    assert first.calls == ([], None)
    assert found == {}
