"""Everything that leaves one run, in a form that can be compared bit by bit."""

import dataclasses
import io
import logging
import os
import pathlib
import pickle
import sys
import tempfile
import threading
import traceback
import types
import warnings
import weakref
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from unittest import mock

import labeldp as ldp

# ---- objects ------------------------------------------------------------------------------------------------

NAMED = (type, types.FunctionType, types.BuiltinFunctionType, types.ModuleType, types.MethodType)
NAMED += (type(threading.Lock()), type(threading.RLock()), weakref.ref)


class _Pickler(pickle.Pickler):
    """Writes functions and classes by name, and of ledgers what a reader sees."""

    def persistent_id(self, value):
        if isinstance(value, ldp.Ledger):
            return value.charges, value.limit, getattr(value, "path", None), str(value)
        if isinstance(value, NAMED):
            return getattr(value, "__qualname__", type(value).__name__)
        return None


def pickled(value):
    """Return the bytes of an object's pickle; equal objects give equal bytes, whether parts are shared or not."""
    stream = io.BytesIO()
    pickler = _Pickler(stream, 5)
    pickler.fast = True
    pickler.dump(value)
    return stream.getvalue()


# ---- complaints ---------------------------------------------------------------------------------------------


def described_error(error):
    """Return all that an error tells: type, message, arguments, notes, where it was raised, what was behind it.

    What is behind it counts even where it is hidden: whoever handles the error can read it.
    """
    if error is None:
        return None
    return (
        type(error).__name__,
        str(error),
        pickled([vars(error), error.args]),
        [(frame.filename, frame.lineno, frame.name) for frame in traceback.extract_tb(error.__traceback__)],
        [described_error(each) for each in (error.__cause__, error.__context__)],
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
            self.records.append((record.name, record.levelno, record.getMessage(), pickled(record.args)))


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
    """All that left one run; ``result`` is for tests, which compare ``value``."""

    result: object = field(compare=False)
    value: bytes
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
    result = error = None
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
                result = act()
            except (Exception, SystemExit) as problem:
                error = described_error(problem)
        for each in (out, err):
            each.seek(0)
        return Observed(
            result=result,
            value=pickled(result),
            error=error,
            warnings=[(each.category.__name__, str(each.message), each.filename, each.lineno) for each in caught],
            logs=list(records),
            stdout=out.read(),
            stderr=err.read(),
            files={name: what for name, what in tree(folder).items() if before.get(name) != what},
        )


def difference(one, other):
    """Return in words where two outputs first differ."""
    if isinstance(one, dict) and isinstance(other, dict):
        one, other = list(one.items()), list(other.items())
    if isinstance(one, tuple | list) and isinstance(other, tuple | list) and len(one) == len(other):
        return next(f"[{k}] {difference(a, b)}" for k, (a, b) in enumerate(zip(one, other, strict=True)) if a != b)
    if isinstance(one, bytes) and isinstance(other, bytes):
        same = (k for k, (a, b) in enumerate(zip(one, other, strict=False)) if a != b)
        start = max(0, next(same, min(len(one), len(other))) - 20)
        one, other = one[start : start + 80], other[start : start + 80]
    return f"{repr(one)[:300]} or {repr(other)[:300]}"


def differences(one, other):
    """Return {what left: how it differs} of two runs; empty if nothing tells them apart."""
    compared = [each.name for each in dataclasses.fields(Observed) if each.compare]
    pairs = {name: (getattr(one, name), getattr(other, name)) for name in compared}
    return {name: difference(*pair) for name, pair in pairs.items() if pair[0] != pair[1]}
