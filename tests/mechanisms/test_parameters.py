"""Bad parameters get a typed error that names the parameter; good ones have no defaults that hurt."""

import inspect
import math

import numpy as np
import pytest

from helpers import EVERY, MAKERS
from labeldp.errors import ParameterError
from mechanism_cases import BOUNDS, make

EPSILON = 1.0
HUGE = 10**400
each_name = pytest.mark.parametrize("name", EVERY)


def short(value):
    """Return a test's id that fits on a line."""
    return repr(value).replace(repr(HUGE), "10**400")


BAD_NUMBERS = [0, -1, math.nan, math.inf, 20.000001, 0.000999, "1", None, True, 1j, [1], HUGE]


@each_name
def test_a_bad_epsilon_is_refused(name):
    for epsilon in BAD_NUMBERS:
        with pytest.raises(ParameterError) as caught:
            MAKERS[name](epsilon, BOUNDS)
        assert caught.value.option == "epsilon"


def refused_for(name, **changed):
    """Assert that the mechanism refuses these parameters in place of good ones."""
    good = {k: v for k, v in make(name, EPSILON).parameters().items() if k != "sigma"}
    with pytest.raises(ParameterError) as caught:
        type(make(name, EPSILON))(**{**good, **changed})
    assert caught.value.option in changed


BAD_BOUNDS = [
    (5, 0), (1, 1), (0, math.nan), (math.nan, 1), (0, math.inf), (-math.inf, 0), (1,), (0, 1, 2), (), 5,
    None, "01", ("0", "1"), (-1.7e308, 1.7e308), (0, 5e-324), (1e16, 1e16 + 2), (0, HUGE),
]  # fmt: skip


@pytest.mark.parametrize("bounds", BAD_BOUNDS, ids=short)
def test_bad_bounds_are_refused(bounds):
    for name in EVERY:
        if name != "rr-on-bins":
            refused_for(name, **{"interval" if name.startswith("rp") else "bounds": bounds})


@pytest.mark.parametrize("delta", [0, -1e-9, 1, 1.5, math.nan, math.inf, "1e-5", None, True, 1e-12])
def test_a_bad_delta_is_refused(delta):
    refused_for("gaussian", delta=delta)


@pytest.mark.parametrize("value", [0, -1, math.nan, math.inf, "1", True, 1j, [1], HUGE], ids=short)
def test_a_bad_zeta_or_sigma_is_refused(value):
    refused_for("rp", zeta=value)
    refused_for("gaussian", sigma=value)


@pytest.mark.parametrize("value", ["Project", "", None, 1, True, ["project"], b"project", np.array(["a", "b"])])
def test_an_unknown_choice_is_refused(value):
    refused_for("rp", outside=value)
    refused_for("staircase", minimise=value)


@pytest.mark.parametrize(
    "changed",
    [
        {"edges": [0, 1]}, {"edges": [0, 2, 1, 3]}, {"edges": [0, 1, 1, 3]}, {"edges": [0, math.nan, 1, 3]},
        {"edges": None}, {"edges": ["0", "1", "2", "3"]},
        {"edges": [-1.7e308, 0, 1, 1.7e308]}, {"outputs": [1, 2, math.inf]},
        {"edges": [0, 1, 2, 3], "outputs": [1, 2]},
        {"outputs": [[1, 2, 3]]}, {"edges": [0, 1, 2, 3], "outputs": []},
    ],
    ids=short,
)  # fmt: skip
def test_bad_bins_are_refused(changed):
    refused_for("rr-on-bins", **changed)


@each_name
def test_parameters_are_given_by_name(name):
    mechanism = make(name, EPSILON)
    with pytest.raises(TypeError):
        type(mechanism)(*mechanism.parameters().values())
    with pytest.raises(TypeError):
        mechanism.randomize([1.0], 7)
    needed = inspect.signature(type(mechanism)).parameters["epsilon"]
    assert needed.default is inspect.Parameter.empty, "there is no default for epsilon"
