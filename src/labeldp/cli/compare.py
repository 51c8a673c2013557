"""``labeldp compare``: which mechanism and ε suit a table, for labels that are public; what ``demo`` shows too."""

from __future__ import annotations

from typing import Annotated

import typer
from rich.console import Console
from rich.table import Table

from labeldp._values import Delta, Epsilon, LabelBounds, rounded_up
from labeldp.cli import options
from labeldp.cli.comparison_figures import draw_comparison, page_figures
from labeldp.cli.shell import PlainConsole, explained, news, progress, tell
from labeldp.comparison import Comparison, compare_table, with_error
from labeldp.errors import ParameterError
from labeldp.files.places import refuse_same, refuse_target
from labeldp.jobs.inputs import read_inputs
from labeldp.jobs.sentences import as_options
from labeldp.mechanisms import mechanism_class
from labeldp.release.plan import mechanism_choices
from labeldp.report import Section, render_page, write_page
from labeldp.report.figures import require_matplotlib

_LOUD = (
    "These labels are taken as PUBLIC. What follows is computed from them as they are: it is not private, and no "
    "budget is charged."
)
_REFUSED = (
    "compare is for PUBLIC labels: it looks at them as they are, and so do the errors it shows; on private ones "
    "that would spend budget that nobody counts. Use a public table like yours, or a synthetic one, and say so "
    "with --public; or privatize once, and compare learners on the release for free; labeldp preview reads no "
    "label at all"
)


def compare(
    source: options.Source,
    label: options.Label,
    bounds: options.Bounds,
    public: Annotated[bool, typer.Option("--public", help="The labels are public, or synthetic.")] = False,
    budgets: options.Budgets = "0.1,0.3,1,3",
    mechanisms: Annotated[
        str | None,
        typer.Option(
            metavar="NAMES",
            help=f"Some of {', '.join(mechanism_choices())}, with commas; by default all that the options allow.",
        ),
    ] = None,
    rows: Annotated[
        int, typer.Option(min=40, metavar="N", help="Rows at most; of more, a random part is taken.")
    ] = 20_000,
    repeats: Annotated[
        int,
        typer.Option(
            min=1, max=100, metavar="N", help="Fits of each regressor at each ε: their errors vary by chance."
        ),
    ] = 2,
    features: options.Features = None,
    drop: options.Drop = None,
    categories: options.Categories = None,
    missing: options.Missing = "error",
    delta: options.Delta = 0.0,
    plot: options.Plot = None,
    format: options.InputFormat = None,
    header: options.Header = False,
    names: options.Names = None,
    report: options.Report = None,
    force: options.Force = False,
) -> None:
    """For PUBLIC labels only: show what each mechanism, regressor and ε would cost in accuracy.

    The error of one private label follows exactly from each mechanism's counts.
    Models are judged on a quarter of the rows, which they did not see, beside a
    constant and a model without privacy; ± is a standard error, by the noise of
    fits and by the choice of rows.

    What leaves: errors computed from the true labels, without noise. Private
    labels must not go in; labeldp preview plans for those, and reads none.
    """
    with explained():
        if not public:
            raise ParameterError(_REFUSED)
        LabelBounds(bounds)
        Delta(delta)
        chosen = _mechanisms(mechanisms, delta)
        epsilons = {Epsilon(value) for value in options.parse_numbers(budgets, "--budgets", "0.1,0.3,1,3")}

        refuse_same({"the plot": plot, "the report": report}, {"the table": source})
        options.refuse_plot(plot, force=force)
        if report is not None:
            refuse_target(str(report), force=force)
            require_matplotlib()
        screen, console = news(), PlainConsole()
        tell(screen, _LOUD, "bold yellow")
        with screen.status("Reading"):
            inputs = read_inputs(
                source,
                label,
                features=options.split_names(features),
                drop=options.split_names(drop),
                categories=options.split_names(categories),
                missing=missing,
                rows=rows,
                format=format,
                dialect=options.as_dialect(header=header, names=names),
            )
        for note in inputs.notes:
            tell(screen, note)
        with progress() as update:
            comparison = compare_table(
                inputs.X,
                inputs.labels,
                bounds,
                budgets=sorted(epsilons),
                mechanisms=chosen,
                delta=delta,
                repeats=repeats,
                progress=update,
            )
        show_comparison(comparison, label, console)
        if plot is not None:
            draw_comparison(comparison, label, plot)
            tell(console, f"The curves are in {plot}.")
        if report is not None:
            write_page(report, comparison_page(comparison, label), force=force)
            tell(console, f"The report is in {report}.")


def _mechanisms(text: str | None, delta: float) -> list[str]:
    choices = mechanism_choices()
    names = options.split_names(text) or [name for name in choices if delta or not _needs_delta(name)]
    for name in names:
        if name not in choices:
            raise ParameterError(f"there is no mechanism {name!r}; there are {', '.join(choices)}")
        if _needs_delta(name) and not delta:
            raise ParameterError(f"the mechanism {name} needs a --delta, such as 1e-6")
    return list(dict.fromkeys(names))


def _needs_delta(name: str) -> bool:
    return name != "auto" and mechanism_class(name).needs_delta


def show_comparison(comparison: Comparison, label: str, console: Console) -> None:
    """Print the tables of labels and of models, and what to do."""
    rows = comparison.trained + comparison.judged
    tables = {
        f"One private {label!r}: typical error, exact by the mechanism's counts": _label_rows(comparison),
        f"Mean of {rows:,} of them: typical error": _label_rows(comparison, of_mean=True),
        f"Predicting {label!r}: typical error on held-out rows": _model_rows(comparison),
    }
    for title, lines in tables.items():
        table = Table(title=title, title_justify="left")
        for k, name in enumerate(_header(comparison)):
            table.add_column(name, justify="right" if k else "left", no_wrap=True)
        for line in lines:
            table.add_row(*line, style="dim" if line[0] in ("private constant", "not private") else "")
        console.print(table)
    if biased := [name for name in comparison.mechanisms if not comparison.is_unbiased(name)]:
        names = ", ".join(biased)
        tell(
            console, f"{names}: nearest one by one, but drawn to the middle. Do not learn from such labels.", "dim"
        )
    tell(console, _plus_minus(comparison), "dim")
    for sentence in _advice(comparison):
        tell(console, sentence)


def comparison_page(comparison: Comparison, label: str) -> str:
    """Return the comparison as a page that explains itself."""
    label_figure, model_figure = page_figures(comparison)
    advice = _advice(comparison)
    return render_page(
        f"Which mechanism and ε for {label}?",
        [
            Section(
                "Not private",
                [
                    "This page was computed from labels as they are. They were said to be public, or to stand in "
                    "for private ones. No budget was spent, and nothing here is protected."
                ],
                warning=True,
            ),
            Section("What to do", advice),
            Section(
                "Predicting the label",
                [
                    f"Typical error on {comparison.judged:,} rows that no model saw; each learnt from "
                    f"{comparison.trained:,} others. {_plus_minus(comparison)} It is the band in the figure."
                ],
                header=_header(comparison),
                rows=_model_rows(comparison),
                figure=model_figure,
                alternative="The held-out error of both private regressors falls with ε, from that of a constant "
                "towards that of a model without privacy. The table has the numbers.",
            ),
            Section(
                "One private label",
                [
                    "Typical error of one released label, exact by each mechanism's counts. A biased one may "
                    "be nearest one by one and still the worst to learn from: its errors do not average out."
                ],
                header=_header(comparison),
                rows=_label_rows(comparison),
                figure=label_figure,
                alternative="The error of one private label against ε, a curve for each mechanism. The table has "
                "the numbers.",
            ),
        ],
        lead=advice[:1],
    )


def _plus_minus(comparison: Comparison) -> str:
    """Return what ± means."""
    if comparison.repeats == 1:
        fits = "± is a standard error by the choice of held-out rows; one fit does not tell what noise does."
    else:
        fits = (
            f"± is a standard error: of {comparison.repeats} fits with fresh noise, and of the "
            "choice of held-out rows."
        )
    return f"{fits} For labels it is the luck of a private prior; figures without ± are exact to the digits shown."


def _advice(comparison: Comparison) -> list[str]:
    """Return the advice with the regressors as the options that choose them."""
    options = {"LabelReleaseRegressor": "--release labels", "ModelReleaseRegressor": "--release model"}
    sentences = [as_options(sentence) for sentence in comparison.advice()]
    for name, option in options.items():
        sentences = [sentence.replace(name, option) for sentence in sentences]
    return sentences


def _header(comparison: Comparison) -> list[str]:
    return ["", *(f"ε = {rounded_up(epsilon)}" for epsilon in comparison.budgets)]


def _label_rows(comparison: Comparison, *, of_mean: bool = False) -> list[list[str]]:
    rows = []
    for name in comparison.mechanisms:
        noise = [comparison.noise[name, epsilon] for epsilon in comparison.budgets]
        pairs = [(each.mean, each.mean_spread) if of_mean else (each.one, each.one_spread) for each in noise]
        rows.append([name, *(with_error(*pair) for pair in pairs)])
    return rows


def _model_rows(comparison: Comparison) -> list[list[str]]:
    budgets = comparison.budgets
    rows = [[name, *(comparison.error(name, epsilon) for epsilon in budgets)] for name in comparison.regressors]
    by_rows, by_rows_of_trees = comparison.rows_spread
    rows.append(["private constant", *(with_error(comparison.constant[epsilon], by_rows) for epsilon in budgets)])
    rows.append(["not private", *(with_error(comparison.not_private, by_rows_of_trees) for _ in budgets)])
    return rows
