"""Axes of drawings can be read: no text of a tick touches the next, and figures are written as in the text."""

from itertools import pairwise
from operator import itemgetter

import numpy as np
import pytest

import labeldp as ldp
from labeldp.app.report.drawing import draw
from labeldp.inference.coefficient_plot import draw_effects

pytest.importorskip("matplotlib", reason="no Matplotlib: pip install labeldp[plots]")


def ticks(plot, height=3.4):
    """Draw, and return the texts below the axes that are inside, after a check of their distances."""
    kept = []
    draw(lambda axes: kept.append(axes) or plot(axes), height)
    axis = kept[0].xaxis
    low, high = kept[0].get_xlim()
    texts = list(zip(axis.get_ticklocs(), axis.get_ticklabels(), strict=True))
    texts += zip(axis.get_ticklocs(minor=True), axis.get_ticklabels(minor=True), strict=True)
    labels = [label for x, label in sorted(texts, key=itemgetter(0)) if low <= x <= high and label.get_text()]
    boxes = [label.get_window_extent() for label in labels]
    assert len(boxes) > 1
    assert all(right.x0 - left.x1 > 4 for left, right in pairwise(boxes))
    assert not axis.get_offset_text().get_text()
    return [label.get_text() for label in labels]


@pytest.mark.parametrize("ends", [(0, 200_000), (-120_000, 200_000), (0, 2_000_000), (0, 1), (0, 3e9)])
def test_figures_below_a_histogram_are_apart(ends):
    texts = ticks(lambda axes: axes.hist(np.linspace(*ends, 99), bins=50))
    assert not any("e" in text for text in texts)
    assert ("," in texts[-1]) == (ends[1] > 1000)


@pytest.mark.parametrize("scale", [0.05, 0.3, 2.0])
def test_ratios_below_a_regression_are_apart(scale):
    x = np.random.default_rng(1).normal(size=(20_000, 2))
    y = np.random.default_rng(2).random(20_000) < 1 / (1 + np.exp(-scale * x[:, 0]))
    table = ldp.private_logit(x, y, epsilon=4.0)
    assert ticks(lambda axes: draw_effects(table, axes, 0.05), 2)
