"""The report: says what the card says, shows nothing as code, and gives no figure that is too good."""

import dataclasses
import json
import sys

import numpy as np
import pytest

import labeldp as ldp
from app.report import report_cases as cases
from app.report.report_cases import words
from command_line import files_in, run, said
from helpers import NAMES, mechanisms
from labeldp.accounts.numbers import at_most
from labeldp.app import report
from labeldp.app.report.ledger_page import render_ledger, replay

# ---- safe to open ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", [*cases.KINDS, *NAMES])
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


@pytest.mark.parametrize("kind", ["report", "summary"])
def test_a_hostile_card_is_shown_as_text(kind):
    text = report.render_report(cases.card("hostile"), kind)
    assert cases.faults(text) == []
    assert '"><script>alert(1)</script><img src=x onerror=alert(2)>' in words(text)
    assert not {"\u202e", "\x00"} & set(text)
    text.encode("utf-8")  # the half character is gone too
    assert len(text) < 3 * len(cases.page("release")), "a long card makes a long page"


def test_text_that_is_not_escaped_is_caught(monkeypatch):
    environment = report.card_report.templates.__wrapped__()
    environment.autoescape = False
    monkeypatch.setattr(report.card_report, "templates", lambda: environment)
    assert "<script>" in cases.faults(report.render_report(cases.card("hostile")))


# ---- statements -----------------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", [kind for kind in cases.KINDS if kind != "hostile"])
def test_the_page_shows_the_whole_explanation_and_begins_with_the_lack_of_privacy(kind):
    shown, main = words(cases.page(kind)), cases.page(kind).partition('<main class="sections">')[2].lstrip()
    explanation = ldp.accounts.Card.parse(cases.card(kind)).explain()
    for text in (*explanation.warnings, *sum(explanation.sections.values(), ())):
        assert " ".join(text.split()) in shown
    assert main.startswith('<div class="banner" role="alert">NOT PRIVATE') is (kind == "seeded")


@pytest.mark.filterwarnings("ignore::labeldp.errors.InsecureRandomnessWarning")
def test_several_labels_from_a_seed_are_explained_as_not_private_too():
    pay = cases.labels(400)
    card = ldp.privatize(np.column_stack([pay, pay]), epsilon=1.0, bounds=cases.BOUNDS, random_state=1).to_card()
    assert "NOT PRIVATE" in report.render_report(card)
    assert ldp.accounts.verify_card(card).verdict == "not valid"


@pytest.mark.parametrize("kind", ["release", "sums-model", "rounds"])
def test_the_page_shows_each_proof_and_the_noise_of_each_sum(kind):
    shown, content = words(cases.page(kind)), json.loads(cases.card(kind))
    for mechanism in ldp.accounts.Card.parse(cases.card(kind)).terms.mechanisms:
        assert repr(mechanism.verify().epsilon) in shown
        assert str(mechanism.verify().worst_ratio.numerator) in shown
    for statistic in content["statistics"] or content["priors"][0]["origin"]["statistics"]:
        assert f"over epsilon = {statistic['epsilon']} that is noise of scale {statistic['scale']}" in shown
    assert "Not all of it can be checked" not in shown


@pytest.mark.parametrize("kind", ["report", "summary"])
def test_the_private_column_is_named(kind):
    card = cases.changed(cases.card("release"), label="pay <b>")
    assert "<p>Private column: pay &lt;b&gt;</p>" in report.render_report(card, kind)


def test_a_summary_of_a_model_says_that_its_folder_may_have_columns_of_rows():
    """A card does not say whether rows were kept."""
    shown = words(report.render_report(cases.card("sums-model"), "summary"))
    assert "unless it was made with --keep-rows: then it has the other columns of each row, as codes" in shown


# ---- the budget -----------------------------------------------------------------------------------------


def test_the_cost_of_a_release_and_of_all_in_its_ledger_are_kept_apart():
    ledger = cases.ledger()
    release = cases.release(ledger=ledger)
    alone, counted = (words(report.render_report(release.to_card(), ledger=book)) for book in (None, ledger))
    for text in ("ε = 1 in all", "1 ε, the most that this costs one label", "2.72× is the most by which odds"):
        assert text in alone
        assert text in counted
    for text in ("1.5 ε of everything in its ledger", "4.49× is the most by everything", "left is ε = 1.5."):
        assert text in counted
        assert text not in alone
    assert "lacks charges" not in counted


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


@pytest.mark.parametrize("change", [{}, {"rows": 4001}])
def test_a_card_that_does_not_hold_gives_one_sentence_and_no_file(tmp_path, change):
    card = tmp_path / "x.card.json"
    card.write_text(json.dumps({**json.loads(cases.card("release")), **change}) if change else "[1]")
    assert len(run("report", card, code=4).output.strip().splitlines()) == 1
    assert files_in(tmp_path) == ["x.card.json"]


def test_the_page_of_a_ledger_shows_each_segment_and_refuses_a_time_that_nobody_can_read():
    ledger = ldp.Ledger(limit=ldp.Budget(1.0))
    for name in ("<b>Monday</b>", "Tuesday"):
        ledger.charge("labels", epsilon=0.75, segment=name)
    page = render_ledger(ledger)
    assert "Spent ε = 0.75 of ε = 1 in 2 charges." in page
    assert "&lt;b&gt;Monday&lt;/b&gt;" in page
    assert "<b>Monday" not in page
    assert [(balance.label, balance.person) for balance in replay(ledger)] == [(0.75, 0.75), (0.75, 1.5)]
    ledger.charge_all(
        [dataclasses.replace(ledger.charges[0], when="tomorrow", segments=None, budget=ldp.Budget(0.1))]
    )
    with pytest.raises(ldp.errors.LedgerError, match="time"):
        render_ledger(ledger)
