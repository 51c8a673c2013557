"""What is refused before anything is spent, because the output would be wrong or give labels away."""

from __future__ import annotations

import glob
import os
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

from labeldp.errors import ParameterError
from labeldp.files.sources import PIPE, Part, partition_keys

__all__ = ["refuse_label_folders", "refuse_same"]


def refuse_label_folders(parts: Sequence[Part], label: str) -> None:
    """Refuse files in folders named by the label: where a row lies would tell its label."""
    for part in parts:
        for key in partition_keys(part.path.absolute()) if part.path is not None else ():
            if key.casefold() == label.casefold():
                raise ParameterError(
                    f"the files lie in folders named by the label, {key}=…/, and where a row lies gives its label "
                    "away: put them all into one folder first, in an order that does not tell"
                )


def refuse_same(
    outputs: Mapping[str, str | os.PathLike[str] | None], inputs: Mapping[str, str | os.PathLike[str] | None]
) -> None:
    """Refuse to use one place for two purposes: what is written there second would replace the first.

    A folder is replaced whole, so nothing else may lie in it either: a ledger there would be lost with it.

    Parameters
    ----------
    outputs : mapping
        What is written, by what to call it; a ledger is written too. None, and the string ``"-"``, are nowhere.
    inputs : mapping
        What is read: files, folders or globs.

    Raises
    ------
    ParameterError
        If two of the outputs, or an output and an input, are the same file, or one lies in the other.

    Examples
    --------
    >>> refuse_same({"the table": "out.csv", "the ledger": "budget.jsonl"}, {"the source": "in.csv"})
    >>> refuse_same({"the table": "out/", "the ledger": "out/budget.jsonl"}, {})
    Traceback (most recent call last):
    labeldp.errors.ParameterError: the ledger lies in the folder that is the table, out/budget.jsonl: name another
    """
    written = [(name, Path(path)) for name, path in outputs.items() if path is not None and path != PIPE]
    for i, (name, path) in enumerate(written):
        for other, place in written[:i]:
            _refuse_meeting(name, path, other, place)
    for source, where in inputs.items():
        for place in _places(where):
            for name, target in written:
                _refuse_meeting(name, target, source, place)


def _refuse_meeting(name: str, path: Path, other: str, place: Path) -> None:
    one, two = path.resolve(), place.resolve()
    if one == two or (one.exists() and two.exists() and one.samefile(two)):
        raise ParameterError(f"{name} and {other} are the same file, {path}: name another")
    for inner, outer, lies, where in ((name, other, one, two), (other, name, two, one)):
        if where in lies.parents:
            shown = path if inner == name else place
            raise ParameterError(f"{inner} lies in the folder that is {outer}, {shown}: name another")


def _places(source: str | os.PathLike[str] | None) -> Iterator[Path]:
    """Yield a source and all files in it, which may be links that lead elsewhere."""
    if source is None or source == PIPE:
        return
    path = Path(source)
    if not path.exists() and glob.has_magic(str(source)):
        for name in glob.iglob(str(source), recursive=True):
            yield from _places(Path(name))
        return
    yield path
    if path.is_dir():
        yield from (each for each in path.rglob("*") if each.is_file())
