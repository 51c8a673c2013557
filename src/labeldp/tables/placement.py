"""An output file and its card: they appear together, or verification notices."""

from __future__ import annotations

import os
from contextlib import ExitStack
from pathlib import Path
from typing import Self

from labeldp._atomic import StrPath, atomic_file
from labeldp.errors import ParameterError
from labeldp.tables.paths import Target, reserve


class OutputAndCard:
    r"""The places of an output file and of the card that describes it.

    No kill leaves a file beside another release's card, or without a card: the old file goes first, then the new
    card takes its place, and the new file comes last. A card without its file is harmless. The name of the file is
    reserved from the start of the block: enter it before the charge.

    Parameters
    ----------
    output : path-like
        The card lies beside it, with ``.card.json`` at the end of its name.
    force : bool
        Replace existing files.

    Examples
    --------
    >>> import tempfile
    >>> folder = Path(tempfile.mkdtemp())
    >>> with OutputAndCard(folder / "table.txt", force=False) as places:
    ...     places.put_card("{}")
    ...     places.put_text("price\n")
    >>> sorted(path.name for path in folder.iterdir())
    ['table.txt', 'table.txt.card.json']
    """

    def __init__(self, output: StrPath, *, force: bool) -> None:
        self.output = Path(output)
        self.card = Path(f"{self.output}.card.json")
        self._force, self._text = force, b""
        self._card_target = Target(str(self.card), force)
        self._target = Target(os.fspath(output), force)
        self._reservation = ExitStack()

    def __enter__(self) -> Self:
        self._card_target.refuse()  # first: its name is the longest
        with ExitStack() as reservation:  # given back if the card cannot be written
            reservation.enter_context(reserve(self._target))
            self._card_target.refuse_existing()
            self._reservation = reservation.pop_all()
        return self

    def put_card(self, text: str, max_rights: int = 0o666) -> None:
        """Clear both places and put the card, with these permissions at most; the complete file comes next."""
        for target in (self._target, self._card_target):  # again: other programs may have put something there
            target.refuse_existing()
        self._text = text.encode()
        with atomic_file(self.card, public=True, max_rights=max_rights, replace=self._force) as draft:
            draft.write_bytes(self._text)
            if self._force:
                self.output.unlink(missing_ok=True)

    def put_text(self, text: str, max_rights: int = 0o666) -> None:
        """Put the file, once the card is there."""
        with atomic_file(self.output, public=True, max_rights=max_rights, replace=self._force) as draft:
            draft.write_bytes(text.encode())

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        with self._reservation:
            if kind is None or not self._text:
                return
            is_own = self.card.is_file() and self.card.read_bytes() == self._text
            if is_own and (not os.path.lexists(self.output) or issubclass(kind, ParameterError)):
                self.card.unlink()
