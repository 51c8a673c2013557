"""The curves of ``labeldp compare``: what one label and a model would have, against ε."""

from __future__ import annotations

import math
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from labeldp._atomic import atomic_file
from labeldp.comparison import Comparison
from labeldp.release.numbers import number, tick
from labeldp.report.figures import COLOURS, SOFT, blank, legend

_COLOURS = ("#0057a3", "#b04a00", "#1b7a3d", "#7a3d9a", "#a3172f", "#00798c", "#6b6b00", "#444444")
_GREY = "#777777"
_MARKERS = "osD^vPX*"
_EPSILON, _ERROR = "ε: less is more private", "typical error"

_FAR = 3.0
"""A constant that would make the scale so many times longer is named in the legend, and not drawn."""


def draw_comparison(comparison: Comparison, label: str, path: Path) -> None:
    """Save the curves of labels and of models side by side, whole or not at all."""
    from matplotlib.figure import Figure  # noqa: PLC0415 (an extra)

    figure = Figure(figsize=(13, 4.4), layout="constrained")
    left, right = figure.subplots(1, 2)
    label_curves(left, comparison, _COLOURS, _GREY)
    model_curves(right, comparison, _COLOURS, _GREY)
    left.set_title(f"One private {label}", loc="left")
    right.set_title(f"Predicting {label}, held-out rows", loc="left")
    for axes in (left, right):
        axes.set_xlabel(_EPSILON)
        axes.set_ylabel(_ERROR)
        axes.spines[["top", "right"]].set_visible(False)
        axes.legend(frameon=False, fontsize=9, loc="center left", bbox_to_anchor=(1.01, 0.5))
    with atomic_file(path, public=True) as draft:
        figure.savefig(draft, dpi=150, format=path.suffix[1:])


def page_figures(comparison: Comparison) -> tuple[Any, Any]:
    """Return the same curves as two figures in the colours of a page."""
    figures = []
    for curves in (label_curves, model_curves):
        figure, axes = blank(_EPSILON, _ERROR, size=(5.2, 3.6))
        curves(axes, comparison, COLOURS, SOFT)
        legend(axes, columns=3)
        figures.append(figure)
    return figures[0], figures[1]


def label_curves(axes: Any, comparison: Comparison, colours: Sequence[str], grey: str) -> None:
    """Draw the error of one private label, a curve for each mechanism."""
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
    guess = comparison.constant[max(comparison.budgets)]
    axes.axhline(guess, color=grey, linestyle=":", linewidth=1.2, label="guess the mean")
    errors = [guess, *(noise.one for noise in comparison.noise.values())]
    axes.set_yscale("log")
    _set_budgets(axes, comparison)
    axes.set_yticks(_round_numbers(min(errors), max(errors)))
    axes.set_ylim(0.85 * min(errors), 1.15 * max(errors))


def model_curves(axes: Any, comparison: Comparison, colours: Sequence[str], grey: str) -> None:
    """Draw the held-out error of regressors, with a band for its ±, beside a constant and what is not private."""
    budgets = comparison.budgets
    lows, highs = [comparison.not_private], [comparison.not_private]
    for name, colour, marker in zip(comparison.regressors, colours[1::-1], _MARKERS, strict=False):
        errors = np.array([comparison.models[name, epsilon] for epsilon in budgets])
        spread = np.array([comparison.spread[name, epsilon] for epsilon in budgets])
        axes.plot(budgets, errors, color=colour, marker=marker, linewidth=2, label=name)
        axes.fill_between(budgets, errors - spread, errors + spread, color=colour, alpha=0.2, linewidth=0)
        lows.append(float((errors - spread).min()))
        highs.append(float((errors + spread).max()))
    constant = [comparison.constant[epsilon] for epsilon in budgets]
    low, high = min(lows), max(highs)
    if max(constant) - low <= _FAR * (high - low):
        axes.plot(budgets, constant, color=grey, linestyle="--", linewidth=1.2, label="private constant")
        low, high = min(low, *constant), max(high, *constant)
    else:
        name = f"private constant:\n{number(min(constant), 3)}, above"
        axes.plot([], [], color=grey, linestyle="--", linewidth=1.2, label=name)
    axes.axhline(comparison.not_private, color=grey, linestyle=":", linewidth=1.2, label="not private")
    room = 0.08 * (high - low) or 0.05 * abs(high) or 1.0
    axes.set_ylim(low - room, high + room)
    _set_budgets(axes, comparison)


def _set_budgets(axes: Any, comparison: Comparison) -> None:
    axes.set_xscale("log")
    axes.set_xticks(comparison.budgets, [f"{epsilon:g}" for epsilon in comparison.budgets])
    axes.minorticks_off()
    axes.yaxis.set_major_formatter(lambda value, _: tick(value))


def _round_numbers(low: float, high: float) -> list[float]:
    """Return 1, 2 and 5 times powers of ten between two numbers, or powers of ten where these are many.

    Examples
    --------
    >>> _round_numbers(15.0, 320.0)
    [20.0, 50.0, 100.0, 200.0]
    """
    powers = range(math.floor(math.log10(low)), math.ceil(math.log10(high)) + 1)
    steps = (1.0, 2.0, 5.0) if len(powers) <= 5 else (1.0,)
    return [step * 10.0**power for power in powers for step in steps if low <= step * 10.0**power <= high]
