"""Noise that is the same in every run of the tests and of the examples in all documents."""

import warnings
from unittest import mock

import pytest

from labeldp import InsecureRandomnessWarning
from labeldp.randomness import SecureWords, SeededWords

REAL_WORDS = {"attacks", "interference", "randomness", "spark"}
"""Folders whose tests are about random words themselves, or fix them in a way of their own."""


def _repeatable_words(request):
    """Let all that draws secure words draw the same ones: noise that is right may look wrong by chance."""
    if request.path.parent.name in REAL_WORDS:
        yield
        return
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", InsecureRandomnessWarning)
        words = SeededWords({"module": 1, "function": 2}[request.scope])
    with mock.patch.object(SecureWords, "fill", lambda _, out: words.fill(out)):
        yield


module_words = pytest.fixture(scope="module", autouse=True)(_repeatable_words)
function_words = pytest.fixture(autouse=True)(_repeatable_words)
