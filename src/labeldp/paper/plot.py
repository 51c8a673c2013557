"""The plot: error against ε, who wins where at a glance."""

from __future__ import annotations

import math
from io import BytesIO
from typing import Any

import matplotlib as mpl
import matplotlib.patches
import numpy as np
from matplotlib.figure import Figure
from matplotlib.ticker import FixedLocator, FuncFormatter, NullFormatter, NullLocator

from labeldp.paper import published
from labeldp.paper.columns import NO_PRIVACY, NOT_PRIVATE, Column
from labeldp.paper.run import Table
from labeldp.paper.summary import Summary, number

__all__ = ["draw", "image"]

# Paul Tol's bright and muted schemes: told apart by colour-blind readers, and by their markers in print.
_STYLES = {
    "laplace": ("#4477AA", "o"),
    "gaussian": ("#66CCEE", "s"),
    "staircase": ("#228833", "^"),
    "rr-on-bins": ("#CCBB44", "D"),
    "unbiased": ("#AA3377", "v"),
    "rp-letter": ("#EE6677", "P"),
    "rp": ("#EE8866", "X"),
    "rp-debiased": ("#994F00", "P"),
    "labels-regressor": ("#004488", "o"),
    "model-regressor": ("#117733", "s"),
    "constant": ("#777777", "_"),
    "as-published": ("#888888", "*"),
}


def draw(table: Table, summary: Summary) -> Figure:
    """Return the figure."""
    dataset = table.data.name
    left = [c for c in table.columns if c.published]
    right = [c for c in table.columns if not c.published]
    panels = [some for some in (left, right) if some]
    with mpl.rc_context({"font.size": 10, "axes.spines.top": False, "axes.spines.right": False}):
        figure = Figure(figsize=(7.4 * len(panels), 6.4), layout="constrained")
        grid = figure.add_gridspec(2, len(panels), height_ratios=[14, 1])
        axes = [figure.add_subplot(grid[0, k]) for k in range(len(panels))]
        titles = ["The paper's mechanisms, the paper's network", "With this library"]
        for axis, columns in zip(axes, panels, strict=True):
            _panel(axis, columns, summary, dataset)
            axis.set_title(titles[0] if columns is left else titles[1], loc="left", fontweight="bold")
        _same_scale(axes, table, summary)
        for axis, columns in zip(axes, panels, strict=True):
            _direct_labels(axis, columns, summary)
        _winners(figure.add_subplot(grid[1, :]), summary)
        trials = f"mean and standard deviation over {summary.trials} random 80/20 splits"
        figure.suptitle(f"{dataset.capitalize()}: test error against ε, {trials}", x=0.01, ha="left")
        return figure


def image(figure: Figure, kind: str) -> bytes:
    """Return the figure as a file's content: png or svg."""
    sink = BytesIO()
    metadata = {"Date": None} if kind == "svg" else None
    with mpl.rc_context({"svg.hashsalt": "labeldp"}):
        figure.savefig(sink, format=kind, dpi=150, metadata=metadata)
    return sink.getvalue()


def _style(column: Column) -> dict[str, Any]:
    colour, marker = _STYLES.get(column.key, ("#000000", "o"))
    dashed = "-" if column.private and column.kind != "constant" else "--"
    return {"color": colour, "marker": marker, "linestyle": dashed, "markersize": 5, "linewidth": 1.6}


def _points(summary: Summary, column: Column) -> tuple[list[float], np.ndarray, np.ndarray]:
    found = [(b, m) for b in summary.budgets if math.isfinite(b) and (m := summary.at(column, b))]
    return [b for b, _ in found], np.array([m.mean for _, m in found]), np.array([m.std for _, m in found])


def _panel(axis: Any, columns: list[Column], summary: Summary, dataset: str) -> None:
    for column in columns:
        budgets, mean, std = _points(summary, column)
        if not budgets:
            continue
        style = _style(column)
        axis.plot(budgets, mean, **style)
        # On a logarithmic axis a band must stay above zero.
        axis.fill_between(
            budgets, np.maximum(mean - std, mean / 3), mean + std, color=style["color"], alpha=0.15, lw=0
        )
        if column.published and column.private:
            paper = [published.figure(dataset, column.published, b) for b in budgets]
            some = [(b, f.mean) for b, f in zip(budgets, paper, strict=True) if f]
            if some:
                hollow = {**style, "linestyle": "none", "markerfacecolor": "white", "alpha": 0.7}
                axis.plot(*zip(*some, strict=True), **hollow)
    plain = summary.means.get((NO_PRIVACY.key, math.inf))
    if plain:
        axis.axhline(plain.mean, color="#888888", linestyle=":", linewidth=1.4)
    if any(c.published for c in columns) and any(published.figure(dataset, "Ours", b) for b in summary.budgets):
        axis.plot([], [], "ko-", markersize=5, label="ours")
        axis.plot([], [], "ko", markersize=5, markerfacecolor="white", alpha=0.7, label="printed in the paper")
        axis.legend(loc="upper right", frameon=False)


def _same_scale(axes: list[Any], table: Table, summary: Summary) -> None:
    """Put all panels on one scale that shows what is near the labels' variance, and cuts what is hopeless."""
    finite = [b for b in summary.budgets if math.isfinite(b)]
    means = np.array([m.mean for (_, b), m in summary.means.items()])
    worth = float(np.var(table.data.y))
    low, high = means.min() / 1.35, min(means.max() * 1.5, worth * 150)
    for axis in axes:
        axis.set(xscale="log", yscale="log", ylim=(low, high), xlabel="ε, all that is spent")
        axis.set_xlim(min(finite, default=0.05) / 1.15, max(finite, default=8) * 1.15)
        axis.xaxis.set_major_locator(FixedLocator(finite))
        axis.xaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:g}"))
        axis.xaxis.set_minor_locator(NullLocator())
        axis.yaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:g}"))
        axis.yaxis.set_minor_formatter(NullFormatter())
        axis.tick_params(axis="x", labelsize=8.5)
        axis.grid(axis="y", alpha=0.25)
    axes[0].set_ylabel("test mean squared error")


def _direct_labels(axis: Any, columns: list[Column], summary: Summary) -> None:
    """Write each line's name beside its end, moved apart where they would overlap."""
    ends = []
    low, high = np.log(axis.get_ylim())
    for column in columns:
        budgets, mean, _ = _points(summary, column)
        if budgets:
            ends.append([float((np.log(mean[-1]) - low) / (high - low)), column.heading, _style(column)["color"]])
    plain = summary.means.get((NO_PRIVACY.key, math.inf))
    if plain:
        place = float((np.log(plain.mean) - low) / (high - low))
        ends.append([place, f"{NO_PRIVACY.title}, {NOT_PRIVATE}", "#777777"])
    ends.sort(key=lambda end: end[0])
    gap, places = 0.042, [float(end[0]) for end in ends]
    for k in range(1, len(places)):
        places[k] = max(places[k], places[k - 1] + gap)
    for place, (true, name, colour) in zip(places, ends, strict=True):
        axis.annotate(
            name,
            xy=(1.0, min(true, 1.0)),
            xytext=(1.04, place),
            xycoords="axes fraction",
            textcoords="axes fraction",
            color=colour,
            va="center",
            fontsize=9.5,
            annotation_clip=False,
            arrowprops={"arrowstyle": "-", "color": colour, "alpha": 0.5, "lw": 0.8},
        )


def _winners(axis: Any, summary: Summary) -> None:
    """Show the best private column at each budget, as a strip of colours."""
    finite = [b for b in summary.budgets if math.isfinite(b)]
    axis.set(xlim=(0, max(1, len(finite))), ylim=(0, 1))
    axis.axis("off")
    axis.set_title("Least error among private columns", loc="left", fontsize=10, fontweight="bold")
    for k, budget in enumerate(finite):
        best = summary.best(budget)
        if best is None:
            continue
        mean = summary.at(best, budget)
        axis.add_patch(mpl.patches.Rectangle((k + 0.02, 0), 0.96, 1, color=_style(best)["color"], lw=0))
        text = f"ε = {budget:g}\n{_short(best)}\n{number(mean.mean) if mean else ''}"
        axis.text(k + 0.5, 0.47, text, ha="center", va="center", color="white", fontsize=7.5)


def _short(column: Column) -> str:
    return {"labels-regressor": "LabelRelease", "model-regressor": "ModelRelease"}.get(column.key, column.key)
