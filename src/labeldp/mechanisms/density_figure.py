"""`plot` of histograms and mechanisms: densities as stairs."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from labeldp._values import Array
from labeldp.errors import MissingExtraError

if TYPE_CHECKING:
    from labeldp.mechanisms.base import Mechanism
    from labeldp.mechanisms.histogram import Histogram

_BINS = 200


def new_axes(width: float = 6.4, height: float = 3.6, columns: int = 1) -> list[Any]:
    """Return the axes of a new figure, side by side."""
    try:
        from matplotlib.figure import Figure  # noqa: PLC0415 (an extra)
    except ImportError:
        raise MissingExtraError('a plot needs Matplotlib: pip install "labeldp[plots]"') from None
    figure = Figure(figsize=(width, height), layout="constrained")
    figure.subplots(1, columns)
    for axes in figure.axes:
        axes.spines[["top", "right"]].set_visible(False)
    return figure.axes


def draw_histogram(prior: Histogram) -> Any:
    """Return a figure of a histogram's density."""
    (axes,) = new_axes()
    axes.set(xlabel="label", ylabel="density")
    axes.stairs(prior.density, prior.nodes, fill=True, alpha=0.6)
    return axes.figure


def draw_mechanism(mechanism: Mechanism, labels: Array) -> Any:
    """Return a figure of the density of released values, for each of some labels."""
    (axes,) = new_axes()
    axes.set(xlabel="released value", ylabel="density")
    mean, reach = mechanism.mean(labels), 4 * np.sqrt(mechanism.variance(labels))
    ends = np.array([(mean - reach).min(), (mean + reach).max()])
    low, high = mechanism.channel.nearest_output(ends)
    margin = 0.02 * (high - low) or 1.0
    edges = np.linspace(low - margin, high + margin, _BINS + 1)
    for label in labels.tolist():
        axes.stairs(mechanism.density(label, edges), edges, linewidth=2, label=f"label {label:g}")
    axes.set_title(f"{type(mechanism).__name__}, ε = {mechanism.epsilon:g}", loc="left")
    axes.legend(frameon=False)
    return axes.figure
