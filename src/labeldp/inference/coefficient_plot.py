"""The picture of a regression table: effects with their intervals."""

from __future__ import annotations

from typing import Any

import numpy as np

from labeldp._values import Array
from labeldp.errors import MissingExtraError


def draw_effects(
    ax: Any, names: list[str], effects: Array, half_widths: dict[str, Array], xlabel: str, *, ratios: bool
) -> Any:
    """Draw an effect in each line, with its intervals below each other; ratios on a logarithmic axis.

    Parameters
    ----------
    ax : matplotlib axes, optional
        By default those of a new figure of pyplot.
    half_widths : dict
        Half the widths of intervals, by the names of the intervals.
    """
    ax = ax or _new_axes(len(names) + 1)
    heights = np.arange(1, len(names) + 1)
    scaled = np.exp if ratios else np.asarray
    for k, (text, reach) in enumerate(half_widths.items()):
        ax.hlines(heights + k / 5, scaled(effects - reach), scaled(effects + reach), f"C{k}", label=text)
    ax.plot(scaled(effects), heights, "oC0")
    ax.axvline(scaled(0.0), color="#777777", linewidth=0.8)
    if ratios:
        ax.set_xscale("log")
        for set_format in (ax.xaxis.set_major_formatter, ax.xaxis.set_minor_formatter):
            set_format("{x:g}")
    ax.set_yticks(heights, names)
    ax.set_ylim(heights.size + 0.5, 0.5)
    ax.set_xlabel(xlabel)
    ax.legend(loc="lower right", bbox_to_anchor=(1, 1), ncols=2, frameon=False, fontsize=9)
    return ax


def _new_axes(rows: int) -> Any:
    """Return the axes of a new figure."""
    try:
        from matplotlib import pyplot  # noqa: PLC0415 (an extra)
    except ImportError:
        raise MissingExtraError('a plot needs Matplotlib: pip install "labeldp[plots]"') from None
    return pyplot.subplots(figsize=(7, 1.2 + 0.4 * rows), layout="constrained")[1]
