"""What tests of a ledger's file share."""

import pytest


@pytest.fixture
def path(tmp_path):
    """Where a ledger's file will be, alone in its folder."""
    return tmp_path / "ledger"
