"""The plot: error against ε, who wins where at a glance."""

from __future__ import annotations

import math
from io import BytesIO
from typing import Any

import matplotlib as mpl
import matplotlib.patches
import numpy as np
from matplotlib.figure import Figure
from matplotlib.ticker import FixedLocator, FuncFormatter, LogLocator, MaxNLocator, NullLocator

from reproduction import published
from reproduction.columns import NO_PRIVACY, NOT_PRIVATE, Column
from reproduction.report import departures
from reproduction.run import Table
from reproduction.summary import Summary, number, plural

# Paul Tol's bright and muted schemes, for colour-blind readers; markers tell columns apart in print.
_STYLES = {
    "laplace": ("#4477AA", "o"),
    "gaussian": ("#66CCEE", "s"),
    "staircase": ("#228833", "^"),
    "rr-on-bins": ("#CCBB44", "D"),
    "unbiased": ("#AA3377", "v"),
    "algorithm-4": ("#EE6677", "P"),
    "rp": ("#EE8866", "X"),
    "rp-debiased": ("#994F00", "P"),
    "labels-without-x": ("#997700", "v"),
    "labels-with-x": ("#BB5566", "D"),
    "labels-regressor": ("#004488", "o"),
    "model-regressor": ("#117733", "s"),
    "constant": ("#777777", "_"),
    "gaussian-published": ("#AAAAAA", "s"),
    "rr-on-bins-published": ("#AAAAAA", "D"),
    "unbiased-published": ("#AAAAAA", "v"),
    "as-published": ("#888888", "*"),
}
_OTHER_STYLE = ("#555555", ".")
"""Of variants and of mechanisms by their names."""


_TILES = 6
"""Room for at least so many winners: a single one would fill the whole width."""
_TITLES = ("The paper's mechanisms and network", "With this library")


def draw(table: Table, summary: Summary) -> Figure:
    """Return the figure: the paper's mechanisms, the library's columns, and who wins at each budget."""
    left = [c for c in table.columns if c.published]
    right = [c for c in table.columns if not c.published]
    panels = [(title, some) for title, some in zip(_TITLES, (left, right), strict=True) if some]
    with mpl.rc_context({"font.size": 10, "axes.spines.top": False, "axes.spines.right": False}):
        figure = Figure(figsize=(0.8 + 5.4 * len(panels), 6.6), layout="constrained")  # read at 830 pixels
        grid = figure.add_gridspec(2, len(panels), height_ratios=[9, 1])
        for k, (title, columns) in enumerate(panels):
            axis = figure.add_subplot(grid[0, k])
            low, high = _range(columns, summary, table)
            _panel(axis, columns, summary, table.data.name, high)
            axis.set_ylim(low, high)
            _scale(axis, columns, summary, float(np.var(table.data.y)))
            axis.set_title(title, loc="left", fontweight="bold")
        _winners(figure.add_subplot(grid[1, :]), summary)
        spread = "mean and standard deviation over " if summary.trials > 1 else ""
        trials = f"{spread}{plural(summary.trials, 'random 80/20 split')}"
        figure.suptitle(f"{table.data.name.capitalize()}: test error against ε, {trials}", x=0.01, ha="left")
        if departures(table):
            figure.supxlabel(departures(table), x=0.01, ha="left", color="#CC3311", fontsize=10, wrap=True)
        return figure


def image(figure: Figure, kind: str) -> bytes:
    """Return the figure as a file's content: png or svg."""
    sink = BytesIO()
    metadata = {"Date": None} if kind == "svg" else None
    with mpl.rc_context({"svg.hashsalt": "labeldp"}):
        figure.savefig(sink, format=kind, dpi=150, metadata=metadata)
    return sink.getvalue()


def _style(column: Column) -> dict[str, Any]:
    colour, marker = _STYLES.get(column.key, _OTHER_STYLE)
    line = "-" if column.private and column.kind != "constant" else "--"
    return {"color": colour, "marker": marker, "linestyle": line, "markersize": 5, "linewidth": 1.6}


def _points(summary: Summary, column: Column) -> tuple[list[float], np.ndarray, np.ndarray]:
    cells = [(b, m) for b in summary.budgets if math.isfinite(b) and (m := summary.at(column, b))]
    return [b for b, _ in cells], np.array([m.mean for _, m in cells]), np.array([m.std for _, m in cells])


def _range(columns: list[Column], summary: Summary, table: Table) -> tuple[float, float]:
    """Return the errors to show: what is near the labels' variance; what is hopeless leaves at the top."""
    keys = {c.key for c in columns} | {NO_PRIVACY.key}
    errors = [m.mean for (key, _), m in summary.means.items() if key in keys]
    errors += [f[1].mean for b in summary.budgets if (f := published.best(table.data.name, b))]
    low, high = min(errors) / 1.3, min(max(errors) * 1.6, float(np.var(table.data.y)) * 40)
    return low, high * (high / low) ** 0.3  # room for the legend above the lines


def _panel(axis: Any, columns: list[Column], summary: Summary, dataset: str, top: float) -> None:
    """Draw the lines, their bands, what the paper prints, and a legend in the order of the lines."""
    lines: list[tuple[float, Any]] = []
    for column in columns:
        budgets, mean, std = _points(summary, column)
        if not budgets:
            continue
        style = _style(column)
        name = column.heading if mean.min() < top else f"{column.heading} (above the picture)"
        lines.append((float(mean[0]), axis.plot(budgets, mean, label=name, **style)[0]))
        # On a logarithmic axis a band must stay above zero.
        floor = np.maximum(mean - std, mean / 3)
        axis.fill_between(budgets, floor, mean + std, color=style["color"], alpha=0.13, lw=0)
        if len(budgets) == 1:  # a band of no width shows nothing
            axis.errorbar(budgets, mean, np.stack([mean - floor, std]).tolist(), color=style["color"], capsize=3)
        if column.published and column.private:
            some = [(b, f.mean) for b in budgets if (f := published.figure(dataset, column.published, b))]
            if some:
                hollow = {**style, "linestyle": "none", "markerfacecolor": "white", "alpha": 0.65}
                axis.plot(*zip(*some, strict=True), **hollow)
    handles = [line for _, line in sorted(lines, key=lambda pair: -pair[0])]
    plain = summary.means.get((NO_PRIVACY.key, math.inf))
    if plain:
        name = f"{NO_PRIVACY.title}, {NOT_PRIVATE}"
        handles.append(axis.axhline(plain.mean, color="#888888", ls=":", lw=1.5, label=name))
    handles += _from_the_paper(axis, columns, summary, dataset)
    axis.legend(handles=handles, loc="upper right", fontsize=8.5, framealpha=0.9, edgecolor="none")


def _from_the_paper(axis: Any, columns: list[Column], summary: Summary, dataset: str) -> list[Any]:
    """Add what the paper prints: hollow marks for its columns, or its best one beside the library's."""
    best = [(b, f[1].mean) for b in summary.budgets if math.isfinite(b) and (f := published.best(dataset, b))]
    if not best:
        return []
    hollow = {"color": "black", "linestyle": "none", "markerfacecolor": "white", "marker": "o", "alpha": 0.7}
    if any(c.published for c in columns):
        return axis.plot([], [], **hollow, markersize=5, label="hollow: printed in the paper")
    label = "the best that the paper prints, private or not"
    return axis.plot(*zip(*best, strict=True), **hollow, markersize=5, label=label)


def _scale(axis: Any, columns: list[Column], summary: Summary, variance: float) -> None:
    """Set scales, ticks and what to compare with."""
    finite = [b for b in summary.budgets if math.isfinite(b)]
    axis.set(xscale="log", yscale="log", xlabel="ε, all that is spent", ylabel="test mean squared error")
    axis.set_xlim(min(finite, default=0.05) / 1.15, max(finite, default=8) * 1.15)
    axis.xaxis.set_major_locator(FixedLocator(finite))
    axis.xaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:g}"))
    axis.xaxis.set_minor_locator(NullLocator())
    low, high = axis.get_ylim()
    axis.yaxis.set_major_locator(LogLocator(subs=(1.0, 2.0, 3.0, 5.0)) if high > 5 * low else MaxNLocator(6))
    axis.yaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:,.10g}"))
    axis.yaxis.set_minor_locator(NullLocator())
    axis.tick_params(axis="x", labelsize=8.5)
    axis.grid(axis="y", alpha=0.25)
    if not any(c.kind == "constant" for c in columns):
        axis.axhline(variance, color="#BBBBBB", lw=0.8, zorder=0)
        place = {"xytext": (-3, 2), "textcoords": "offset points", "ha": "right"}
        axis.annotate(
            "variance of the labels", (axis.get_xlim()[1], variance), color="#888888", fontsize=8, **place
        )


def _winners(axis: Any, summary: Summary) -> None:
    """Show the best private column at each budget, as a strip of colours."""
    finite = [b for b in summary.budgets if math.isfinite(b)]
    axis.set(xlim=(0, max(_TILES, len(finite))), ylim=(0, 1))
    axis.axis("off")
    axis.set_title("Least error among private columns", loc="left", fontsize=10, fontweight="bold")
    short = {"labels-regressor": "LabelRelease", "model-regressor": "ModelRelease", "labels-with-x": "with X"}
    short["labels-without-x"] = "without X"
    for k, budget in enumerate(finite):
        best = summary.best(budget)
        if best and (mean := summary.at(best, budget)):
            axis.add_patch(mpl.patches.Rectangle((k + 0.02, 0), 0.96, 1, color=_style(best)["color"], lw=0))
            text = f"ε = {budget:g}\n{short.get(best.key, best.key)}\n{number(mean.mean)}"
            axis.text(k + 0.5, 0.47, text, ha="center", va="center", color="white", fontsize=8)
