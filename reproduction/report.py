"""The table for people: ours beside the paper's, and why they differ."""

from __future__ import annotations

import math
from dataclasses import fields

from labeldp import __version__
from reproduction import published
from reproduction.columns import NO_PRIVACY, NOT_PRIVATE, Column
from reproduction.protocol import DATASETS, TRIALS, protocol_for
from reproduction.run import Table
from reproduction.summary import Summary, markdown_table, plural

_NAMES = {"relu": "ReLU", "elu": "ELU", "adam": "Adam", "rmsprop": "RMSProp"}
_LIBRARY = "With this library"


def departures(table: Table) -> str:
    """Return in what a table is not the paper's experiment; nothing where it is.

    Shown on every screen, table and plot, so that no figure is mistaken for the paper's.
    """
    p = table.protocol
    if p.dataset not in DATASETS:
        return "Not the paper's protocol: other data than the paper's."
    usual = protocol_for(p.dataset, p.source)
    pairs = [("data", table.data.name, p.dataset), ("trials", table.trials, TRIALS)]
    if p.source == "private":
        pairs.append(("protocol", "private", "text or code"))
    pairs += [(f.name, getattr(p, f.name), getattr(usual, f.name)) for f in fields(p)]
    differences = [f"{name} {own} instead of {paper}" for name, own, paper in pairs if own != paper]
    return f"Not the paper's protocol: {'; '.join(differences)}." if differences else ""


def as_markdown(table: Table, summary: Summary) -> str:
    """Return the whole report in Markdown."""
    dataset, beside = table.data.name, published.has_figures(table.data.name)
    title = f"# {dataset.capitalize()}: test error" + (", ours beside the paper's" if beside else "")
    lines = [title, "", *_notes(table, summary), ""]
    groups = _groups(table)
    for title, columns in groups.items():
        if columns:
            best = beside and title == _LIBRARY
            heads = ["ε", *(c.heading + ("<br>(paper)" if beside and c.published else "") for c in columns)]
            rows = [
                [
                    "+∞" if math.isinf(epsilon) else f"{epsilon:g}",
                    *(_cell(dataset, summary, column, epsilon) for column in columns),
                    *([_best_published(dataset, epsilon)] if best else []),
                ]
                for epsilon in summary.budgets
            ]
            lines += [f"## {title}", "", *markdown_table(heads + ["paper's best column"] * best, rows), ""]
    lines += ["## Why they differ" if beside else "## What the columns are", ""]
    lines += [f"- **{c.heading}**{_ratio(dataset, summary, c)}: {c.why}" for c in table.columns]
    if math.inf in table.budgets:
        lines.append(f"- **+∞, {NO_PRIVACY.title}, {NOT_PRIVATE}**: {NO_PRIVACY.why}")
    return "\n".join(lines) + "\n"


def _groups(table: Table) -> dict[str, list[Column]]:
    """Return the columns of each part of the report, by its title; variants stand beside what they vary."""
    variants = [c for c in table.columns if "*" in c.key]
    varied = {c.key.split("*")[0] for c in variants}
    plain = [c for c in table.columns if c not in variants]
    private = [c for c in plain if c.private]
    return {
        "The paper's mechanisms": [c for c in private if c.published],
        _LIBRARY: [c for c in private if not c.published],
        f"As published, {NOT_PRIVATE}": [c for c in plain if not c.private],
        "Multiples of the paper's ζ and σ": [c for c in table.columns if c.key.split("*")[0] in varied],
    }


def _cell(dataset: str, summary: Summary, column: Column, epsilon: float) -> str:
    """Return our figure, bold if it is among the best, and the paper's below it."""
    mean = summary.at(column, epsilon)
    text = "–" if mean is None else mean.text
    if mean is not None and (math.isinf(epsilon) or not column.private):
        text += f" ({NOT_PRIVATE})"
    if summary.among_the_best(column, epsilon):
        text = f"**{text}**"
    paper = published.figure(dataset, column.published or "", epsilon)
    return f"{text}<br>({paper.text})" if paper else text


def _best_published(dataset: str, epsilon: float) -> str:
    """Return the paper's best figure and its column, marked where the published code keeps no ε."""
    best = published.best(dataset, epsilon)
    if best is None:
        return ""
    column, figure = best
    return f"{figure.text}<br>{column}" + (f", {NOT_PRIVATE}" if column in ("Ours", "Staircase") else "")


def _ratio(dataset: str, summary: Summary, column: Column) -> str:
    if dataset not in DATASETS:  # printed figures of the real log say nothing about its twin's
        return ""
    figures = {b: f.mean for b in summary.budgets if (f := published.figure(dataset, column.published or "", b))}
    ratio = summary.ratio(column, figures)
    if ratio is None:
        return ""
    times = f"{ratio:.2f}" if ratio < 100 else f"{ratio:,.0f}"
    return f" ({times} × the paper's error, geometric mean over finite ε)"


def _notes(table: Table, summary: Summary) -> list[str]:
    """Return what a reader must know to cite the numbers."""
    p, beside = table.protocol, published.has_figures(table.data.name)
    splits = plural(summary.trials, "random 80/20 split")
    spread = (
        f"mean ± standard deviation (n − 1) over {splits}" if summary.trials > 1 else f"on {splits}: no spread"
    )
    of = "" if table.data.name in DATASETS else ", of the real log: only its order can be compared,"
    brackets = f"; the paper's figure{of} is in brackets" if beside else ""
    notes = [
        f"Test mean squared error, {spread}{brackets}. "
        "Bold: private, and not worse than the best private column at the 5 % level: a one-sided paired test "
        "of log errors over trials, the corrected resampled t-test of Nadeau and Bengio. (The paper prints in "
        "bold what overlaps with the best, so that a large spread helps.)",
        f"{p.title}: layers {'-'.join(map(str, (*p.hidden, 1)))}, "
        f"{_NAMES[p.activation]}, {_NAMES[p.optimiser]}, rate {p.learning_rate:g} ({p.schedule}), weight decay "
        f"{p.weight_decay:g}, {plural(p.epochs, 'epoch')}, batches of {p.batch}.",
        "Every ε includes all that is spent, the prior too. Bounds are public: "
        f"{table.data.bounds}, never read off the data. No test label chose anything.",
        f"Version {__version__}. Noise comes from seeds, so that the table can be computed again: an experiment, "
        "not a release.",
        *p.notes,
        *table.data.notes,
        "The paper's Ours and Staircase are marked NOT PRIVATE where they stand for its best: as published, they "
        "keep no ε."
        if beside
        else "The paper has no figures for these data.",
    ]
    if departures(table):
        notes.insert(0, f"**{departures(table)}**")
    return [f"- {note}" for note in notes]
