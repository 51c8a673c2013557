"""Fast compilation, and a synthetic log of Criteo's format."""

import os

import pytest

from reproduction.criteo import COLUMNS, make_criteo_like

# Tests of the paper's networks compile much and compute little; must be set before JAX is imported.
os.environ.setdefault("XLA_FLAGS", "--xla_backend_optimization_level=0 --xla_llvm_disable_expensive_passes=true")


@pytest.fixture(scope="session")
def twin(tmp_path_factory):
    """A synthetic log of Criteo's format, of 60,000 lines."""
    return make_criteo_like(60_000, seed=3, path=tmp_path_factory.mktemp("twin") / "twin.tsv")


@pytest.fixture(scope="session")
def raw(twin):
    """The twin's fields, read with no help of the library: {column: list of text}."""
    rows = [line.split("\t") for line in twin.read_text().splitlines()]
    return dict(zip(COLUMNS, zip(*rows, strict=True), strict=True))
