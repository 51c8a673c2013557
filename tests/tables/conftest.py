"""Each test works in a folder of its own."""

import pytest


@pytest.fixture(autouse=True)
def place(place):
    return place
