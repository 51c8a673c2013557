"""What every command has: help with an example, a sentence for what is missing, and a quick start."""

import re
import runpy

import pytest
import typer

import labeldp as ldp
from command_line import said
from helpers import built_in_choices, python
from labeldp.app.cli import EXIT_CODES, app
from labeldp.app.cli.shell import EXIT, exit_on_error
from labeldp.release.plan import mechanism_choices

NAMES = list(typer.main.get_command(app).commands)


@pytest.mark.parametrize("name", NAMES)
def test_every_command_has_help_with_an_example_and_says_what_leaves(name):
    text = said(name, "--help")
    assert f"Example: labeldp {name} " in text
    assert "Releases: " in text


@pytest.mark.parametrize(
    ("name", "words"), [("privatize", "randomised: (.*?)\\."), ("compare", "Some of (.*?), with")]
)
def test_the_help_names_the_mechanisms_that_may_be_chosen(name, words):
    """Other tests register mechanisms of their own."""
    shown = re.search(words, re.sub("[^a-zA-Z:,. -]", "", said(name, "--help")))[1]
    choices = [choice for choice in mechanism_choices() if choice in built_in_choices()]
    assert re.split(", | or | and ", shown) == choices


def test_the_help_says_what_each_exit_code_means():
    assert set(EXIT_CODES) == {0, *EXIT.values()}
    assert f"4 {EXIT_CODES[4]}; 5 {EXIT_CODES[5]}" in said("--help")


def test_a_command_does_not_import_what_it_does_not_use():
    code = """
import sys
from labeldp.app.cli import app
for words in ["--help"], ["ledger", "--help"], ["verify", "--help"], ["privatize", "--help"]:
    app(words, standalone_mode=False)
    heavy = {"sklearn", "matplotlib", "pyarrow"} & set(sys.modules)
    if heavy:
        sys.exit(f"{words} imported {heavy}")
"""
    done = python(code, check=False, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr


def test_what_is_missing_is_named_with_the_command_that_installs_it(capsys):
    with pytest.raises(typer.Exit) as stopped, exit_on_error():
        raise ModuleNotFoundError(name="pyarrow.parquet")
    assert stopped.value.exit_code == 1
    assert 'pip install "labeldp[files]"' in capsys.readouterr().err


def test_python_runs_the_command_as_a_module(monkeypatch, capsys):
    monkeypatch.setattr("sys.argv", ["labeldp", "--version"])
    with pytest.raises(SystemExit) as end:
        runpy.run_module("labeldp", run_name="__main__")
    assert end.value.code in (None, 0)
    assert ldp.__version__ in capsys.readouterr().out
