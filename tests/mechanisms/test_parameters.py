"""Bad parameters get a typed error that names the parameter; good ones have no defaults that hurt."""

import inspect
import math

import numpy as np
import pytest

import labeldp as ldp
from mechanism_cases import BOUNDS, MAKERS, NAMES, make

EPSILON = 1.0
HUGE = 10**400
each_name = pytest.mark.parametrize("name", NAMES)


def short(value):
    """Return a test's id that fits on a line."""
    return repr(value).replace(repr(HUGE), "10**400")


@pytest.mark.parametrize(
    "epsilon", [0, -1, math.nan, "1", None, True, np.True_, 1j, [1], np.array([1.0]), HUGE, b"1"], ids=short
)
@each_name
def test_a_bad_epsilon_is_refused(name, epsilon):
    with pytest.raises(ldp.ParameterError, match="epsilon"):
        MAKERS[name](epsilon)


@pytest.mark.parametrize("epsilon", [np.complex128(1), np.timedelta64(1)])
def test_numpy_numbers_that_are_not_real_are_no_epsilon(epsilon):
    with pytest.raises(ldp.ParameterError, match="epsilon"):
        ldp.TwoPoint(bounds=BOUNDS, epsilon=epsilon)


def refused_for(name, **changed):
    """Assert that the mechanism refuses these parameters in place of good ones."""
    good = {k: v for k, v in make(name, EPSILON).parameters().items() if k != "sigma"}
    with pytest.raises(ldp.ParameterError, match=rf"\b({'|'.join(changed)})\b"):
        type(make(name, EPSILON))(**{**good, **changed})


BAD_BOUNDS = [
    (5, 0), (1, 1), (0, math.nan), (math.nan, 1), (0, math.inf), (-math.inf, 0), (1,), (0, 1, 2), (), 5,
    None, "01", ("0", "1"), (None, 1), (True, 2), (0, 1j), (-1.7e308, 1.7e308), (0, 5e-324),
    (1e16, 1e16 + 2), (0, HUGE),
]  # fmt: skip


@pytest.mark.parametrize("bounds", BAD_BOUNDS, ids=short)
@pytest.mark.parametrize("name", ["rp", "laplace", "staircase-squared", "gaussian", "two-point", "unbiased"])
def test_bad_bounds_are_refused(name, bounds):
    refused_for(name, **{"interval" if name.startswith("rp") else "bounds": bounds})


@pytest.mark.parametrize("delta", [0, -1e-9, 1, 1.5, math.nan, math.inf, "1e-5", None, True, 1e-12])
def test_a_bad_delta_is_refused(delta):
    refused_for("gaussian", delta=delta)


@pytest.mark.parametrize("value", [0, -1, math.nan, math.inf, "1", True, 1j, [1], HUGE], ids=short)
def test_a_bad_zeta_or_sigma_is_refused(value):
    refused_for("rp", zeta=value)
    refused_for("gaussian", sigma=value)


def test_a_zeta_out_of_all_proportion_is_refused():
    for interval, zeta in [((0, 1e-200), 1e308), ((0, 1e200), 1e-308), ((0, 5), 5e-324), ((0, 5), 1e300)]:
        refused_for("rp", interval=interval, zeta=zeta)


@pytest.mark.parametrize("value", ["Project", "", None, 1, True, ["project"], b"project", np.array(["a", "b"])])
def test_an_unknown_choice_is_refused(value):
    refused_for("rp", outside=value)
    refused_for("staircase-absolute", minimise=value)


@pytest.mark.parametrize(
    "changed",
    [
        {"edges": [0, 1]}, {"edges": [0, 2, 1, 3]}, {"edges": [0, 1, 1, 3]}, {"edges": [0, math.nan, 1, 3]},
        {"edges": None}, {"edges": "0123"}, {"edges": ["0", "1", "2", "3"]}, {"edges": [0, 1, 2, HUGE]},
        {"edges": [-1.7e308, 0, 1, 1.7e308]}, {"outputs": [1, 2, math.inf]}, {"outputs": [1, 2]},
        {"outputs": [[1, 2, 3]]}, {"outputs": []}, {"outputs": [1, 2, "x"]}, {"outputs": [1, 2, 1j]},
    ],
    ids=short,
)  # fmt: skip
def test_bad_bins_are_refused(changed):
    refused_for("rr-on-bins", **changed)


@pytest.mark.parametrize(
    "counts", [5, None, [], [[1, 2]], [[math.inf, 1]] * 2, [["a", "b"]] * 2, [[2.0**63 + 0.5, 2.0**63]] * 2]
)
def test_bad_tables_are_refused(counts):
    with pytest.raises(ldp.LabelDPError):
        ldp.Unbiased(bounds=(0, 1), outputs=(0, 1), counts=counts, epsilon=1.0)


@pytest.mark.parametrize(
    ("nodes", "masses"),
    [
        ([0], []), ([0, 1], []), ([0, 1], [1, 2]), ([1, 0], [1]), ([0, 0], [1]), ([0, math.nan], [1]),
        ([0, math.inf], [1]), ([0, 1], [0]), ([0, 1], [-1]), ([0, 1], [math.nan]), ([0, 1], [math.inf]),
        (["a", "b"], [1]), ([0, 1], None), ([[0, 1]], [[1]]), (0, 1), ([0, HUGE], [1]),
        ([-1.7e308, 1.7e308], [1]),
    ],
    ids=short,
)  # fmt: skip
def test_a_bad_histogram_is_refused(nodes, masses):
    with pytest.raises(ldp.ParameterError):
        ldp.Histogram(nodes, masses)


@each_name
def test_parameters_are_given_by_name(name):
    mechanism = make(name, EPSILON)
    with pytest.raises(TypeError):
        type(mechanism)(*mechanism.parameters().values())
    with pytest.raises(TypeError):
        mechanism.randomize([1.0], 7)
    needed = inspect.signature(type(mechanism)).parameters["epsilon"]
    assert needed.default is inspect.Parameter.empty, "there is no default for epsilon"


@pytest.mark.parametrize("random_state", [True, 1.5, "7", np.random.default_rng(0), np.zeros(3), object()])
def test_only_integers_and_sources_of_words_are_random_states(random_state):
    with pytest.raises(ldp.ParameterError, match="random_state"):
        make("laplace", EPSILON).randomize([1.0], random_state=random_state)


@pytest.mark.parametrize("edges", [[0], [1, 0], [0, 0], [0, math.nan], 5, [[0, 1]], ["a", "b"]])
def test_bad_edges_of_a_density_are_refused(edges):
    with pytest.raises(ldp.ParameterError, match="edges"):
        make("laplace", EPSILON).density(1.0, edges)
