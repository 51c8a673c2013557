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
from rich.console import Console, ConsoleOptions, RenderableType
from rich.segment import Segment

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
from labeldp.jobs.sentences import explain_defect, explain_error, without_controls
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


UsageError: Any = typer.BadParameter.__mro__[1]
"""Typer's errors of wrong options; they quote what was typed, or names of files that a shell filled in."""

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


class PlainConsole(Console):
    """Prints text as it is: nothing in it is markup, and nothing in it commands a terminal.

    All that a command prints goes through here: names of columns and files are other people's text.
    """

    def __init__(self, *, stderr: bool = False) -> None:
        super().__init__(stderr=stderr, markup=False, emoji=False, highlight=False)

    def render(self, renderable: RenderableType, options: ConsoleOptions | None = None) -> Iterator[Segment]:
        """Yield what is shown, without control characters but those of Rich itself."""
        for segment in super().render(renderable, options):
            yield segment if segment.control else segment._replace(text=without_controls(segment.text))


def news() -> Console:
    """Return where to tell people how it goes: standard error, so that pipes carry nothing but data."""
    return PlainConsole(stderr=True)


def someone_looks() -> bool:
    """Whether a person can read and answer: both ends are a terminal, which forced colours do not make them."""
    return sys.stderr.isatty() and sys.stdin.isatty()


def tell(console: Console, text: str, style: str | None = None) -> None:
    """Print a text without breaking its lines."""
    console.print(text, style=style, soft_wrap=True)


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

    columns = (
        TextColumn("{task.description}", markup=False),
        BarColumn(),
        MofNCompleteColumn(),
        TimeRemainingColumn(),
    )
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
        except (typer.Exit, typer.Abort, UsageError):
            raise
        except Exception as error:
            _fail(explain_defect(error, ledger), EXIT["machine"])


def raise_problem(problems: Mapping[str, Exception]) -> None:
    """Say what could not be done after a release was in place, and end with the first reason."""
    for what in problems:
        tell(news(), f"{what}.", "red")
    for error in problems.values():
        raise error


def _fail(sentence: str, code: int) -> NoReturn:
    tell(news(), sentence, "red")
    raise typer.Exit(code) from None


@contextmanager
def plain_usage() -> Iterator[None]:
    """Let Typer's errors of wrong options command no terminal."""
    try:
        yield
    except UsageError as error:
        error.message = without_controls(error.message)
        raise
