"""What all commands share: what goes wrong becomes one sentence and an exit code that scripts can trust.

==== ==========================================================================
code meaning
==== ==========================================================================
0    done
1    the machine failed: no space, no permission, a missing package
2    the input or an option cannot be used
3    the ledger refused: its limit would be passed, or its file cannot be trusted
4    a card, a proof or a file does not hold what it claims
5    a card cannot be checked here: it names what is not known, or does not say enough
130  stopped by Ctrl-C, a signal, or an answer
==== ==========================================================================
"""

from __future__ import annotations

import re
import signal
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType
from typing import Any, NoReturn

import typer
from rich.console import Console

from labeldp.errors import (
    BudgetError,
    CardError,
    LabelDPError,
    LedgerError,
    MissingExtraError,
    PrivacyProofError,
    UncheckableError,
)
from labeldp.ledger import Ledger, total_of

__all__ = [
    "EXIT",
    "as_options",
    "explained",
    "news",
    "printable",
    "progress",
    "someone_looks",
    "tell",
]

EXIT = {"machine": 1, "input": 2, "ledger": 3, "claim": 4, "open": 5, "stopped": 130}
_CODES: dict[type[BaseException], int] = {  # the first that fits counts
    MissingExtraError: EXIT["machine"],
    BudgetError: EXIT["ledger"],
    LedgerError: EXIT["ledger"],
    UncheckableError: EXIT["open"],
    CardError: EXIT["claim"],
    PrivacyProofError: EXIT["claim"],
    LabelDPError: EXIT["input"],
    ModuleNotFoundError: EXIT["machine"],
    OSError: EXIT["machine"],
    MemoryError: EXIT["machine"],
}


def news() -> Console:
    """Return where to tell people how it goes: standard error, so that pipes carry nothing but data."""
    return Console(stderr=True)


def someone_looks() -> bool:
    """Whether a person can read and answer: both ends are a terminal, which forced colours do not make them."""
    return sys.stderr.isatty() and sys.stdin.isatty()


def tell(console: Console, text: str, style: str | None = None) -> None:
    """Print a text as it is: brackets, numbers and paths are not dressed up, and lines are not broken."""
    console.print(text, style=style, markup=False, highlight=False, soft_wrap=True)


class Bars:
    """Draws bars: what is being done, how much of it is done, and of how much."""

    def __init__(self, bar: Any) -> None:
        self._bar, self._tasks = bar, dict[str, Any]()

    def __call__(self, what: str, done: int, total: int | None) -> None:
        if what not in self._tasks:
            for task in self._bar.tasks:  # what has no end is over once something else begins
                self._bar.update(task.id, visible=task.total is not None)
            self._tasks[what] = self._bar.add_task(what, total=total)
        self._bar.update(self._tasks[what], completed=done)

    @contextmanager
    def aside(self) -> Iterator[None]:
        """Take the bars off the screen for a while."""
        self._bar.stop()
        yield
        self._bar.start()


@contextmanager
def progress() -> Iterator[Bars | None]:
    """Yield bars, or None where nobody looks."""
    screen = news()
    if not screen.is_terminal:
        yield None
        return
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn  # noqa: PLC0415

    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeRemainingColumn())
    with Progress(*columns, console=screen, transient=True) as bar:
        yield Bars(bar)


def _sentence(error: BaseException) -> str:
    """Return one sentence for what went wrong."""
    if isinstance(error, LabelDPError):
        return as_options(str(error))
    if isinstance(error, ModuleNotFoundError):
        package = (error.name or "a package").partition(".")[0]
        extra = {"pyarrow": "files", "openpyxl": "excel", "matplotlib": "plots", "pyspark": "spark"}.get(package)
        return f"{package} is not installed: pip install " + (f"'labeldp[{extra}]'" if extra else package)
    if isinstance(error, OSError):
        return f"{error.strerror or type(error).__name__}" + (f": {error.filename}" if error.filename else "")
    return "there is not enough memory for this"


def as_options(text: str) -> str:
    """Return a sentence of the library with its parameters as they are typed in a shell.

    Examples
    --------
    >>> as_options('leave their rows out with missing="drop"; force=True replaces it')
    'leave their rows out with --missing drop; --force replaces it'
    >>> as_options('say which, as in Dialect(decimal=",")')
    "say which, as in --decimal ','"
    >>> as_options('drop them, as in drop=["tax", "net"]')
    'drop them, as in --drop tax,net'
    """
    names = r'\[?("[^"]*"(?:, "[^"]*")*)\]?'
    text = re.sub(rf"\bDialect\((\w+)={names}\)|\b(drop)={names}", _as_option, text)
    text = re.sub(r'\b(missing|debiased|trust|mechanism|format)="([\w-]+)"', r"--\1 \2", text)
    text = text.replace("limit=Budget(epsilon, delta)", "--limit and --limit-delta")
    return re.sub(r"\b(force|shuffle)=True\b", r"--\1", text)


def _as_option(found: re.Match[str]) -> str:
    option, value, drop, names = found.groups()
    typed = (value or names).replace('", "', ",").replace('"', "")
    return f"--{option or drop} " + (typed if re.fullmatch(r"[\w,-]*\w", typed) else f"'{typed}'")


def printable(value: object, most: int = 1000) -> str:
    """Return text of others without what could command a terminal, and not longer than ``most``.

    Examples
    --------
    >>> printable("a card" + chr(27) + "[2J says")
    'a card�[2J says'
    """
    text = "".join(c if c.isprintable() else "\ufffd" for c in str(value)[: most + 1])
    return text if len(text) <= most else text[: most - 1] + "…"


@contextmanager
def explained(stopped: str = "Stopped; nothing was written.", ledger: Ledger | None = None) -> Iterator[None]:
    """Turn what goes wrong inside into one sentence on standard error, and end with its exit code.

    A termination signal is treated as Ctrl-C, so that drafts are removed on the way out.

    Parameters
    ----------
    stopped : str
        What to say after Ctrl-C.
    ledger : Ledger, optional
        If it is in a file, what was charged to it before it went wrong is said too: it stays spent.
    """
    with _stoppable():
        try:
            yield
        except KeyboardInterrupt:
            _fail(stopped, EXIT["stopped"])
        except tuple(_CODES) as error:
            sentence = _sentence(error)
            if ledger is not None and ledger.path is not None and ledger.own_charges:
                sentence += f". {total_of(ledger.own_charges)} was charged before that, and stays spent."
            _fail(sentence, next(code for kind, code in _CODES.items() if isinstance(error, kind)))


def _fail(sentence: str, code: int) -> NoReturn:
    tell(news(), sentence, "red")
    raise typer.Exit(code) from None


@contextmanager
def _stoppable() -> Iterator[None]:
    """Let SIGTERM and SIGHUP stop like Ctrl-C, as far as signals can be set here."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return

    def stop(_number: int, _frame: FrameType | None) -> None:
        raise KeyboardInterrupt

    kinds = [signal.SIGTERM, *([signal.SIGHUP] if sys.platform != "win32" else [])]
    old = {kind: signal.signal(kind, stop) for kind in kinds}
    try:
        yield
    finally:
        for kind, handler in old.items():
            signal.signal(kind, handler)
