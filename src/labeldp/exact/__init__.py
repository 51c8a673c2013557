"""Exact integers: secure 64-bit words, channels with their proofs, and noise for sums."""

from labeldp.exact.integers import DiscreteLaplace
from labeldp.exact.proof import Channel, Promise, Proof
from labeldp.exact.shift import ShiftChannel
from labeldp.exact.table import TableChannel
from labeldp.exact.window import WindowChannel
from labeldp.exact.word_sources import (
    SecureWords,
    SeededWords,
    WordSource,
    default_source,
    resolve_source,
)

__all__ = [
    "Channel",
    "DiscreteLaplace",
    "Promise",
    "Proof",
    "SecureWords",
    "SeededWords",
    "ShiftChannel",
    "TableChannel",
    "WindowChannel",
    "WordSource",
    "default_source",
    "resolve_source",
]
