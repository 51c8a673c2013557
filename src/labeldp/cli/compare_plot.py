"""The pictures of ``labeldp compare``: error against ε, of labels and of models; as a file and on a page."""

from __future__ import annotations

from collections.abc import Sequence
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from labeldp._atomic import atomic_file
from labeldp._validation import rounded_up
from labeldp.comparison import REGRESSORS, Comparison
from labeldp.errors import MissingExtraError

__all__ = ["draw", "need_matplotlib", "page"]

_COLOURS = ("#0057a3", "#b04a00", "#1b7a3d", "#7a3d9a", "#a3172f", "#00798c", "#6b6b00", "#444444")
_GREY = "#777777"
_MARKERS = "osD^vPX*"


def need_matplotlib() -> None:
    """Say which extra to install where Matplotlib is missing."""
    try:
        there = find_spec("matplotlib") is not None
    except ValueError:
        there = False
    if not there:
        raise MissingExtraError("a plot needs Matplotlib, which is not installed: pip install 'labeldp[plots]'")


def _label_curves(axes: Any, found: Comparison, colours: Sequence[str], grey: str) -> None:
    for k, name in enumerate(found.mechanisms):
        errors = [found.noise[name, e].one for e in found.budgets]
        axes.plot(
            found.budgets,
            errors,
            color=colours[k % len(colours)],
            marker=_MARKERS[k % len(_MARKERS)],
            linestyle=("-", "--")[k // len(colours) % 2],
            linewidth=3.0 if name == "auto" else 1.5,
            markersize=5,
            label=name,
        )
    spread = found.constant[max(found.budgets)]
    axes.axhline(spread, color=grey, linestyle=":", linewidth=1.2, label="guess the mean")
    axes.set_yscale("log")
    _scale(axes, found)


def _model_curves(axes: Any, found: Comparison, colours: Sequence[str], grey: str) -> None:
    for name, colour, marker in zip(REGRESSORS, colours[1::-1], _MARKERS, strict=False):
        errors = [found.models[name, e] for e in found.budgets]
        axes.plot(found.budgets, errors, color=colour, marker=marker, linewidth=2, label=name)
        if found.spread:
            wide = [found.spread[name, e] for e in found.budgets]
            low, high = ([x + side * w for x, w in zip(errors, wide, strict=True)] for side in (-1, 1))
            axes.fill_between(found.budgets, low, high, color=colour, alpha=0.2, linewidth=0)
    constant = [found.constant[e] for e in found.budgets]
    axes.plot(found.budgets, constant, color=grey, linestyle="--", linewidth=1.2, label="private constant")
    axes.axhline(found.not_private, color=grey, linestyle=":", linewidth=1.2, label="not private")
    axes.set_ylim(bottom=0)
    _scale(axes, found)


def _scale(axes: Any, found: Comparison) -> None:
    axes.set_xscale("log")
    axes.set_xticks(found.budgets, [f"{e:g}" for e in found.budgets])
    axes.minorticks_off()


def draw(found: Comparison, label: str, path: Path) -> None:
    """Save both pictures side by side, whole or not at all."""
    from matplotlib.figure import Figure  # noqa: PLC0415 (an extra)

    figure = Figure(figsize=(10, 4.2), layout="constrained")
    left, right = figure.subplots(1, 2)
    _label_curves(left, found, _COLOURS, _GREY)
    _model_curves(right, found, _COLOURS, _GREY)
    left.set_title(f"One private {label}", loc="left")
    right.set_title(f"Predicting {label}, held-out rows", loc="left")
    for axes in (left, right):
        axes.set_xlabel("ε: less is more private")
        axes.set_ylabel("typical error")
        axes.spines[["top", "right"]].set_visible(False)
        axes.legend(frameon=False, fontsize=8)
    with atomic_file(path, public=True) as draft:
        figure.savefig(draft, dpi=150, format=path.suffix[1:])


def page(found: Comparison, label: str) -> str:
    """Return the comparison as a page that explains itself."""
    from labeldp.report import COLOURS, SOFT, Section, blank, legend, render_page  # noqa: PLC0415

    figures = []
    for curves in (_label_curves, _model_curves):
        figure, axes = blank("ε: less is more private", "typical error", size=(5.2, 3.6))
        curves(axes, found, COLOURS, SOFT)
        legend(axes, columns=3)
        figures.append(figure)
    header = ["", *(f"ε = {rounded_up(e)}" for e in found.budgets)]
    labels = [[name, *(f"{found.noise[name, e].one:.3g}" for e in found.budgets)] for name in found.mechanisms]
    models = [[name, *(found.error(name, e) for e in found.budgets)] for name in REGRESSORS]
    models.append(["private constant", *(f"{found.constant[e]:.3g}" for e in found.budgets)])
    models.append(["not private", *(f"{found.not_private:.3g}" for _ in found.budgets)])
    times = "once"
    if found.repeats > 1:
        times = (
            f"{found.repeats} times with fresh noise: mean ± standard deviation, which is the band in the figure"
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
            Section("What to do", found.advice()),
            Section(
                "Predicting the label",
                [
                    f"Typical error on {found.judged:,} rows that no model saw; each learnt from "
                    f"{found.trained:,} others, {times}."
                ],
                header=header,
                rows=models,
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
                header=header,
                rows=labels,
                figure=figures[0],
                alternative="The error of one private label against ε, a curve for each mechanism. The table has "
                "the numbers.",
            ),
        ],
        lead=[found.advice()[0]],
    )
