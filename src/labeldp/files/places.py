"""Where a table may be written: refusals before anything is spent. Needs no PyArrow."""

from __future__ import annotations

import glob
import os
import re
import stat
import tempfile
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

from labeldp.errors import ParameterError

__all__ = ["PIPE", "is_folder", "is_part", "refuse_same", "refuse_target"]

PIPE = "-"
is_part = re.compile(r"part-\d{5}\.\w+").fullmatch
"""Whether a name is one that `TableWriter` gives the files of a folder."""


def is_folder(to: str) -> bool:
    """Whether a target means a folder: it ends in a slash, or is one."""
    return to != PIPE and (to.endswith(("/", os.sep)) or os.path.isdir(to))


def refuse_target(to: str, *, force: bool, folder: Callable[[str], Any] | None = None) -> None:
    """Refuse to write where that cannot work, or would destroy something; ``force`` allows to replace it.

    Parameters
    ----------
    folder : callable, optional
        Which files may be in a folder that is replaced; without it, the target must not be a folder.
    """
    if to == PIPE:
        return
    path = Path(to)
    if not path.parent.is_dir():
        raise ParameterError(f"there is no folder {path.parent}: make it first")
    if os.path.lexists(path):
        _refuse_replacing(to, force, folder)
    if not os.access(path.parent, os.W_OK | os.X_OK):
        raise PermissionError(13, "Permission denied", str(path.parent))
    with tempfile.NamedTemporaryFile(dir=path.parent, prefix=f"{path.name}.", suffix=".part"):
        pass  # fails on a read-only disk, or if the name is too long


def _refuse_replacing(to: str, force: bool, folder: Callable[[str], Any] | None) -> None:
    path = Path(to)
    if path.is_dir():
        if path.is_symlink():
            raise ParameterError(f"{path} is a link to a folder: name the folder itself")
        if folder is None:
            raise ParameterError(f"{path} is a folder: name a file")
        names = os.listdir(path)
        if not all(map(folder, names)):
            raise ParameterError(f"{path} is a folder with other files in it: choose another")
        force = force or not names
    elif is_folder(to):
        raise ParameterError(f"{path} is a file, not a folder: choose another, or leave out the slash")
    elif path.exists() and not stat.S_ISREG(path.stat().st_mode):
        raise ParameterError(f"{path} is not a file; for a pipe write -")
    if not force:
        raise ParameterError(f"{path} is there already; force=True replaces it")


def refuse_same(
    outputs: Mapping[str, str | os.PathLike[str] | None], inputs: Mapping[str, str | os.PathLike[str] | None]
) -> None:
    """Refuse to use one place for two purposes: what is written there second would replace the first.

    A folder is replaced as a whole, so nothing else may lie in it either: a ledger there would be lost with it.

    Parameters
    ----------
    outputs : mapping
        What is written, by what to call it; a ledger is written too. None, and the string ``"-"``, are nowhere.
    inputs : mapping
        What is read: files, folders or globs.

    Examples
    --------
    >>> refuse_same({"the table": "out.csv", "the ledger": "budget.jsonl"}, {"the source": "in.csv"})
    >>> refuse_same({"the table": "out/", "the ledger": "out/budget.jsonl"}, {})
    Traceback (most recent call last):
    labeldp.errors.ParameterError: the ledger lies in the folder that is the table, out/budget.jsonl: name another
    """
    targets = [(name, Path(path)) for name, path in outputs.items() if path is not None and path != PIPE]
    for i, (name, path) in enumerate(targets):
        for other, place in targets[:i]:
            _refuse_meeting(name, path, other, place)
    for source, where in inputs.items():
        for place in _places(where):
            for name, target in targets:
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
