"""The pages of the reference list every public name, and each is documented with an example that can be copied."""

import builtins
import doctest
import inspect
import re
import symtable
from importlib import import_module
from pathlib import Path

import pytest

import labeldp

PAGES = Path(__file__).parents[1] / "docs" / "reference"


def listed():
    """Return all names on the pages, with their modules."""
    names = []
    for page in sorted(PAGES.glob("*.rst")):
        module = ""
        for line in page.read_text(encoding="utf-8").splitlines():
            if line.startswith(".. currentmodule:: "):
                module = line.removeprefix(".. currentmodule:: ")
            elif re.fullmatch(r"   \w+", line):
                names.append(f"{module}.{line.strip()}")
    return names


def found(name):
    """Return what is public under a name."""
    module, _, attribute = name.rpartition(".")
    try:
        return getattr(import_module(module), attribute)
    except labeldp.errors.MissingExtraError as error:
        pytest.skip(str(error))


def documented(text):
    """Return the names that a docstring describes as parameters or attributes."""
    names = set()
    for section in re.findall(r"^(?:Parameters|Attributes)\n-+\n((?:.*\n?)*?)(?=^\w[^\n]*\n---|\Z)", text, re.M):
        for line in re.findall(r"^(\S[^:\n]*?)(?: : .*)?$", section, re.M):
            names |= {name.strip().lstrip("*") for name in line.split(",")}
    return names


def test_completion_lists_every_public_name():
    assert set(labeldp.__all__) <= set(dir(labeldp))


def undefined(text):
    """Return the names that a docstring's example uses without saying where they come from."""
    source = "".join(example.source for example in doctest.DocTestParser().get_examples(text))
    tables = [symtable.symtable(source, "example", "exec")]
    known = {one.get_name() for one in tables[0].get_symbols() if one.is_assigned() or one.is_imported()}
    for table in tables:
        tables += table.get_children()
    used = {one.get_name() for table in tables for one in table.get_symbols() if one.is_global()}
    return used - known - set(dir(builtins))


def test_every_public_name_is_on_a_page_of_the_reference():
    names = set(listed())
    assert {f"labeldp.{name}" for name in labeldp.__all__ if name != "__version__"} <= names
    assert len(names) == len(listed())


@pytest.mark.parametrize("name", listed())
def test_a_public_name_has_an_example_that_can_be_copied(name):
    text = inspect.getdoc(found(name))
    assert re.search(r"^Examples\n--------\n(.*\n)*?>>> ", text, re.M)
    allowed = {"spark"} if name.startswith("labeldp.spark.") else set()
    assert undefined(text) <= allowed


@pytest.mark.parametrize("name", listed())
def test_every_parameter_of_a_public_name_is_documented(name):
    thing = found(name)
    if inspect.isclass(thing) and issubclass(thing, Exception | Warning):
        return
    named = inspect.Parameter.POSITIONAL_OR_KEYWORD, inspect.Parameter.KEYWORD_ONLY
    parameters = {
        name
        for name, parameter in inspect.signature(thing).parameters.items()
        if parameter.kind in named and not name.startswith("_")
    }
    assert parameters <= documented(inspect.getdoc(thing))
