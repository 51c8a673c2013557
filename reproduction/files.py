"""Files that are there whole or not at all."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path


@contextmanager
def draft_of(path: Path, *, mode: int = 0o666) -> Iterator[Path]:
    """Give a file beside ``path`` to write to; it takes that name only if nothing goes wrong.

    Its rights are ``mode``, as far as the umask allows.
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    draft = path.with_name(f"{path.name}.{os.getpid()}.part")
    os.close(os.open(draft, os.O_CREAT | os.O_WRONLY, mode))
    try:
        yield draft
        with draft.open("rb+") as file:
            os.fsync(file.fileno())
        os.replace(draft, path)
    except BaseException:
        draft.unlink(missing_ok=True)
        raise


def write_whole(path: Path, content: bytes) -> None:
    """Write a file so that a reader sees the old one or the new one, never a part."""
    with draft_of(path) as draft:
        draft.write_bytes(content)
