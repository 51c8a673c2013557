"""A preview as curves: how errors fall, and what models keep, as ε grows."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from labeldp.accounts.numbers import tick
from labeldp.errors import MissingExtraError

if TYPE_CHECKING:
    from labeldp.evidence.previews import Preview

_BLUE, _GREY = "#0057a3", "#777777"
_LINES = {
    "label": (_BLUE, "-"),
    "hundred": ("#b04a00", "--"),
    "thousand": ("#8a6d00", (0, (3, 1, 1, 1))),
    "mean": ("#1b7a3d", "-."),
    "curator_mean": ("#7a3d9a", ":"),
}


def draw_preview(preview: Preview) -> Any:
    """Return a figure of two panels side by side."""
    try:
        from matplotlib.figure import Figure  # noqa: PLC0415 (an extra)
    except ImportError:
        raise MissingExtraError('a plot needs Matplotlib: pip install "labeldp[plots]"') from None
    figure = Figure(figsize=(11, 4.4), layout="constrained")
    left, right = figure.subplots(1, 2)
    epsilons = [point.epsilon for point in preview.curve]
    for name, what in preview.names.items():
        colour, dash = _LINES[name]
        values = [getattr(point, name) for point in preview.curve]
        left.plot(epsilons, values, color=colour, linestyle=dash, linewidth=2, label=what)
    if preview.wanted is not None:
        left.axhline(preview.wanted, color=_GREY, linewidth=1, label="wanted")
    left.set(yscale="log", ylabel="±, in the label's unit")
    left.yaxis.set_major_formatter(lambda value, _: tick(value))
    left.set_title(f"Typical error, {preview.rows:,} rows", loc="left")
    known = [(point.epsilon, kept.middle, kept.low, kept.high) for point in preview.curve if (kept := point.kept)]
    if known:
        at, *shares = np.array(known).T
        middle, low, high = 100 * np.array(shares)
        right.plot(at, middle, color=_BLUE, linewidth=2, label="median")
        right.fill_between(at, low, high, color=_BLUE, alpha=0.15, linewidth=0, label="half of the tables")
    right.set(ylim=(0, 100))
    right.yaxis.set_major_formatter(lambda value, _: f"{value:.0f} %")
    right.set_title("Kept of what features explain, tables of the accuracy suite", loc="left", fontsize=11)
    for axes, drawn in ((left, True), (right, known)):
        axes.set(xscale="log", xlim=(epsilons[0], epsilons[-1]), xlabel="ε: less is more private")
        axes.set_xticks([0.02, 0.05, 0.1, 0.2, 0.5, 1, 2, 5, 10, 20])
        axes.xaxis.set_major_formatter(lambda value, _: f"{value:g}")
        axes.minorticks_off()
        for point in preview.budgets:
            axes.axvline(point.epsilon, color=_GREY, linewidth=0.6, alpha=0.5)
        axes.grid(axis="y", linewidth=0.4, alpha=0.5)
        axes.spines[["top", "right"]].set_visible(False)
        if drawn:
            axes.legend(frameon=False, fontsize=9)
    return figure
