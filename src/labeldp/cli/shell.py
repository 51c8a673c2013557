"""What all commands share: what goes wrong becomes one sentence and an exit code that scripts can trust.

`labeldp.cli.EXIT_CODES` says what each code means.
"""

from __future__ import annotations

import codecs
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from io import TextIOWrapper
from typing import Any, NoReturn

import typer
from rich.console import Console

from labeldp.cli.stopping import stoppable
from labeldp.errors import (
    BudgetError,
    CardError,
    LabelDPError,
    LedgerError,
    MissingExtraError,
    PrivacyProofError,
    UncheckableError,
)
from labeldp.jobs.sentences import explain_error
from labeldp.ledger import Ledger

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


_SPELLING = {"ε": "epsilon", "δ": "delta", "−": "-", "±": "+/-", "≤": "<=", "≥": ">=", "≈": "~", "∞": "inf"}
_SPELLING |= {"✓": "+", "✗": "x", "×": "x", "█": "#", "░": "."}


def _spell(error: UnicodeError) -> tuple[str, int]:
    assert isinstance(error, UnicodeEncodeError)  # noqa: S101 (nothing is read so)
    return _SPELLING.get(error.object[error.start], "?"), error.start + 1


codecs.register_error("labeldp", _spell)


def spell_out() -> None:
    """Spell characters that a terminal or a pipe cannot take, such as ε in most of Windows' code pages."""
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, TextIOWrapper):
            stream.reconfigure(errors="labeldp")


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
        """Draw how much of something is done."""
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
    with stoppable():
        try:
            yield
        except KeyboardInterrupt:
            _fail(stopped, EXIT["stopped"])
        except tuple(_CODES) as error:
            _fail(
                explain_error(error, ledger),
                next(code for kind, code in _CODES.items() if isinstance(error, kind)),
            )


def raise_problem(problems: Mapping[str, Exception]) -> None:
    """Say what could not be done after a release was in place, and end with the first reason."""
    for what in problems:
        tell(news(), f"{what}.", "red")
    for error in problems.values():
        raise error


def _fail(sentence: str, code: int) -> NoReturn:
    tell(news(), sentence, "red")
    raise typer.Exit(code) from None
