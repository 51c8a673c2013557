"""Drawings inside pages."""

from __future__ import annotations

import io
from base64 import b64encode
from collections.abc import Callable
from typing import Any


def draw(plot: Callable[[Any], object], height: float) -> str:
    """Return a drawing as an address that holds it.

    Parameters
    ----------
    plot : callable
        Draws on the axes of Matplotlib that it is given.
    height : float
        In inches.
    """
    from matplotlib.figure import Figure  # noqa: PLC0415 (an extra)

    figure, file = Figure(figsize=(5.2, height), layout="constrained"), io.BytesIO()
    axes = figure.subplots()
    plot(axes)
    figure.savefig(file, format="png", dpi=140, transparent=True)
    return f"data:image/png;base64,{b64encode(file.getvalue()).decode()}"
