"""A preview as curves: how errors fall, and what models keep, as ε grows."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from labeldp.accounts.numbers import tick
from labeldp.errors import MissingExtraError

if TYPE_CHECKING:
    from labeldp.evidence.previews import Preview

_GREY = "#777777"
_DASHES = ("-", "--", "-.", ":", (0, (3, 1, 1, 1)))


def draw_preview(preview: Preview) -> Any:
    """Return a figure of two panels side by side."""
    try:
        from matplotlib.figure import Figure  # noqa: PLC0415 (an extra)
    except ImportError:
        raise MissingExtraError('a plot needs Matplotlib: pip install "labeldp[plots]"') from None
    figure = Figure(figsize=(11, 4.4), layout="constrained")
    left, right = figure.subplots(1, 2)
    curve = preview.curve
    epsilons = [point.epsilon for point in curve]
    for (name, what), dash in zip(preview.names.items(), _DASHES, strict=False):
        left.plot(epsilons, [getattr(point, name) for point in curve], linestyle=dash, linewidth=2, label=what)
    if preview.wanted is not None:
        left.axhline(preview.wanted, color=_GREY, linewidth=1, label="wanted")
    left.set(yscale="log", ylabel="±, in the label's unit", title=f"Typical error, {preview.rows:,} rows")
    left.yaxis.set_major_formatter(lambda value, _: tick(value))
    left.legend(frameon=False, fontsize=9)
    known = [point for point in curve if point.kept is not None]
    for name in ("low", "middle", "high"):
        shares = [100 * getattr(point.kept, name) for point in known]
        right.plot(
            [point.epsilon for point in known], shares, color="C0", linewidth=2 if name == "middle" else 0.8
        )
    right.set(ylim=(0, 100), ylabel="%", title="Kept of what features explain: median and quartiles of tables")
    for axes in (left, right):
        axes.set(xscale="log", xlim=(epsilons[0], epsilons[-1]), xlabel="ε: less is more private")
        axes.xaxis.set_major_formatter(lambda value, _: f"{value:g}")
        for point in preview.budgets:
            axes.axvline(point.epsilon, color=_GREY, linewidth=0.6, alpha=0.5)
    return figure
