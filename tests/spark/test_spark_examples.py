"""The examples of `labeldp.spark`, which need a session."""

import doctest
import inspect

import pytest

import labeldp as ldp


@pytest.mark.parametrize("name", ldp.spark.__all__)
def test_the_example_of_a_name_gives_what_it_says(name, spark):
    text = inspect.getdoc(getattr(ldp.spark, name))
    example = doctest.DocTestParser().get_doctest(text, {"spark": spark}, name, None, None)
    flags = doctest.ELLIPSIS | doctest.NORMALIZE_WHITESPACE
    assert doctest.DocTestRunner(optionflags=flags).run(example).failed == 0
