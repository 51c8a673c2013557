"""Progress of a fit, shown on request: the current step, how many are done, and for how long."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

Step = Callable[[str], None]
"""Reports which step begins."""


def quiet(what: str) -> None:
    """Report nothing."""


@contextmanager
def steps(total: int, *, shown: bool) -> Iterator[Step]:
    """Yield a function to call as each of ``total`` steps begins; it draws a bar on standard error if shown."""
    if not shown:
        yield quiet
        return
    console = Console(stderr=True)
    columns = (TextColumn("{task.description:<24}"), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn())
    with Progress(*columns, console=console) as bar:
        task = bar.add_task("checking", total=total)
        begun = 0

        def step(what: str) -> None:
            nonlocal begun
            bar.update(task, description=what, completed=min(begun, total))
            if not console.is_terminal:
                console.print(f"{what} …", highlight=False)
            begun += 1

        yield step
        bar.update(task, description="done", completed=total)
