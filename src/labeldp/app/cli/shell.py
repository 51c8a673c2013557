"""Errors as one sentence with an exit code, and plain text on the terminal.

`labeldp.app.cli.EXIT_CODES` explains the codes.
"""

from __future__ import annotations

import codecs
import json
import math
import re
import signal
import sys
import threading
import warnings
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from io import TextIOWrapper
from types import FrameType
from typing import Any, NoReturn

import typer
from rich.console import Console, ConsoleOptions, RenderableType
from rich.segment import Segment
from rich.table import Table

from labeldp.accounts.ledger import Ledger
from labeldp.app.sentences import (
    EXPLAINED,
    as_flag,
    explain_defect,
    explain_error,
    printable,
    spelled,
    without_controls,
)
from labeldp.errors import (
    BudgetError,
    CardError,
    LabelDPError,
    LedgerError,
    Message,
    MissingExtraError,
    PrivacyProofError,
    UncheckableError,
)

FIGURES = re.compile("ε|reports|charges|rows a person")
"""Headings of columns of figures."""

EXIT = {"machine": 1, "input": 2, "ledger": 3, "claim": 4, "open": 5, "stopped": 130}
_CODES: dict[Any, str] = {  # the first that fits counts
    (MissingExtraError, ModuleNotFoundError): "machine",
    (BudgetError, LedgerError): "ledger",
    UncheckableError: "open",
    (CardError, PrivacyProofError): "claim",
    LabelDPError: "input",
    (OSError, MemoryError): "machine",
}

# ---- errors -------------------------------------------------------------------------------------------


UsageError: Any = typer.BadParameter.__mro__[1]
"""Typer's errors of wrong options; they quote typed text, or names of files that a shell filled in."""


@contextmanager
def exit_on_error(
    stopped: str = "Stopped; nothing was written.", ledgers: Sequence[Ledger] = ()
) -> Iterator[None]:
    """Print an error of the block as one sentence on standard error, and exit with its code.

    A termination signal is treated as Ctrl-C, so that unfinished files are removed on the way out.

    Parameters
    ----------
    stopped : str
        The message after Ctrl-C.
    ledgers : sequence of Ledger
        Charges to their files before the error are named in the message: they stay spent.
    """
    with interrupt_on_signal():
        try:
            yield
        except KeyboardInterrupt:
            _fail(stopped, EXIT["stopped"])
        except EXPLAINED as error:
            code = next(code for kind, code in _CODES.items() if isinstance(error, kind))
            _fail(explain_error(error, as_flag, *ledgers), EXIT[code])
        except (typer.Exit, typer.Abort, UsageError):
            raise
        except Exception as error:
            _fail(explain_defect(error, *ledgers), EXIT["machine"])


def _fail(sentence: str, code: int) -> NoReturn:
    print_status(sentence, style="red")
    raise typer.Exit(code) from None


@contextmanager
def warnings_as_status() -> Iterator[None]:
    """Print each warning of the block as one sentence, without the line of the program that it is from."""
    with warnings.catch_warnings():
        warnings.showwarning = lambda message, *_, **__: print_status(f"{message}.", style="yellow")
        yield


@contextmanager
def plain_usage() -> Iterator[None]:
    """Remove control characters from Typer's errors of wrong options."""
    try:
        yield
    except UsageError as error:
        error.message = without_controls(error.message)
        raise


@contextmanager
def interrupt_on_signal() -> Iterator[None]:
    """Treat a request to end, or a terminal that closes, as Ctrl-C, where signals can be set.

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
        yield
    finally:
        for kind, handler in old.items():
            signal.signal(kind, handler)


# ---- the terminal -------------------------------------------------------------------------------------


_SPELLING = {"ε": "epsilon", "δ": "delta", "−": "-", "±": "+/-", "≤": "<=", "≥": ">=", "≈": "~", "∞": "inf"}
_SPELLING |= {"✓": "+", "✗": "x", "×": "x", "█": "#", "░": "."}


def _transliterate(error: UnicodeError) -> tuple[str, int]:
    assert isinstance(error, UnicodeEncodeError)  # noqa: S101 (nothing is read so)
    return _SPELLING.get(error.object[error.start], "?"), error.start + 1


codecs.register_error("labeldp", _transliterate)


def transliterate_output() -> None:
    """Spell out characters that a terminal or a pipe cannot take, such as ε in most of Windows' code pages."""
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
        """Yield segments without control characters but those of Rich itself."""
        for segment in super().render(renderable, options):
            yield segment if segment.control else segment._replace(text=without_controls(segment.text))


def is_interactive() -> bool:
    """Return True where a person can read and answer: both ends are a terminal, forced colours or not."""
    return sys.stderr.isatty() and sys.stdin.isatty()


def print_texts(console: Console, *texts: str, style: str | None = None) -> None:
    """Print texts without breaking their lines; options in them are spelled as flags."""
    for text in texts:
        console.print(spelled(text, as_flag), style=style, soft_wrap=True)


def print_status(*texts: str, style: str | None = None) -> None:
    """Print texts on standard error, so that pipes carry nothing but data."""
    print_texts(PlainConsole(stderr=True), *texts, style=style)


def print_result(*texts: str, style: str | None = None) -> None:
    """Print texts on standard output."""
    print_texts(PlainConsole(), *texts, style=style)


def print_table(header: Sequence[str], rows: Sequence[Sequence[object]], title: str | None = None) -> None:
    """Print a table, if it has rows; figures stand on the right of their columns, and no pipe cuts a row."""
    if not rows:
        return
    console = PlainConsole()
    if not console.is_terminal:
        console.width = 1000
    table = Table(title=title, title_justify="left", box=None, padding=(0, 2, 0, 0))
    for name in header:
        table.add_column(name, justify="right" if FIGURES.search(name) else "left", overflow="fold")
    for row in rows:
        table.add_row(*(printable(cell, 200) for cell in row))
    console.print("", table, sep="\n")


def confirm(question: str) -> None:
    """Ask a question on standard error, and end the command unless the answer is yes."""
    PlainConsole(stderr=True).print(f"{question} [y/N] ", end="")
    if sys.stdin.readline().strip().lower() not in ("y", "yes"):  # typer's own question writes to stdout
        print_status("Stopped. Nothing was charged, and nothing written.")
        raise typer.Exit(EXIT["stopped"])


def print_json(**data: Any) -> None:
    """Print data for scripts."""
    typer.echo(json.dumps(data, indent=2, allow_nan=False))


def finite(amount: float) -> float | str:
    """Return an amount as JSON can hold it."""
    return amount if math.isfinite(amount) else "infinite"


class Bars:
    """Progress of one task at a time; ``is_watched`` says that a person can read and answer."""

    def __init__(self, bar: Any, *, is_watched: bool) -> None:
        self._bar = bar
        self.is_watched = is_watched

    def __call__(self, task: str, done: int, total: int | None) -> None:
        """Draw the progress of a task, which replaces the task before it."""
        if [bar.description for bar in self._bar.tasks] != [task]:
            for number in self._bar.task_ids:
                self._bar.remove_task(number)
            self._bar.add_task(task, total=total)
        self._bar.update(self._bar.task_ids[0], completed=done)

    @contextmanager
    def aside(self) -> Iterator[None]:
        """Remove the bars from the screen while the block runs."""
        self._bar.stop()
        yield
        self._bar.start()


@contextmanager
def progress() -> Iterator[Bars]:
    """Yield bars, which only a terminal shows."""
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

    screen = PlainConsole(stderr=True)
    is_watched = is_interactive()  # now: Rich 14 replaces standard error while bars are drawn
    text = TextColumn("{task.description}", markup=False)
    columns = (text, BarColumn(), MofNCompleteColumn(), TimeRemainingColumn())
    with Progress(*columns, console=screen, transient=True, disable=not screen.is_terminal) as bar:
        yield Bars(bar, is_watched=is_watched)


def notify(bars: Bars, sentence: str) -> None:
    """Print a sentence on standard error while bars are drawn."""
    with bars.aside():
        print_status(sentence, style="yellow")


# ---- hints --------------------------------------------------------------------------------------------


def hint_prompt(bars: Bars, question: str) -> Callable[[Sequence[str]], None] | None:
    """Return a function that shows hints to a person who can answer, and asks whether to go on.

    None where nobody can answer: hints follow from true labels, and logs are kept.
    """

    def ask(hints: Sequence[str]) -> None:
        with bars.aside():
            print_status(*(Message("For you alone: ", hint) for hint in hints), style="yellow")
            print_status("What you see here, and what you answer, depends on true labels: keep it to yourself.")
            confirm(question)

    return ask if bars.is_watched else None


def hints_note(hints: object) -> list[str]:
    """Return a note where no hints were computed."""
    return [] if hints else ["Hints on columns that may give labels away are shown on a terminal only."]
