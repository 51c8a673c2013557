"""Secure 64-bit words; words keyed by a row's id; a seeded source is another, clearly insecure type."""

from labeldp.randomness.word_sources import (
    RowSource,
    SecureWords,
    SeededWords,
    WordSource,
    default_source,
    resolve_source,
)

__all__ = ["RowSource", "SecureWords", "SeededWords", "WordSource", "default_source", "resolve_source"]
