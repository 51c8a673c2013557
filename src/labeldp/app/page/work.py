"""Work in a thread: its progress, how to stop it, and its result."""

from __future__ import annotations

import secrets
import threading
from collections.abc import Callable
from typing import Any, Literal

from labeldp.accounts.ledger import Ledger
from labeldp.app.page.forms import explain


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
        Called with each progress, before and after the charge; an error that it raises ends the task.
    ledger : Ledger, optional
        Is charged by the task. After that the task cannot be stopped: a paid release is finished.

    Attributes
    ----------
    id : str
    state : {"running", "done", "failed", "stopped"}
    result : object
    error : BaseException or None
    step, done, total : str, int, int or None
        The step that is being done, and its rows.
    """

    def __init__(
        self, task: Callable[[Work], Any], page: str, watch: Callable[[], None], ledger: Ledger | None = None
    ) -> None:
        self.id = secrets.token_urlsafe(9)
        self.page = page
        self.state: Literal["running", "done", "failed", "stopped"] = "running"
        self.result: Any = None
        self.error: BaseException | None = None
        self.step = "Starting"
        self.done = 0
        self.total: int | None = None
        self._task = task
        self._watch = watch
        self._ledger = ledger
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._run, name="labeldp-page-work")
        self._thread.start()

    def _run(self) -> None:
        try:
            self.result = self._task(self)
            self.state = "done"
        except Stopped:
            self.state = "stopped"
        except BaseException as error:
            self.error = error
            self.state = "failed"

    @property
    def problem(self) -> str:
        """The error, for the page, with the charges before it."""
        return "" if self.error is None else explain(self.error, self._ledger)

    @property
    def is_paid(self) -> bool:
        """The ledger was charged."""
        return self._ledger is not None and bool(self._ledger.own_charges)

    @property
    def can_stop(self) -> bool:
        """The task runs, and nothing was charged."""
        return self.state == "running" and not self.is_paid

    @property
    def percent(self) -> int | None:
        """The progress of the step, where its rows are known."""
        return min(100, 100 * self.done // self.total) if self.total else None

    def progress(self, step: str, done: int, total: int | None) -> None:
        """Note the progress; end the task if its owner asked for that before anything was charged."""
        self.step, self.done, self.total = step, done, total
        if self._stop.is_set() and not self.is_paid:
            raise Stopped
        self._watch()

    def stop(self) -> None:
        """Ask to stop; a paid release is finished."""
        self._stop.set()

    def wait(self, seconds: float | None = None) -> None:
        """Wait until the task ends."""
        self._thread.join(seconds)
