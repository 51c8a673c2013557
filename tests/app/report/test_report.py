"""The report: says what the card says, shows nothing as code, and is the same for the same card."""

import json
import sys

import numpy as np
import pytest

import labeldp as ldp
from app.report import report_cases as cases
from command_line import files_in, run, said
from helpers import NAMES, mechanisms
from labeldp.accounts.numbers import at_most
from labeldp.app import report

ALL = (*cases.KINDS, *NAMES)


def words(text):
    return " ".join(" ".join(cases.Reader(text).texts).split())


# ---- safe to open ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", ALL)
def test_a_page_is_one_file_without_code(kind):
    assert cases.faults(cases.page(kind)) == []


@pytest.mark.parametrize(
    ("good", "bad"),
    [
        ("</main>", "<script>1</script></main>"),
        ("</main>", "<img src='http://example.org/x.png'></main>"),
        ("<main ", "<main onclick='x()' "),
        ("default-src 'none'", "default-src *"),
    ],
)
def test_a_page_with_something_broken_is_caught(good, bad):
    broken = cases.page("release").replace(good, bad)
    assert broken != cases.page("release")
    assert cases.faults(broken)


def test_a_hostile_card_is_shown_as_text():
    text = cases.page("hostile")
    assert '"><script>alert(1)</script><img src=x onerror=alert(2)>' in words(text)
    assert not {"\u202e", "\x00"} & set(text)
    text.encode("utf-8")  # the half character is gone too
    assert len(text) < 3 * len(cases.page("release")), "a long card makes a long page"


def test_text_that_is_not_escaped_is_caught(monkeypatch):
    environment = report.page._environment.__wrapped__()
    environment.autoescape = False
    monkeypatch.setattr(report.page, "_environment", lambda: environment)
    assert "<script>" in cases.faults(report.render_report(cases.card("hostile")))


# ---- what it says ---------------------------------------------------------------------------------------


def test_the_report_of_a_release_says_what_it_cost_what_is_released_and_what_was_proven():
    card = cases.card("release")
    content = json.loads(card)
    mechanism = ldp.accounts.read_any_card(card).terms.mechanisms[0]
    proof = mechanism.verify()
    shown = words(cases.page("release"))
    for text in (
        "at most e^ε = 2.72×",
        "50 % → 73 %",
        "4,000 private labels",
        "What is released",
        "The true labels: only the curator",
        type(mechanism).__name__,
        str(proof.worst_ratio.numerator),
        repr(proof.epsilon),
        content["guarantee"],
        "labeldp verify CARD",
        ldp.__version__,
        *(charge["description"] for charge in content["charges"]),
    ):
        assert text in shown, text
    assert "NOT PRIVATE" not in shown


@pytest.mark.parametrize("kind", [kind for kind in cases.KINDS if kind != "hostile"])
def test_the_page_shows_all_that_the_explanation_says_and_what_is_not_private_first_of_all(kind):
    """What was done is its lead."""
    shown, main = words(cases.page(kind)), cases.page(kind).partition('<main class="sections">')[2].lstrip()
    explanation = ldp.accounts.read_any_card(cases.card(kind)).explain()
    for text in (*explanation.sections, *explanation.warnings, *sum(explanation.sections.values(), ())):
        assert " ".join(text.split()) in shown or text == "What was done", text
    private = kind != "seeded"
    assert main.startswith('<div class="banner" role="alert">NOT PRIVATE') is not private
    assert ("raise their odds" in shown, "banner" in main) == (private, not private)


def test_the_private_column_is_named_in_report_and_summary():
    name = "pay <b>"
    release = cases.changed(cases.card("release"), label=name)
    for card in (release, cases.changed(cases.card("sums-model"), label=name)):
        for page in (report.render_report(card), report.render_report(card, "summary")):
            assert "<p>Private column: pay &lt;b&gt;</p>" in page


def test_a_weak_budget_has_a_banner():
    weak = report.render_report(ldp.TwoPoint(bounds=(0, 5), epsilon=8.0).to_json())
    assert '<div class="banner weak" role="alert">WEAK: at ε = 8' in weak


# ---- the budget -----------------------------------------------------------------------------------------


def test_the_budget_shows_this_release_all_others_and_what_is_left():
    ledger = cases.ledger()
    release = ldp.privatize(cases.labels(), epsilon=1.0, bounds=cases.BOUNDS, ledger=ledger)
    page = words(report.render_report(release.to_card(), ledger=ledger))
    for text in ("ε = 1 in all", "ε = 1.5 is spent", "The limit is ε = 3; left is ε = 1.5."):
        assert text in page
    for charge in release.charges:
        assert f"{charge.budget.epsilon:.6g} for {charge.description}" in page
    assert "does not hold all charges" not in page


@pytest.mark.slow
def test_what_one_label_can_cost_and_what_the_ledger_says_are_kept_apart():
    ledger = cases.ledger()
    release = ldp.privatize(cases.labels(), epsilon=1.0, bounds=cases.BOUNDS, ledger=ledger)
    for given, more in ((None, []), (ledger, ["1.5", "4.49×"])):
        text = report.render_report(release.to_card(), ledger=given)
        tiles = cases.Reader(text[text.index('class="tiles"') : text.index("</ul>")]).texts
        shown = dict(zip(tiles[2::2], tiles[1::2], strict=False))
        assert shown["ε, the most that this costs one label"] == "1"
        assert shown["is the most by which odds can grow by this alone"] == "2.72×"
        assert [value for name, value in shown.items() if "everything in its ledger" in name] == more
        said = "by at most e^ε = 2.72×; by everything in its ledger, ε = 1.5, by at most 4.49×." in words(text)
        assert said is (given is not None)


def test_a_ledger_that_lacks_the_release_is_pointed_out():
    page = report.render_report(cases.card("release"), ledger=cases.ledger())
    assert "does not hold all charges of this release" in page


# ---- its figures are true -------------------------------------------------------------------------------


def largest_posterior(mechanism, guess):
    """Return how sure one can become that a label is high and not low, by Bayes on the channel itself."""
    channel = mechanism.channel
    low, high = (np.diff(channel.cumulative(y, np.linspace(-30, 30, 60_001))) for y in (0.0, 1.0))
    used = (low > 1e-7) & (high > 1e-7)  # less is rounding of the sums that are subtracted
    odds = guess / (1 - guess) * (high[used] / low[used]).max()
    return odds / (1 + odds)


@pytest.mark.slow
@pytest.mark.parametrize("name", [name for name in NAMES if name != "gaussian"])
def test_no_guess_gains_more_than_the_page_says_and_half_the_epsilon_would_be_a_lie(name):
    mechanism = mechanisms(1.0)[name]
    for guess in (0.01, 0.5, 0.9):
        assert largest_posterior(mechanism, guess) <= float(at_most(guess, 1.0)) + 1e-6
    assert largest_posterior(mechanism, 0.5) > float(at_most(0.5, 0.5)) + 1e-3


# ---- files and the command ------------------------------------------------------------------------------


def test_the_command_writes_beside_the_card_and_replaces_only_with_force(tmp_path):
    card, target = tmp_path / "sales.csv.card.json", tmp_path / "sales.csv.report.html"
    card.write_text(cases.card("release"))
    assert "sales.csv.report.html" in said("report", card)
    assert target.read_text(encoding="utf-8") == cases.page("release")
    assert target.stat().st_mode & 0o777 == 0o644 or sys.platform == "win32"
    target.write_text("mine")
    assert "--force" in said("report", card, code=2)
    assert target.read_text() == "mine"
    run("report", card, "--force")
    assert target.read_text(encoding="utf-8") == cases.page("release")


@pytest.mark.parametrize(
    "content",
    [
        b"",
        b"\xff\xfe",
        b"[1]",
        cases.card("release").replace('"rows":4000', '"rows":4001').encode(),
        cases.changed(cases.card("release"), priors=[]).encode(),
    ],
)
def test_a_card_that_does_not_hold_gives_one_sentence_and_no_file(tmp_path, content):
    card = tmp_path / "x.card.json"
    card.write_bytes(content)
    assert len(run("report", card, code=4).output.strip().splitlines()) == 1
    assert files_in(tmp_path) == ["x.card.json"]


def test_the_noise_of_sums_and_of_a_prior_is_on_the_page_and_what_cannot_be_checked_is_said():
    for kind in ("sums-model", "rounds", "release"):
        said, listed = words(cases.page(kind)), json.loads(cases.card(kind))
        for statistic in listed["statistics"] or listed["priors"][0]["origin"]["statistics"]:
            assert f"over epsilon = {statistic['epsilon']} that is noise of scale {statistic['scale']}" in said
        assert "Not all of it can be checked" not in said
    older = cases.changed(cases.card("sums-model"), statistics=[])
    assert "Not all of it can be checked" in words(report.render_report(older))
