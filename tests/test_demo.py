"""``labeldp demo``: runs from nothing, shows the price of privacy, and saves a picture."""

import sys

from typer.testing import CliRunner

from labeldp.cli import app


def test_the_demo_shows_both_regressors_beside_a_model_that_is_not_private_and_saves_a_picture(tmp_path):
    picture = tmp_path / "price.png"
    shown = CliRunner().invoke(app, ["demo", "--rows", "1000", "--plot", str(picture)], env={"COLUMNS": "140"})
    assert shown.exit_code == 0, shown.output
    for words in ("labels released", "model released", "not private", "private_score", "price.png"):
        assert words in shown.output.replace("\n", "")
    assert picture.read_bytes().startswith(b"\x89PNG")


def test_without_matplotlib_the_demo_says_what_to_install(tmp_path, monkeypatch):
    from labeldp.cli.demo_models import BUDGETS, REGRESSORS, Price, save_plot

    monkeypatch.setitem(sys.modules, "matplotlib.figure", None)
    price = Price(2.0, 1.0, {(name, e): 1.5 for name in REGRESSORS for e in BUDGETS}, "1", 5.2)
    assert not save_plot(price, tmp_path / "price.png")
    assert not list(tmp_path.iterdir())
