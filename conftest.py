"""For all tests, also those in documents: the same noise in each run, and no mechanism of another example."""

import warnings
import zlib
from contextlib import contextmanager
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


@contextmanager
def repeatable_words(node, seed):
    """Replace secure words by seeded ones: correct noise may look wrong by chance.

    Tests with the mark ``real_words`` draw secure words.
    """
    if node.get_closest_marker("real_words"):
        yield
        return
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", InsecureRandomnessWarning)
        words = SeededWords(seed)
    with mock.patch.object(SecureWords, "fill", lambda _, out: words.fill(out)):
        yield


@pytest.hookimpl(wrapper=True)
def pytest_fixture_setup(fixturedef, request):
    """Give each fixture words that follow from its name, whichever test asks for it first."""
    with repeatable_words(request.node, zlib.crc32(fixturedef.argname.encode())):
        return (yield)


@pytest.hookimpl(wrapper=True)
def pytest_runtest_call(item):
    """Give each test the same words."""
    with repeatable_words(item, 2):
        return (yield)
