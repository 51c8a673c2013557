"""Files that are there whole or not at all."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

__all__ = ["written_whole"]


@contextmanager
def written_whole(path: str | os.PathLike[str], *, public: bool = False) -> Iterator[Path]:
    """Give a draft beside ``path`` to write to; it takes that name only if nothing goes wrong.

    Readable by its owner only, unless it is public: files of data sets hold labels.

    Examples
    --------
    >>> target = Path(tempfile.mkdtemp(), "table.txt")
    >>> with written_whole(target) as draft:
    ...     _ = draft.write_text("all of it")
    >>> target.read_text(), len(list(target.parent.iterdir()))
    ('all of it', 1)
    """
    path = Path(path)
    path.parent.mkdir(parents=True, exist_ok=True)
    handle, name = tempfile.mkstemp(dir=path.parent, prefix=f"{path.name}.", suffix=".part")
    os.close(handle)
    draft = Path(name)
    try:
        yield draft
        with open(draft, "rb+") as stream:
            os.fsync(stream.fileno())
        if public:
            draft.chmod(0o644)
        os.replace(draft, path)
    except BaseException:
        draft.unlink(missing_ok=True)
        raise
