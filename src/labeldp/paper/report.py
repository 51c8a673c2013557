"""The table for people: ours beside the paper's, and why they differ."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import fields

from rich import box
from rich.console import Group, RenderableType
from rich.table import Table as RichTable
from rich.text import Text

from labeldp.paper import published
from labeldp.paper.columns import NO_PRIVACY, NOT_PRIVATE, Column
from labeldp.paper.protocol import DATASETS, TRIALS, protocol_for
from labeldp.paper.run import Table
from labeldp.paper.summary import Summary, counted

__all__ = ["as_markdown", "as_rich", "departures", "notes"]


_NAMES = {"relu": "ReLU", "elu": "ELU", "adam": "Adam", "rmsprop": "RMSProp"}


def groups(columns: Sequence[Column]) -> list[tuple[str, list[Column]]]:
    """Return the columns as three tables: the paper's, the library's, and what is not private."""
    private = [c for c in columns if c.private]
    found = [
        ("The paper's mechanisms", [c for c in private if c.published]),
        ("With this library", [c for c in private if not c.published]),
        (NOT_PRIVATE, [c for c in columns if not c.private]),
    ]
    return [(title, some) for title, some in found if some]


def _budget(epsilon: float) -> str:
    return "+∞" if math.isinf(epsilon) else f"{epsilon:g}"


def _marked(published_column: str) -> str:
    """Return the name of a column of the paper, marked where its published code keeps no ε."""
    return f"{published_column}, {NOT_PRIVATE}" if published_column in ("Ours", "Staircase") else published_column


def _paper(dataset: str, column: Column, epsilon: float) -> str:
    found = published.figure(dataset, column.published, epsilon) if column.published else None
    return found.text if found else ""


def _ours(summary: Summary, column: Column, epsilon: float) -> str:
    mean = summary.at(column, epsilon)
    if mean is None:
        return "–"
    if math.isinf(epsilon) or not column.private:
        return f"{mean.text} ({NOT_PRIVATE})"
    return mean.text


def departures(table: Table) -> str:
    """Return in what a table is not the paper's experiment; nothing where it is.

    Shown on every screen, table and plot, so that no figure is taken for what it is not.
    """
    p = table.protocol
    if p.dataset not in DATASETS:
        return "Not the paper's protocol: data of your own."
    usual = protocol_for(p.dataset, p.source)
    pairs = [("data", table.data.name, p.dataset), ("trials", table.trials, TRIALS)]
    pairs += [(f.name, getattr(p, f.name), getattr(usual, f.name)) for f in fields(p) if f.name != "notes"]
    found = [f"{name} {own} instead of {paper}" for name, own, paper in pairs if own != paper]
    return f"Not the paper's protocol: {'; '.join(found)}." if found else ""


def as_markdown(table: Table, summary: Summary) -> str:
    """Return the whole report in Markdown."""
    dataset = table.data.name
    beside = published.prints(dataset)
    title = f"# {dataset.capitalize()}: test error" + (", ours beside the paper's" if beside else "")
    lines = [title, "", *notes(table, summary), ""]
    for title, columns in groups(table.columns):
        lines += [f"## {title}", ""]
        heads = [c.heading + ("<br>(paper)" if beside and c.published else "") for c in columns]
        rivals = beside and title == "With this library"
        if rivals:
            heads.append("paper's best column")
        lines += [f"| ε | {' | '.join(heads)} |", "|---:" * (len(heads) + 1) + "|"]
        for epsilon in summary.budgets:
            cells = []
            for column in columns:
                own = _ours(summary, column, epsilon)
                own = f"**{own}**" if summary.among_the_best(column, epsilon) else own
                paper = _paper(dataset, column, epsilon)
                cells.append(f"{own}<br>({paper})" if paper else own)
            if rivals:
                best = published.best(dataset, epsilon)
                cells.append(f"{best[1].text}<br>{_marked(best[0])}" if best else "")
            lines.append(f"| {_budget(epsilon)} | {' | '.join(cells)} |")
        lines.append("")
    lines += ["## Why they differ" if beside else "## What the columns are", ""]
    lines += [
        f"- **{column.heading}**{_ratio(dataset, summary, column)}: {column.why}" for column in table.columns
    ]
    if math.inf in table.budgets:
        lines.append(f"- **+∞, {NO_PRIVACY.title}, {NOT_PRIVATE}**: {NO_PRIVACY.why}")
    return "\n".join(lines) + "\n"


def _ratio(dataset: str, summary: Summary, column: Column) -> str:
    if not column.published:
        return ""
    figures = {b: f.mean for b in summary.budgets if (f := published.figure(dataset, column.published, b))}
    ratio = summary.ratio(column, figures)
    if ratio is None:
        return ""
    times = f"{ratio:.2f}" if ratio < 100 else f"{ratio:,.0f}"
    return f" ({times} × the paper's error, geometric mean over finite ε)"


def _measure(trials: int) -> str:
    splits = counted(trials, "random 80/20 split")
    spread = f"mean ± standard deviation (n − 1) over {splits}" if trials > 1 else f"on {splits}: no spread"
    return f"Test mean squared error, {spread}"


def notes(table: Table, summary: Summary) -> list[str]:
    """Return what a reader must know to cite the numbers."""
    p, beside = table.protocol, published.prints(table.data.name)
    brackets = "; the paper's figure is in brackets" if beside else ""
    found = [
        f"{_measure(summary.trials)}{brackets}. Bold: private, and within one standard deviation of the best "
        "private column. (The paper prints in bold what overlaps with the best, so that a large spread helps.)",
        f"Protocol of the paper's {p.source}: layers {'-'.join(map(str, (*p.hidden, 1)))}, "
        f"{_NAMES[p.activation]}, {_NAMES[p.optimiser]}, rate {p.learning_rate:g} ({p.schedule}), weight decay "
        f"{p.weight_decay:g}, {counted(p.epochs, 'epoch')}, batches of {p.batch}.",
        "Every ε includes all that is spent, the prior too. Bounds are public: "
        f"{table.data.bounds}, never read off the data. No test label chose anything.",
        "Noise comes from seeds, so that the table can be made again: an experiment, and no release.",
        *p.notes,
        *table.data.notes,
    ]
    if beside:
        found.append(
            "The paper's Ours and Staircase are marked NOT PRIVATE where they stand for its best: as published, "
            "they keep no ε."
        )
    else:
        found.append("The paper has no figures for these data.")
    if departures(table):
        found.insert(0, f"**{departures(table)}**")
    return [f"- {note}" for note in found]


def as_rich(table: Table, summary: Summary) -> RenderableType:
    """Return the tables for a terminal."""
    dataset, beside, parts = table.data.name, published.prints(table.data.name), list[RenderableType]()
    for title, columns in groups(table.columns):
        parts.append(Text(f"\n{dataset.capitalize()}, test error. {title}", style="bold"))
        shown = RichTable(box=box.SIMPLE_HEAD, padding=(0, 1, 0, 0), pad_edge=False)
        shown.add_column("ε", justify="right", no_wrap=True)
        for column in columns:
            shown.add_column(
                column.heading, justify="right", style="" if column.private else "dim", overflow="fold"
            )
        for epsilon in summary.budgets:
            row = [Text(_budget(epsilon))]
            for column in columns:
                best = summary.among_the_best(column, epsilon)
                cell = Text(_ours(summary, column, epsilon), style="bold green" if best else "")
                paper = _paper(dataset, column, epsilon)
                row.append(cell.append(f"\n{paper}", style="dim not bold") if paper else cell)
            shown.add_row(*row)
        parts.append(shown)
    below = "Below each figure, dim: the paper's. " if beside else "The paper has no figures for these data. "
    parts.append(Text(f"{_measure(summary.trials)}. {below}Green: the best private columns.", style="dim"))
    reasons = RichTable(box=box.SIMPLE_HEAD, show_lines=True, pad_edge=False)
    reasons.add_column("column")
    reasons.add_column("why it differs from the paper's")
    for column in table.columns:
        if column.published:
            ratio = _ratio(dataset, summary, column).strip(" ()").split(", ")[0]
            reasons.add_row(f"{column.heading}\n{ratio}".strip(), column.why)
    parts += [reasons] if reasons.row_count else []
    if departures(table):
        parts.append(Text(departures(table), style="bold red"))
    return Group(*parts)
