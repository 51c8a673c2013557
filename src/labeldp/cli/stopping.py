"""Signals that ask a command to end: they stop it as Ctrl-C does, wherever it waits."""

from __future__ import annotations

import os
import signal
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType

PAUSE = 0.1
"""Seconds between two attempts to wake a command."""


@contextmanager
def stoppable() -> Iterator[None]:
    """Let a request to end, or a terminal that closes, stop like Ctrl-C, as far as signals can be set here.

    The same signal again ends the process at once: the first may come where a library catches every exception.
    """
    if threading.current_thread() is not threading.main_thread():
        yield
        return

    def stop(number: int, _frame: FrameType | None) -> None:
        signal.signal(number, signal.SIG_DFL)
        raise KeyboardInterrupt

    if sys.platform == "win32":
        closing = signal.SIGBREAK
    else:
        closing = signal.SIGHUP
    old = {kind: signal.signal(kind, stop) for kind in (signal.SIGTERM, closing)}
    try:
        with _woken():
            yield
    finally:
        for kind, handler in old.items():
            signal.signal(kind, handler)


@contextmanager
def _woken() -> Iterator[None]:
    """Wake the main thread if it went to sleep just as a signal came.

    Python runs its handlers between system calls. A signal that comes right before a system call blocks, such as
    one that reads a pipe, would wait for that call: another signal, which does nothing else, interrupts it.
    """
    if sys.platform == "win32":
        yield
        return
    reader, writer = os.pipe()
    os.set_blocking(writer, False)
    main, ended = threading.main_thread().ident or 0, False

    def wake() -> None:
        while (received := os.read(reader, 1)) == bytes([signal.SIGURG]):
            pass
        while received and not ended:
            signal.pthread_kill(main, signal.SIGURG)
            time.sleep(PAUSE)

    idle = signal.signal(signal.SIGURG, lambda *_: None)
    wakeup = signal.set_wakeup_fd(writer, warn_on_full_buffer=False)
    thread = threading.Thread(target=wake, name="labeldp-wake", daemon=True)
    thread.start()
    try:
        yield
    finally:
        ended = True
        signal.set_wakeup_fd(wakeup)
        os.close(writer)
        thread.join()
        os.close(reader)
        signal.signal(signal.SIGURG, idle)
