"""Cards that were written once are read for ever: the same parameters give the same counts, to the last word.

`kept_cards.txt` is never written anew. A change that makes a line fail would make users' cards unreadable, and
needs another version of the card.
"""

from pathlib import Path

import pytest

import labeldp as ldp

KEPT = Path(__file__).with_name("kept_cards.txt").read_text().splitlines()


@pytest.mark.parametrize("text", KEPT, ids=lambda text: text.partition('"parameters":')[2][:60])
def test_a_kept_card_is_rebuilt_to_the_last_word(text):
    assert ldp.load_mechanism(text).to_json() == text
