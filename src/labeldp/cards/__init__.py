"""Every kind of card: read, verified, and explained."""

from labeldp.cards.reading import ReadCard, read_any_card

__all__ = ["ReadCard", "read_any_card"]
