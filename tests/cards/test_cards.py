"""Cards: the same mechanism, the same bytes; loading proves again, imports nothing and trusts nothing."""

import copy
import dataclasses
import hashlib
import json
import math
import pickle
import subprocess
import sys
from fractions import Fraction

import numpy as np
import pytest

import labeldp as ldp
from helpers import seeded
from labeldp import card_format
from labeldp.channels import Promise, TableChannel
from labeldp.channels.proof import WORDS, exp_lower
from labeldp.mechanisms.base import Mechanism, channel_field
from mechanism_cases import MAKERS, NAMES, at_most, make

EPSILON = 1.0
CARDS = {name: make(name, EPSILON).to_json() for name in NAMES}
each_name = pytest.mark.parametrize("name", NAMES)


# ---- round trips --------------------------------------------------------------------------------------


@pytest.mark.parametrize("epsilon", [0.1, 1.0, 8.0])
@each_name
def test_a_card_gives_back_the_same_mechanism(name, epsilon):
    mechanism = make(name, epsilon)
    text = mechanism.to_json()
    loaded = ldp.load_mechanism(text)
    assert loaded == mechanism
    assert hash(loaded) == hash(mechanism)
    assert loaded.verify() == mechanism.verify()
    assert loaded.to_json() == text == mechanism.to_json()
    y = np.linspace(0, 5, 1000)
    assert (loaded.randomize(y, random_state=seeded(1)) == mechanism.randomize(y, random_state=seeded(1))).all()


@each_name
def test_a_card_is_canonical_json_with_version_and_checksum(name):
    content = json.loads(CARDS[name])
    assert CARDS[name] == json.dumps(content, sort_keys=True, separators=(",", ":"))
    checksum = content.pop("checksum")
    text = json.dumps(content, sort_keys=True, separators=(",", ":"))
    assert checksum == "sha256:" + hashlib.sha256(text.encode()).hexdigest()
    assert content["schema"] == "labeldp.mechanism"
    assert content["version"] == 2
    assert content["proof"]["epsilon"] <= EPSILON
    assert CARDS[name].isascii()


COPIES = {"pickle": lambda m: pickle.loads(pickle.dumps(m)), "copy": copy.copy, "deepcopy": copy.deepcopy}


@pytest.mark.parametrize("copied", COPIES.values(), ids=COPIES.keys())
@each_name
def test_copies_and_pickles_are_the_same_mechanism(name, copied):
    mechanism = ldp.load_mechanism(CARDS[name])
    same = copied(mechanism)
    assert same == mechanism
    assert same.verify() == mechanism.verify()


@pytest.mark.parametrize("copied", COPIES.values(), ids=COPIES.keys())
def test_no_privacy_can_be_copied_and_pickled(copied):
    assert copied(ldp.NoPrivacy()) == ldp.NoPrivacy()


def test_no_privacy_is_loaded_only_when_asked_for_by_name():
    text = ldp.NoPrivacy().to_json()
    assert "no-privacy" in text
    with pytest.raises(ldp.CardError, match="no privacy at all"):
        ldp.load_mechanism(text)
    assert ldp.load_mechanism(text, allow_no_privacy=True) == ldp.NoPrivacy()


@each_name
def test_mechanisms_are_frozen_hashable_and_readable(name):
    mechanism = make(name, EPSILON)
    with pytest.raises(dataclasses.FrozenInstanceError):
        mechanism.epsilon = 2.0
    with pytest.raises((AttributeError, TypeError)):
        mechanism.surprise = 1
    with pytest.raises(dataclasses.FrozenInstanceError):
        del mechanism.epsilon
    assert len({mechanism, MAKERS[name](EPSILON)}) == 1
    assert mechanism != make(name, 8.0)
    assert repr(mechanism).startswith(f"{type(mechanism).__name__}(")
    assert "epsilon=1.0" in repr(mechanism)
    assert "channel" not in repr(mechanism).lower()
    assert "array" not in repr(mechanism)


def test_loading_imports_nothing():
    program = (
        "import sys, json, labeldp\n"
        "texts = json.load(sys.stdin)\n"
        "labeldp.Gaussian(bounds=(0, 1), epsilon=1.0, delta=1e-5)\n"  # SciPy is imported where it is used
        "before = set(sys.modules)\n"
        "for text in texts: labeldp.load_mechanism(text)\n"
        "print(sorted(set(sys.modules) - before))\n"
    )
    result = subprocess.run(  # noqa: S603
        [sys.executable, "-c", program],
        input=json.dumps(list(CARDS.values())),
        capture_output=True,
        text=True,
        check=True,
    )
    assert result.stdout.strip() == "[]"


# ---- text that is no card ----------------------------------------------------------------------------


@pytest.mark.parametrize("text", [None, 5, b"{}", ["{}"], {}, object()])
def test_a_card_is_text(text):
    with pytest.raises(ldp.CardError, match="text"):
        ldp.load_mechanism(text)


NASTY = {
    "not JSON": "labeldp",
    "a number": "5",
    "a list": "[]",
    "null": "null",
    "NaN": '{"schema":"labeldp.mechanism","version":NaN}',
    "Infinity": '{"schema":"labeldp.mechanism","version":2,"proof":-Infinity}',
    "beyond floats": '{"schema":"labeldp.mechanism","version":1e999}',
    "too many digits": '{"schema":"labeldp.mechanism","version":' + "9" * 5001 + "}",
    "deep lists": "[" * 100_000 + "]" * 100_000,
    "deep objects": '{"a":' * 100_000 + "1" + "}" * 100_000,
    "a key twice": CARDS["two-point"].replace('"epsilon":1.0', '"epsilon":1.0,"epsilon":1.0', 1),
    "a lone surrogate": '{"schema":"labeldp.mechanism","version":2,"checksum":"\\ud800"}',
    "raw surrogate": '{"schema":"labeldp.mechanism","version":2,"mechanism":"\ud800"}',
    "null bytes": "\0" * 10,
    "byte order mark": "\ufeff" + CARDS["two-point"],
    "too long": " " * (1 << 26) + "{}",
}


@pytest.mark.parametrize("text", NASTY.values(), ids=NASTY.keys())
def test_hostile_text_is_refused(text):
    with at_most(5), pytest.raises(ldp.CardError):
        ldp.load_mechanism(text)


# ---- a researcher's own mechanism --------------------------------------------------------------------


@card_format.register("test-coin")
@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Coin(Mechanism):
    """Tell the nearer bound with odds e^ε: a new mechanism in a few lines."""

    bounds: tuple[float, float]
    epsilon: float
    channel: TableChannel = channel_field()

    def _build(self):
        self._set(bounds=tuple(self.bounds))
        promise = Promise(Fraction(self.epsilon))
        lie = -(-WORDS // (1 + exp_lower(promise.epsilon)))
        rows = [[WORDS - lie, lie], [lie, WORDS - lie]]
        return TableChannel.from_counts(*self.bounds, np.array(self.bounds), rows, promise)


def test_a_new_mechanism_has_everything_after_a_few_lines():
    coin = Coin(bounds=(0.0, 5.0), epsilon=1.0)
    assert 0.999 <= coin.verify().epsilon <= 1.0
    assert set(coin.randomize([0.2, 4.9, 1e9] * 50).tolist()) == {0.0, 5.0}
    assert coin.mean([0.0]) == pytest.approx([5 / (1 + math.e)])
    assert coin.density(0.0, [-1, 1, 6]) == pytest.approx([math.e / (1 + math.e) / 2, 1 / (1 + math.e) / 5])
    assert "test-coin" in card_format.known()
    for same in (ldp.load_mechanism(coin.to_json()), pickle.loads(pickle.dumps(coin)), copy.deepcopy(coin)):
        assert same == coin
        assert same.bounds == (0.0, 5.0)
    with pytest.raises(ldp.NotUnbiasedError):
        coin.debias([0.0])


def test_a_name_that_is_taken_is_refused(monkeypatch):
    monkeypatch.setattr(card_format, "_registry", dict(card_format._registry))
    for impostor in (Coin, type("Laplace", (), {"__module__": "elsewhere"})):
        with pytest.raises(ldp.CardError, match="registered already"):
            card_format.register("laplace")(impostor)
    assert card_format.registered("laplace") is ldp.Laplace
