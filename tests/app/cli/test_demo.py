"""``labeldp demo``: runs from nothing, shows the price of privacy, and leaves a picture and a report."""

import sys

import pytest

from command_line import files_in, said


@pytest.mark.slow
def test_the_demo_shows_both_regressors_beside_a_model_that_is_not_private_and_leaves_a_report(tmp_path):
    picture, page = tmp_path / "price.png", tmp_path / "price.html"
    page.write_text("of an earlier demo")
    shown = said("demo", "--rows", 1000, "--plot", picture, "--report", page)
    for words in ("labels released", "model released", "not private", "private_score", "price.png", "price.html"):
        assert words in shown
    assert picture.read_bytes().startswith(b"\x89PNG")
    text = page.read_text(encoding="utf-8")
    for words in ("1,000 labels", "at most e^ε = 2.72×", "<h2>The proof</h2>"):
        assert words in text
    assert files_in(tmp_path) == ["price.html", "price.png"]


def test_without_matplotlib_the_demo_says_what_to_install(tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    monkeypatch.setattr("labeldp.app.cli.demo.compare_table", lambda *_, **__: None)  # shown above
    monkeypatch.setattr("labeldp.app.cli.demo.show_comparison", lambda *_: None)
    monkeypatch.chdir(tmp_path)
    assert 'pip install "labeldp[plots]"' in said("demo", "--rows", 1000)
    assert not files_in(tmp_path)
