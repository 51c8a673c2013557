"""What a package index and an installer read of this project is true."""

import re
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
EXTRAS = PROJECT["project"]["optional-dependencies"]


def test_importing_the_library_imports_no_extra():
    packages = {re.match("[a-z0-9]+", each)[0] for extra in EXTRAS.values() for each in extra} - {"labeldp"}
    assert {"pyarrow", "matplotlib", "pyspark", "starlette"} <= packages
    packages |= {"jax", "reproduction"}
    code = "import sys, labeldp, labeldp.app.cli; print(*{name.partition('.')[0] for name in sys.modules})"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)  # noqa: S603
    assert packages & set(done.stdout.split()) == set()


def test_without_pyarrow_a_table_in_a_file_names_both_extras_that_bring_it():
    code = "import sys; sys.modules['pyarrow'] = None; from labeldp import privatize_file"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)  # noqa: S603
    assert 'labeldp[files]", or "labeldp[excel]"' in done.stderr


@pytest.mark.parametrize("version", ["3.11", "3.12", "3.13", "3.14", "3.15"])
def test_every_python_that_is_declared_is_tested_by_the_workflow(version):
    assert f"Programming Language :: Python :: {version}" in PROJECT["project"]["classifiers"]
    assert f'"{version}"' in (ROOT / ".github/workflows/tests.yml").read_text(encoding="utf-8")
