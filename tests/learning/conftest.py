"""Each test works in a folder of its own; models are fitted once."""

import pytest

import model_cases


@pytest.fixture(autouse=True)
def place(place):
    return place


@pytest.fixture(scope="session")
def table():
    return model_cases.table()


@pytest.fixture(scope="session")
def labels():
    return model_cases.labels()


@pytest.fixture(scope="session")
def encoder():
    return model_cases.encoder()


@pytest.fixture(scope="session")
def fitted():
    return model_cases.fitted()


@pytest.fixture(scope="session")
def with_trees():
    return model_cases.with_trees()


@pytest.fixture(scope="session")
def released():
    return model_cases.released()


@pytest.fixture
def path(fitted, encoder, tmp_path):
    """The folder of a saved model."""
    return model_cases.saved(fitted, encoder, tmp_path / "model")
