"""Plot of a comparison: errors against ε."""

from __future__ import annotations

from dataclasses import astuple
from typing import TYPE_CHECKING, Any

from labeldp.accounts.numbers import tick
from labeldp.mechanisms.histogram import new_figure

if TYPE_CHECKING:
    from labeldp.evidence.comparison import Comparison


def draw_comparison(comparison: Comparison, label: str) -> Any:
    """Return a figure of the errors of labels and of models."""
    titles = {"label": f"One private {label}", "model": f"Predicting {label}, held-out rows"}
    budgets, figure = comparison.budgets, new_figure(figsize=(13, 4.4))
    figure.subplots(1, 2)
    figure.axes[0].set_yscale("log")
    for axes, (of, figures) in zip(figure.axes, comparison.figures.items(), strict=True):
        for name in dict.fromkeys(name for name, _ in figures):
            errors = [figures[name, epsilon] for epsilon in budgets]
            values, standard_errors = zip(*map(astuple, errors), strict=True)
            axes.errorbar(budgets, values, standard_errors, marker="o", linewidth=2, capsize=3, label=name)
        axes.spines[["top", "right"]].set_visible(False)
        axes.set_title(titles[of], loc="left")
        axes.set(xscale="log", xlabel="ε: less is more private", ylabel="typical error")
        axes.yaxis.set_major_formatter(lambda value, _: tick(value))
        axes.set_xticks(budgets, [f"{epsilon:g}" for epsilon in budgets])
        axes.xaxis.minorticks_off()
        axes.legend(frameon=False, fontsize=9, loc="center left", bbox_to_anchor=(1.01, 0.5))
    return figure
