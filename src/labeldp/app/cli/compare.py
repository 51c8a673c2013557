"""``labeldp compare``: which mechanism and ε suit a table, for labels that are public; what ``demo`` shows too."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from rich.console import Console

from labeldp._values import Epsilon
from labeldp.accounts.budget import rounded_up
from labeldp.app.cli.command import DIALECT, command
from labeldp.app.cli.comparison_figures import draw_comparison
from labeldp.app.cli.shell import PlainConsole, figure_table, news, progress, refuse_plot, tell
from labeldp.app.inputs import read_inputs
from labeldp.errors import ParameterError, Setting
from labeldp.evidence.comparison import Comparison, compare_table
from labeldp.mechanisms.registry import mechanism_class
from labeldp.release.plan import mechanism_choices
from labeldp.tables.paths import refuse_same

_PUBLIC = (
    "These labels are taken as PUBLIC. What follows is computed from them as they are: it is not private, and no "
    "budget is charged."
)
_REFUSED = (
    "compare is for PUBLIC labels: it shows errors that are computed from them without noise. On private labels "
    "that would spend budget that nobody counts. Use a public or synthetic table like yours, and say so with "
    "--public; or privatize once, and compare learners on the release; labeldp preview reads no label at all"
)


@command(
    *("source", "label", "bounds", "public", "budgets", "mechanisms", "rows", "repeats", "features", "drop"),
    *("categories", "missing", "delta", "plot", "format", *DIALECT, "force"),
)
def compare(
    source: str,
    label: str,
    bounds: tuple[float, float],
    public: bool,
    budgets: list[float],
    mechanisms: list[str],
    repeats: int,
    delta: float,
    plot: Path | None,
    force: bool,
    **reading: Any,
) -> None:
    """For PUBLIC labels only: show what each mechanism, regressor and ε would cost in accuracy.

    The error of one private label follows exactly from each mechanism's counts. Models are judged on a quarter of
    the rows, which they did not see, beside a constant and a model without privacy; ± is a standard error, by the
    noise of fits and by the choice of rows.

    What is released: errors computed from the true labels, without noise. Private labels must not go in; labeldp
    preview plans for those, and reads none.
    """
    if not public:
        raise ParameterError(_REFUSED, option="public")
    chosen, epsilons = _mechanisms(mechanisms, delta), sorted(set(map(Epsilon, budgets)))
    refuse_same({"the plot": plot}, {"the table": source})
    refuse_plot(plot, force=force)
    screen, console = news(), PlainConsole()
    tell(screen, _PUBLIC, "bold yellow")
    with screen.status("Reading"):
        inputs = read_inputs(source, label, **reading)
    for note in inputs.notes:
        tell(screen, note)
    options: dict[str, Any] = {"budgets": epsilons, "mechanisms": chosen, "delta": delta, "repeats": repeats}
    with progress() as update:
        comparison = compare_table(inputs.X, inputs.labels, bounds, progress=update, **options)
    show_comparison(comparison, label, console)
    if plot is not None:
        draw_comparison(comparison, label, plot)
        tell(console, f"The curves are in {plot}.")


def _mechanisms(names: list[str], delta: float) -> list[str]:
    """Return the mechanisms to compare: by default all that need no δ, or all if there is one."""
    needs_delta = {name: name != "auto" and mechanism_class(name).needs_delta for name in mechanism_choices()}
    for name in names:
        if name not in needs_delta:
            raise ParameterError(Setting("mechanisms"), f": there is no {name!r}, but {', '.join(needs_delta)}")
        if needs_delta[name] and not delta:
            raise ParameterError(f"the mechanism {name} needs ", Setting("delta", 1e-6), ", or another δ")
    return list(dict.fromkeys(names or (name for name, needed in needs_delta.items() if delta or not needed)))


def show_comparison(comparison: Comparison, label: str, console: Console) -> None:
    """Print the tables of labels and of models, and what to do."""
    header = ["", *(f"ε = {rounded_up(epsilon)}" for epsilon in comparison.budgets)]
    rows = comparison.trained + comparison.judged
    tables = {
        f"One private {label!r}: typical error, exact by the mechanism's counts": comparison.table("label"),
        f"Mean of {rows:,} of them: typical error": comparison.table("mean"),
        f"Predicting {label!r}: typical error on held-out rows": comparison.table("model"),
    }
    for title, lines in tables.items():
        console.print(figure_table(title, header, lines))
    if biased := [name for name in comparison.mechanisms if not comparison.is_unbiased(name)]:
        what = "nearest one by one, but drawn to the middle. Do not learn from such labels."
        tell(console, f"{', '.join(biased)}: {what}", "dim")
    fits = f"{comparison.repeats} fits with fresh noise, and of " if comparison.repeats > 1 else ""
    tell(
        console,
        f"± is a standard error, of {fits}the choice of held-out rows; for labels, of a private prior. Figures "
        "without ± did not vary in the digits shown.",
        "dim",
    )
    for sentence in comparison.advice():
        tell(console, sentence)
