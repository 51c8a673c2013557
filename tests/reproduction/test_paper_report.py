"""What people see of the paper's experiments: tables and plots that say what they are, and cut nothing."""

import io
import math
from dataclasses import replace

import numpy as np
import pytest
from rich.console import Console

from labeldp.cli.markdown import shown
from labeldp.paper.columns import COLUMNS, NO_PRIVACY, chosen_columns
from labeldp.paper.data import subsample
from labeldp.paper.error_formula import as_markdown as error_markdown
from labeldp.paper.error_formula import error_rows
from labeldp.paper.plot import draw, image
from labeldp.paper.protocol import protocol_for
from labeldp.paper.report import as_markdown, as_rich, departures
from labeldp.paper.store import Result
from labeldp.paper.summary import Summary
from paper_cases import quick, small, tiny


def _results(columns, budgets=(1.0, 8.0)):
    rng = np.random.default_rng(0)
    found = [
        Result("housing", t, c.key, b, float(rng.uniform(0.5, 2)), c.private, b, 0.0, "")
        for t in range(2)
        for c in columns
        for b in budgets
    ]
    return [
        *found,
        *(Result("housing", t, NO_PRIVACY.key, math.inf, 0.6, False, math.inf, 0.0, "") for t in range(2)),
    ]


def test_not_private_is_marked_in_table_and_plot():
    table = tiny(tuple(COLUMNS), budgets=(1.0, 8.0, math.inf))
    summary = Summary(_results(table.columns), table.columns)
    text = as_markdown(table, summary)
    for line in text.splitlines():
        if line.startswith("| +∞"):
            cells = [c for c in line.split("|")[2:-1] if "±" in c.split("<br>")[0]]
            assert cells
            assert all("NOT PRIVATE" in c or "paper" in c or "Ours" in c or "Unbiased" in c for c in cells)
        if "as published" in line:
            assert "NOT PRIVATE" in line
    assert "(0.5990 ± 0.0258)" in text
    assert "Not the paper's protocol" in text
    assert not summary.among_the_best(COLUMNS["as-published"], 1.0)
    drawing = draw(table, summary)
    names = [t.get_text() for axis in drawing.axes if axis.get_legend() for t in axis.get_legend().get_texts()]
    for name in names:
        assert ("as published" in name or "true labels" in name) == ("NOT PRIVATE" in name)
    assert sum("NOT PRIVATE" in name for name in names) == 3
    leaking = next(line for line in drawing.axes[0].lines if "as published" in line.get_label())
    assert leaking.get_linestyle() == "--"
    assert image(drawing, "png").startswith(b"\x89PNG")
    assert b"NOT PRIVATE" in image(drawing, "svg") or b"<svg" in image(drawing, "svg")


def _screen(what, width=80):
    console = Console(width=width, record=True, file=io.StringIO())
    console.print(what)
    return console.export_text()


def _full(**changes):
    """Return a table with the paper's settings, but for those given."""
    return tiny(("laplace", "rp", "constant"), trials=10, **{"protocol": protocol_for("housing"), **changes})


@pytest.mark.parametrize(
    ("changes", "told"),
    [
        ({"trials": 1}, "trials 1 instead of 10"),
        ({"protocol": protocol_for("housing", epochs=1)}, "epochs 1 instead of 50"),
        ({"protocol": protocol_for("housing", scale="standard")}, "scale standard instead of none"),
        ({"protocol": quick(epochs=50)}, "batch 16 instead of 256"),
        ({"data": subsample(small(), 40)}, "data housing, 40 rows instead of housing"),
        ({"protocol": protocol_for("mine")}, "data of your own"),
    ],
)
def test_what_is_not_the_papers_protocol_says_so_on_screen_table_and_plot(changes, told):
    table = replace(_full(), **changes)
    summary = Summary(_results(table.columns, (1.0,)), table.columns)
    assert told in departures(table)
    assert told in as_markdown(table, summary)
    assert told in " ".join(_screen(as_rich(table, summary)).split())
    assert told in draw(table, summary).get_supxlabel()


@pytest.mark.parametrize("source", ["text", "code"])
def test_the_papers_protocol_is_not_said_to_be_another(source):
    table = _full(protocol=protocol_for("housing", source))
    summary = Summary(_results(table.columns), table.columns)
    assert departures(table) == ""
    drawing = draw(table, summary)
    texts = as_markdown(table, summary) + _screen(as_rich(table, summary)) + drawing.get_supxlabel()
    assert "Not the paper's" not in texts


def test_data_without_printed_figures_are_not_compared_with_any():
    for data, has in ((small(), True), (small(name="criteo twin"), False)):
        table = tiny(data=data)
        summary = Summary(_results(table.columns), table.columns)
        for text in (as_markdown(table, summary), " ".join(_screen(as_rich(table, summary)).split())):
            assert ("The paper has no figures" in text) != has
        text = as_markdown(table, summary)
        for word in (
            "(paper)",
            "paper's best column",
            "in brackets",
            "beside the paper's",
            "where they stand for",
        ):
            assert (word in text) == has


def test_notes_are_about_this_table():
    table = replace(_full(), trials=1, protocol=protocol_for("housing", epochs=1, scale="standard"))
    of_one = [r for r in _results(table.columns) if r.trial == 0]
    text = as_markdown(table, Summary(of_one, table.columns))
    assert "1 random 80/20 split: no spread" in text
    assert "1 epoch," in text
    assert "Features are not scaled" not in text
    assert "Features are not scaled" in " ".join(protocol_for("housing").notes)
    assert "are scaled here" not in " ".join(protocol_for("criteo", scale="none").notes)


def test_a_single_budget_has_a_tile_and_not_a_whole_strip():
    table = tiny(budgets=(1.0,))
    drawing = draw(table, Summary(_results(table.columns, (1.0,)), table.columns))
    strip = drawing.axes[-1]
    assert len(strip.patches) == 1
    assert strip.patches[0].get_width() < 0.25 * strip.get_xlim()[1]
    assert any(axis.containers for axis in drawing.axes)  # a band of no width would show no spread


@pytest.mark.parametrize("width", [80, 100, 200])
def test_no_figure_is_cut_on_a_narrow_terminal(width):
    rows = [replace(row, simulated=0.123456, spread=0.00088) for row in error_rows(small(60), draws=2)]
    text = error_markdown(rows)
    screen = _screen(shown(text, width), width)
    assert "…" not in screen
    assert max(map(len, screen.splitlines())) <= width
    words = screen.split()
    for line in text.splitlines()[7:]:
        assert all(word in words for cell in line.strip("|").split("|") for word in cell.split())


def test_the_best_private_column_is_named():
    columns = chosen_columns(["laplace", "rp"])
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
