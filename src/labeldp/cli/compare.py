"""``labeldp compare``: which mechanism and ε suit a table, for labels that are public."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console
from rich.table import Table

from labeldp._validation import as_delta, as_epsilon, as_roomy_bounds, rounded_up
from labeldp.cli.compare_plot import draw, need_matplotlib, page
from labeldp.cli.inputs import read_inputs
from labeldp.cli.options import Bounds, Delta, Force, Format, Label, Missing, Policy, Report, Source, listed
from labeldp.cli.shell import explained, news, tell
from labeldp.comparison import Comparison, compare_table, steps_of
from labeldp.errors import ParameterError
from labeldp.estimators.progress import steps
from labeldp.files.places import refuse_same, refuse_target
from labeldp.release.choice import NEEDS_PRIOR
from labeldp.report import write_page

__all__ = ["compare"]

EXAMPLE = "Example:  labeldp compare old-homes.csv --label price --bounds 0 5 --public --plot compare.png"

_LOUD = (
    "These labels are taken as PUBLIC. What follows is computed from them as they are: it is not private, and no "
    "budget is charged."
)
_REFUSED = (
    "compare looks at the labels as they are, and so do the errors it shows: on private labels that would spend "
    "budget that nobody counts. Use a public table like yours, or a made one, and say so with --public; or "
    "privatize once, and compare learners on the release for free"
)


def compare(
    source: Source,
    label: Label,
    bounds: Bounds,
    public: Annotated[bool, typer.Option("--public", help="The labels are public, or made to stand in.")] = False,
    budgets: Annotated[str, typer.Option(help="Values of ε, with commas.")] = "0.1,0.3,1,3",
    mechanisms: Annotated[
        str | None,
        typer.Option(
            help=f"Some of {', '.join(NEEDS_PRIOR)}, with commas; by default all, gaussian only with --delta.",
            show_default=False,
        ),
    ] = None,
    rows: Annotated[int, typer.Option(min=40, help="Rows at most; more are thinned by chance.")] = 20_000,
    repeats: Annotated[
        int, typer.Option(min=1, max=100, help="Fits of each regressor at each ε: their errors vary by chance.")
    ] = 3,
    features: Annotated[
        str | None, typer.Option(help="Columns to learn from, such as a,b,c; all by default.", show_default=False)
    ] = None,
    drop: Annotated[
        str | None, typer.Option(help="Columns to leave out, such as id,name.", show_default=False)
    ] = None,
    categories: Annotated[
        str | None,
        typer.Option(help="Columns of numbers that name things, such as zip,region.", show_default=False),
    ] = None,
    missing: Missing = Policy.error,
    delta: Delta = 0.0,
    plot: Annotated[
        Path | None, typer.Option(help="Draw the curves: a .png, .svg or .pdf file.", show_default=False)
    ] = None,
    format: Format = None,
    report: Report = None,
    force: Force = False,
) -> None:
    """Show what each mechanism, regressor and ε would cost in accuracy. For PUBLIC labels only.

    The error of one private label follows exactly from each mechanism's counts.
    Models are judged on a quarter of the rows, which they did not see, beside a
    constant and a model without privacy; ± is how their errors vary with the
    noise. That takes minutes; with fewer --rows, --budgets or --repeats, less.
    """
    with explained():
        if not public:
            raise ParameterError(_REFUSED)
        as_roomy_bounds(bounds)
        as_delta(delta, smallest=0.0)
        chosen, tried = _mechanisms(mechanisms, delta), _budgets(budgets)
        refuse_same({"the plot": plot, "the report": report}, {"the table": source})
        _refuse_targets(plot, report, force)
        screen, shown = news(), Console()
        tell(screen, _LOUD, "bold yellow")
        inputs = read_inputs(
            source,
            label,
            features=listed(features),
            drop=listed(drop),
            categories=listed(categories),
            missing=missing,
            rows=rows,
            format=format,
        )
        for note in inputs.notes:
            tell(screen, note)
        with steps(steps_of(tried, chosen, repeats), shown=True) as step:
            found = compare_table(
                inputs.X,
                inputs.labels,
                bounds,
                budgets=tried,
                mechanisms=chosen,
                delta=delta,
                repeats=repeats,
                step=step,
            )
        _show(found, label, shown)
        if plot is not None:
            draw(found, label, plot)
            tell(shown, f"The curves are in {plot}.")
        if report is not None:
            write_page(report, page(found, label), force=force)
            tell(shown, f"The report is in {report}.")


def _budgets(text: str) -> list[float]:
    try:
        numbers = [float(part) for part in listed(text) or []]
    except ValueError:
        numbers = []
    if not numbers:
        raise ParameterError("budgets must be numbers with commas between them, such as 0.1,0.3,1,3")
    return sorted({as_epsilon(number) for number in numbers})


def _mechanisms(text: str | None, delta: float) -> list[str]:
    names = listed(text) or [name for name in NEEDS_PRIOR if name != "gaussian" or delta]
    for name in names:
        if name not in NEEDS_PRIOR:
            raise ParameterError(f"there is no mechanism {name!r}; there are {', '.join(NEEDS_PRIOR)}")
        if name == "gaussian" and not delta:
            raise ParameterError("the mechanism gaussian needs a --delta, such as 1e-6")
    return list(dict.fromkeys(names))


def _refuse_targets(plot: Path | None, report: Path | None, force: bool) -> None:
    """Refuse a plot or a page that could not be saved, before the work is done."""
    if plot is not None and plot.suffix not in (".png", ".svg", ".pdf"):
        raise ParameterError(f"--plot must end in .png, .svg or .pdf, got {plot}")
    for path in (plot, report):
        if path is not None:
            refuse_target(str(path), force=force)
            need_matplotlib()


def _show(found: Comparison, label: str, shown: Console) -> None:
    one = Table(
        title=f"One private {label!r}: typical error, exact by the mechanism's counts", title_justify="left"
    )
    mean = Table(title=f"Mean of {found.trained + found.judged:,} of them: typical error", title_justify="left")
    for table, what in ((one, "one"), (mean, "mean")):
        table.add_column("mechanism")
        for epsilon in found.budgets:
            table.add_column(f"ε = {rounded_up(epsilon)}", justify="right")
        for name in found.mechanisms:
            table.add_row(name, *[f"{getattr(found.noise[name, e], what):.3g}" for e in found.budgets])
        shown.print(table)
    biased = [name for name in found.mechanisms if not found.noise[name, found.budgets[0]].unbiased]
    if biased:
        tell(
            shown,
            f"{', '.join(biased)}: nearest one by one, but drawn to the middle. Do not learn from such labels.",
            "dim",
        )
    models = Table(title=f"Predicting {label!r}: typical error on held-out rows", title_justify="left")
    models.add_column("model")
    for epsilon in found.budgets:
        models.add_column(f"ε = {rounded_up(epsilon)}", justify="right")
    for name in dict.fromkeys(name for name, _ in found.models):
        models.add_row(name, *[found.error(name, e) for e in found.budgets])
    models.add_row("private constant", *[f"{found.constant[e]:.3g}" for e in found.budgets], style="dim")
    models.add_row("not private", *[f"{found.not_private:.3g}" for _ in found.budgets], style="dim")
    shown.print(models)
    if found.repeats > 1:
        fits = f"Mean ± standard deviation of {found.repeats} fits on the same rows, each with fresh noise."
        tell(shown, fits, "dim")
    for sentence in found.advice():
        tell(shown, sentence)
