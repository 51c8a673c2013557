"""Names of columns and files are other people's text: none of it commands the terminal that it is printed on."""

import unicodedata
from pathlib import Path

import pytest

import labeldp as ldp
from command_line import run
from helpers import posix_only
from labeldp.app.cli.shell import exit_on_error
from sample_files import write_samples

CARD = "table.csv.card.json"
HOSTILE = {
    "controls": "\x1b[2J\x1b]0;title\x07\x9b31m\x85\u202e\u2066\x7f\x08",
    "markup": "[red]c[bold]:boom:[i]",
}
"""Escape sequences, the same in one byte, overrides of the direction of text, control characters; markup."""


@pytest.fixture(params=HOSTILE)
def name(request, place):
    """A name with something hostile in it, in a folder of samples."""
    write_samples(place)
    return f"a{HOSTILE[request.param]}b"


def assert_harmless(text, name):
    """Check that a text has no control character, and that markup stands in it as it was written."""
    bad = {c for c in text if c != "\n" and unicodedata.category(c)[0] == "C"}
    assert not bad, text
    if name.isprintable():
        assert name in text.replace("\n", "") or repr(name)[1:-1] in text


def commands(name):
    """Return commands that print a name, and the codes that they end with."""
    options = ["--bounds", "0", "100", "--epsilon", "1"]
    return {
        "a file that is not there": (["explain", f"{name}.json"], 2),
        "an argument too many": (["explain", "card.json", name], 2),
        "an option that is not there": (["ledger", f"--{name}"], 2),
        "a command that is not there": ([name], 2),
        "a choice that is not there": (["privatize", "in.csv", "-oo", "--label=a", *options, "--trust", name], 2),
        "a column that is not there": (["privatize", "table.csv", "-o", "o.csv", "--label", name, *options], 2),
        "a table's title": (["audit", name, "--samples", "1000"], 0),
        "what was written": (["report", CARD, "-o", f"{name}.html"], 0),
        "a ledger": (["ledger", "new.db"], 0),
        "columns that are left out": (["predict", "model", "in.csv", "-o", "out.csv"], 0),
    }  # fmt: skip


@posix_only
@pytest.mark.parametrize("what", commands(""))
def test_no_name_reaches_the_terminal_with_a_command_for_it(name, what):
    Path(name).write_bytes(Path("mechanism.json").read_bytes())
    header, *lines = Path("table.csv").read_text(encoding="utf-8").splitlines()
    Path("in.csv").write_text(
        "\n".join([header + f',"{name}"', *(line + ",5" for line in lines), ""]), encoding="utf-8", newline=""
    )
    ldp.Ledger.open("new.db").charge(name, epsilon=1.0)
    words, code = commands(name)[what]
    assert_harmless(run(*words, code=code).output, name)


def test_an_unexpected_error_says_where_it_happened_and_not_what_it_quotes(name, capsys):
    with pytest.raises(BaseException, match="1"), exit_on_error():  # typer's Exit, with the code of the machine
        raise ArithmeticError(f"{name}: 31415")
    said = capsys.readouterr().err
    assert "Traceback" in said
    assert "ArithmeticError" in said
    assert "31415" not in said.replace('raise ArithmeticError(f"{name}: 31415")', "")
