"""The form of examples/survey in Chromium: what is sent, what is kept, and what never leaves the device."""

import functools
import http.client
import http.server
import importlib.util
import json
import re
import shutil
import threading
from contextlib import contextmanager
from pathlib import Path

import pytest

import labeldp as ldp
from command_line import said

ROOT = Path(__file__).parents[2]
SURVEY = ROOT / "examples" / "survey"
ANSWER = "52345.25"
PATIENCE = 60_000
"""Milliseconds that a machine under load may take."""


class Quiet(http.server.SimpleHTTPRequestHandler):
    """Serve files without a line for each."""

    def log_message(self, *_):
        """Say nothing."""


@pytest.fixture(scope="module")
def published(tmp_path_factory):
    """The folder as its owner publishes it, with the client."""
    folder = tmp_path_factory.mktemp("published")
    shutil.copytree(SURVEY, folder, dirs_exist_ok=True)
    shutil.copy(ROOT / "clients" / "javascript" / "labeldp.js", folder / "labeldp.js")
    return folder


@contextmanager
def served(folder):
    """Serve a folder; yield its address."""
    handler = functools.partial(Quiet, directory=str(folder))
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield f"http://127.0.0.1:{server.server_port}/"
        server.shutdown()


class Visit:
    """A respondent's browser on the form, and all that it asked for, sent and complained of."""

    def __init__(self, browser, address, width=1280, **options):
        self.context = browser.new_context(viewport={"width": width, "height": 844}, **options)
        self.context.set_default_timeout(PATIENCE)
        self.sent, self.asked, self.complaints = [], [], []
        self.context.on("request", lambda request: self.asked.append(request.url))
        self.context.route("**/reports", self.receive)
        self.page = self.context.new_page()
        self.page.on("pageerror", lambda error: self.complaints.append(str(error)))
        self.page.on("console", lambda message: self.complaints.append(message.text))
        self.address = address

    def receive(self, route):
        self.sent.append(route.request.post_data)
        route.fulfill(status=204)

    def open(self):
        self.page.goto(self.address)
        self.page.wait_for_selector("#draw:enabled")
        return self

    def draw(self, answer=ANSWER):
        self.page.select_option("#age", "37")
        self.page.select_option("#region", "south")
        if answer is not None:
            self.page.fill("#salary", answer)
        self.page.click("#draw")
        self.page.wait_for_selector("#review:visible")
        return self.kept()["value"]

    def send(self):
        self.page.click("#send")
        self.page.wait_for_selector("#done:visible")

    def kept(self):
        return json.loads(self.page.evaluate("localStorage.getItem('labeldp:answer:salary-2026')"))

    def leaks(self):
        """Return whether the answer is in anything that was sent, asked for or stored."""
        stored = self.page.evaluate("JSON.stringify([localStorage, sessionStorage, document.cookie])")
        return any("5234" in text for text in [stored, *self.sent, *self.asked, self.page.url])

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.context.close()


@pytest.fixture(scope="module")
def address(published):
    with served(published) as at:
        yield at


@pytest.mark.parametrize("width", [390, 1280])
def test_what_is_shown_is_sent_and_the_answer_never_leaves(browser, address, width):
    with Visit(browser, address, width).open() as visit:
        value = visit.draw()
        page = visit.page
        assert page.inner_text("#values").startswith("Your answer 52,345 → ")
        assert "more than 73 % sure" in page.inner_text("#meaning")
        assert page.evaluate("document.documentElement.scrollWidth") <= width
        visit.send()
        (body,) = map(json.loads, visit.sent)
        card = json.loads((SURVEY / "salary.card.json").read_text())
        assert body == {"age": "37", "region": "south", "salary": value, "card": card["checksum"]}
        mechanism = ldp.load_mechanism((SURVEY / "salary.card.json").read_text())
        assert len(ldp.Reports([value], mechanism)) == 1
        assert not visit.leaks()
        assert all(url.startswith(visit.address) for url in visit.asked)
        page.reload()
        page.wait_for_selector("#done:visible")
        assert "52,345" not in page.content()
        assert visit.complaints == []


def test_another_question_needs_other_html_alone(browser, published, tmp_path):
    """A yes-or-no question: its answer and its number are shown with the digits that they need."""
    shutil.copytree(published, tmp_path, dirs_exist_ok=True)
    text = (published / "index.html").read_text(encoding="utf-8")
    mechanism = ldp.TwoPoint(bounds=(0, 1), epsilon=1.0)
    checksum = json.loads(mechanism.to_json())["checksum"]
    card = f'data-sha256="{checksum}">{mechanism.to_json()}<'
    text = re.sub(r'data-sha256="[^>]*>[^<]*<', lambda _: card, text)
    options = '<option></option><option value="1">Yes</option><option value="0">No</option>'
    named = '<label>often <input type="checkbox" name="often" checked></label>'  # of the answer: not sent
    answers = f'<select id="smokes">{options}</select>{named}'
    text = re.sub('<input id="salary"[^>]*>', answers, text).replace("salary-2026", "smokes-2026")
    (tmp_path / "index.html").write_text(text, encoding="utf-8")
    with served(tmp_path) as address, Visit(browser, address).open() as visit:
        page = visit.page
        page.select_option("#age", "37")
        page.select_option("#region", "south")
        page.select_option("#smokes", "1")
        page.click("#draw")
        page.wait_for_selector("#review:visible")
        assert page.inner_text("#values") in ("Your answer Yes → 1.582", "Your answer Yes → -0.582")
        visit.send()
        (body,) = map(json.loads, visit.sent)
        assert body["smokes"] in mechanism.channel.values
        assert set(body) == {"age", "region", "smokes", "card"}
        assert visit.complaints == []


BROKEN = {
    "the answer has a name": ("index.html", '<input id="salary"', '<input id="salary" name="answer"'),
    "the answer is kept": (
        "survey.js",
        "await client.answer(",
        "localStorage.mine = answer; await client.answer(",
    ),
}


@pytest.mark.parametrize("fault", BROKEN)
def test_a_form_that_gives_the_answer_away_is_noticed(browser, published, tmp_path, fault):
    shutil.copytree(published, tmp_path, dirs_exist_ok=True)
    name, old, new = BROKEN[fault]
    text = (published / name).read_text(encoding="utf-8")
    assert text.count(old) == 1
    (tmp_path / name).write_text(text.replace(old, new), encoding="utf-8")
    if "name" in fault:  # and the field is not emptied
        code = (published / "survey.js").read_text(encoding="utf-8").replace('field.value = "";', "")
        code = code.replace("disabled = isDrawn", "disabled = false")
        (tmp_path / "survey.js").write_text(code, encoding="utf-8")
    with served(tmp_path) as address, Visit(browser, address).open() as visit:
        visit.draw()
        visit.send()
        assert visit.leaks()


def test_going_back_reloading_and_a_second_tab_draw_nothing_again(browser, address):
    with Visit(browser, address).open() as visit:
        value = visit.draw()
        page = visit.page
        page.click("#back")
        assert page.is_disabled("#salary")
        assert page.input_value("#salary") == ""
        page.select_option("#region", "north")
        page.click("#draw")
        page.wait_for_selector("#review:visible")
        assert visit.kept()["value"] == value
        page.reload()
        page.wait_for_selector("#draw:enabled")
        assert visit.draw(answer=None) == value
        assert "Drawn before on this device" in page.inner_text("#values")
        visit.page = visit.context.new_page()
        visit.open()
        assert visit.draw(answer=None) == value
        visit.send()
        assert json.loads(visit.sent[0])["salary"] == value


def test_the_form_works_without_a_connection_and_sends_the_same_number_later(browser, address):
    with Visit(browser, address).open() as visit:
        page = visit.page
        page.evaluate("navigator.serviceWorker.ready.then(() => null)")  # its files are cached
        visit.context.unroute("**/reports")
        visit.context.set_offline(True)
        page.reload()
        page.wait_for_selector("#draw:enabled")
        value = visit.draw()
        page.click("#send")
        page.wait_for_selector("#sending:not(:empty)")
        assert page.inner_text("#sending").startswith("Not sent")
        visit.context.set_offline(False)
        visit.context.route("**/reports", visit.receive)
        visit.send()
        assert json.loads(visit.sent[0])["salary"] == value


def test_nothing_is_drawn_for_no_number_or_for_a_question_without_an_answer(browser, address):
    with Visit(browser, address).open() as visit:
        visit.page.click("#draw")
        assert "answer all questions" in visit.page.inner_text("#problem")
        visit.page.select_option("#age", "37")
        visit.page.select_option("#region", "south")
        visit.page.click("#draw")
        assert "answer all questions" in visit.page.inner_text("#problem")
        assert visit.page.evaluate("localStorage.length") == 0
        assert visit.sent == []


@pytest.mark.parametrize(
    "keeper",
    ["Storage.prototype.setItem = () => {}", "Storage.prototype.setItem = () => { throw new Error('full') }"],
)
def test_where_nothing_can_be_kept_nothing_is_shown_or_sent(browser, address, keeper):
    with Visit(browser, address) as visit:
        visit.context.add_init_script(f"Storage.prototype.setItem = {keeper}")
        visit.open()
        visit.page.select_option("#age", "37")
        visit.page.select_option("#region", "south")
        visit.page.fill("#salary", ANSWER)
        visit.page.click("#draw")
        visit.page.wait_for_selector("#problem:not(:empty)")
        assert "keeps nothing" in visit.page.inner_text("#problem")
        assert visit.page.is_hidden("#review")
        assert visit.sent == []


def weaker(page):
    """Return the page with a card of more ε, and its checksum."""
    card = ldp.RPWithPrior(interval=(0, 200_000), zeta=20_000, epsilon=8.0).to_json()
    checksum = json.loads(card)["checksum"]
    return re.sub(r'data-sha256="[^"]*">\{.*?\}</script>', f'data-sha256="{checksum}">{card}</script>', page)


FORGED = {
    "a card of more ε": weaker,
    "another number on the card": lambda page: page.replace('"extra":3689982129', '"extra":3689982130'),
    "another checksum": lambda page: page.replace('data-sha256="sha256:0', 'data-sha256="sha256:1'),
    "no card": lambda page: re.sub(r">\{.*?\}</script>", "></script>", page),
    "radio buttons": lambda page: page.replace('id="salary" type="number"', 'id="salary" type="radio" value="1"'),
    "a field without an id": lambda page: page.replace('<input id="salary"', "<input"),
}


@pytest.mark.parametrize("forgery", FORGED)
def test_a_changed_card_or_a_question_of_another_kind_closes_the_form(browser, published, tmp_path, forgery):
    shutil.copytree(published, tmp_path, dirs_exist_ok=True)
    page = (published / "index.html").read_text(encoding="utf-8")
    assert FORGED[forgery](page) != page
    (tmp_path / "index.html").write_text(FORGED[forgery](page), encoding="utf-8")
    with served(tmp_path) as address, Visit(browser, address) as visit:
        visit.page.goto(address)
        visit.page.wait_for_selector("text=cannot protect your answer")
        assert "cannot protect your answer" in visit.page.inner_text("#problem")
        assert visit.page.is_disabled("#draw")
        assert visit.sent == []


def test_without_the_client_the_form_stays_closed(browser, published, tmp_path):
    shutil.copytree(published, tmp_path, dirs_exist_ok=True)
    (tmp_path / "labeldp.js").unlink()
    with served(tmp_path) as address, Visit(browser, address) as visit:
        visit.page.goto(address)
        assert "Nothing is sent before" in visit.page.inner_text("#problem")
        assert visit.page.is_disabled("#draw")


def test_without_scripts_no_browser_sends_the_answer(browser, address):
    with Visit(browser, address, java_script_enabled=False) as visit:
        visit.page.goto(address)
        assert visit.page.is_disabled("#draw")
        assert "needs JavaScript" in visit.page.inner_text("noscript")
        visit.page.fill("#salary", ANSWER)
        visit.page.press("#salary", "Enter")
        assert not any("52345" in url for url in visit.asked)
        assert visit.sent == []


# ---- the collector ----------------------------------------------------------------------------------------------


@pytest.fixture
def collector(tmp_path):
    """The address of examples/survey/collector.py as it lies in the repository, and the table that it writes."""
    spec = importlib.util.spec_from_file_location("survey_collector", SURVEY / "collector.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    with module.make_server(0, tmp_path / "reports.csv") as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield f"http://127.0.0.1:{server.server_port}/", tmp_path / "reports.csv"
        server.shutdown()


def test_a_form_its_collector_and_the_command_go_together(browser, collector):
    address, table = collector
    for _ in range(4):
        with Visit(browser, address) as visit:
            visit.context.unroute("**/reports")
            visit.open()
            visit.draw()
            visit.send()
            assert not visit.leaks()
    lines = table.read_text().splitlines()
    assert (lines[0], len(lines)) == ("age,region,salary,card", 5)
    card, out = SURVEY / "salary.card.json", table.with_name("labels.csv")
    assert "4 reports, ε = 1" in said("collect", table, "--label", "salary", "--card", card, "-o", out)
    assert "Valid." in said("verify", out)


GOOD = {"age": "37", "region": "south", "salary": 5.0, "card": "sha256:" + "0" * 64}
NONSENSE = {
    "no JSON": b"{",
    "a list": b"[]",
    "deep": b"[" * 1900,
    "too long": json.dumps(GOOD).encode() + b" " * 3000,
    "another field": {**GOOD, "name": "x"},
    "a field less": {name: GOOD[name] for name in list(GOOD)[1:]},
    "a formula": {**GOOD, "region": "=1+1"},
    "another value": {**GOOD, "age": "38"},
    "a list as value": {**GOOD, "age": ["37"]},
    "text as number": {**GOOD, "salary": "5"},
    "no number": {**GOOD, "salary": float("nan")},
    "true": {**GOOD, "salary": True},
    "a huge integer": {**GOOD, "salary": 10**400},
    "two lines": {**GOOD, "card": GOOD["card"] + "\n"},
}


def request(address, method, path, body=b"", kind="application/json"):
    """Return the status of a request without the page."""
    data = body if isinstance(body, bytes) else json.dumps(body).encode()
    connection = http.client.HTTPConnection(address.removeprefix("http://").rstrip("/"), timeout=60)
    try:
        connection.request(method, f"/{path}", data, {"Content-Type": kind})
        return connection.getresponse().status
    finally:
        connection.close()


def test_the_collector_takes_reports_alone_and_shows_its_table_to_nobody(collector):
    address, table = collector
    statuses = {name: request(address, "POST", "reports", body) for name, body in NONSENSE.items()}
    assert statuses == dict.fromkeys(NONSENSE, 400)
    assert request(address, "POST", "reports", GOOD, kind="text/plain") == 400
    assert request(address, "POST", "other", GOOD) == 400
    assert not table.exists()
    assert request(address, "POST", "reports", GOOD) == 204
    assert table.read_text().splitlines() == ["age,region,salary,card", f"37,south,5.0,{GOOD['card']}"]
    for name in ("reports.csv", "collector.py", "../reports.csv", "salary.card.json", "%2e%2e/reports.csv"):
        assert request(address, "GET", name) == 404


def test_the_page_embeds_the_card_that_lies_beside_it():
    page = (SURVEY / "index.html").read_text(encoding="utf-8")
    card = (SURVEY / "salary.card.json").read_text()
    assert f'data-sha256="{json.loads(card)["checksum"]}">{card}</script>' in page
    assert ldp.verify_card(card).holds
    private = re.search(r'<input id="salary"[^>]*>', page).group()
    assert "name=" not in private
