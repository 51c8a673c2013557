"""Everything that leaves one run, in a form that can be compared bit by bit."""

import dataclasses
import datetime
import decimal
import enum
import fractions
import io
import logging
import os
import pathlib
import sys
import tempfile
import threading
import traceback
import types
import warnings
import weakref
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from unittest import mock

import numpy as np

import labeldp as ldp

# ---- objects ------------------------------------------------------------------------------------------------

PLAIN = (int, str, bytes, type(None), pathlib.PurePath, datetime.datetime, fractions.Fraction, decimal.Decimal)
NAMED = (type, types.FunctionType, types.BuiltinFunctionType, types.ModuleType, types.MethodType, enum.Enum)
HIDDEN = (type(threading.Lock()), type(threading.RLock()), weakref.ref)


def described(value, seen=None):  # noqa: PLR0911, PLR0912
    """Return an object and all that it holds as nested tuples: bits of floats, memory layout of arrays."""
    seen = {} if seen is None else seen
    kind = f"{type(value).__module__}.{type(value).__qualname__}"
    if isinstance(value, np.generic):
        return kind, value.tobytes()
    if isinstance(value, float):
        return kind, value.hex()
    if isinstance(value, NAMED):
        return kind, getattr(value, "__qualname__", repr(value))
    if isinstance(value, PLAIN):
        return kind, str(value) if not isinstance(value, bytes) else value
    if isinstance(value, HIDDEN):
        return (kind,)
    if isinstance(value, tuple) and all(isinstance(item, (float, *PLAIN)) for item in value):
        return kind, tuple(described(item, seen) for item in value)  # immutable: a cache may share it
    if id(value) in seen:
        return kind, "seen", seen[id(value)][0]
    seen[id(value)] = len(seen), value  # kept, so that no id is used twice

    def inner(items):
        return tuple(described(item, seen) for item in items)

    if isinstance(value, np.ndarray):
        return kind, *_array(value, seen)
    if isinstance(value, dict):
        return kind, inner(value.keys()), inner(value.values())
    if isinstance(value, list | tuple | range):
        return kind, inner(value)
    if isinstance(value, set | frozenset):
        return kind, inner(sorted(value, key=repr))
    if isinstance(value, ldp.Ledger):
        return kind, inner([value.charges, value.limit, getattr(value, "path", None), str(value)])
    if dataclasses.is_dataclass(value):
        return kind, inner([getattr(value, each.name) for each in dataclasses.fields(value)])
    return kind, *inner(_state(value))


def _array(array, seen):
    layout = array.dtype.str, array.shape, array.strides, array.flags.writeable
    base = described(array.base, seen) if isinstance(array.base, np.ndarray) else None
    if array.dtype.fields:  # not what lies between fields
        inner = tuple(described(np.ascontiguousarray(array[name]), seen) for name in array.dtype.fields)
    elif array.dtype.hasobject:
        inner = tuple(described(item, seen) for item in array.reshape(-1).tolist())
    else:
        inner = array.tobytes()
    return layout, inner, base


def _state(value):
    """Return what an object of any other kind holds: what it would be pickled as, else its attributes."""
    try:
        return [value.__reduce_ex__(4)[1:]]
    except Exception:  # noqa: S110 (what cannot be pickled has attributes)
        pass
    slots = [name for cls in type(value).__mro__ for name in getattr(cls, "__slots__", ())]
    return [getattr(value, "__dict__", {}), [getattr(value, name, None) for name in slots]]


# ---- complaints ---------------------------------------------------------------------------------------------


def described_error(error):
    """Return all that an error tells: type, message, arguments, notes, where it was raised, what was behind it.

    What is behind it counts even where it is hidden: whoever handles the error can read it.
    """
    if error is None:
        return None
    behind = [each for each in (error.__cause__, error.__context__) if each is not None]
    return (
        type(error).__name__,
        str(error),
        described({k: v for k, v in vars(error).items() if k != "__notes__"}),
        described(error.args),
        tuple(getattr(error, "__notes__", ())),
        tuple((frame.filename, frame.lineno, frame.name) for frame in traceback.extract_tb(error.__traceback__)),
        tuple(described_error(each) for each in behind),
    )


class _Kept(logging.Handler):
    """Keeps the records of this library at every level, and those of others from warnings on."""

    def __init__(self):
        super().__init__(logging.DEBUG)
        self.records = []

    def emit(self, record):
        if "py4j" in pathlib.Path(record.pathname).parts:
            return  # a Spark session of an earlier test, whose objects are collected now, and which is gone
        if record.name.partition(".")[0] in ("labeldp", "root") or record.levelno >= logging.WARNING:
            self.records.append((record.name, record.levelno, record.getMessage(), described(record.args)))


@contextmanager
def _logged():
    kept, root = _Kept(), logging.getLogger()
    levels = {logger: logger.level for logger in (root, logging.getLogger("labeldp"))}
    root.addHandler(kept)
    for logger in levels:
        logger.setLevel(logging.DEBUG)
    try:
        yield kept.records
    finally:
        root.removeHandler(kept)
        for logger, level in levels.items():
            logger.setLevel(level)


# ---- streams and files --------------------------------------------------------------------------------------


@contextmanager
def _redirected(number, name, into):
    """Send a standard stream into a file, whether Python writes to it or a library below."""
    sys.__dict__[name].flush()
    old_file, old = sys.__dict__[name], os.dup(number)
    os.dup2(into.fileno(), number)
    new = open(number, "w", encoding="utf-8", closefd=False)  # noqa: SIM115 (closed with the number below)
    setattr(sys, name, new)
    try:
        yield
    finally:
        new.flush()
        setattr(sys, name, old_file)
        os.dup2(old, number)
        os.close(old)


def tree(folder):
    """Return all that lies below a folder, by name: rights, and the bytes of files."""
    found = {}
    for path in sorted(folder.rglob("*")):
        content = path.read_bytes() if path.is_file() else None
        link = os.readlink(path) if path.is_symlink() else None
        found[str(path.relative_to(folder))] = path.lstat().st_mode, content if link is None else link
    return found


# ---- one run ------------------------------------------------------------------------------------------------


@dataclass
class Observed:
    """All that left one run."""

    value: object
    error: object
    warnings: object
    logs: object
    stdout: bytes
    stderr: bytes
    files: dict
    calls: object = ()
    words: int = 0


def observed(act, folder, stdin=b""):
    """Run ``act`` in a folder, and return all that left; input files, there before, do not count."""
    before, here = tree(folder), os.getcwd()
    value = error = None
    with ExitStack() as stack:
        stack.callback(os.chdir, here)
        out, err = (stack.enter_context(tempfile.TemporaryFile()) for _ in range(2))
        os.chdir(folder)
        caught = stack.enter_context(warnings.catch_warnings(record=True))
        warnings.simplefilter("always")
        ldp.accounts.ledger._released.clear()
        records = stack.enter_context(_logged())
        typed = mock.patch("sys.stdin", io.TextIOWrapper(io.BytesIO(stdin), encoding="utf-8"))
        with _redirected(1, "stdout", out), _redirected(2, "stderr", err), typed:
            try:
                value = act()
            except (Exception, SystemExit) as problem:
                error = problem
        for each in (out, err):
            each.seek(0)
        found = Observed(
            value=described(value),
            error=described_error(error),
            warnings=[(each.category.__name__, str(each.message), each.filename, each.lineno) for each in caught],
            logs=list(records),
            stdout=out.read(),
            stderr=err.read(),
            files={name: what for name, what in tree(folder).items() if before.get(name) != what},
        )
        del value, error
    return found


def difference(one, other, where=""):
    """Return where two described things first differ, in words, or None."""
    if type(one) is type(other) and isinstance(one, tuple | list) and len(one) == len(other):
        for place, (a, b) in enumerate(zip(one, other, strict=True)):
            if (found := difference(a, b, f"{where}[{place}]")) is not None:
                return found
        return None
    if isinstance(one, dict) and isinstance(other, dict) and list(one) == list(other):
        return difference(list(one.items()), list(other.items()), where)
    if one == other:
        return None
    if isinstance(one, bytes) and isinstance(other, bytes):
        pairs = enumerate(zip(one, other, strict=False))
        same = next((place for place, (a, b) in pairs if a != b), min(len(one), len(other)))
        some = slice(max(0, same - 20), same + 60)
        return f"{where} from byte {same} of {len(one)} and {len(other)}: {one[some]!r} or {other[some]!r}"
    return f"{where}: {repr(one)[:300]} or {repr(other)[:300]}"


def differences(one, other):
    """Return {what left: how it differs} of two runs; empty if nothing tells them apart."""
    pairs = {each.name: (getattr(one, each.name), getattr(other, each.name)) for each in dataclasses.fields(one)}
    found = {name: difference(*pair) for name, pair in pairs.items()}
    return {name: text for name, text in found.items() if text is not None}
