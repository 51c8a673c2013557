"""Each test works in a folder of its own."""

import pytest

import model_cases


@pytest.fixture(autouse=True)
def place(place):
    return place


@pytest.fixture
def path(tmp_path):
    """The folder of a saved model."""
    return model_cases.saved(model_cases.fitted(), tmp_path / "model")


@pytest.fixture
def path_of_trees(tmp_path):
    """The folder of a saved model with boosted trees."""
    return model_cases.saved(model_cases.with_trees(), tmp_path / "model")


@pytest.fixture
def path_of_labels(tmp_path):
    """The folder of a saved model, and of the private labels that it learnt from."""
    return model_cases.saved(model_cases.released(), tmp_path / "model")
