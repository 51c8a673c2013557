"""Where a table is written until it is complete, and how it and its card get their names."""

from __future__ import annotations

import hashlib
import os
import secrets
import shutil
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from types import TracebackType
from typing import Any, BinaryIO, Self

import pyarrow as pa

from labeldp._atomic import atomic_file, atomic_folder
from labeldp.files.places import PIPE, is_folder, is_part, refuse_target

__all__ = ["Draft", "TableAndCard", "open_draft"]


class Draft:
    """A place for one file, or for several if it is a folder; what goes to a pipe is spooled until the end."""

    def __init__(self, name: str, *, path: Path | None = None, spool: BinaryIO | None = None) -> None:
        self._name, self._path, self._spool, self._count = name, path, spool, 0
        self.is_folder = path is not None and path.is_dir()

    def add(self, extension: str) -> Any:
        """Return an Arrow stream for the next file."""
        if self._spool is not None:  # a handle of its own, since Arrow closes it
            return pa.PythonFile(os.fdopen(os.dup(self._spool.fileno()), "wb"), mode="w")
        self._count += 1
        part = f"{self._path}/part-{self._count - 1:05d}.{extension}"
        return pa.OSFile(part if self.is_folder else str(self._path), "wb")

    def digests(self) -> dict[str, str]:
        """Return the SHA-256 of each file, by its name."""
        if self._spool is not None:
            self._spool.seek(0)
            return {self._name: hashlib.file_digest(self._spool, "sha256").hexdigest()}  # type: ignore[arg-type]
        files = sorted(Path(str(self._path)).iterdir()) if self.is_folder else [Path(str(self._path))]
        digests = {}
        for file in files:
            with open(file, "rb") as stream:
                digest = hashlib.file_digest(stream, "sha256").hexdigest()
            digests[file.name if self.is_folder else self._name] = digest
        return digests


@contextmanager
def open_draft(to: str, most: int = 0o666) -> Iterator[Draft]:
    """Give a draft of a file, folder or pipe, which becomes the thing itself if nothing goes wrong."""
    if to == PIPE:
        with tempfile.TemporaryFile() as spool:
            yield Draft(PIPE, spool=spool)
            spool.seek(0)
            shutil.copyfileobj(spool, sys.stdout.buffer, 1 << 20)
            sys.stdout.buffer.flush()
    elif is_folder(to):
        with atomic_folder(to, check=partial(refuse_target, to, force=True, folder=is_part), most=most) as folder:
            yield Draft(Path(to).name, path=folder)
    else:
        with atomic_file(to, public=True, most=most) as draft:
            yield Draft(Path(to).name, path=draft)


class TableAndCard:
    """The places of a table and its card while both are replaced: they appear together.

    No kill leaves a table beside another table's card, or beside none. First the old table steps aside, then its
    card; then the new card takes its place, and the new table last. Old things come back if the new table does
    not get there, and go for good if it does. A kill in between leaves them beside their names, with ``.old`` at
    the end.
    """

    def __init__(self, to: str, card: Path | None, *, force: bool) -> None:
        self._to, self._card, self._force = to, card, force
        self._aside: dict[Path, Path] = {}
        self._ready = self._had_card = False

    def refuse_targets(self) -> None:
        """Refuse places where something is that may not be replaced."""
        refuse_target(self._to, force=self._force, folder=is_part)
        if self._card is not None:
            refuse_target(str(self._card), force=self._force)

    def __enter__(self) -> Self:
        return self

    def put_card(self, text: str, most: int) -> None:
        """Clear both places and put the card, with these rights at most; the complete table comes next."""
        self.refuse_targets()  # again: much can have been put there while the table was written
        self._had_card = self._card is not None and os.path.lexists(self._card)
        places = [path for path in (None if self._to == PIPE else Path(self._to), self._card) if path is not None]
        self._aside = {path: path.with_name(f"{path.name}.{secrets.token_hex(4)}.old") for path in places}
        for path, aside in self._aside.items():
            if os.path.lexists(path):
                os.rename(path, aside)
        if self._card is not None:
            with atomic_file(self._card, public=True, most=most) as draft:
                draft.write_text(text, encoding="utf-8")
        self._ready = True

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if kind is None or (self._ready and self._to != PIPE and os.path.lexists(self._to)):
            for aside in self._aside.values():
                if aside.is_dir() and not aside.is_symlink():
                    shutil.rmtree(aside, ignore_errors=True)
                else:
                    aside.unlink(missing_ok=True)
            return
        if self._card in self._aside and not self._had_card:
            self._card.unlink(missing_ok=True)
        for path, aside in reversed(self._aside.items()):
            if os.path.lexists(aside):
                os.replace(aside, path)
