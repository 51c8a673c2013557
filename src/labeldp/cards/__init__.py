"""Every kind of card: read, and verified."""

from labeldp.cards.reading import ReadCard, load_mechanism, read_any_card, read_release_card
from labeldp.cards.verification import Check, Verification, verify_card

__all__ = [
    "Check",
    "ReadCard",
    "Verification",
    "load_mechanism",
    "read_any_card",
    "read_release_card",
    "verify_card",
]
