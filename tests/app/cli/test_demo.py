"""``labeldp demo``: runs from nothing, shows the price of privacy, and leaves a picture and a report."""

import pytest

from command_line import files_in, said


@pytest.mark.slow
def test_the_demo_shows_what_privacy_costs_and_leaves_a_picture_and_a_report(place):
    (place / "labeldp-report.html").write_text("of an earlier demo")
    shown = said("demo", "--rows", 300)
    for words in ("300 households", "boosted trees", "knowing the public columns"):
        assert words in shown
    assert files_in(place) == ["labeldp-demo.png", "labeldp-report.html"]
    assert (place / "labeldp-demo.png").read_bytes().startswith(b"\x89PNG")
    assert "300 labels" in (place / "labeldp-report.html").read_text(encoding="utf-8")


def test_without_matplotlib_the_demo_says_what_to_install(place, uninstall):
    uninstall("matplotlib")
    assert 'pip install "labeldp[plots]"' in said("demo", "--rows", 300)
    assert files_in(place) == ["labeldp-report.html"]
