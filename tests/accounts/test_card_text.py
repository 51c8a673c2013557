"""The text of cards, letter by letter; and the little time that a hostile one takes."""

import contextlib
import hashlib
import json
import math
from fractions import Fraction
from functools import cache

import pytest

import labeldp as ldp
from card_cases import SMALL, card
from forged_cards import forged, get, leaves, put
from helpers import EVERY, NAMES, python
from labeldp.errors import CardError
from mechanism_cases import at_most

card_format = ldp.mechanisms.card_format
registry = ldp.mechanisms.registry
SCHEMA = "labeldp.thing"
BODY = '"a":[1,0.5,null,true],"b":{"é":"é"}'.replace("é", "\\u00e9")


def written(body, schema=SCHEMA, version="1"):
    """Return the text of a card around the middle of its content."""
    text = f'{body},"schema":"{schema}","version":{version}}}'
    return f'{{"checksum":"sha256:{hashlib.sha256(text.encode("ascii")).hexdigest()}",{text}'


def test_a_card_is_written_as_its_account_says_and_read_again():
    content = {"b": {"é": "é"}, "a": [1, 0.5, None, True]}
    text = card_format.dump(content, SCHEMA)
    assert text == written(BODY)
    assert card_format.parse(text, SCHEMA) == {**content, "schema": SCHEMA, "version": 1}
    assert card_format.dump(content) == written(BODY, "labeldp.mechanism")
    assert card_format.parse(card_format.dump(content))["schema"] == "labeldp.mechanism"
    assert card_format.parse(f" {text}\n", SCHEMA) == card_format.parse(text, SCHEMA)


REST = f'"a":"é","schema":"{SCHEMA}","version":1}}'
NOT_ASCII = f'{{"checksum":"sha256:{hashlib.sha256(REST.encode()).hexdigest()}",{REST}'
WRONG = {
    "another schema": (written(BODY, "labeldp.other"), "another kind"),
    "an unpublished version": (written(BODY, version="4"), "never published"),
    "a later version": (written(BODY, version="5"), "newer version"),
    "no version": (written(BODY, version="true"), "no version"),
    "no checksum": (json.dumps({"schema": SCHEMA, "version": 1}), "checksum"),
    "written again": (json.dumps(json.loads(written(BODY))), "checksum"),
    "another checksum": (written(BODY).replace("0.5", "0.6"), "checksum"),
    "a list": ("[]", "another kind"),
    "no JSON": (written(BODY)[:-1], "not valid JSON"),
    "too deep": ("[" * 100_000, "not valid JSON"),
    "a key twice": (written(BODY + ',"b":1'), "a key twice"),
    "a key twice inside": (written('"a":{"b":1,"b":1}'), "a key twice"),
    "not a number": (written('"a":NaN'), "not finite"),
    "beyond floats": (written('"a":1e999'), "not finite"),
    "an integer beyond floats": (written('"a":' + "9" * 400), "not finite"),
    "beyond ASCII": (NOT_ASCII, "beyond ASCII"),
    "too many digits": (written('"a":' + "9" * 5001), "not finite"),
    "deep objects": ('{"a":' * 100_000 + "1" + "}" * 100_000, "not valid JSON"),
    "null": ("null", "another kind"),
    "null bytes": ("\0" * 10, "not valid JSON"),
    "byte order mark": ("\ufeff" + written(BODY), "beyond ASCII"),
    "cards in a row": (written(BODY) * 2, "not valid JSON"),
    "a lone surrogate": (json.dumps({"schema": SCHEMA, "version": 1, "checksum": "\ud800"}), "checksum"),
    "a raw surrogate": (f'{{"schema":"{SCHEMA}","version":1,"a":"\ud800"}}', "beyond ASCII"),
}


@pytest.mark.parametrize("case", WRONG)
def test_a_text_that_nobody_wrote_is_refused_for_what_it_is(case):
    text, why = WRONG[case]
    with pytest.raises(CardError, match=why):
        card_format.parse(text, SCHEMA)


def test_a_card_may_be_as_long_as_is_said_and_no_longer():
    text = written(BODY)
    assert card_format.parse(text + " " * (2**23 - len(text)), SCHEMA)
    for wrong in (text + " " * (2**23 - len(text) + 1), text.encode(), None, 5):
        with pytest.raises(CardError, match=r"longer|a card is text"):
            card_format.parse(wrong, SCHEMA)


# ---- exact amounts --------------------------------------------------------------------------------------------


def card_with_amounts(amounts):
    """Return a release's card with further charges of these amounts."""
    content = json.loads(card("release"))
    extra = [{**content["charges"][0], "budget": amount, "purpose": "other"} for amount in amounts]
    return forged({**content, "charges": [*content["charges"], *extra]})


def primes(count, digits):
    """Return fractions whose denominators have hardly a factor in common: their sums only grow."""
    return [f"1/{10**digits + 2 * k + 1}" for k in range(count)]


def test_amounts_with_no_short_exact_sum_are_refused_before_their_sum_grows():
    """400 amounts of 4,000 digits took 218 s: the work for each charge must not grow with their number."""
    verification = ldp.verify_card(card_with_amounts(primes(400, 390)))
    assert verification.verdict == "not valid"
    assert "needs more than 8192 bits" in verification.checks[-1].detail


@pytest.mark.parametrize(
    ("epsilon", "people"), [(0.12345678901234566, 50), (19.123456789012345, 2), (2.2250738585072014e-308, 1)]
)
def test_every_amount_that_a_release_can_cost_fits(epsilon, people):
    cost = ldp.Ledger().charge("labels", epsilon=epsilon, rows_per_person=people).budget
    assert ldp.Budget.from_data(cost.as_data()) == cost


def test_an_amount_that_no_card_could_hold_is_refused_before_it_is_charged():
    ledger = ldp.Ledger()
    with pytest.raises(ldp.errors.ParameterError, match="lowest terms"):
        ledger.charge("labels", epsilon=Fraction(1, 10**500 + 1))
    assert ledger.charges == ()


def test_a_card_nested_at_any_depth_is_an_error_of_a_card():
    """Whichever of the JSON reader and writer gives up first."""
    for depth in (10, *range(200, 1200, 50), 100_000):
        for start, end in (("[", "]"), ('{"a":', "}")):
            nested = start * depth + "1" + end * depth
            with pytest.raises(CardError):
                ldp.accounts.Card.parse(f'{{"schema":"labeldp.mechanism","version":1,"x":{nested}}}')


# ---- forged cards of mechanisms --------------------------------------------------------------------------

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
