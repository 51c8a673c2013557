"""``labeldp compare``: which mechanism and ε suit a table, for labels that are public; what ``demo`` shows too."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.console import Console
from rich.table import Table

from labeldp._atomic import atomic_file
from labeldp._validation import as_delta, as_epsilon, as_roomy_bounds, rounded_up
from labeldp.cli import options
from labeldp.cli.options import read_inputs
from labeldp.cli.shell import as_options, explained, news, progress, tell
from labeldp.comparison import Comparison, compare_table
from labeldp.errors import ParameterError
from labeldp.files.places import refuse_same, refuse_target
from labeldp.mechanisms import mechanism_class
from labeldp.release.numbers import number
from labeldp.release.plan import mechanism_choices
from labeldp.report import COLOURS, SOFT, Section, blank, legend, render_page, require_matplotlib, write_page

__all__ = ["compare", "draw_comparison", "show_comparison"]


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
                require_matplotlib()
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
        with progress() as update:
            comparison = compare_table(
                inputs.X,
                inputs.labels,
                bounds,
                budgets=epsilons,
                mechanisms=names,
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


def _budgets(text: str) -> list[float]:
    try:
        numbers = [float(part) for part in options.split_names(text)]
    except ValueError:
        numbers = []
    if not numbers:
        raise ParameterError("budgets must be numbers with commas between them, such as 0.1,0.3,1,3")
    return sorted({as_epsilon(number) for number in numbers})


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


_COLOURS = ("#0057a3", "#b04a00", "#1b7a3d", "#7a3d9a", "#a3172f", "#00798c", "#6b6b00", "#444444")
_GREY = "#777777"
_MARKERS = "osD^vPX*"
_EPSILON, _ERROR = "ε: less is more private", "typical error"


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
    if comparison.repeats > 1:
        fits = f"Mean ± standard deviation of {comparison.repeats} fits on the same rows, each with fresh noise."
        tell(console, fits, "dim")
    for sentence in _advice(comparison):
        tell(console, sentence)


def draw_comparison(comparison: Comparison, label: str, path: Path) -> None:
    """Save the curves of labels and of models side by side, whole or not at all."""
    from matplotlib.figure import Figure  # noqa: PLC0415 (an extra)

    figure = Figure(figsize=(10, 4.2), layout="constrained")
    left, right = figure.subplots(1, 2)
    _label_curves(left, comparison, _COLOURS, _GREY)
    _model_curves(right, comparison, _COLOURS, _GREY)
    left.set_title(f"One private {label}", loc="left")
    right.set_title(f"Predicting {label}, held-out rows", loc="left")
    for axes in (left, right):
        axes.set_xlabel(_EPSILON)
        axes.set_ylabel(_ERROR)
        axes.spines[["top", "right"]].set_visible(False)
        axes.legend(frameon=False, fontsize=8)
    with atomic_file(path, public=True) as draft:
        figure.savefig(draft, dpi=150, format=path.suffix[1:])


def comparison_page(comparison: Comparison, label: str) -> str:
    """Return the comparison as a page that explains itself."""
    figures = []
    for curves in (_label_curves, _model_curves):
        figure, axes = blank(_EPSILON, _ERROR, size=(5.2, 3.6))
        curves(axes, comparison, COLOURS, SOFT)
        legend(axes, columns=3)
        figures.append(figure)
    advice = _advice(comparison)
    times = "once"
    if comparison.repeats > 1:
        times = (
            f"{comparison.repeats} times with fresh noise: mean ± standard deviation, which is the band in the "
            "figure"
        )
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
                    f"{comparison.trained:,} others, {times}."
                ],
                header=_header(comparison),
                rows=_model_rows(comparison),
                figure=figures[1],
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
                figure=figures[0],
                alternative="The error of one private label against ε, a curve for each mechanism. The table has "
                "the numbers.",
            ),
        ],
        lead=advice[:1],
    )


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
        rows.append([name, *(number(each.mean if of_mean else each.one, 3) for each in noise)])
    return rows


def _model_rows(comparison: Comparison) -> list[list[str]]:
    budgets = comparison.budgets
    rows = [[name, *(comparison.error(name, epsilon) for epsilon in budgets)] for name in comparison.regressors]
    rows.append(["private constant", *(number(comparison.constant[epsilon], 3) for epsilon in budgets)])
    rows.append(["not private", *(number(comparison.not_private, 3) for _ in budgets)])
    return rows


def _label_curves(axes: Any, comparison: Comparison, colours: Sequence[str], grey: str) -> None:
    for k, name in enumerate(comparison.mechanisms):
        axes.plot(
            comparison.budgets,
            [comparison.noise[name, epsilon].one for epsilon in comparison.budgets],
            color=colours[k % len(colours)],
            marker=_MARKERS[k % len(_MARKERS)],
            linestyle=("-", "--")[k // len(colours) % 2],
            linewidth=3.0 if name == "auto" else 1.5,
            markersize=5,
            label=name,
        )
    spread = comparison.constant[max(comparison.budgets)]
    axes.axhline(spread, color=grey, linestyle=":", linewidth=1.2, label="guess the mean")
    axes.set_yscale("log")
    _scale(axes, comparison)


def _model_curves(axes: Any, comparison: Comparison, colours: Sequence[str], grey: str) -> None:
    budgets = comparison.budgets
    for name, colour, marker in zip(comparison.regressors, colours[1::-1], _MARKERS, strict=False):
        errors = [comparison.models[name, epsilon] for epsilon in budgets]
        axes.plot(budgets, errors, color=colour, marker=marker, linewidth=2, label=name)
        if comparison.spread:
            wide = [comparison.spread[name, epsilon] for epsilon in budgets]
            low, high = ([x + side * w for x, w in zip(errors, wide, strict=True)] for side in (-1, 1))
            axes.fill_between(budgets, low, high, color=colour, alpha=0.2, linewidth=0)
    constant = [comparison.constant[epsilon] for epsilon in budgets]
    axes.plot(budgets, constant, color=grey, linestyle="--", linewidth=1.2, label="private constant")
    axes.axhline(comparison.not_private, color=grey, linestyle=":", linewidth=1.2, label="not private")
    axes.set_ylim(bottom=0)
    _scale(axes, comparison)


def _scale(axes: Any, comparison: Comparison) -> None:
    axes.set_xscale("log")
    axes.set_xticks(comparison.budgets, [f"{epsilon:g}" for epsilon in comparison.budgets])
    axes.minorticks_off()
