"""A release with its report, whose place is reserved before the charge; what goes wrong with it hides nothing."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from labeldp._atomic import as_path
from labeldp.accounts.ledger import Ledger
from labeldp.app.report import write_report
from labeldp.app.report.figures import require_matplotlib
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
def reserve_report(path: str | os.PathLike[str] | None, *, force: bool) -> Iterator[None]:
    """Refuse, before the charge, a report that cannot be written, and keep its place until the block ends."""
    if path is None:
        yield
        return
    require_matplotlib()
    with reserve(Target(str(as_path(path)), force)):
        yield


def try_report(
    path: str | os.PathLike[str] | None,
    card: str,
    problems: Problems,
    *,
    ledger: Ledger,
    force: bool,
    like: str | os.PathLike[str],
) -> None:
    """Write the report of a release that is in place, if one was asked for; see `write_report`."""
    if path is not None:
        with note_problem(problems, NO_REPORT):
            write_report(path, card, ledger=ledger if ledger.path else None, force=force, like=like)


def privatize_and_report(
    source: str | os.PathLike[str],
    out: str | os.PathLike[str],
    *,
    ledger: Ledger,
    report: str | os.PathLike[str] | None,
    force: bool = False,
    **options: Any,
) -> tuple[FileRelease, Problems]:
    """Release a table as `privatize_file` does, and write its report."""
    from labeldp.tables.file_release import privatize_file  # noqa: PLC0415 (an extra)

    problems: Problems = {}
    with reserve_report(report, force=force):
        others = {"the report": report}
        done = privatize_file(source, out, ledger=ledger, force=force, others=others, **options)
        try_report(report, done.card, problems, ledger=ledger, force=force, like=out)
    return done, problems
