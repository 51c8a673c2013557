"""Cards that were written once are read for ever: the same parameters give the same counts, to the last word.

`kept_cards.txt` is never written anew. A change that makes a line fail would make users' cards unreadable, and
needs another version of the card.
"""

import json
from pathlib import Path

import pytest

import labeldp as ldp

KEPT = Path(__file__).with_name("kept_cards.txt").read_text().splitlines()


@pytest.mark.parametrize("text", KEPT, ids=lambda text: text.partition('"parameters":')[2][:60])
def test_a_kept_card_is_rebuilt_to_the_last_word(text):
    kept, mechanism = json.loads(text), ldp.load_mechanism(text)
    assert ldp.accounts.version_2.fingerprint_2(mechanism.channel) == kept["channel"]
    assert mechanism.parameters() == kept["parameters"]
    assert kept["proof"].items() <= mechanism.verify().as_data().items()
    assert ldp.load_mechanism(mechanism.to_json()) == mechanism
