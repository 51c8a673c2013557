"""What people see of the paper's experiments: tables and plots that say what they are, and cut nothing."""

import io
import math
from dataclasses import replace

import numpy as np
import pytest
from rich.console import Console

from reproduction import error_formula
from reproduction.columns import COLUMNS, NO_PRIVACY, choose_columns
from reproduction.data import subsample
from reproduction.plot import draw, image
from reproduction.protocol import protocol_for
from reproduction.report import as_markdown, departures
from reproduction.screen import for_screen
from reproduction.store import Result
from reproduction.summary import Summary
from reproduction_cases import quick, small, tiny


def summary_of(table, budgets=(1.0, 8.0), trials=2):
    """Return a summary of random results."""
    rng = np.random.default_rng(0)
    cells = [(c.key, b, c.private, rng.uniform(0.5, 2)) for c in table.columns for b in budgets]
    cells.append((NO_PRIVACY.key, math.inf, False, 0.6))
    results = [
        Result("housing", t, key, b, error * (1 + t / 50), private, b, 0.0, "")
        for t in range(trials)
        for key, b, private, error in cells
    ]
    return Summary(results, table.columns)


def screen(text, width=80):
    console = Console(width=width, record=True, file=io.StringIO())
    console.print(for_screen(text, width))
    return console.export_text()


def full(**changes):
    """Return a table with the paper's settings, but for those given."""
    return tiny(**{"trials": 10, "protocol": protocol_for("housing"), **changes})


def test_not_private_is_marked_in_table_and_plot():
    table = tiny(tuple(COLUMNS), budgets=(1.0, 8.0, math.inf))
    summary = summary_of(table)
    text = as_markdown(table, summary)
    for line in text.splitlines():
        if line.startswith("| +∞"):
            figures = [c for c in line.split("|")[2:-1] if "±" in c.split("<br>")[0]]
            assert figures
            assert all("NOT PRIVATE" in c or "Unbiased" in c for c in figures)
        if "as published" in line:
            assert "NOT PRIVATE" in line
    assert "(0.5990 ± 0.0258)" in text
    assert not summary.among_the_best(COLUMNS["as-published"], 1.0)
    drawing = draw(table, summary)
    names = [t.get_text() for axis in drawing.axes if axis.get_legend() for t in axis.get_legend().get_texts()]
    for name in names:
        assert ("as published" in name or "true labels" in name) == ("NOT PRIVATE" in name)
    assert sum("NOT PRIVATE" in name for name in names) == 3
    leaking = next(line for line in drawing.axes[0].lines if "as published" in line.get_label())
    assert leaking.get_linestyle() == "--"
    assert image(drawing, "png").startswith(b"\x89PNG")
    assert b"<svg" in image(drawing, "svg")


@pytest.mark.parametrize(
    ("changes", "departure"),
    [
        ({"trials": 1}, "trials 1 instead of 10"),
        ({"protocol": protocol_for("housing", epochs=1)}, "epochs 1 instead of 50"),
        ({"protocol": protocol_for("housing", scale="standard")}, "scale standard instead of none"),
        ({"protocol": quick(epochs=50)}, "batch 16 instead of 256"),
        ({"data": subsample(small(), 40)}, "data housing, 40 rows instead of housing"),
        ({"protocol": protocol_for("mine")}, "data of your own"),
        ({}, ""),
        ({"protocol": protocol_for("housing", "code")}, ""),
    ],
)
def test_a_table_says_wherever_it_is_seen_whether_it_is_not_the_papers(changes, departure):
    table = full(**changes)
    summary = summary_of(table, (1.0,))
    text = as_markdown(table, summary)
    for place in (departures(table), text, " ".join(screen(text).split()), draw(table, summary).get_supxlabel()):
        assert departure in place
        assert ("Not the paper's" in place) == bool(departure)


def test_data_without_printed_figures_are_not_compared_with_any():
    for data, has in ((small(), True), (small(name="criteo twin"), False)):
        table = tiny(data=data)
        text = as_markdown(table, summary_of(table))
        assert ("The paper has no figures" in text) != has
        for word in ("(paper)", "paper's best column", "in brackets", "beside the paper's", "stand for"):
            assert (word in text) == has


def test_notes_are_about_this_table():
    table = full(trials=1, protocol=protocol_for("housing", epochs=1, scale="standard"))
    text = as_markdown(table, summary_of(table, trials=1))
    assert "1 random 80/20 split: no spread" in text
    assert "1 epoch," in text
    assert "Features are not scaled" not in text
    assert "Features are not scaled" in " ".join(protocol_for("housing").notes)
    assert "are scaled here" not in " ".join(protocol_for("criteo", scale="none").notes)


def test_a_single_budget_has_a_tile_and_not_a_whole_strip():
    table = tiny(budgets=(1.0,))
    drawing = draw(table, summary_of(table, (1.0,)))
    strip = drawing.axes[-1]
    assert len(strip.patches) == 1
    assert strip.patches[0].get_width() < 0.25 * strip.get_xlim()[1]
    assert any(axis.containers for axis in drawing.axes)  # a band of no width would show no spread


@pytest.mark.parametrize("width", [80, 100, 200])
def test_no_figure_is_cut_on_a_narrow_terminal(width):
    rows = [
        replace(row, simulated=0.123456, spread=0.00088) for row in error_formula.error_rows(small(60), draws=2)
    ]
    table = tiny(tuple(COLUMNS), budgets=(1.0, 8.0, math.inf))
    for text in (error_formula.as_markdown(rows), as_markdown(table, summary_of(table))):
        seen = screen(text, width)
        assert "…" not in seen
        assert max(map(len, seen.splitlines())) <= width
        words = seen.split()
        for line in text.splitlines():
            if line.startswith("|") and "---" not in line:
                plain = line.replace("|", " ").replace("<br>", " ").replace("**", "")
                assert all(word in words for word in plain.split() if any(map(str.isdigit, word)))


def test_the_best_private_column_is_named():
    columns = choose_columns(["laplace", "rp"])
    results = [
        Result("x", t, c, 1.0, e + 0.1 * t, True, 1.0, 0.0, "")
        for t in (0, 1)
        for c, e in (("laplace", 1.0), ("rp", 2.0))
    ]
    summary = Summary(results, columns)
    assert summary.best(1.0) is COLUMNS["laplace"]
    assert summary.among_the_best(COLUMNS["laplace"], 1.0)
    assert not summary.among_the_best(COLUMNS["rp"], 1.0)
    assert summary.ratio(COLUMNS["rp"], {1.0: 1.0}) == pytest.approx(2.05)
