"""The report in a real browser: it loads, fits a phone, and calls nobody."""

from contextlib import contextmanager

import pytest

from app.report import report_cases as cases
from labeldp.app.report import render_report

PHONE, DESKTOP = 390, 1280


@contextmanager
def opened(browser, tmp_path, text, *, width=DESKTOP, dark=False):
    """Open a page from a file; yield it, and what it complained about and asked for."""
    file = tmp_path / "page.html"
    file.write_text(text, encoding="utf-8")
    context = browser.new_context(
        viewport={"width": width, "height": 800}, color_scheme="dark" if dark else "light"
    )
    context.set_default_timeout(120_000)  # under load
    page, complaints, asked = context.new_page(), [], []
    page.on("console", lambda message: complaints.append(f"{message.type}: {message.text}"))
    page.on("pageerror", lambda error: complaints.append(str(error)))
    page.on("dialog", lambda dialog: (complaints.append(f"dialog: {dialog.message}"), dialog.dismiss()))
    page.on("request", lambda request: asked.append(request.url))
    page.goto(file.as_uri(), wait_until="load")
    try:
        yield page, complaints, [url for url in asked if url != file.as_uri() and not url.startswith("data:")]
    finally:
        context.close()


SIDEWAYS = "() => document.documentElement.scrollWidth > window.innerWidth"
CUT = """() => [...document.querySelectorAll('.table')].some(table => table.scrollWidth > table.clientWidth)"""


def faults(browser, tmp_path, text, width):
    """Return what a reader would stumble over."""
    with opened(browser, tmp_path, text, width=width) as (page, complaints, asked):
        checks = {"it scrolls sideways": SIDEWAYS, "a table is cut off": CUT}
        found = [name for name, check in checks.items() if page.evaluate(check)]
        return [*found, *complaints, *(f"asked for {url}" for url in asked)]


@pytest.mark.parametrize("width", [PHONE, DESKTOP])
@pytest.mark.parametrize("kind", [*cases.KINDS, "rr-on-bins"])
def test_a_report_loads_fits_and_calls_nobody(browser, tmp_path, kind, width):
    assert faults(browser, tmp_path, cases.page(kind), width) == []


@pytest.mark.parametrize(
    ("good", "bad"),
    [
        ("</main>", "<script>document.title = 'x'</script></main>"),
        ("</main>", "<img src='http://127.0.0.1:9/x.png'></main>"),
        ("</main>", "<div style='width:3000px'>wide</div></main>"),
        ("<td>", "<td style='min-width:3000px'>"),
    ],
)
def test_a_broken_report_is_caught(browser, tmp_path, good, bad):
    broken = cases.page("release").replace(good, bad)
    assert broken != cases.page("release")
    assert faults(browser, tmp_path, broken, DESKTOP)


def luminance(page, expression):
    red, green, blue = (int(part) for part in page.evaluate(expression).strip("rgba()").split(",")[:3])
    return (0.2126 * red + 0.7152 * green + 0.0722 * blue) / 255


def test_dark_mode_turns_paper_and_ink_round(browser, tmp_path):
    paper = "() => getComputedStyle(document.body).backgroundColor"
    ink = "() => getComputedStyle(document.body).color"
    for dark in (False, True):
        with opened(browser, tmp_path, cases.page("release"), dark=dark) as (page, _, _):
            assert [luminance(page, one) > 0.5 for one in (paper, ink)] == [not dark, dark]


def test_it_prints(browser, tmp_path):
    with opened(browser, tmp_path, cases.page("release"), dark=True) as (page, complaints, _):
        printed = page.pdf(format="A4")
        assert printed.startswith(b"%PDF")
        assert 2 <= printed.count(b"/Type /Page\n") + printed.count(b"/Type /Page/") <= 8
        page.emulate_media(media="print", color_scheme="dark")
        assert luminance(page, "() => getComputedStyle(document.body).backgroundColor") > 0.9
        assert not complaints


@pytest.mark.slow
def test_a_summary_is_one_a4_page_however_much_its_owner_says(browser, tmp_path):
    said = dict.fromkeys(["purpose", "recipient", "bounds_reason"], "many words " * 45)
    file = {**cases.FILE, "rows": 4000, "columns": [f"a column with a long name {k}" for k in range(200)]}
    text = render_report(cases.changed(cases.card("release"), file=file, **said), "summary", ledger=cases.ledger())
    with opened(browser, tmp_path, text) as (page, complaints, asked):
        printed = page.pdf(prefer_css_page_size=True)
        assert printed.count(b"/Type /Page\n") + printed.count(b"/Type /Page/") == 1
        assert not [*complaints, *asked]
