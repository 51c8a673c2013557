"""The text of cards, letter by letter, whatever they are about; and the registry of names."""

import hashlib
import json

import pytest

import labeldp as ldp

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


def test_content_may_not_be_what_json_has_no_word_for():
    for number in (float("nan"), float("inf")):
        with pytest.raises(ValueError, match="JSON compliant"):
            card_format.dump({"a": number})


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
    "too many digits": (written('"a":' + "9" * 5001), "not valid JSON"),
    "deep objects": ('{"a":' * 100_000 + "1" + "}" * 100_000, "not valid JSON"),
    "null": ("null", "another kind"),
    "null bytes": ("\0" * 10, "not valid JSON"),
    "byte order mark": ("\ufeff" + written(BODY), "not valid JSON"),
    "cards in a row": (written(BODY) * 2, "not valid JSON"),
    "a lone surrogate": (json.dumps({"schema": SCHEMA, "version": 1, "checksum": "\ud800"}), "checksum"),
    "a raw surrogate": (f'{{"schema":"{SCHEMA}","version":1,"a":"\ud800"}}', "checksum"),
}


@pytest.mark.parametrize("case", WRONG)
def test_a_text_that_nobody_wrote_is_refused_for_what_it_is(case):
    text, why = WRONG[case]
    with pytest.raises(ldp.errors.CardError, match=why):
        card_format.parse(text, SCHEMA)


def test_a_card_may_be_as_long_as_is_said_and_no_longer():
    text = written(BODY)
    assert card_format.parse(text + " " * (2**23 - len(text)), SCHEMA)
    for wrong in (text + " " * (2**23 - len(text) + 1), text.encode(), None, 5):
        with pytest.raises(ldp.errors.CardError, match=r"longer|a card is text"):
            card_format.parse(wrong, SCHEMA)


def test_a_name_belongs_to_the_class_that_has_it_even_if_its_module_is_loaded_again():
    def make(module, name):
        return type(name, (), {"__module__": module, "private": True})

    try:
        for _ in range(2):  # as if its module were loaded again
            coin = registry.register("a coin of a test")(make("here", "Coin"))
            assert registry.registered_class("a coin of a test") is coin
        for other in (make("here", "Die"), make("there", "Coin")):
            with pytest.raises(ldp.errors.CardError, match="registered already"):
                registry.register("a coin of a test")(other)
        assert registry.registered_class("a coin of a test") is coin
    finally:
        registry.REGISTRY.pop("a coin of a test", None)
    for unknown in ("a coin of a test", "", None, 3, ["laplace"]):
        with pytest.raises(ldp.errors.CardError, match=r"unknown mechanism.*known are: .*gaussian, laplace"):
            registry.registered_class(unknown)
