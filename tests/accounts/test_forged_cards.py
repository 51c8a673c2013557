"""Cards of mechanisms: a changed one is refused by its checksum, a forged one by its counts; nothing is imported.

That every mechanism comes back from its card, and from copies, is tested by `check_mechanism`.
"""

import contextlib
import json
import math
from functools import cache

import pytest

import labeldp as ldp
from card_cases import SMALL
from forged_cards import forged, get, leaves, put
from helpers import EVERY, NAMES, python
from mechanism_cases import at_most

EPSILON = 16.0
each_name = pytest.mark.parametrize("name", NAMES)
SECONDS = 5


@cache
def cards():
    return {name: SMALL[name](EPSILON, (1, 4)).to_json() for name in EVERY}


OTHER_TYPES = [None, True, "", "x", [], {}, [1.0], {"a": 1}]
OTHER_NUMBERS = [0, -1, 7, 1e308, 1e-308, -1e308, 1e-9, 1e9, 10**400, 2**64]


@each_name
def test_a_forged_parameter_is_refused(name):
    """Too small a change to change any count is no change: ζ is met to the nearest of 2^32 cells."""
    content = json.loads(cards()[name])
    original = ldp.load_mechanism(cards()[name])
    for path in leaves(content["parameters"]):
        value = get(content["parameters"], path)
        others = [*OTHER_TYPES, *OTHER_NUMBERS]
        if not isinstance(value, str):
            others += [str(value), -value, value + 1, value * 1.001, math.nextafter(value, math.inf)]
        for other in others:
            text = forged(put(content, ("parameters", *path), other))
            with contextlib.suppress(ldp.LabelDPError), at_most(SECONDS):
                loaded = ldp.load_mechanism(text)
                assert loaded.verify() == original.verify(), (path, other)
                assert get(loaded.parameters(), path) == pytest.approx(value, rel=1e-9), (path, other)


@each_name
def test_a_forged_integer_of_a_channel_is_refused(name):
    """Each number of the channel follows from the parameters, to the last word; of a table, it breaks a sum."""
    content = json.loads(cards()[name])
    given = [] if name not in ("rr-on-bins", "unbiased") else ["values"]  # the outputs, stated here alone
    for path in leaves({key: value for key, value in content["channel"].items() if key not in given}):
        value = get(content["channel"], path)
        others = [None, [], {}, "x", not value] if not isinstance(value, bool | None) else [1, 0, "x", [], {}]
        if isinstance(value, int | float) and not isinstance(value, bool):
            others += [value + 1, -value - 1, str(value), value + 0.5]
        for other in others:
            with pytest.raises(ldp.LabelDPError):
                ldp.load_mechanism(forged(put(content, ("channel", *path), other)))


LOADER = """
import sys, json, labeldp
texts = json.loads(sys.argv[1])
labeldp.Gaussian(bounds=(0, 1), epsilon=1.0, delta=1e-5)  # SciPy is imported where it is used
before = set(sys.modules)
for text in texts: labeldp.load_mechanism(text)
print(sorted(set(sys.modules) - before))
"""


def test_loading_imports_nothing():
    small = [text for text in cards().values() if len(text) < 10_000]
    assert len(small) > 5
    result = python(LOADER, json.dumps(small), check=True, capture_output=True, text=True)
    assert result.stdout.strip() == "[]"
