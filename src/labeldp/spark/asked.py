"""What callers pass in, checked: ledgers and seeds."""

from __future__ import annotations

import numpy as np

from labeldp.errors import ParameterError
from labeldp.ledger import Ledger
from labeldp.randomness.row_words import ReleaseKey

__all__ = ["as_ledger", "as_seed", "release_key"]


def as_ledger(ledger: object) -> Ledger | None:
    """Return a ledger, or None, or say what is one."""
    if ledger is not None and not isinstance(ledger, Ledger):
        raise ParameterError("ledger must be a Ledger; for a file use Ledger.open(path, limit=...)")
    return ledger


def as_seed(random_state: object) -> int | None:
    """Return a seed, or None for a release."""
    if random_state is None:
        return None
    if isinstance(random_state, bool) or not isinstance(random_state, int | np.integer):
        raise ParameterError("random_state must be None (secure, for releases) or an integer (tests only)")
    return int(random_state)


def release_key(seed: int | None) -> ReleaseKey:
    """Return a new key for a release, or one from a seed for tests."""
    return ReleaseKey() if seed is None else ReleaseKey.from_seed(seed)
