"""A comparison as curves: the error of one label and of a model, against ε."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from labeldp.accounts.numbers import tick
from labeldp.errors import MissingExtraError

if TYPE_CHECKING:
    from labeldp.evidence.comparison import Comparison

_MARKERS = "osD^vPX*"


def draw_comparison(comparison: Comparison, label: str) -> Any:
    """Return a figure with the errors of labels and of models side by side."""
    try:
        from matplotlib.figure import Figure  # noqa: PLC0415 (an extra)
    except ImportError:
        raise MissingExtraError('a plot needs Matplotlib: pip install "labeldp[plots]"') from None
    figure = Figure(figsize=(13, 4.4), layout="constrained")
    left, right = figure.subplots(1, 2)
    budgets = comparison.budgets
    for k, name in enumerate(comparison.mechanisms):
        errors = [comparison.noise[name, epsilon].one for epsilon in budgets]
        left.plot(budgets, errors, marker=_MARKERS[k % len(_MARKERS)], linewidth=2, label=name)
    left.set_yscale("log")
    for k, name in enumerate(dict.fromkeys(name for name, _ in comparison.models)):
        errors = [comparison.models[name, epsilon] for epsilon in budgets]
        spreads = [error.spread for error in errors]
        right.errorbar(
            budgets, errors, spreads, marker=_MARKERS[k % len(_MARKERS)], linewidth=2, capsize=3, label=name
        )
    titles = {left: f"One private {label}", right: f"Predicting {label}, held-out rows"}
    for axes, title in titles.items():
        axes.set_title(title, loc="left")
        axes.set_xscale("log")
        axes.set_xticks(budgets, [f"{epsilon:g}" for epsilon in budgets])
        axes.xaxis.minorticks_off()
        axes.yaxis.set_major_formatter(lambda value, _: tick(value))
        axes.set(xlabel="ε: less is more private", ylabel="typical error")
        axes.spines[["top", "right"]].set_visible(False)
        axes.legend(frameon=False, fontsize=9, loc="center left", bbox_to_anchor=(1.01, 0.5))
    return figure
