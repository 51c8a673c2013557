"""The page in a real browser: the whole way, by keys, without scripts, on a phone, and what happens in between."""

import sys
import threading
from base64 import b64encode
from contextlib import contextmanager, nullcontext
from pathlib import Path

import pytest

import labeldp.app.page as labeldp_page

PHONE, DESKTOP, WIDE = 390, 1280, 1920
BUDGET = "Privacy budget (ε)"
DONE = 120_000
"""Milliseconds that a machine under load may take."""


def messy(path, rows=400):
    """Write what a spreadsheet exports in Germany: semicolons, decimal commas, a byte-order mark."""
    lines = [
        f"{n % 6 + 1};{(n % 50) * 1.5 + 20:.1f};{['Köln', 'Bonn'][n % 2]};{n * 37 % 900 + 300}.50"
        for n in range(rows)
    ]
    text = "\n".join(["Zimmer;Fläche;Stadt;Miete", *(line.replace(".", ",") for line in lines)])
    Path(path).write_text(text + "\n", encoding="utf-8-sig")


@contextmanager
def running(folder, **how):
    """Serve a folder from a thread; yield the address."""
    said, ready = [], threading.Event()

    def say(text):
        said.append(text)
        ready.set()

    options = {"browse": False, "say": say, **how}
    thread = threading.Thread(target=labeldp_page.serve, args=(folder,), kwargs=options, daemon=True)
    thread.start()
    assert ready.wait(60)
    yield said[0].split()[-1]
    thread.join(60)
    assert not thread.is_alive()


@contextmanager
def tab(browser, address, *, width=DESKTOP):
    """Open the page; yield it, and check that it complained of nothing and asked nobody else."""
    context = browser.new_context(viewport={"width": width, "height": 800})
    context.set_default_timeout(DONE)
    page, complaints, asked = context.new_page(), [], []
    page.on("console", lambda message: complaints.append(message.text))
    page.on("pageerror", lambda error: complaints.append(str(error)))
    context.on("request", lambda request: asked.append(request.url))
    page.goto(address)
    page.wait_for_url(lambda url: "token" not in url)  # the entry leads on by itself
    home = address.partition("?")[0]
    try:
        yield page
        assert complaints == []
        assert [url for url in asked if not url.startswith((home, "data:"))] == []
    finally:
        context.close()


@pytest.fixture
def folder(tmp_path):
    messy(tmp_path / "wohnungen.csv")
    return tmp_path


def axe():
    package = pytest.importorskip("axe_playwright_python", reason="no axe: pip install axe-playwright-python")
    return (Path(package.__file__).parent / "axe.min.js").read_text(encoding="utf-8")


def look(page, name, script):
    """Wait for a page by its heading, and check it as those would who see it on a phone, at night, or hear it."""
    page.get_by_role("heading", name=name, level=1).wait_for()
    page.wait_for_load_state()
    assert page.title().endswith("labeldp")
    page.evaluate(script)
    own = page.viewport_size
    for size, scheme in (({**own, "width": WIDE}, "dark"), (own, "light")):
        page.set_viewport_size(size)
        page.emulate_media(color_scheme=scheme)
        where = f"{name} at {size['width']} px, {scheme}"
        assert page.evaluate("document.documentElement.scrollWidth <= innerWidth"), f"{where} scrolls sideways"
        found = page.evaluate("axe.run().then(found => found.violations.map(v => v.id + ': ' + v.nodes[0].html))")
        assert found == [], where


def press(target, key="Enter"):
    """Go to something by the Tab key alone, and press a key there."""
    target.wait_for()
    for _ in range(60):
        if target.evaluate("element => element === document.activeElement"):
            with target.page.expect_navigation() if key == "Enter" else nullcontext():
                target.page.keyboard.press(key)
            return
        target.page.keyboard.press("Tab")
    raise AssertionError("the Tab key does not lead there")


def arrive(element):
    """Wait for something on a new page, then for the scripts and pictures of that page."""
    element.wait_for()
    element.page.wait_for_load_state()


def close(page):
    """End the server, once the last page has all that it needs of it."""
    page.get_by_role("button", name="Close labeldp").click()
    page.get_by_role("heading", name="Closed").wait_for()
    page.wait_for_load_state()


def to_budget(page, label="Miete", bounds=("0", "3000")):
    """Go from the columns of a table to its budget."""
    page.get_by_label(f"{label} is private").check()
    page.get_by_role("button", name="Read the table").click()
    page.get_by_role("button", name="Continue with").click()
    page.get_by_label("Lowest possible").fill(bounds[0])
    page.get_by_label("Highest possible").fill(bounds[1])
    page.get_by_role("button", name="Continue to the budget").click()


def choose_budget(page, epsilon):
    page.get_by_label(BUDGET, exact=True).fill(epsilon)
    page.get_by_label("Limit").fill("3")
    page.get_by_role("button", name="Review the release").click()


def release(page):
    page.get_by_role("button", name="Release").click()
    page.get_by_role("heading", name="Released", level=1).wait_for()


def test_the_whole_way_with_a_messy_csv_on_a_phone_by_keys_and_for_a_screen_reader(browser, folder):
    script = axe()
    with running(folder) as address, tab(browser, address, width=PHONE) as page:
        assert "token" not in page.url
        look(page, "Choose a table", script)
        press(page.get_by_role("button", name="wohnungen.csv"))
        look(page, "Choose the private column", script)
        press(page.get_by_label("Zimmer is private"), "ArrowUp")  # the last of the group: Miete
        press(page.get_by_role("button", name="Read the table"))
        page.get_by_role("button", name="Continue with").wait_for()
        page.locator("main").get_by_text("separator ';', decimal mark ','").wait_for()
        page.locator("main").get_by_text("Köln").first.wait_for()
        look(page, "Check what was read", script)
        press(page.get_by_role("button", name="Continue with"))
        page.get_by_label("Lowest possible").fill("3000")
        page.get_by_label("Highest possible").fill("0")
        press(page.get_by_role("button", name="Continue to the budget"))
        arrive(page.locator("#summary:focus"))
        look(page, "Set the lowest and highest possible Miete", script)
        page.get_by_label("Lowest possible").fill("0")
        assert page.locator("#summary, .problem, [aria-invalid]").count() == 0  # a problem goes with its value
        page.get_by_label("Highest possible").fill("3000")
        page.get_by_role("button", name="Continue to the budget").click()
        arrive(page.get_by_label("Limit"))
        page.get_by_label("Limit").fill("3")
        page.get_by_label(BUDGET, exact=True).fill("2")
        page.get_by_text("about 88 at most after it").first.wait_for()  # the server's figures
        press(page.get_by_role("button", name="ε = 1", pressed=False), "Space")
        page.get_by_role("button", name="ε = 1", pressed=True).wait_for()
        assert page.get_by_label(BUDGET, exact=True).input_value() == "1"
        page.get_by_text("about 73 at most after it").first.wait_for()
        look(page, "Choose the privacy budget", script)
        press(page.get_by_role("button", name="Review the release"))
        page.get_by_role("heading", name="Your request").wait_for()
        look(page, "Review and release Miete", script)
        press(page.get_by_role("button", name="Release"))
        page.get_by_role("heading", name="Released", level=1).wait_for()
        look(page, "Released", script)
        with page.context.expect_page() as opened:
            page.get_by_role("link", name="Open the report").click()
        opened.value.wait_for_load_state()
        opened.value.get_by_role("heading", name="The proof").wait_for()
        assert opened.value.evaluate("getComputedStyle(document.querySelector('section')).borderRadius") == "10px"
        page.get_by_role("link", name="All releases").click()
        look(page, "Verify and share past releases", script)
        page.get_by_role("link", name="card.json").first.click()
        look(page, "Noisy values in wohnungen.private.csv", script)
        page.locator("header").get_by_text("verified just now: valid").wait_for()
        close(page)
    assert (
        (folder / "wohnungen.private.csv")
        .read_text(encoding="utf-8-sig")
        .startswith("Zimmer;Fläche;Stadt;Miete\n")
    )


DROPPED = """data => {
  const dropped = new DataTransfer(), bytes = Uint8Array.from(atob(data), (letter) => letter.charCodeAt(0));
  dropped.items.add(new File([bytes], "flats.xlsx"));
  return dropped;
}"""


def test_an_excel_file_is_dropped_and_becomes_a_model(browser, folder):
    openpyxl = pytest.importorskip("openpyxl")
    book = openpyxl.Workbook()
    for row in [["rooms", "town", "rent"], *([n % 6, ["Köln", "Bonn"][n % 2], n % 90 + 10] for n in range(300))]:
        book.active.append(row)
    book.save(folder.parent / "flats.xlsx")
    with running(folder) as address, tab(browser, address) as page:
        data = b64encode((folder.parent / "flats.xlsx").read_bytes()).decode()
        page.dispatch_event("[data-drop]", "drop", {"dataTransfer": page.evaluate_handle(DROPPED, data)})
        to_budget(page, "rent", ("0", "100"))
        page.get_by_label("A private model").check()
        choose_budget(page, "2")
        release(page)
        page.get_by_role("link", name="Verify the certificate").click()
        page.locator("header").get_by_text("verified just now: valid").wait_for()
        close(page)
    assert (folder / "flats.xlsx").exists()
    assert (folder / "flats.model" / "card.json").exists()


def test_the_browser_is_started_with_a_file_for_its_owner_alone_which_leads_to_the_page(
    browser, folder, monkeypatch
):
    """The list of processes shows all users what a browser is started with."""
    opened, ready = [], threading.Event()
    monkeypatch.setattr("webbrowser.open", lambda address: (opened.append(address), ready.set()))
    with running(folder, browse=True):
        assert ready.wait(60)
        (entry_page,) = folder.glob("*.html")
        assert opened == [entry_page.as_uri()]
        assert entry_page.stat().st_mode & 0o077 == 0 or sys.platform == "win32"
        page = browser.new_page()
        page.set_default_timeout(DONE)
        page.goto(opened[0])
        page.get_by_role("heading", name="Choose a table").wait_for()
        assert "token" not in page.url
        for _ in range(DONE // 100):  # it goes once it was used
            if entry_page.exists():
                page.wait_for_timeout(100)
        assert not entry_page.exists()
        close(page)
        page.close()
