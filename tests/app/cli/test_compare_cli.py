"""``labeldp compare``: only for labels that are said to be public; errors and curves."""

import json
import math

import pyarrow as pa
import pyarrow.parquet
import pytest

from command_line import files_in, homes, run, said, with_options

NAMES = "laplace,rr-on-bins,auto"
OPTIONS = ("--label", "price", "--bounds", 0, 5, "--epsilon", "3,0.5", "--repeats", 2, "--mechanisms", NAMES)


@pytest.fixture
def table(tmp_path):
    pa.parquet.write_table(homes(160), tmp_path / "homes.parquet")
    return tmp_path / "homes.parquet"


def test_without_the_word_public_it_stops_before_it_opens_anything(tmp_path):
    shown = said("compare", tmp_path / "nowhere.parquet", *OPTIONS, "--plot", tmp_path / "compare.png", code=2)
    assert "--public" in shown
    assert "nowhere" not in shown
    assert not list(tmp_path.iterdir())


def test_it_warns_that_nothing_is_private_and_shows_both_curves(table, tmp_path):
    plot = tmp_path / "compare.png"
    shown = said("compare", table, *OPTIONS, "--public", "--plot", plot)
    for words in ("PUBLIC", "labels released", "model released", "private constant", "rr-on-bins"):
        assert words in shown
    assert shown.index("ε = 0.5") < shown.index("ε = 3")
    assert f"{5 * math.sqrt(2) / 0.5:.3g}" in shown  # Laplace at ε = 0.5: width · √2/ε
    assert plot.read_bytes().startswith(b"\x89PNG")
    assert shown.count(" ± ") >= 8  # of two regressors, the constant and what is not private, at two budgets


@pytest.mark.parametrize(
    ("options", "named"),
    [
        (["--epsilon", "1,inf"], "inf"),
        (["--mechanisms", "laplas"], "--mechanisms"),
        (["--mechanisms", "gaussian"], "--mechanisms"),
        (["--plot", "compare.doc"], "--plot"),
        (["--label", "prise"], "price"),
    ],
)
def test_what_cannot_be_compared_is_refused_before_any_work(options, named, table, tmp_path):
    assert named in said("compare", table, *with_options(OPTIONS, *options), "--public", code=2)
    assert files_in(tmp_path) == ["homes.parquet"]


def test_every_figure_is_printed_in_full_for_scripts():
    options = ("preview", "--rows", 20_000, "--bounds", 0, 200, "--epsilon", "0.3,1")
    figures = json.loads(run(*options, "--json").stdout)["figures"]
    assert len(figures) == 14
    (found,) = json.loads(run(*options[:-2], "--target-error", 2, "--json").stdout)["figures"][4:5]
    assert (found["of"], found["epsilon"]) == ("the mean alone", 0.71)
