"""What every command has: help with an example, a sentence for what is missing, and a quick start."""

import subprocess
import sys
from importlib.metadata import PackageNotFoundError

import pytest
import typer
from typer.testing import CliRunner

from labeldp.cli import COMMANDS, app
from labeldp.cli.shell import explained

NAMES = [name for panel in COMMANDS.values() for name in panel if name != "paper"]


@pytest.mark.parametrize("name", NAMES)
def test_every_command_has_help_with_an_example(name):
    shown = CliRunner().invoke(app, [name, "--help"], env={"COLUMNS": "200"})
    assert shown.exit_code == 0, shown.output
    assert f"Example:  labeldp {name} " in shown.output


@pytest.mark.parametrize(
    "words", [["--help"], ["ledger", "--help"], ["verify", "--help"], ["privatize", "--help"]]
)
def test_a_command_does_not_import_what_it_does_not_use(words):
    code = f"""
import sys
from labeldp.cli import app
app({words!r}, standalone_mode=False)
heavy = {{"sklearn", "matplotlib", "pyarrow"}} & set(sys.modules)
sys.exit(f"imported: {{heavy}}" if heavy else 0)
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)  # noqa: S603
    assert done.returncode == 0, done.stderr


@pytest.mark.parametrize(
    ("error", "sentence"),
    [
        (ModuleNotFoundError(name="pyarrow.parquet"), "pyarrow is not installed: pip install 'labeldp[files]'"),
        (ModuleNotFoundError(name="matplotlib"), "matplotlib is not installed: pip install 'labeldp[plots]'"),
        (ModuleNotFoundError(name="other"), "other is not installed: pip install other"),
        (PackageNotFoundError("labeldp"), "labeldp is not installed: pip install labeldp"),
    ],
)
def test_what_is_missing_is_named_with_the_command_that_installs_it(error, sentence, capsys):
    with pytest.raises(typer.Exit) as stopped, explained():
        raise error
    assert stopped.value.exit_code == 1
    assert sentence in " ".join(capsys.readouterr().err.split())
