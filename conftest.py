"""For all tests, those in documents among them: mechanisms that an example registers are gone after it."""

import pytest

from labeldp.mechanisms import registry

collect_ignore_glob = ["src/labeldp/spark/dataframe_*.py"]  # tests/spark runs their examples, in its session


@pytest.fixture(autouse=True)
def own_registry(monkeypatch):
    """Let each test register mechanisms of its own."""
    monkeypatch.setattr(registry, "_registry", dict(registry._registry))
