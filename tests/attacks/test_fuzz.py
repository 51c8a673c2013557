"""Whatever bytes come in, what comes out is a value or an error of this package, in little time and memory.

``LABELDP_LONG=1`` tries a hundred times as many.
"""

import contextlib
import json
from functools import cache

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import labeldp as ldp
from forged_cards import forged, put
from fuzzing import places, tries, values
from helpers import linux_only, python

pytestmark = pytest.mark.slow


LABELS, BOUNDS = np.linspace(1, 4, 60), (0.0, 5.0)


def fitted(regressor, **options):
    return regressor(bounds=BOUNDS, **options).fit(LABELS[:, None], LABELS)


MAKE = {
    "rp": lambda: ldp.RPWithPrior(interval=BOUNDS, zeta=1.0, epsilon=1.0).to_json(),
    "two-point": lambda: ldp.TwoPoint(bounds=BOUNDS, epsilon=1.0).to_json(),
    "laplace": lambda: ldp.Laplace(bounds=BOUNDS, epsilon=20.0).to_json(),
    "gaussian": lambda: ldp.Gaussian(bounds=BOUNDS, epsilon=16.0, delta=0.01).to_json(),
    "rr-on-bins": lambda: ldp.RROnBins(edges=[0, 1, 5], outputs=[0.8, 2.1], epsilon=1.0).to_json(),
    "unbiased": lambda: ldp.Unbiased.design(ldp.Histogram([0, 1, 5], [1, 1]), 1.0, size=4).to_json(),
    "release": lambda: ldp.privatize(LABELS, epsilon=1.0, bounds=BOUNDS, mechanism="rp").to_card(),
    "rows": lambda: fitted(ldp.LabelReleaseRegressor, epsilon=4.0).release_.to_card(),  # noqa: PLW0108
    "labels model": lambda: fitted(ldp.LabelReleaseRegressor, epsilon=4.0).to_card(),
    "model": lambda: fitted(ldp.ModelReleaseRegressor, epsilon=1.0).to_card(),
}
each_card = pytest.mark.parametrize("name", MAKE)


@cache
def card(name):
    return MAKE[name]()


def survives(text):
    """Read a card in every way there is; return what was read, or None if it was refused."""
    with contextlib.suppress(ldp.LabelDPError):
        ldp.load_mechanism(text)
    verified = ldp.verify_card(text)
    try:
        found = ldp.accounts.Card.parse(text)
    except ldp.LabelDPError:
        assert not verified.holds
        return None
    assert verified.card is not None
    assert found.explain().sections
    return found


@each_card
@tries(60)
@given(data=st.data())
def test_a_card_with_any_value_replaced_and_its_checksum_forged_is_read_or_refused(name, data):
    content = json.loads(card(name))
    for _ in range(data.draw(st.integers(1, 2))):
        path = data.draw(st.sampled_from(places(content)))
        content = put(content, path, data.draw(values))
    survives(forged(content))


@each_card
@tries(40)
@given(data=st.data())
def test_a_card_with_bytes_changed_says_the_same_or_is_refused(name, data):
    text = card(name)
    at, gone = data.draw(st.integers(0, len(text))), data.draw(st.integers(0, 3))
    changed = text[:at] + data.draw(st.text(max_size=3)) + text[at + gone :]
    assert survives(changed) is None or json.loads(changed) == json.loads(text)


@tries(300)
@given(text=st.one_of(st.text(), values.map(json.dumps), st.binary().map(lambda data: data.decode("latin-1"))))
def test_what_is_no_card_is_refused(text):
    assert survives(text) is None


def test_the_fuzzer_would_notice_a_reader_that_crashes(monkeypatch):
    monkeypatch.setattr("labeldp.accounts.card._terms", lambda *_: 1 // 0)
    assert survives(card("release")) is None, "the outer boundary refuses whatever the schema lets through"
    for module in ("card", "verification"):
        monkeypatch.setattr(f"labeldp.accounts.{module}.refuse_other_errors", contextlib.nullcontext)
    with pytest.raises(ZeroDivisionError):
        survives(card("release"))


# ---- cards that are large on purpose ----------------------------------------------------------------

READER = """
import json, sys
import labeldp as ldp
from labeldp.mechanisms.card_format import MAX_TEXT

start = '{"schema":"labeldp.model","version":2,"x":['
def peak():
    lines = open("/proc/self/status").read().splitlines()
    return next(int(line.split()[1]) >> 10 for line in lines if line.startswith("VmHWM"))

before = peak()
for piece, end in json.loads(sys.argv[1]):
    text = start + piece * ((MAX_TEXT - len(start) - len(end)) // len(piece)) + end
    try:
        ldp.accounts.Card.parse(text)
    except ldp.errors.CardError:
        print(peak() - before)
"""
LARGE = [("[],", "0]}"), ('{"":', "")]
"""Long lists and deep objects: a repeated piece of text and its end."""


@linux_only
def test_the_longest_card_there_is_takes_less_than_a_gigabyte():
    """Lists in lists take the most."""
    done = python(READER, json.dumps(LARGE), check=True, capture_output=True, text=True)
    found = [int(line) for line in done.stdout.splitlines()]
    assert len(found) == len(LARGE)
    assert max(found) < 1024


MADE = {"bounds": (0, 5), "epsilon": 1.0}


def test_a_card_of_many_mechanisms_is_refused_before_one_is_built(monkeypatch):
    built = []
    build = lambda *entry: built.append(entry) or ldp.TwoPoint(**MADE)  # noqa: E731
    monkeypatch.setattr("labeldp.accounts.schema._rebuild", build)
    content = json.loads(card("release"))
    many = [put(content["mechanisms"][0], ("parameters", "epsilon"), 1 + k / 100) for k in range(17)]
    with pytest.raises(ldp.errors.CardError, match="a list of at most 16"):
        ldp.accounts.Card.parse(forged({**content, "mechanisms": many, "parts": list(range(17))}))
    assert not built
    with pytest.raises(ldp.errors.CardError):
        ldp.accounts.Card.parse(forged({**content, "mechanisms": many[:16], "parts": list(range(16))}))
    assert built
