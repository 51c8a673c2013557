"""A preview as curves: how errors fall, and what models keep, as ε grows."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from labeldp.errors import MissingExtraError
from labeldp.release.numbers import tick

if TYPE_CHECKING:
    from labeldp.planning.outlook import Preview

_LINES = {
    "label": ("one private label", "#0057a3", "-"),
    "hundred": ("mean of 100 private labels", "#b04a00", "--"),
    "thousand": ("mean of 1,000 private labels", "#8a6d00", (0, (3, 1, 1, 1))),
    "mean": ("mean of all private labels", "#1b7a3d", "-."),
    "curator_mean": ("only the mean leaves", "#7a3d9a", ":"),
}
_GREY = "#777777"


def draw_preview(preview: Preview) -> Any:
    """Return a figure of two panels side by side."""
    try:
        from matplotlib.figure import Figure  # noqa: PLC0415 (an extra)
    except ImportError:
        raise MissingExtraError('a plot needs Matplotlib: pip install "labeldp[plots]"') from None
    figure = Figure(figsize=(11, 4.4), layout="constrained")
    left, right = figure.subplots(1, 2)
    epsilons = [outlook.epsilon for outlook in preview.curve]
    for name in preview.names:
        what, colour, dash = _LINES[name]
        values = [getattr(outlook, name) for outlook in preview.curve]
        left.plot(epsilons, values, color=colour, linestyle=dash, linewidth=2, label=what)
    if preview.wanted is not None:
        left.axhline(preview.wanted, color=_GREY, linewidth=1, label="wanted")
    left.set_yscale("log")
    left.yaxis.set_major_formatter(lambda value, _: tick(value))
    left.set_title(f"Typical error, {preview.rows:,} rows", loc="left")
    left.set_ylabel("±, in the label's unit")
    known = [outlook for outlook in preview.curve if outlook.kept is not None]
    places, kept = [outlook.epsilon for outlook in known], [outlook.kept for outlook in known]
    if known:
        right.plot(places, [100 * k.middle for k in kept if k], color="#0057a3", linewidth=2, label="median")
        low, high = [100 * k.low for k in kept if k], [100 * k.high for k in kept if k]
        right.fill_between(places, low, high, color="#0057a3", alpha=0.15, linewidth=0, label="half of the tables")
    right.set_ylim(0, 100)
    right.yaxis.set_major_formatter(lambda value, _: f"{value:.0f} %")
    right.set_title("Kept of what features explain, tables of the accuracy suite", loc="left", fontsize=11)
    for axes in (left, right):
        _set_epsilons(axes, [outlook.epsilon for outlook in preview.outlooks], epsilons)
    left.legend(frameon=False, fontsize=9, loc="lower left", bbox_to_anchor=(0.0, 0.0))
    if known:
        right.legend(frameon=False, fontsize=9, loc="lower right")
    return figure


def _set_epsilons(axes: Any, budgets: list[float], epsilons: list[float]) -> None:
    axes.set_xscale("log")
    axes.set_xlim(epsilons[0], epsilons[-1])
    axes.set_xticks([0.02, 0.05, 0.1, 0.2, 0.5, 1, 2, 5, 10, 20], minor=False)
    axes.xaxis.set_major_formatter(lambda value, _: f"{value:g}")
    axes.minorticks_off()
    for budget in budgets:
        axes.axvline(budget, color=_GREY, linewidth=0.6, alpha=0.5)
    axes.set_xlabel("ε: less is more private")
    axes.grid(axis="y", linewidth=0.4, alpha=0.5)
    axes.spines[["top", "right"]].set_visible(False)
