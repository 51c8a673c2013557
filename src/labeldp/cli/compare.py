"""``labeldp compare``: which mechanism and ε suit a table, for labels that are public."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console

from labeldp._validation import as_delta, as_epsilon, as_roomy_bounds
from labeldp.cli import options
from labeldp.cli.comparison_views import comparison_page, draw_comparison, show_comparison
from labeldp.cli.inputs import read_inputs
from labeldp.cli.shell import explained, need_matplotlib, news, tell
from labeldp.comparison import compare_table, steps_of
from labeldp.errors import ParameterError
from labeldp.estimators.progress import steps
from labeldp.files.places import refuse_same, refuse_target
from labeldp.mechanisms import mechanism_class
from labeldp.release.plan import mechanism_choices
from labeldp.report import write_page

__all__ = ["compare"]

EXAMPLE = "Example:  labeldp compare old-homes.csv --label price --bounds 0 5 --public --plot compare.png"

_LOUD = (
    "These labels are taken as PUBLIC. What follows is computed from them as they are: it is not private, and no "
    "budget is charged."
)
_REFUSED = (
    "compare looks at the labels as they are, and so do the errors it shows: on private labels that would spend "
    "budget that nobody counts. Use a public table like yours, or a synthetic one, and say so with --public; or "
    "privatize once, and compare learners on the release for free"
)


def compare(
    source: options.Source,
    label: options.Label,
    bounds: options.Bounds,
    public: Annotated[bool, typer.Option("--public", help="The labels are public, or synthetic.")] = False,
    budgets: Annotated[str, typer.Option(help="Values of ε, with commas.")] = "0.1,0.3,1,3",
    mechanisms: Annotated[
        str | None,
        typer.Option(
            help=f"Some of {', '.join(mechanism_choices())}, with commas; by default all that the options allow.",
            show_default=False,
        ),
    ] = None,
    rows: Annotated[int, typer.Option(min=40, help="Rows at most; more are thinned by chance.")] = 20_000,
    repeats: Annotated[
        int, typer.Option(min=1, max=100, help="Fits of each regressor at each ε: their errors vary by chance.")
    ] = 3,
    features: options.Features = None,
    drop: options.Drop = None,
    categories: options.Categories = None,
    missing: options.Missing = options.Policy.error,
    delta: options.Delta = 0.0,
    plot: Annotated[
        Path | None, typer.Option(help="Draw the curves: a .png, .svg or .pdf file.", show_default=False)
    ] = None,
    format: options.InputFormat = None,
    report: options.Report = None,
    force: options.Force = False,
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
        names, epsilons = _mechanisms(mechanisms, delta), _budgets(budgets)

        if plot is not None and plot.suffix not in (".png", ".svg", ".pdf"):
            raise ParameterError(f"--plot must end in .png, .svg or .pdf, got {plot}")
        refuse_same({"the plot": plot, "the report": report}, {"the table": source})
        for path in (plot, report):
            if path is not None:
                refuse_target(str(path), force=force)
                need_matplotlib()
        screen, console = news(), Console()
        tell(screen, _LOUD, "bold yellow")
        inputs = read_inputs(
            source,
            label,
            features=features,
            drop=drop,
            categories=categories,
            missing=missing,
            rows=rows,
            format=format,
        )
        for note in inputs.notes:
            tell(screen, note)
        with steps(steps_of(epsilons, names, repeats), shown=True) as step:
            comparison = compare_table(
                inputs.X,
                inputs.labels,
                bounds,
                budgets=epsilons,
                mechanisms=names,
                delta=delta,
                repeats=repeats,
                step=step,
            )
        show_comparison(comparison, label, console)
        if plot is not None:
            draw_comparison(comparison, label, plot)
            tell(console, f"The curves are in {plot}.")
        if report is not None:
            write_page(report, comparison_page(comparison, label), force=force)
            tell(console, f"The report is in {report}.")


def _budgets(text: str) -> list[float]:
    try:
        numbers = [float(part) for part in options.listed(text)]
    except ValueError:
        numbers = []
    if not numbers:
        raise ParameterError("budgets must be numbers with commas between them, such as 0.1,0.3,1,3")
    return sorted({as_epsilon(number) for number in numbers})


def _mechanisms(text: str | None, delta: float) -> list[str]:
    known = mechanism_choices()
    names = options.listed(text) or [name for name in known if delta or not _needs_delta(name)]
    for name in names:
        if name not in known:
            raise ParameterError(f"there is no mechanism {name!r}; there are {', '.join(known)}")
        if _needs_delta(name) and not delta:
            raise ParameterError(f"the mechanism {name} needs a --delta, such as 1e-6")
    return list(dict.fromkeys(names))


def _needs_delta(name: str) -> bool:
    return name != "auto" and mechanism_class(name).needs_delta
