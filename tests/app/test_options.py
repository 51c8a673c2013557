"""Options: API, command line and page have the same defaults, and accept the same values."""

import inspect
import math
import re
from functools import partial

import numpy as np
import pytest

import labeldp as ldp
from app.page.page_client import Client
from command_line import files_in, flat, said
from labeldp.app import cli, options, regression, sentences, typed_text
from labeldp.app.file_job import FileJob, FileOptions
from labeldp.tables import Dialect

OPTIONS = cli.OPTIONS
DIALECT = set(Dialect.__slots__)
FUNCTIONS = {
    "privatize": ldp.privatize_file,
    "fit": ldp.fit_file,
    "regress": regression.regress_file,
    "array": ldp.privatize,
    "labels": ldp.LabelReleaseRegressor,
    "model": ldp.ModelReleaseRegressor,
}
GIVEN = {"label": "price", "bounds": (0.0, 5.0), "epsilon": 1.0}
WRONG_NUMBERS = [0.0, 21.0, math.nan]

CASES = {
    "epsilon": ([0.5, 20.0], WRONG_NUMBERS),
    "bounds": ([(-1.0, 9.0)], [(5.0, 0.0), (1.0, 1.0), (0.0, math.inf), (math.nan, 1.0)]),
    "shares": ([[1.0]], [[3.0, 1.0], [0.0, 1.0]]),
    "rows_per_person": ([3], [0, -1]),
    "segment": (["2026-11-18"], ["", " a", "a\nb"]),
    "segment_by": (["rooms"], ["roms"]),
    "id": ([], ["rooms", "roms"]),  # needs segments
    "person": (["rooms"], ["roms", "price"]),
    "most_rows_per_person": ([], [0, 3]),  # needs a person
    "missing": (["drop"], ["keep"]),
    "intended_use": (["rent index"], ["", "two\nlines"]),
    "recipient": (["the city"], ["x" * 501]),
    "bounds_reason": (["by law"], [" "]),
    "mechanism": (["laplace"], ["magic"]),
    "zeta": ([0.5], [0.0, -1.0]),
    "epsilon_prior": ([0.0, 0.5], [1.0, -0.1]),
    "trust": (["local"], ["nobody"]),
    "purpose": (["values"], ["yes", "add"]),
    "model": ([False], []),
    "shuffle": ([True], []),
    "release": (["labels"], ["both"]),
    "label_transform": (["sqrt"], ["log1p", "log"]),
    "score": ([9.0], WRONG_NUMBERS),
    "keep_rows": ([True], []),
    "separator": ([","], ["ab", "x"]),
    "decimal": (["."], ["x", ",,"]),
    "thousands": (["space"], ["x"]),
    "encoding": (["latin-1"], ["klingon"]),
    "na": ([["gone", "lost"]], [["a\nb"]]),
    "header": ([True], []),
    "skip": ([0], [-1]),
    "skip_last": ([0, 1], [-1]),
    "format": (["csv"], ["xml"]),
    "drop": ([["rooms"]], [["roms"]]),
    "features": ([["area"]], [["areas"]]),
    "categories": ([["rooms"]], [["roms"]]),
}
"""Values of options that both accept and both refuse; texts and lists are as in the API."""


def given_for(command, name):
    """Return what else a command is given; the mechanism is one that is designed at once."""
    quick = {} if command == "fit" or name in ("mechanism", "zeta") else {"mechanism": "two-point"}
    return {**GIVEN, **quick}


def takes(command, name):
    """Whether the function behind a command has a parameter, or its dialect a field, of this name."""
    has_dialect = command in ("privatize", "fit") and name in DIALECT
    return has_dialect or name in defaults_of(command)


def defaults_of(command):
    """Return the defaults of the parameters of the function behind a command, with those of every file job."""
    of_function = inspect.signature(FUNCTIONS[command]).parameters
    of_job = inspect.signature(FileJob).parameters if command in ("privatize", "fit", "regress") else {}
    names = {*of_function, *(of_job.keys() & FileOptions.__annotations__)}
    return {name: of_function.get(name, of_job.get(name)).default for name in names}


def test_a_job_on_a_file_has_the_options_that_are_documented():
    assert list(FileOptions.__annotations__) == list(inspect.signature(FileJob).parameters)[3:]
    documented = inspect.getdoc(ldp.privatize_file)
    assert all(re.search(rf"\b{name}\b", documented) for name in FileOptions.__annotations__)


def cases(*commands, accepted):
    """Return the commands with the values that they must accept, or refuse."""
    return [
        (command, name, value)
        for name, values in CASES.items()
        for command in commands
        if takes(command, name)
        for value in values[0 if accepted else 1]
    ]


@pytest.fixture(scope="module")
def table(tmp_path_factory):
    path = tmp_path_factory.mktemp("homes") / "homes.csv"
    rows = [f"{k % 7},{k / 3:.2f},{'north' if k % 3 else 'south'},{1 + k % 4}.5" for k in range(300)]
    path.write_text("\n".join(["rooms,area,region,price", *rows]) + "\n")
    return path


def call(command, table, out, name, value):
    """Call the API with one value changed."""
    given = given_for(command, name) | ({"ledger": ldp.Ledger()} if command == "fit" else {})
    if name in DIALECT:
        given["dialect"] = Dialect(**{name: value})
    else:
        given[name] = value
    return FUNCTIONS[command](table, out, **given)


def words(command, table, out, name, value):
    """Return the same as it is typed."""
    given = given_for(command, name) | {name: value}
    typed = [command, table, "-o", out]
    for each, now in given.items():
        flag, repeated = OPTIONS[each].flag, OPTIONS[each].type == options.Words
        if isinstance(now, bool):
            typed.append(flag)
        elif repeated:
            typed += [word for part in now for word in (flag, part)]
        elif isinstance(now, list):
            typed += [flag, typed_text.join_names(now)]
        else:
            typed += [flag, *(now if isinstance(now, tuple) else (now,))]
    return typed


def test_every_option_of_a_file_command_has_a_case():
    free = {"label", "out", "ledger", "report", "force", "sheet", "save_model", "update"}
    for command in ("privatize", "fit"):
        named = {name for name in OPTIONS if takes(command, name)}
        assert named <= {*CASES, *free, "source", "dialect"}


@pytest.mark.parametrize("command", FUNCTIONS)
def test_defaults_are_declared_as_the_api_has_them(command):
    for name, default in defaults_of(command).items():
        if (
            name in OPTIONS
            and default is not inspect.Parameter.empty
            and name not in ("bounds", "ledger", "dialect")
        ):
            assert OPTIONS[name].default == default, name


def test_the_fields_of_a_dialect_are_options():
    defaults = {name: parameter.default for name, parameter in inspect.signature(Dialect).parameters.items()}
    declared = {parameter.name: parameter.default for parameter in options.parameters(options.read_dialect)}
    assert declared == defaults


@pytest.mark.parametrize(("command", "name", "value"), cases("privatize", "fit", accepted=True), ids=str)
def test_what_the_api_accepts_can_be_typed(command, name, value, table, tmp_path):
    said(*words(command, table, tmp_path / "typed.csv", name, value))


@pytest.mark.parametrize(("command", "name", "value"), cases("privatize", "fit", accepted=False), ids=str)
def test_what_the_api_refuses_is_refused_on_the_command_line_in_its_words(command, name, value, table, tmp_path):
    with pytest.raises(ldp.LabelDPError) as error:
        call(command, table, tmp_path / "called.csv", name, value)
    shown = said(*words(command, table, tmp_path / "typed.csv", name, value), code=2)
    assert flat(error.value.message.spell(sentences.as_flag)) in shown
    assert error.value.option == name
    assert not files_in(tmp_path)


@pytest.mark.parametrize(("command", "name", "value"), cases("array", "labels", "model", accepted=False), ids=str)
def test_arrays_and_regressors_refuse_the_same_with_the_same_option(command, name, value):
    given = {"epsilon": 1.0, "bounds": (0, 5), name: value}
    X = np.random.default_rng(0).normal(size=(100, 2))
    release = (
        partial(ldp.privatize, **given) if command == "array" else partial(FUNCTIONS[command](**given).fit, X)
    )
    with pytest.raises(ldp.LabelDPError) as error:
        release(X[:, 0])
    assert error.value.option == name


# ---- the page -------------------------------------------------------------------------------------------------


IN_FORMS = {
    "describe": ["bounds", "rows_per_person"],
    "budget": ["epsilon", "score", "label_transform"],
    "written": ["separator", "decimal", "thousands", "encoding", "skip", "skip_last"],
}
"""Options that people type on the page, by the form that they are in."""


@pytest.fixture
def client(table, tmp_path):
    (tmp_path / "homes.csv").write_bytes(table.read_bytes())
    return Client(tmp_path).enter()


def typed_on_the_page(client, name, value):
    """Return whether a release could be asked for with one value changed."""
    begun = client.read("homes.csv", "price")
    described, budget = {"bounds": GIVEN["bounds"]}, {"epsilon": GIVEN["epsilon"]}
    (described if name in IN_FORMS["describe"] else budget)[name] = value
    client.describe(begun, **described)
    client.budget(begun, kind="table" if name == "epsilon" else "model", **budget)
    return begun.request is not None


@pytest.mark.parametrize("name", [*IN_FORMS["describe"], *IN_FORMS["budget"]])
def test_the_page_accepts_and_refuses_the_same_values(name, client):
    accepted, refused = CASES[name]
    assert all(typed_on_the_page(client, name, value) for value in accepted)
    assert not any(typed_on_the_page(client, name, value) for value in refused)


@pytest.mark.parametrize("name", IN_FORMS["written"])
def test_the_page_refuses_the_same_way_to_write_a_file_by_the_name_of_its_field(name, client):
    for value in CASES[name][1]:
        with pytest.raises(ldp.LabelDPError) as error:
            call("privatize", client.site.folder.root / "homes.csv", "out.csv", name, value)
        begun = client.unfinished(client.post("/open", path="homes.csv"))
        assert flat(error.value.message.spell(sentences.as_field)) in client.written(begun, **{name: value}).words


# ---- limits, and how options are spelled ----------------------------------------------------------------------


@pytest.mark.parametrize("limit", [2.0, -1.0])
def test_a_limit_needs_a_ledger_and_is_an_amount(limit):
    with pytest.raises(ldp.LabelDPError) as error:
        options.open_ledger(limit=limit)
    assert error.value.option == "limit"


@pytest.mark.parametrize("name", OPTIONS)
def test_an_option_is_spelled_by_each_interface_in_its_way(name):
    setting = ldp.errors.Setting(name, "x")
    flag, field = sentences.as_flag(setting), sentences.as_field(setting)
    assert flag.startswith("-") == bool(OPTIONS[name].flag)
    asked = "ticks" if name == "drop" else OPTIONS[name].field.label or flag  # the page shows columns with ticks
    assert asked in field
