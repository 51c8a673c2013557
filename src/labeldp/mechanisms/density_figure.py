"""`plot` of histograms and mechanisms: densities as stairs."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from labeldp._values import Array
from labeldp.errors import MissingExtraError

_BINS = 200


def draw_densities(densities: Mapping[str, tuple[Array, Array]], title: str, xlabel: str) -> Any:
    """Return a Matplotlib figure of densities and the edges of their bins, by name."""
    try:
        from matplotlib.figure import Figure  # noqa: PLC0415 (an extra)
    except ImportError:
        raise MissingExtraError('a plot needs Matplotlib: pip install "labeldp[plots]"') from None
    axes = Figure(figsize=(6.4, 3.6), layout="constrained").subplots()
    axes.spines[["top", "right"]].set_visible(False)
    axes.set(xlabel=xlabel, ylabel="density")
    axes.set_title(title, loc="left")
    for name, (heights, edges) in densities.items():
        axes.stairs(heights, edges, linewidth=2, label=name)
    axes.legend(frameon=False)
    return axes.figure


def released_densities(mechanism: Any, labels: Array) -> dict[str, tuple[Array, Array]]:
    """Return the density of released values for each of some labels, within four deviations of their means."""
    mean, reach = mechanism.mean(labels), 4 * np.sqrt(mechanism.variance(labels))
    ends = np.array([(mean - reach).min(), (mean + reach).max()])
    low, high = mechanism.channel.nearest_output(ends)
    margin = 0.02 * (high - low) or 1.0
    edges = np.linspace(low - margin, high + margin, _BINS + 1)
    chances = {f"label {label:g}": mechanism.channel.cumulative(label, edges) for label in labels.tolist()}
    return {name: (np.diff(chance) / np.diff(edges), edges) for name, chance in chances.items()}
