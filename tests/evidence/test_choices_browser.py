"""The figures in a real browser: the library's to three digits, live, by keys alone, under a strict policy."""

from pathlib import Path

import numpy as np
import pytest

import labeldp as ldp
from labeldp.accounts.numbers import number
from labeldp.evidence.choices import choice_html, choice_table

STATIC = Path(ldp.__file__).parent / "app" / "page" / "static"
STYLE = Path(ldp.__file__).parent / "app" / "report" / "style.css"
HOST = "http://choices.test/"
POLICY = "default-src 'none'; script-src 'self'; style-src 'self'"
FORM = """<label>ε <input type="number" step="any" data-choice="epsilon" data-slider value="1"></label>
<label>Rows <input type="number" data-choice="rows" data-slider value="20000"></label>
<input type="hidden" data-choice="limit" value="3"><input type="hidden" data-choice="left" value="1.5">
<svg viewBox="0 0 100 6"><rect data-price height="6"/></svg>
<pre class="choices-command"><code data-command="fit --bounds {low} {high} --epsilon {epsilon}"></code></pre>"""


@pytest.fixture
def page(browser):
    """The figures of one ε with fields for others, at an address that has nothing but them."""
    figures = choice_html(ldp.preview(rows=20_000, bounds=(0, 200), epsilon=1.0))
    html = f"""<!doctype html><html lang="en"><title>ε</title><link rel="stylesheet" href="style.css">
<link rel="stylesheet" href="choices.css"><script defer src="choices.js"></script>{FORM}{figures}"""

    def answer(route):
        name = route.request.url.removeprefix(HOST)
        if name:
            return route.fulfill(path=STYLE if name == "style.css" else STATIC / name)
        headers = {"Content-Security-Policy": POLICY, "Content-Type": "text/html; charset=utf-8"}
        return route.fulfill(body=html, headers=headers)

    context = browser.new_context(viewport={"width": 360, "height": 800})
    context.set_default_timeout(120_000)  # under load
    context.route("**/*", answer)
    shown, complaints = context.new_page(), []
    shown.on("console", lambda message: complaints.append(message.text))
    shown.on("pageerror", lambda error: complaints.append(str(error)))
    shown.goto(HOST)
    yield shown
    context.close()
    assert complaints == []


def random_choices(count):
    """Yield an ε in each of so many parts of the table, with any rows and bounds; and where a score ends."""
    rng = np.random.default_rng(24)
    for part in range(count):
        low, width = float(rng.normal()), float(f"{10 ** rng.uniform(-2, 5):.4g}")
        epsilon = float(f"{max(20 * ((part + rng.random()) / count) ** 2, 0.001):.4g}")
        yield {"rows": int(10 ** rng.uniform(0, 8)), "low": low, "high": low + width, "epsilon": epsilon}
    yield from ({"rows": rows, "low": 0, "high": 1, "epsilon": 1} for rows in (330, 340))


def test_figures_are_the_library_s_to_three_digits(page):
    """Half a unit of a third digit is 5e-4 of a figure or more."""
    choices = list(random_choices(50))
    found = page.evaluate(
        "([table, choices]) => choices.map(choice => labeldpChoices.outlook(table, choice))",
        [choice_table(), choices],
    )
    for choice, figures in zip(choices, found, strict=True):
        bounds = choice["low"], choice["high"]
        (point,) = ldp.preview(rows=choice["rows"], bounds=bounds, epsilon=choice["epsilon"]).budgets
        for name in ("label", "hundred", "thousand", "mean", "curator_mean", "score"):
            assert figures[name] == pytest.approx(getattr(point, name), rel=5e-4), (name, choice)
        kept = point.kept
        expected = kept and {name: getattr(kept, name) for name in ("low", "middle", "high", "tables")}
        assert figures["kept"] == pytest.approx(expected, abs=5e-4), choice


def test_words_are_the_library_s(page):
    plans = [
        ldp.preview(rows=rows, bounds=(-5, 20), epsilon=epsilon, wanted=wanted, rows_per_person=people)
        for rows, epsilon, wanted, people in ((20, 0.2, None, 1), (40_000, 0.3, 0.5, 1), (2_000_000, 2.0, None, 3))
    ]
    choices = [
        {"rows": p.rows, "low": -5, "high": 20, "epsilon": p.budgets[0].epsilon, "wanted": p.wanted} for p in plans
    ]
    said = page.evaluate(
        "([tables, choices]) => choices.map((choice, k) => labeldpChoices.texts(tables[k], choice))",
        [[choice_table(plan.rows_per_person) for plan in plans], choices],
    )
    spent, score = ldp.Budget(0.2), 0.1
    beside = {"spent": spent.epsilon, "told": str(spent), "score": score}
    again = page.evaluate(
        "([table, choice]) => labeldpChoices.texts(table, choice)",
        [choice_table(3), {**choices[2], "epsilon": 0.7, **beside}],
    )
    html = choice_html(
        ldp.preview(rows=9, bounds=(0, 1), epsilon=0.7, rows_per_person=3), spent=spent, score=score
    )
    assert all(f">{again[name]}<" in html for name in ("together", "odds", "example", "people"))
    for plan, texts in zip(plans, said, strict=True):
        assert list(texts["cells"].values()) == [line[1] for line in plan.table()[1][1:]]
        assert texts["cautions"] == plan.cautions()
        assert texts["notes"] == plan.notes()
        assert f">{texts['odds']}<" in choice_html(plan)
        assert f">{texts['people']}<" in choice_html(plan)


def test_a_slider_moves_with_keys_and_all_figures_and_the_command_follow(page):
    cell = page.locator('[data-figure="label"] td > span').first
    assert cell.inner_text() == "±197"
    slider = page.get_by_role("slider", name="ε, slider")
    slider.focus()
    page.keyboard.press("ArrowLeft")
    assert page.locator('[data-choice="epsilon"]').input_value() == "0.8"
    assert slider.get_attribute("aria-valuetext") == "0.8"
    assert cell.inner_text() == "±" + number(ldp.preview(rows=1, bounds=(0, 200), epsilon=0.8).budgets[0].label, 3)
    assert page.locator("[data-command]").inner_text() == "fit --bounds 0 200 --epsilon 0.8"
    assert page.locator(".choices-people .gain").count() == 19  # a coin toss becomes 69 % at most
    page.get_by_role("status").filter(has_text="ε = 0.8: odds grow by at most 2.23×").wait_for(state="attached")
    page.locator('[data-choice="rows"]').fill("40")
    assert not page.locator('[data-figure="hundred"]').is_visible()
    assert "FEW: 40 rows" in page.locator('[data-texts="cautions"]').inner_text()
    page.locator('[data-choice="epsilon"]').fill("50")
    page.get_by_role("status").filter(has_text="ε must lie between 0.001 and 20.").wait_for(state="attached")
    assert not cell.is_visible()
    assert page.evaluate("document.documentElement.scrollWidth") <= 360


def test_what_would_pass_the_limit_is_said_and_the_bar_shows_what_would_be_spent(page):
    bar, cautions = page.locator("[data-price]"), page.locator('[data-texts="cautions"]')
    assert float(bar.get_attribute("width")) == pytest.approx(100 * 2.5 / 3)
    assert cautions.inner_text() == ""
    page.locator('[data-choice="epsilon"]').fill("2")
    assert cautions.inner_text().startswith("LIMIT: this would cost ε = 2, and of ε = 3 only ε = 1.5 is left")
    assert bar.get_attribute("width") == "100"
