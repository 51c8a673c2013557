"""Work that takes time, in a thread: how far it is, how to stop it, and its result."""

from __future__ import annotations

import secrets
import threading
from collections.abc import Callable
from typing import Any, Literal

from labeldp.accounts.ledger import Ledger
from labeldp.app.page.forms import explain

State = Literal["running", "done", "failed", "stopped"]


class Stopped(Exception):  # noqa: N818 (nothing went wrong)
    """The owner asked to stop, and nothing was charged yet."""


class Work:
    """A call in a thread of its own.

    Parameters
    ----------
    task : callable
        Gets this object, calls its `progress` now and then, and returns the result.
    page : str
        The address of the page that shows it.
    watch : callable
        Called with each progress, before and after the charge; what it raises ends the task.
    ledger : Ledger, optional
        Is charged by the task. After that it cannot be stopped: what is paid for is finished.

    Attributes
    ----------
    id : str
    state : {"running", "done", "failed", "stopped"}
    result : object
    problem : str
        What went wrong.
    error : BaseException
    """

    def __init__(
        self, task: Callable[[Work], Any], page: str, watch: Callable[[], None], ledger: Ledger | None = None
    ) -> None:
        self.id, self.page = secrets.token_urlsafe(9), page
        self.state: State = "running"
        self.result: Any = None
        self.problem, self.error = "", BaseException()
        self.what, self.done = "Starting", 0
        self.total: int | None = None
        self._task, self._ledger, self._watch, self._stop = task, ledger, watch, threading.Event()
        self._thread = threading.Thread(target=self._run, name="labeldp-page-work")
        self._thread.start()

    def _run(self) -> None:
        state: State = "failed"
        try:
            self.result = self._task(self)
            state = "done"
        except Stopped:
            state = "stopped"
        except BaseException as error:
            self.problem, self.error = explain(error, self._ledger), error
        self.state = state

    @property
    def is_paid(self) -> bool:
        """Whether the ledger was charged."""
        return self._ledger is not None and bool(self._ledger.own_charges)

    @property
    def can_stop(self) -> bool:
        """Whether it can still be stopped."""
        return self.state == "running" and not self.is_paid

    @property
    def percent(self) -> int | None:
        """How much of it is done, where that is known."""
        return min(100, 100 * self.done // self.total) if self.total else None

    def progress(self, what: str, done: int, total: int | None) -> None:
        """Note how far it is; ends the task if the owner asked for that before anything was charged."""
        self.what, self.done, self.total = what, done, total
        if self._stop.is_set() and not self.is_paid:
            raise Stopped
        self._watch()

    def stop(self) -> None:
        """Ask to stop; what is paid for already is finished."""
        self._stop.set()

    def wait(self, seconds: float | None = None) -> None:
        """Wait until it ends."""
        self._thread.join(seconds)
