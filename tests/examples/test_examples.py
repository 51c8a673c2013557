"""The gallery: every example runs as it is, and ends in a picture with a label below it."""

import runpy
from pathlib import Path

import matplotlib
import matplotlib.pyplot as plt
import pytest

GALLERY = sorted(Path(__file__).parents[2].glob("examples/plot_*.py"))

pytestmark = pytest.mark.slow


@pytest.fixture
def shown(monkeypatch):
    """The figures that were there when an example wanted to show them."""
    figures = []
    monkeypatch.setattr(plt, "show", lambda: figures.extend(map(plt.figure, plt.get_fignums())))
    with matplotlib.rc_context({"backend": "Agg"}):
        yield figures
        plt.close("all")


def examples():
    marks = {path: pytest.mark.spark if "cluster" in path.stem else () for path in GALLERY}
    return [pytest.param(path, id=path.stem, marks=marks[path]) for path in GALLERY]


def test_the_gallery_has_at_least_twelve_examples():
    assert len(GALLERY) >= 12


@pytest.mark.parametrize("path", examples())
def test_an_example_runs_without_a_warning_and_ends_in_one_labelled_picture(path, shown, request):
    if "cluster" in path.stem:
        request.getfixturevalue("spark")
    runpy.run_path(str(path))
    (figure,) = shown
    figure.canvas.draw()
    assert any(axes.get_xlabel() for axes in figure.axes)
