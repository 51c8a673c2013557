"""Matplotlib figures as inline SVG that takes its colours and fonts from the page."""

from __future__ import annotations

import io
import re
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any
from xml.etree import ElementTree as ET

from labeldp.accounts.numbers import tick
from labeldp.errors import MissingExtraError

INK, SOFT = "#010203", "#040506"
COLOURS = ("#0a0b01", "#0a0b02", "#0a0b03", "#0a0b04")
"""Stand-ins: on the page these become CSS variables, which differ between light and dark."""
DASHES = ("-", (0, (4, 1.5)), (0, (1, 1)))
"""Lines differ by their dashes too: not everyone can distinguish colours, and not every printer has them."""

_VARIABLES = {INK: "var(--ink)", SOFT: "var(--soft)", "#000000": "var(--ink)", "#ffffff": "var(--card)"} | {
    colour: f"var(--c{k + 1})" for k, colour in enumerate(COLOURS)
}
_SETTINGS = {
    "svg.fonttype": "none",  # text stays text: it can be read aloud, searched and copied
    "svg.hashsalt": "labeldp",  # ids follow from the drawing: the same card gives the same page
    "font.size": 10.5,
    "axes.edgecolor": SOFT,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "xtick.color": SOFT,
    "ytick.color": SOFT,
    "xtick.labelcolor": INK,
    "ytick.labelcolor": INK,
}
_DRAWING = threading.RLock()
_SVG = "http://www.w3.org/2000/svg"
_LINK = "{http://www.w3.org/1999/xlink}href"


def blank(xlabel: str, ylabel: str, *, size: tuple[float, float] = (4.7, 3.0)) -> tuple[Any, Any]:
    """Return a figure and its axes, of a size that is readable on a phone and in the page's colours.

    Raises
    ------
    MissingExtraError
        If Matplotlib is not installed.

    Examples
    --------
    >>> figure, axes = blank("label", "error")
    >>> axes.plot([0, 1], [2, 1], color=COLOURS[0])
    [<matplotlib.lines.Line2D object at ...>]
    """
    figure, (axes,) = stacked(1, xlabel, size=size)
    axes.set(ylabel=ylabel)
    return figure, axes


def stacked(count: int, xlabel: str, *, size: tuple[float, float] = (4.7, 3.6)) -> tuple[Any, list[Any]]:
    """Return a figure and its axes, one below the other over one scale."""
    require_matplotlib()
    from matplotlib.figure import Figure  # noqa: PLC0415 (an extra)

    with _settings():
        figure = Figure(figsize=size, layout="constrained")
        rows = list(figure.subplots(count, sharex=True, squeeze=False)[:, 0])
        rows[-1].set(xlabel=xlabel)
        for axes in rows:
            axes.locator_params(axis="x", nbins=6)
            for axis in (axes.xaxis, axes.yaxis):
                axis.set_major_formatter(lambda value, _: tick(value))
    return figure, rows


def legend(axes: Any, *, columns: int) -> None:
    """Put a legend above the drawing, where it hides nothing."""
    axes.legend(
        loc="lower left",
        bbox_to_anchor=(-0.02, 1.0),
        ncols=columns,
        frameon=False,
        fontsize=9.5,
        handlelength=1.4,
        handletextpad=0.5,
        columnspacing=1.2,
        borderaxespad=0.1,
        borderpad=0.2,
    )


def require_matplotlib() -> Any:
    """Return Matplotlib, or say which extra to install."""
    try:
        import matplotlib as mpl  # noqa: PLC0415 (an extra)
    except ImportError:
        raise MissingExtraError('figures of a report need Matplotlib: pip install "labeldp[plots]"') from None
    return mpl


@contextmanager
def _settings() -> Iterator[None]:
    """Draw with the page's settings, one thread at a time: Matplotlib's are those of the whole process."""
    with _DRAWING, require_matplotlib().rc_context(_SETTINGS):
        yield


def svg(figure: Any, title: str, alternative: str, prefix: str) -> str:
    """Return a figure as an ``<svg>`` element with a text alternative.

    The prefix stands before every id, so that several drawings on one page do not borrow each other's parts.
    """
    sink = io.StringIO()
    with _settings():
        figure.savefig(sink, format="svg", metadata={"Date": None, "Creator": None}, transparent=True)
    root = ET.fromstring(sink.getvalue())  # noqa: S314 (Matplotlib's own, made just now)
    for part in ("metadata", "defs"):  # the first defs hold a style that would reach the whole page
        definition = root.find(f"{{{_SVG}}}{part}")
        if definition is not None and (part == "metadata" or definition.find(f"{{{_SVG}}}style") is not None):
            root.remove(definition)
    for element in root.iter():
        _adapt(element, prefix)
    names = {"title": title, "desc": alternative}
    for place, (tag, text) in enumerate(names.items()):
        element = ET.Element(f"{{{_SVG}}}{tag}", {"id": f"{prefix}-{tag}"})
        element.text = text
        root.insert(place, element)
    for size in ("width", "height"):
        root.attrib.pop(size, None)
    root.attrib.update(
        {
            "class": "chart",
            "role": "img",
            "aria-labelledby": f"{prefix}-title",
            "aria-describedby": f"{prefix}-desc",
        }
    )
    ET.register_namespace("", _SVG)
    return ET.tostring(root, encoding="unicode").replace("\n", " ")


def _adapt(element: ET.Element, prefix: str) -> None:
    """Make ids the drawing's own, and colours and fonts the page's."""
    attributes = element.attrib
    if "id" in attributes:
        attributes["id"] = f"{prefix}-{attributes['id']}"
    if _LINK in attributes:
        attributes["href"] = f"#{prefix}-{attributes.pop(_LINK).removeprefix('#')}"
    for name in ("clip-path", "style"):
        if name in attributes:
            attributes[name] = attributes[name].replace("url(#", f"url(#{prefix}-")
    if "style" in attributes:
        style = re.sub(r"#[0-9a-f]{6}", lambda m: _VARIABLES.get(m[0], m[0]), attributes["style"])
        attributes["style"] = re.sub(r"font-family: [^;]*;? ?", "", style)
    element.tail = None if element.tag.endswith("text") else element.tail
