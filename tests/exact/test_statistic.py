"""A statistic is of a kind with a proven rule, and holds as many integers and steps as the rule covers."""

from fractions import Fraction

import pytest

from labeldp.errors import ParameterError, UncheckableError
from labeldp.exact.integers import Statistic

PROVEN = [("counts", 1, 1), ("counts", (1 << 63) - 1, 1), ("largest count", 1, 1), ("score", 2, 1 << 36)]
UNPROVEN = [
    ("counts", 0, 1),
    ("counts", 1 << 63, 1),
    ("counts", 5, 2),
    ("largest count", 2, 1),
    ("score", 3, 1 << 36),
]


def statistic(kind, size, steps, epsilon=Fraction(1, 2)):
    return Statistic("what is counted", kind, size, steps, epsilon)


@pytest.mark.parametrize("fields", PROVEN)
def test_what_a_rule_covers_is_a_statistic_and_needs_some_epsilon(fields):
    assert statistic(*fields).noise.scale == statistic(*fields).sensitivity * 2
    with pytest.raises(ParameterError):
        statistic(*fields, epsilon=Fraction(0))


@pytest.mark.parametrize("fields", UNPROVEN)
def test_what_no_rule_covers_is_refused(fields):
    with pytest.raises(ParameterError):
        statistic(*fields)


@pytest.mark.parametrize("unknown", [{"kind": "median"}, {"kind": "sums", "noise": "Gaussian"}])
def test_a_kind_or_noise_of_another_version_is_said_to_be_unknown(unknown):
    with pytest.raises(UncheckableError):
        Statistic.refuse_unknown(unknown)


@pytest.mark.parametrize("other", [{"kind": "sums"}, {"kind": 3}, {"kind": "median", "noise": 3}, {}])
def test_what_is_known_or_no_text_is_left_to_the_schema(other):
    Statistic.refuse_unknown(other)
