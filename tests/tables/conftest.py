"""Each test works in a folder of its own."""

import io

import pytest


@pytest.fixture(autouse=True)
def place(place):
    return place


@pytest.fixture
def pipe(monkeypatch):
    """Return a function that gives the bytes of a file to standard input."""
    return lambda path: monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(path.read_bytes())))
