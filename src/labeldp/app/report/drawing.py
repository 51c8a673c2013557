"""Drawings inside pages."""

from __future__ import annotations

import io
from base64 import b64encode
from collections.abc import Callable
from typing import Any

from labeldp.mechanisms.histogram import new_figure

LONG_FIGURE = 1e6
"""Figures from this one on leave room for few ticks."""


def draw(plot: Callable[[Any], object], height: float) -> str:
    """Return a drawing as an address that holds it.

    Parameters
    ----------
    plot : callable
        Draws on the axes of Matplotlib that it is given.
    height : float
        In inches.
    """
    figure, file = new_figure(figsize=(5.2, height)), io.BytesIO()
    from matplotlib.ticker import MaxNLocator, ScalarFormatter  # noqa: PLC0415 (an extra)

    axes = figure.subplots()
    plot(axes)
    for axis in (axes.xaxis, axes.yaxis):
        if type(axis.get_major_formatter()) is ScalarFormatter:  # figures, as in text: no power of ten beside them
            axis.set_major_formatter("{x:,.10g}")
            is_long = max(map(abs, axis.get_view_interval())) >= LONG_FIGURE
            axis.set_major_locator(MaxNLocator(3 if is_long else 5, steps=[1, 2, 2.5, 5, 10]))
    figure.savefig(file, format="png", dpi=140, transparent=True)
    return f"data:image/png;base64,{b64encode(file.getvalue()).decode()}"
