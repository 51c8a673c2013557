"""The picture of ``labeldp compare``: error against ε, of labels and of models."""

from __future__ import annotations

from importlib.util import find_spec
from pathlib import Path
from typing import Any

from labeldp._files import written_whole
from labeldp.comparison import Comparison
from labeldp.errors import MissingExtraError

__all__ = ["curves", "draw", "need_matplotlib"]

_COLOURS = ("#0057a3", "#b04a00", "#1b7a3d", "#7a3d9a", "#a3172f", "#00798c", "#6b6b00", "#444444")


def need_matplotlib() -> None:
    """Say which extra to install where Matplotlib is missing."""
    if find_spec("matplotlib") is None:
        raise MissingExtraError("a plot needs Matplotlib, which is not installed: pip install 'labeldp[plots]'")


def curves(found: Comparison, label: str) -> Any:
    """Return the figure: on the left one private label, on the right models."""
    from matplotlib.figure import Figure  # noqa: PLC0415 (an extra)

    figure = Figure(figsize=(10, 4.2), layout="constrained")
    left, right = figure.subplots(1, 2)
    for k, name in enumerate(found.mechanisms):
        errors = [found.noise[name, e].one for e in found.budgets]
        wide = 3.0 if name == "auto" else 1.5
        colour, marker = _COLOURS[k % len(_COLOURS)], "osD^vPX*"[k % 8]
        left.plot(found.budgets, errors, color=colour, marker=marker, markersize=5, linewidth=wide, label=name)
    spread = found.constant[max(found.budgets)]
    left.axhline(spread, color="#777777", linestyle="--", linewidth=1.2, label="guess the mean")
    left.set_yscale("log")
    left.set_title(f"One private {label}", loc="left")
    for (name, colour), marker in zip(
        {"labels released": "#b04a00", "model released": "#0057a3"}.items(), "os", strict=True
    ):
        errors = [found.models[name, e] for e in found.budgets]
        right.plot(found.budgets, errors, color=colour, marker=marker, linewidth=2, label=name)
    constant = [found.constant[e] for e in found.budgets]
    right.plot(found.budgets, constant, color="#777777", linestyle="--", linewidth=1.2, label="private constant")
    right.axhline(found.not_private, color="#777777", linestyle=":", linewidth=1.2, label="not private")
    right.set_ylim(bottom=0)
    right.set_title(f"Predicting {label}, held-out rows", loc="left")
    for axes in (left, right):
        axes.set_xscale("log")
        axes.set_xticks(found.budgets, [f"{e:g}" for e in found.budgets])
        axes.minorticks_off()
        axes.set_xlabel("ε: less is more private")
        axes.set_ylabel("typical error")
        axes.spines[["top", "right"]].set_visible(False)
        axes.legend(frameon=False, fontsize=8)
    return figure


def draw(found: Comparison, label: str, path: Path) -> None:
    """Save the figure, whole or not at all."""
    figure = curves(found, label)
    with written_whole(path, public=True) as draft:
        figure.savefig(draft, dpi=150, format=path.suffix[1:])
