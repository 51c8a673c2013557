"""A release with its report, whose place is reserved before the charge; what goes wrong with it hides nothing."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from labeldp._atomic import StrPath, as_path
from labeldp.accounts.ledger import Ledger
from labeldp.app.report import write_report
from labeldp.tables.paths import Target, reserve

if TYPE_CHECKING:
    from labeldp.tables.file_release import FileRelease

NO_REPORT = "The report could not be written"

Problems = dict[str, Exception]
"""What went wrong after a release was in place, by what could not be done."""


@contextmanager
def note_problem(problems: Problems, what: str) -> Iterator[None]:
    """Note what goes wrong after a release is in place: it is paid for, and there.

    Examples
    --------
    >>> problems = {}
    >>> with note_problem(problems, NO_REPORT):
    ...     raise OSError(28, "No space left on device")
    >>> problems
    {'The report could not be written': OSError(28, 'No space left on device')}
    """
    try:
        yield
    except Exception as error:
        problems[what] = error


@contextmanager
def report_writer(
    path: StrPath | None, problems: Problems, *, ledger: Ledger, force: bool, like: StrPath
) -> Iterator[Callable[[str], None]]:
    """Yield what writes the report of a card, if one was asked for; see `write_report`.

    A report that cannot be written is refused now, before the charge, and its place is kept until the block ends.
    What goes wrong with it once the release is in place is noted among ``problems``.
    """
    if path is None:
        yield lambda card: None
        return

    def write(card: str) -> None:
        with note_problem(problems, NO_REPORT):
            write_report(path, card, ledger=ledger if ledger.path else None, force=force, like=like)

    with reserve(Target(str(as_path(path)), force)):
        yield write


def privatize_and_report(
    source: StrPath, out: StrPath, *, ledger: Ledger, report: StrPath | None, force: bool = False, **options: Any
) -> tuple[FileRelease, Problems]:
    """Release a table as `privatize_file` does, and write its report."""
    from labeldp.tables.file_release import privatize_file  # noqa: PLC0415 (an extra)

    problems: Problems = {}
    with report_writer(report, problems, ledger=ledger, force=force, like=out) as write:
        others = {"the report": report}
        done = privatize_file(source, out, ledger=ledger, force=force, others=others, **options)
        write(done.card)
    return done, problems
