"""Previews and comparisons as curves: how errors fall as ε grows."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from labeldp.accounts.numbers import tick
from labeldp.mechanisms.density_figure import new_axes

if TYPE_CHECKING:
    from labeldp.evidence.comparison import Comparison
    from labeldp.evidence.previews import Preview

_GREY = "#777777"


def _two_panels(width: float, *titles: str) -> list[Any]:
    """Return two axes side by side, both against ε."""
    panels = new_axes(width, 4.4, columns=2)
    for axes, title in zip(panels, titles, strict=True):
        axes.set_title(title, loc="left")
        axes.set(xscale="log", xlabel="ε: less is more private")
        axes.xaxis.set_major_formatter(lambda value, _: f"{value:g}")
        axes.yaxis.set_major_formatter(lambda value, _: tick(value))
    return panels


def draw_preview(preview: Preview) -> Any:
    """Return a figure of the errors, and of what models keep."""
    kept = "Kept of what features explain: median and quartiles of tables"
    left, right = _two_panels(11, f"Typical error, {preview.rows:,} rows", kept)
    curve, known = preview.curve, [point for point in preview.curve if point.kept is not None]
    for name, what in preview.names.items():
        left.plot([one.epsilon for one in curve], [getattr(one, name) for one in curve], linewidth=2, label=what)
    if preview.wanted is not None:
        left.axhline(preview.wanted, color=_GREY, linewidth=1, label="wanted")
    left.set(yscale="log", ylabel="±, in the label's unit")
    left.legend(frameon=False, fontsize=9)
    for name, width in {"low": 0.8, "middle": 2, "high": 0.8}.items():
        shares = [100 * getattr(point.kept, name) for point in known]
        right.plot([point.epsilon for point in known], shares, color="C0", linewidth=width)
    right.set(ylim=(0, 100), ylabel="%")
    for axes in (left, right):
        for point in preview.budgets:
            axes.axvline(point.epsilon, color=_GREY, linewidth=0.6, alpha=0.5)
    return left.figure


def draw_comparison(comparison: Comparison, label: str) -> Any:
    """Return a figure of the errors of labels and of models."""
    left, right = _two_panels(13, f"One private {label}", f"Predicting {label}, held-out rows")
    budgets = comparison.budgets
    for name in comparison.mechanisms:
        errors = [comparison.noise[name, epsilon].one for epsilon in budgets]
        left.plot(budgets, errors, marker="o", linewidth=2, label=name)
    left.set_yscale("log")
    for name in dict.fromkeys(name for name, _ in comparison.models):
        estimates = [comparison.models[name, epsilon] for epsilon in budgets]
        spreads = [estimate.spread for estimate in estimates]
        right.errorbar(budgets, estimates, spreads, marker="o", linewidth=2, capsize=3, label=name)
    for axes in (left, right):
        axes.set_xticks(budgets, [f"{epsilon:g}" for epsilon in budgets])
        axes.xaxis.minorticks_off()
        axes.set_ylabel("typical error")
        axes.legend(frameon=False, fontsize=9, loc="center left", bbox_to_anchor=(1.01, 0.5))
    return left.figure
