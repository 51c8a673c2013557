"""For all tests, those in documents among them: mechanisms that an example registers are gone after it."""

import pytest

from labeldp import card_format


@pytest.fixture(autouse=True)
def own_registry(monkeypatch):
    """Let each test register mechanisms of its own."""
    monkeypatch.setattr(card_format, "_registry", dict(card_format._registry))
