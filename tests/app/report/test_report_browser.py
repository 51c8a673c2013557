"""The report in a real browser: it loads, fits a phone, and calls nobody."""

from contextlib import contextmanager

import pytest

from app.report import report_cases as cases

PHONE, DESKTOP = 390, 1280
CHECKS = {
    "it scrolls sideways": "() => document.documentElement.scrollWidth > innerWidth",
    "a table is cut off": """() => [...document.querySelectorAll('.table')].some(
        table => table.scrollWidth > table.clientWidth
    )""",
}


@contextmanager
def opened(browser, tmp_path, text, *, width=DESKTOP, dark=False):
    """Open a page from a file; yield it, and what it complained about and asked for."""
    file = tmp_path / "page.html"
    file.write_text(text, encoding="utf-8")
    context = browser.new_context(
        viewport={"width": width, "height": 800}, color_scheme="dark" if dark else "light"
    )
    context.set_default_timeout(120_000)  # under load
    page, complaints = context.new_page(), []
    page.on("console", lambda message: complaints.append(f"{message.type}: {message.text}"))
    page.on("pageerror", lambda error: complaints.append(str(error)))
    page.on("dialog", lambda dialog: (complaints.append(f"dialog: {dialog.message}"), dialog.dismiss()))
    allowed = (file.as_uri(), "data:")
    page.on("request", lambda asked: asked.url.startswith(allowed) or complaints.append(f"asked for {asked.url}"))
    page.goto(file.as_uri(), wait_until="load")
    try:
        yield page, complaints
    finally:
        context.close()


def faults(browser, tmp_path, text, width=DESKTOP):
    """Return what a reader would stumble over."""
    with opened(browser, tmp_path, text, width=width) as (page, complaints):
        return [*(name for name, check in CHECKS.items() if page.evaluate(check)), *complaints]


@pytest.mark.parametrize("width", [PHONE, DESKTOP])
@pytest.mark.parametrize("kind", ["release", "sums-model", "hostile", "rr-on-bins"])
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
    assert faults(browser, tmp_path, cases.page("release").replace(good, bad))
