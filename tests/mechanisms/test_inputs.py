"""Any array of numbers is accepted, and nothing else; no error, warning or message tells a label.

That form and type do not change what is released is tested in `tests/evidence/test_check_mechanism.py`.
"""

import decimal
import fractions
import math
import traceback
import warnings

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

import labeldp as ldp
from helpers import EVERY, seeded
from mechanism_cases import make, output_range

EPSILON = 1.0
SECRET = 987654.321
each_name = pytest.mark.parametrize("name", EVERY)
repeatable = settings(
    max_examples=20, deadline=None, derandomize=True, database=None, suppress_health_check=list(HealthCheck)
)
INTEGERS = ["int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64"]


def assert_released(mechanism, labels, shape):
    before = np.array(labels, copy=True)
    z = mechanism.randomize(labels, random_state=seeded(0))
    low, high = output_range(mechanism)
    slack = 1e-6 * (high - low)
    assert isinstance(z, np.ndarray)
    assert z.dtype == np.float64
    assert z.shape == shape
    assert low - slack <= z.min() <= z.max() <= high + slack
    assert np.array_equal(np.asarray(labels), before)
    assert not np.shares_memory(z, before)
    for moment in (mechanism.mean, mechanism.variance, mechanism.bias):
        result = moment(labels)
        assert result.shape == shape
        assert np.isfinite(result).all()
    assert (mechanism.variance(labels) >= 0).all()


# ---- good labels ---------------------------------------------------------------------------------------


FLOATS = hnp.arrays(
    hnp.floating_dtypes(sizes=(16, 32, 64), endianness="?"),
    hnp.array_shapes(min_dims=0, max_dims=3, min_side=1, max_side=7),
    elements={"allow_nan": False, "allow_infinity": False, "allow_subnormal": True},
)


@given(labels=FLOATS | hnp.arrays(st.sampled_from(INTEGERS), hnp.array_shapes(max_dims=2, max_side=5)))
@each_name
@repeatable
def test_finite_numbers_of_any_kind_and_shape_are_randomised(name, labels):
    assert_released(make(name, EPSILON), labels, labels.shape)


EXTREME = [0.0, -0.0, 5e-324, -5e-324, 2.2e-308, 1e-300, 1e300, -1e308, 1.7976931348623157e308, 1.0, 4.0]


@each_name
def test_extreme_labels_neither_warn_nor_raise(name):
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert_released(make(name, EPSILON), np.array(EXTREME), (len(EXTREME),))
        for label in EXTREME:
            assert_released(make(name, EPSILON), label, ())


@pytest.mark.parametrize("kind", [int, fractions.Fraction, decimal.Decimal])
def test_finite_numbers_beyond_floats_are_clipped_as_others_are(kind):
    """An error would tell that a label lies far outside."""
    mechanism, far = make("laplace", EPSILON), [kind("-1" + "0" * 400), kind("1" + "0" * 400), kind(2)]
    for labels in (np.array(far, dtype=object), np.array([*far, 1.5], dtype=object).tolist()):
        near = [-1e308, 1e308, 2.0, 1.5][: len(labels)]
        z = [mechanism.randomize(y, random_state=seeded(4)).tolist() for y in (labels, near)]
        assert z[0] == z[1]
        assert mechanism.mean(labels).tolist() == mechanism.mean(near).tolist()
        assert np.isfinite(mechanism.bias(labels)).all()


CONTAINERS = {
    "list": [1.0, 2.5, 4.0],
    "scalar": 2.5,
    "series": pd.Series([1.0, 2.5, 4.0], index=[7, 3, 5]),
    "nullable Int64": pd.Series([1, 2, 4], dtype="Int64"),
    "arrow-backed series": pd.Series([1.5, 2.5], dtype="double[pyarrow]"),
    "arrow array": pa.array([1.0, 2.0, 3.5]),
    "objects": np.array([1, 2.5, fractions.Fraction(7, 2)], dtype=object),
    "big integers": [2**70, -(2**70), 3],
    "strided": np.arange(20.0).reshape(4, 5)[::2, 1::2],
    "broadcast": np.broadcast_to(np.float64(2.0), (3, 4)),
    "read-only, of several pieces": np.linspace(0, 5, 100_001),
}
CONTAINERS["read-only, of several pieces"].flags.writeable = False


@pytest.mark.parametrize("labels", CONTAINERS.values(), ids=CONTAINERS.keys())
def test_columns_of_any_library_are_randomised(labels):
    for name in ("rp", "laplace", "two-point"):  # one for each kind of channel
        assert_released(make(name, EPSILON), labels, np.shape(labels))


# ---- bad labels -----------------------------------------------------------------------------------------


class Grudge:
    """Something whose conversion fails loudly, quoting a label."""

    def __float__(self):
        raise RuntimeError(f"the label was {SECRET}")


BAD = {
    "NaN": [SECRET, math.nan],
    "infinity": [SECRET, math.inf],
    "minus infinity": np.array([SECRET, -math.inf], dtype="f4"),
    "None": [SECRET, None],
    "empty": [],
    "strings": ["secret-string", "987654.321"],
    "numbers and strings": [SECRET, "secret-string"],
    "strings among objects": np.array([SECRET, "987654.321"], dtype=object),
    "booleans among objects": np.array([True, SECRET], dtype=object),
    "complex": [SECRET + 1j],
    "dates": np.array(["1987-06-05"], dtype="M8[D]"),
    "durations": np.array([987654], dtype="m8[s]"),
    "ragged": [[SECRET], [SECRET, 1.0]],
    "masked": np.ma.array([SECRET, 1.0], mask=[True, False]),
    "pandas NA": pd.Series([SECRET, pd.NA], dtype="Float64"),
    "arrow null": pa.array([SECRET, None]),
    "arrow strings": pa.array(["secret-string"]),
    "a dictionary": {"secret-string": SECRET},
    "a generator": (y for y in [SECRET]),
    "a conversion that fails": np.array([Grudge()], dtype=object),
}


@pytest.mark.parametrize("labels", BAD.values(), ids=BAD.keys())
def test_bad_labels_are_refused_without_quoting_one(labels):
    mechanism = make("laplace", EPSILON)
    for ask in (mechanism.randomize, mechanism.mean, mechanism.variance, mechanism.bias):
        with warnings.catch_warnings(record=True) as warned:
            warnings.simplefilter("always")  # users do not run with warnings as errors
            with pytest.raises(ldp.errors.LabelError) as caught:
                ask(labels)
        shown = "".join(traceback.format_exception(caught.value))
        assert not [secret for secret in ("987654", "secret-string", "1987") if secret in shown]
        assert isinstance(caught.value, ValueError)
        assert not warned
