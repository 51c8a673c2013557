"""Work that takes time, in a thread: how far it is, how to stop it, and its result."""

from __future__ import annotations

import secrets
import threading
import traceback
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Literal

from labeldp.accounts.ledger import Ledger
from labeldp.app.page.messages import explain
from labeldp.app.sentences import EXPLAINED, explain_charges
from labeldp.errors import Message
from labeldp.tables.opening import Progress

State = Literal["running", "done", "failed", "stopped", "asked"]


class Stopped(Exception):  # noqa: N818 (nothing went wrong)
    """The owner asked to stop, and nothing was charged yet."""


class Asked(Exception):  # noqa: N818
    """The owner has not seen yet what reveals labels, or what a model will not learn from."""

    def __init__(self, sentences: list[Message]) -> None:
        super().__init__()
        self.sentences = sentences


class Work:
    """A call in a thread of its own.

    Parameters
    ----------
    task : callable
        Gets this object, calls its `progress` now and then, and returns the result.
    page : str
        The address of the page that shows it.
    ledger : Ledger, optional
        Is charged by the task. After that it cannot be stopped: what is paid for is finished.
    watch : callable
        Called with each progress, before and after the charge; what it raises ends the task.

    Attributes
    ----------
    id : str
    state : {"running", "done", "failed", "stopped", "asked"}
    result : object
    problem : str
        What went wrong.
    asked : list of Message
        What the owner is asked about. Of a table it is for the owner only, like all hints.
    """

    def __init__(
        self,
        task: Callable[[Work], Any],
        page: str,
        ledger: Ledger | None = None,
        watch: Callable[[], None] = lambda: None,
    ) -> None:
        self.id, self.page = secrets.token_urlsafe(9), page
        self.state: State = "running"
        self.result: Any = None
        self.problem = ""
        self.asked: list[Message] = []
        self.what, self.done = "Starting", 0
        self.total: int | None = None
        self._task, self._ledger, self._watch, self._stop = task, ledger, watch, threading.Event()
        self._thread = threading.Thread(target=self._run, name="labeldp-page-work")
        self._thread.start()

    def _run(self) -> None:
        state: State = "done"
        try:
            self.result = self._task(self)
        except Stopped:
            state = "stopped"
        except Asked as question:
            state, self.asked = "asked", question.sentences
        except EXPLAINED as error:
            state, self.problem = "failed", explain(error, self._ledger)
        except BaseException as error:
            spent = explain_charges(self._ledger) or "."
            state, self.problem = "failed", f"Something went wrong inside, {location_of(error)}{spent}"
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
        return None if not self.total else min(100, 100 * self.done // self.total)

    def progress(self, what: str, done: int, total: int | None) -> None:
        """Note how far it is; ends the task if the owner asked for that before anything was charged."""
        self.what, self.done, self.total = what, done, total
        if self._stop.is_set() and not self.is_paid:
            raise Stopped
        self._watch()

    @contextmanager
    def reading(self) -> Iterator[Progress]:
        """Note that a table is being read, and yield what notes how far; the task may end meanwhile."""
        self.progress("Reading", 0, None)
        yield self.progress
        self.progress("Fitting", 0, None)

    def stop(self) -> None:
        """Ask to stop; what is paid for already is finished."""
        self._stop.set()

    def wait(self, seconds: float | None = None) -> None:
        """Wait until it ends."""
        self._thread.join(seconds)

    def as_data(self) -> dict[str, object]:
        """Return how far it is, for the bar that a script draws."""
        names = ("state", "what", "done", "percent", "can_stop")
        return {name: getattr(self, name) for name in names}


def location_of(error: BaseException) -> str:
    """Return the kind of an error and where it was raised, without its message, which may quote a label."""
    frames = traceback.extract_tb(error.__traceback__)
    where = f" at {Path(frames[-1].filename).name}:{frames[-1].lineno}" if frames else ""
    return f"{type(error).__name__}{where}"
