"""A page can say what an ε would give without Python: from formulas and one small table."""

import json
import re
import shlex
from html import unescape
from pathlib import Path

import numpy as np

import labeldp as ldp
from command_line import said
from labeldp.evidence import choices
from labeldp.evidence.cautions import LEAST_POWER
from labeldp.learning import epsilon_split

SITE = Path(__file__).parents[2] / "docs" / "choose.md"


def test_a_page_without_scripts_says_what_the_preview_says():
    plan = ldp.preview(rows=300, bounds=(-5, 20), epsilon=0.1)
    html = choices.choice_html(plan)
    cells = dict(re.findall(r'<th scope="row">([^<]+)</th><td>([^<]*)</td>', html.replace("&#x27;", "'")))
    assert {name: text for name, text in cells.items() if text} == dict(plan.table()[1][1:])
    assert '<tr data-figure="thousand" hidden>' in html  # no group is larger than the table
    assert len(plan.cautions()) == 3
    assert all(f"<p>{text}</p>" in html for text in plan.cautions())
    assert "by at most e^ε = 1.11×" in html


def test_odds_and_cautions_are_those_of_a_person_with_several_rows():
    plan = ldp.preview(rows=20_000, bounds=(0, 1), epsilon=2, rows_per_person=3)
    assert plan.table()[1][0] == ["odds grow by up to", "404×"]
    assert plan.cautions() == ldp.preview(rows=20_000, bounds=(0, 1), epsilon=6).cautions()
    assert plan.budgets == ldp.preview(rows=20_000, bounds=(0, 1), epsilon=2).budgets
    raised = "their odds on all labels of any one person with up to 3 rows by at most e^ε = 404×"
    assert raised in choices.choice_html(plan)


def test_odds_after_a_second_release_count_what_was_spent_before_and_errors_do_not():
    plan = ldp.preview(rows=20_000, bounds=(0, 1), epsilon=1)
    again, both = (
        choices.choice_html(plan, spent=ldp.Budget(3), score=1.5),
        ldp.preview(rows=9, bounds=(0, 1), epsilon=5.5),
    )
    odds = re.compile(r'data-text="(?:odds|example|people)">([^<]*)<')
    assert odds.findall(again) == odds.findall(choices.choice_html(both))
    parts = "ε = 1 for this release; ε = 1.5 for its score; ε = 3 that the ledger has spent before"
    assert f"These odds are those after all of it, ε = 5.5: {parts}." in again
    assert "WEAK: at ε = 5.5 " in again
    cells = re.compile(r"<td>([^<]*)</td>")
    assert cells.findall(again) == cells.findall(choices.choice_html(plan))
    assert "odds leave δ aside" in choices.choice_html(plan, spent=ldp.Budget(0.1, 1e-6))


def test_cautions_name_the_budget_nearest_to_none_of_them():
    plan = ldp.preview(rows=2000, bounds=(0, 1), epsilon=[0.01, 0.02, 0.1, 5, 6])
    weak, few, noisy, loose = plan.cautions()
    assert "WEAK: at ε = 5 " in weak
    assert "FEW: 2,000 rows are too few for a model at ε = 0.02" in few
    assert "NOISY: at ε = 0.02 " in noisy
    assert "bounds matter at ε = 0.1" in loose
    assert not ldp.preview(rows=2000, bounds=(0, 1), epsilon=1).cautions()


def test_too_few_rows_for_a_model_are_those_of_which_a_fit_takes_the_mean():
    assert LEAST_POWER == epsilon_split.FEWEST_FOR_GROUPS


def test_the_table_is_small_and_closes_no_tag():
    html = choices.choice_html(ldp.preview(rows=20_000, bounds=(0, 200), epsilon=1.0))
    table = re.search(r'<script type="application/json">(.*?)</script>', html, re.DOTALL)[1]
    assert json.loads(table) == choices.choice_table()
    assert len(table.encode()) < 10_000
    assert "<" not in table


def test_what_the_site_says_to_run_runs(tmp_path, monkeypatch):
    """A page without scripts shows the same lines, with what fields hold at first."""
    found = re.findall(r'<code data-command="([^"]*)">([^<]*)</code>', SITE.read_text(encoding="utf-8"))
    fields = {"low": "0", "high": "200", "epsilon": "1", "limit": "3"}
    commands = [unescape(template).format(**fields) for template, _ in found]
    assert commands == [unescape(shown) for _, shown in found]
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(400, 2)), rng.uniform(0, 200, 400)
    for place, command in enumerate(commands):
        folder = tmp_path / str(place)
        folder.mkdir()
        monkeypatch.chdir(folder)
        np.savetxt("table.csv", np.column_stack([X, y]), delimiter=",", header="a,b,income", comments="")
        if command.startswith("labeldp "):
            said(*shlex.split(command)[1:])
        else:
            exec(command, {"X": X, "y": y})  # noqa: S102 (of the site)
        assert ldp.Ledger.open("budget.jsonl").total == ldp.Budget(1)
    assert len(commands) == 4
