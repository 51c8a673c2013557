"""What the files of a saved model are called, and how they are told apart from others."""

from __future__ import annotations

import hashlib
from pathlib import Path

from labeldp.errors import DataNotFoundError

__all__ = ["CARD", "COLUMNS", "FORMAT", "KNOWN", "MODEL", "OURS", "RELEASE", "sha256"]

CARD, COLUMNS, MODEL, RELEASE = "card.json", "columns.json", "model.npz", "release.npz"
OURS = {CARD, COLUMNS, MODEL, RELEASE}
FORMAT = 1

KNOWN = ("low", "high", "mean", "mean_variance", "variance")
"""What of a model's `Knowledge` are plain numbers."""


def sha256(path: Path) -> str:
    """Return the hash of a file, as the card has it."""
    try:
        with open(path, "rb") as stream:
            return "sha256:" + hashlib.file_digest(stream, "sha256").hexdigest()
    except FileNotFoundError:
        raise DataNotFoundError(f"the model is not whole: {path} is missing") from None
