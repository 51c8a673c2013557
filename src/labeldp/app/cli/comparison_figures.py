"""The curves of ``labeldp compare``: the error of one label and of a model, against ε."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from labeldp._atomic import atomic_file
from labeldp.accounts.numbers import tick
from labeldp.evidence.comparison import CONSTANT, REGRESSORS, TREES, Comparison

_GREY = "#777777"
_MARKERS = "osD^vPX*"


def draw_comparison(comparison: Comparison, label: str, path: Path) -> None:
    """Save the curves of labels and of models side by side, whole or not at all."""
    from matplotlib.figure import Figure  # noqa: PLC0415 (an extra)

    figure = Figure(figsize=(13, 4.4), layout="constrained")
    left, right = figure.subplots(1, 2)
    budgets, models = comparison.budgets, comparison.models
    noise = {name: [comparison.noise[name, epsilon].one for epsilon in budgets] for name in comparison.mechanisms}
    for k, (name, errors) in enumerate(noise.items()):
        width = 3.0 if name == "auto" else 1.5
        left.plot(budgets, errors, marker=_MARKERS[k % len(_MARKERS)], linewidth=width, markersize=5, label=name)
    left.axhline(models[CONSTANT, max(budgets)], color=_GREY, linestyle=":", label="guess the mean")
    left.set_yscale("log")
    for name, marker in zip(REGRESSORS, _MARKERS, strict=False):
        pairs = [(models[name, epsilon], models[name, epsilon].spread) for epsilon in budgets]
        right.errorbar(budgets, *zip(*pairs, strict=True), marker=marker, linewidth=2, capsize=3, label=name)
    for name, dash in {CONSTANT: "--", TREES: ":"}.items():
        right.plot(budgets, [models[name, epsilon] for epsilon in budgets], dash, color=_GREY, label=name)
    _finish(left, f"One private {label}", budgets)
    _finish(right, f"Predicting {label}, held-out rows", budgets)
    with atomic_file(path, public=True) as unfinished:
        figure.savefig(unfinished, dpi=150, format=path.suffix[1:])


def _finish(axes: Any, title: str, budgets: tuple[float, ...]) -> None:
    axes.set_title(title, loc="left")
    axes.set_xscale("log")
    axes.set_xticks(budgets, [f"{epsilon:g}" for epsilon in budgets])
    axes.xaxis.minorticks_off()
    axes.yaxis.set_major_formatter(lambda value, _: tick(value))
    axes.set(xlabel="ε: less is more private", ylabel="typical error")
    axes.spines[["top", "right"]].set_visible(False)
    axes.legend(frameon=False, fontsize=9, loc="center left", bbox_to_anchor=(1.01, 0.5))
