"""For all tests, also those in documents: the same noise in each run, and no mechanism of another example."""

import warnings
from unittest import mock

import pytest

from labeldp import InsecureRandomnessWarning
from labeldp.exact.word_sources import SecureWords, SeededWords
from labeldp.mechanisms import registry

collect_ignore_glob = ["src/labeldp/spark/dataframe_*.py"]  # tests/spark runs their examples, in its session


@pytest.fixture(autouse=True)
def own_registry():
    """Let each test register mechanisms of its own."""
    before = dict(registry.REGISTRY)
    yield
    registry.REGISTRY.clear()
    registry.REGISTRY.update(before)


REAL_WORDS = {
    "attacks",
    "interference",
    "spark",
    "test_random_words",
    "test_randomness",
    "test_randomness_processes",
}
"""Folders and files whose tests are about random words themselves, or fix them in a way of their own."""


def _repeatable_words(request):
    """Let all that draws secure words draw the same ones: noise that is right may look wrong by chance."""
    if {request.path.parent.name, request.path.stem} & REAL_WORDS:
        yield
        return
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", InsecureRandomnessWarning)
        words = SeededWords({"module": 1, "function": 2}[request.scope])
    with mock.patch.object(SecureWords, "fill", lambda _, out: words.fill(out)):
        yield


module_words = pytest.fixture(scope="module", autouse=True)(_repeatable_words)
function_words = pytest.fixture(autouse=True)(_repeatable_words)
