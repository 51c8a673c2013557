"""Output files and their card: they appear together, or verification notices."""

from __future__ import annotations

import os
from collections.abc import Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import Self

from labeldp._atomic import StrPath, atomic_file
from labeldp.errors import ParameterError
from labeldp.tables.paths import Target, reserve


class OutputsAndCard:
    r"""The places of output files and of the card that describes them.

    No kill leaves a file beside another release's card, or without a card: old files go first, then the new card
    takes its place, and the new files come last. A card without its files is harmless. The names of the files are
    reserved from the start of the block: enter it before the charge.

    Parameters
    ----------
    *outputs : path-like
        The card lies beside the first, with ``.card.json`` at the end of its name.
    force : bool
        Replace existing files.

    Examples
    --------
    >>> import tempfile
    >>> folder = Path(tempfile.mkdtemp())
    >>> with OutputsAndCard(folder / "table.txt", force=False) as places:
    ...     places.put_card("{}")
    ...     places.put_text(folder / "table.txt", "price\n")
    >>> sorted(path.name for path in folder.iterdir())
    ['table.txt', 'table.txt.card.json']
    """

    def __init__(self, *outputs: StrPath, force: bool) -> None:
        self.outputs: Sequence[Path] = [Path(path) for path in outputs]
        self.card = Path(f"{self.outputs[0]}.card.json")
        self._force, self._text = force, b""
        self._card_target = Target(str(self.card), force)
        self._targets = [Target(os.fspath(path), force) for path in outputs]
        self._reservations = ExitStack()

    def __enter__(self) -> Self:
        self._card_target.refuse()  # first: its name is the longest
        with ExitStack() as reservations:  # given back if the card cannot be written
            reservations.enter_context(reserve(*self._targets))
            self._card_target.refuse_existing()
            self._reservations = reservations.pop_all()
        return self

    def refuse_targets(self) -> None:
        """Refuse places with something that may not be replaced."""
        for target in (*self._targets, self._card_target):
            target.refuse_existing()

    def put_card(self, text: str, max_rights: int = 0o666) -> None:
        """Clear all places and put the card, with these permissions at most; the complete files come next."""
        self.refuse_targets()  # again: other programs may have put something there
        self._text = text.encode()
        with atomic_file(self.card, public=True, max_rights=max_rights, replace=self._force) as draft:
            draft.write_bytes(self._text)
            for path in self.outputs if self._force else ():
                path.unlink(missing_ok=True)

    def put_text(self, path: Path, text: str, max_rights: int = 0o666) -> None:
        """Put one of the files, once the card is there."""
        with atomic_file(path, public=True, max_rights=max_rights, replace=self._force) as draft:
            draft.write_bytes(text.encode())

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        with self._reservations:
            if kind is None or not self._text:
                return
            is_incomplete = not all(map(os.path.lexists, self.outputs))
            is_own = self.card.is_file() and self.card.read_bytes() == self._text
            if is_own and (is_incomplete or issubclass(kind, ParameterError)):
                self.card.unlink()
