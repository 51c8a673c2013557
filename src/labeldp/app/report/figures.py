"""Matplotlib figures as inline SVG that takes its colours and fonts from the page."""

from __future__ import annotations

import html
import io
import re
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from labeldp.accounts.numbers import tick
from labeldp.errors import MissingExtraError

INK, SOFT = "#010203", "#040506"
COLOURS = ("#0a0b01", "#0a0b02", "#0a0b03", "#0a0b04")
"""Stand-ins: on the page these become CSS variables, which differ between light and dark."""

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
_ADAPTED = {
    "<metadata>.*?</metadata>|<defs>\\s*<style.*?</defs>": "",  # a style that would reach the whole page
    " xlink:href=": " href=",
    'font-family: [^;"]*;? ?': "",  # the page has its own
}
_INVISIBLE = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u061c\u200e\u200f\u202a-\u202e\u2066-\u2069\ud800-\udfff]")
"""Control characters, marks that turn text round, and halves of characters: they hide what a text says."""


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
    drawing = sink.getvalue()
    drawing = drawing[drawing.index(">", drawing.index("<svg")) + 1 :]
    for pattern, text in _ADAPTED.items():
        drawing = re.sub(pattern, text, drawing, flags=re.DOTALL)
    drawing = re.sub(r'( id="| href="#|url\(#)', rf"\g<1>{prefix}-", drawing)
    drawing = re.sub(r"#[0-9a-f]{6}", lambda colour: _VARIABLES.get(colour[0], colour[0]), drawing)
    width, height = (72 * inches for inches in figure.get_size_inches())
    return (
        f'<svg class="chart" xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width:g} {height:g}" role="img" '
        f'aria-labelledby="{prefix}-title" aria-describedby="{prefix}-desc">'
        f'<title id="{prefix}-title">{escaped(title)}</title>'
        f'<desc id="{prefix}-desc">{escaped(alternative)}</desc>' + drawing.replace("\n", " ")
    )


def escaped(text: object) -> str:
    """Return a text that HTML shows as it is, in text and in attributes.

    Examples
    --------
    >>> escaped('<b title="x">')
    '&lt;b title=&quot;x&quot;&gt;'
    """
    return html.escape(visible(text), quote=True)


def visible(text: object) -> str:
    """Return a text with a mark in place of each character that hides what it says.

    Examples
    --------
    >>> visible(f"{chr(27)}[8mhidden")
    '�[8mhidden'
    """
    return _INVISIBLE.sub("\ufffd", str(text))
