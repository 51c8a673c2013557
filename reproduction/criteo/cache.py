"""The encoded log in the user's cache folder, used while its source is unchanged.

A file is the SHA-256 of what follows, then NumPy's ``.npz``: what is damaged is noticed, and encoded again.
"""

from __future__ import annotations

import hashlib
import io
import json
import warnings
from pathlib import Path

import numpy as np

from reproduction.categories import CategoricalDataset
from reproduction.datasets.data_files import cache_folder
from reproduction.files import draft_of

_VERSION = 3
"""Goes up when the encoding changes, so that older files are no longer used."""

_DIGEST = hashlib.sha256().digest_size


def cache_path(source: Path, protocol: str, threshold: int) -> Path:
    """Return the place of the encoded table of a log as it is now.

    Call this before reading the log: a log that changes while it is read is then not mistaken for the new one.
    """
    state = source.stat()
    key = [_VERSION, str(source.resolve()), state.st_size, state.st_mtime_ns, protocol, threshold]
    return cache_folder() / f"criteo-{hashlib.sha256(json.dumps(key).encode()).hexdigest()[:20]}.cache"


def write_cache(data: CategoricalDataset, path: Path) -> None:
    """Keep an encoded table, for its owner's eyes only; a folder that cannot be written to is a warning."""
    names = ("bounds", "columns", "categories", "sizes", "notes")
    facts = {name: getattr(data, name) for name in names}
    sink = io.BytesIO()
    np.savez(sink, X=data.X, y=data.y, ids=data.ids, facts=np.array(json.dumps(facts)))
    content = sink.getbuffer()
    try:
        with draft_of(path, mode=0o600) as draft, draft.open("wb") as file:
            file.write(hashlib.sha256(content).digest())
            file.write(content)
    except OSError as error:
        warnings.warn(f"the encoded table could not be kept for next time: {error}", RuntimeWarning, stacklevel=3)


def read_cache(path: Path) -> CategoricalDataset | None:
    """Return the encoded table, or None if it is absent or damaged."""
    try:
        content = memoryview(path.read_bytes())
    except OSError:
        return None
    if hashlib.sha256(content[_DIGEST:]).digest() != content[:_DIGEST]:
        return None
    with np.load(io.BytesIO(content[_DIGEST:])) as arrays:
        facts = {name: tuple(value) for name, value in json.loads(str(arrays["facts"])).items()}
        return CategoricalDataset("criteo", X=arrays["X"], y=arrays["y"], ids=arrays["ids"], **facts)
