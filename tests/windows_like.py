"""Makes Linux as bare as Windows, and as strict with open files, for the process that calls `begin`.

What Windows lacks is taken away; a file that is open is neither moved nor removed; folders are neither opened nor
replaced; nothing is flushed that could not be written; lines end in two bytes unless bytes are asked for; locks
are those of ``msvcrt``. Other packages are loaded before, as for the system that they were built for.
"""

import errno
import fcntl
import importlib
import os
import pathlib
import shutil
import signal
import sys
import tempfile
import types
from unittest import mock

OTHERS = (
    *("cryptography.hazmat.primitives.ciphers", "joblib", "matplotlib.font_manager", "numpy", "pyarrow.csv"),
    *("pyarrow.parquet", "rich.progress", "scipy.optimize", "sklearn.ensemble", "sklearn.linear_model"),
    *("threadpoolctl", "typer.core"),
)
ABSENT = (
    *("fork", "forkpty", "geteuid", "getloadavg", "getuid", "link", "mkfifo", "pread", "preadv", "uname"),
    *("register_at_fork", "sched_getaffinity", "sysconf"),
    *("O_CLOEXEC", "O_DIRECTORY", "O_NOFOLLOW", "O_NONBLOCK", "O_TMPFILE"),
)
O_BINARY = 1 << 30
READ_ONLY, IN_USE = 0, "The process cannot access the file because it is being used by another process"


def begin():
    """Turn this process into one of Windows, as far as its files, locks and names of functions go."""
    for name in OTHERS:
        importlib.import_module(name)
    sys.modules["msvcrt"] = _msvcrt()
    os.name = "nt"
    with mock.patch.object(pathlib, "WindowsPath", pathlib.PosixPath):  # it may ask where it lies
        importlib.import_module("portalocker")
    os.name = "posix"  # of which pathlib and others were built
    sys.platform = "win32"
    tempfile._os = types.SimpleNamespace(**vars(os))  # it has ways of its own there
    for name in ("fcntl", "grp", "pwd", "resource", "termios"):
        sys.modules[name] = None
    for name in ABSENT:
        if hasattr(os, name):
            delattr(os, name)
    signal.SIGBREAK = signal.SIGUSR1
    for name in ("SIGHUP", "SIGKILL", "SIGUSR1", "SIGALRM", "SIGPIPE"):
        delattr(signal, name)
    _be_strict()


def _msvcrt():
    """Return the module of locks: by range of bytes there and by file here, and in both by open file."""
    module = types.ModuleType("msvcrt")
    module.LK_UNLCK, module.LK_LOCK, module.LK_NBLCK, module.LK_RLCK, module.LK_NBRLCK = range(5)

    def locking(handle, mode, length):
        assert mode in (module.LK_UNLCK, module.LK_NBLCK), "would give up after ten seconds"
        assert os.lseek(handle, 0, os.SEEK_CUR) == 0, "another range of bytes"
        try:
            fcntl.flock(handle, fcntl.LOCK_UN if mode == module.LK_UNLCK else fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise OSError(errno.EACCES, "Permission denied") from None

    module.locking = locking
    return module


def _be_strict():
    true = types.SimpleNamespace(**{name: getattr(os, name) for name in ("open", "write", "fsync", "close")})
    moves = {name: getattr(os, name) for name in ("rename", "replace", "remove", "unlink", "rmdir")}
    as_text = set()

    def open_handle(path, flags, mode=0o777, **options):
        if os.path.isdir(path):
            raise PermissionError(errno.EACCES, "Permission denied", str(path))
        handle = true.open(path, flags & ~O_BINARY, mode, **options)
        (as_text.discard if flags & O_BINARY else as_text.add)(handle)
        return handle

    def write(handle, data):
        true.write(handle, bytes(data).replace(b"\n", b"\r\n") if handle in as_text else data)
        return len(data)

    def fsync(handle):
        if fcntl.fcntl(handle, fcntl.F_GETFL) & os.O_ACCMODE == READ_ONLY:
            raise OSError(errno.EBADF, "Bad file descriptor")
        true.fsync(handle)

    def refuse(path):
        here = os.path.realpath(path)
        for handle in os.listdir("/proc/self/fd"):
            try:
                target = os.readlink(f"/proc/self/fd/{handle}")
            except FileNotFoundError:
                continue
            if target == here or target.startswith(f"{here}/"):
                raise PermissionError(errno.EACCES, IN_USE, str(path))

    def move(name):
        def moving(path, *target, **options):
            refuse(path)
            for there in target:
                if os.path.lexists(there) and not os.path.samefile(path, there):
                    if name == "rename":
                        raise FileExistsError(errno.EEXIST, "File exists", str(there))
                    if os.path.isdir(there):
                        raise PermissionError(errno.EACCES, "Access is denied", str(there))
                    refuse(there)
            return moves[name](path, *target, **options)

        return moving

    os.O_BINARY, os.open, os.write, os.fsync = O_BINARY, open_handle, write, fsync
    for name in moves:
        setattr(os, name, move(name))
    shutil._use_fd_functions = False  # as it finds out there
