"""A table and its card appear together: no kill leaves a table beside another table's card, or beside none."""

from __future__ import annotations

import os
import secrets
import shutil
from pathlib import Path
from types import TracebackType
from typing import Self

from labeldp._files import written_whole
from labeldp.files.drafts import refuse_target
from labeldp.files.sources import PIPE

__all__ = ["Pair"]


class Pair:
    """The places of a table and its card while both are replaced.

    First the old table steps aside, then its card; then the new card takes its place, and the new table last. Old
    things come back if the new table does not get there, and go for good if it does. A kill in between leaves them
    beside their names, with ``.old`` at the end.

    Parameters
    ----------
    to : str
        The table's place, or ``-``.
    card : Path or None
    force : bool
        Whether what is there may be replaced.
    most : int
        The most rights that the card gets.
    """

    def __init__(self, to: str, card: Path | None, *, force: bool, most: int = 0o666) -> None:
        self._to, self._card, self._force, self._most = to, card, force, most
        places = [path for path in (None if to == PIPE else Path(to), card) if path is not None]
        self._aside = {path: path.with_name(f"{path.name}.{secrets.token_hex(4)}.old") for path in places}
        self._begun = self._ready = self._had_card = False

    def __enter__(self) -> Self:
        return self

    def put_card(self, text: str) -> None:
        """Clear both places and put the card; the table must be written whole by now, and comes next."""
        self._look_again()
        self._had_card = self._card is not None and os.path.lexists(self._card)
        self._begun = True
        for path, aside in self._aside.items():
            if os.path.lexists(path):
                os.rename(path, aside)
        if self._card is not None:
            with written_whole(self._card, public=True, most=self._most) as draft:
                draft.write_text(text, encoding="utf-8")
        self._ready = True

    def _look_again(self) -> None:
        """Refuse what was put there while the table was written."""
        refuse_target(self._to, force=self._force, folder=True)
        if self._card is not None:
            refuse_target(str(self._card), force=self._force)

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if not self._begun:
            return
        if kind is None or (self._ready and self._to != PIPE and os.path.lexists(self._to)):
            for aside in self._aside.values():
                _remove(aside)
            return
        if self._card is not None and not self._had_card:
            self._card.unlink(missing_ok=True)
        for path, aside in reversed(self._aside.items()):
            if os.path.lexists(aside):
                os.replace(aside, path)


def _remove(path: Path) -> None:
    if path.is_dir() and not path.is_symlink():
        shutil.rmtree(path, ignore_errors=True)
    else:
        path.unlink(missing_ok=True)
