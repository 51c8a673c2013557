"""Every kind of card: read, and verified."""

from labeldp.cards.reading import ReadCard, read_any_card, read_release_card
from labeldp.cards.verification import Check, Verification, verify_card

__all__ = ["Check", "ReadCard", "Verification", "read_any_card", "read_release_card", "verify_card"]
