"""``labeldp demo``: runs from nothing, shows the price of privacy, and leaves a picture and a report."""

import sys

from typer.testing import CliRunner

from labeldp.cli import app


def test_the_demo_shows_both_regressors_beside_a_model_that_is_not_private_and_leaves_a_report(tmp_path):
    picture = tmp_path / "price.png"
    page = tmp_path / "price.html"
    page.write_text("of an earlier demo")
    options = ["--rows", "1000", "--plot", str(picture), "--report", str(page)]
    shown = CliRunner().invoke(app, ["demo", *options], env={"COLUMNS": "140"})
    assert shown.exit_code == 0, shown.output
    for words in ("labels released", "model released", "not private", "private_score", "price.png", "price.html"):
        assert words in shown.output.replace("\n", "")
    assert picture.read_bytes().startswith(b"\x89PNG")
    text = page.read_text(encoding="utf-8")
    for words in ("<h2>What came true</h2>", "1,000 labels", "at most e^ε = 2.72×", "<h2>The proof</h2>"):
        assert words in text
    assert {path.name for path in tmp_path.iterdir()} == {"price.png", "price.html"}


def test_without_matplotlib_the_demo_says_what_to_install(tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    monkeypatch.chdir(tmp_path)
    shown = CliRunner().invoke(app, ["demo", "--rows", "1000"])
    assert shown.exit_code == 0, shown.output
    assert "pip install 'labeldp[plots]'" in shown.output
    assert not list(tmp_path.iterdir())
