"""A browser without a screen, for the page: it keeps cookies, sends forms, and follows redirects."""

import asyncio
import re
import subprocess
import sys
import threading
from contextlib import contextmanager
from dataclasses import dataclass
from html import unescape
from unittest import mock
from urllib.parse import urlencode, urlsplit

import labeldp as ldp
from labeldp.app import page

PORT = 8123
HOST = f"127.0.0.1:{PORT}"

HIDDEN = "31415"
"""A label of the table in the folder; no page may show it."""


@dataclass(frozen=True)
class Answer:
    status: int
    headers: list
    body: bytes
    path: str

    def header(self, name):
        return next((value for key, value in self.headers if key == name), None)

    @property
    def html(self):
        return self.body.decode()

    @property
    def is_refusal(self):
        """Whether it is the start page, which says what was wrong with a form."""
        return self.path == "/" and "Please check this" in self.words

    @property
    def words(self):
        """What a reader sees of it."""
        return " ".join(unescape(re.sub(r"<(script|style).*?</\1>|<[^>]*>", " ", self.html, flags=re.S)).split())


class Client:
    """Talks to the application without a network; `problems` are the fields that the last page complained of."""

    def __init__(self, folder):
        self.site = page.Site(page.ChosenFolder(folder))
        self.app = page.build_app(self.site)
        self.cookie, self.problems = "", []

    def enter(self):
        """Visit the address with the token, and return this client."""
        answer = self.request("GET", self.site.keys.address)
        self.cookie = answer.header("set-cookie").partition(";")[0]
        return self

    def request(self, method, path, body=b"", headers=(), *, base=None, is_cut=False):
        """Send one request as it is, with the cookie and what a browser adds unless told otherwise.

        A path may leave out the base, which is the page's own unless told otherwise. A request that is cut ends
        before its body does.
        """
        given = {"host": HOST, "cookie": self.cookie, **dict(headers)}
        if method == "POST":
            own = {"origin": f"http://{HOST}", "content-length": str(len(body))}
            given = {"content-type": "application/x-www-form-urlencoded", **own, **given}
        base, path = self.site.keys.base if base is None else base, path.removeprefix(self.site.keys.base)
        parts, sent = urlsplit(base + path), []
        scope = {
            "type": "http",
            "http_version": "1.1",
            "method": method,
            "scheme": "http",
            "path": parts.path,
            "raw_path": parts.path.encode(),
            "query_string": parts.query.encode(),
            "root_path": "",
            "headers": [(name.encode(), value.encode()) for name, value in given.items() if value is not None],
            "client": ("127.0.0.1", 50000),
            "server": ("127.0.0.1", PORT),
        }
        blocks = [body[start : start + 65536] for start in range(0, len(body), 65536)] or [b""]

        async def receive():
            if not blocks and is_cut:
                return {"type": "http.disconnect"}
            if not blocks:
                await asyncio.Event().wait()  # a browser that stays
            return {"type": "http.request", "body": blocks.pop(0), "more_body": is_cut or bool(blocks)}

        async def send(message):
            sent.append(message)

        asyncio.run(self.app(scope, receive, send))
        headers = [(name.decode(), value.decode()) for name, value in sent[0]["headers"]]
        body = b"".join(message.get("body", b"") for message in sent[1:])
        return Answer(sent[0]["status"], headers, body, parts.path.removeprefix(base))

    def get(self, path):
        return self._followed(self.request("GET", path))

    def post(self, path, /, **fields):
        """Send a form, and return the page that it leads to."""
        body = urlencode(fields, doseq=True).encode()
        return self._followed(self.request("POST", path, body))

    def upload(self, name, data, path="/upload", /, **fields):
        """Send a file, and return the page that it leads to."""
        parts = [(f'name="{key}"', value.encode()) for key, value in fields.items()]
        parts.append((f'name="file"; filename="{name}"', data))
        body = b"".join(
            f"--edge\r\nContent-Disposition: form-data; {head}\r\n\r\n".encode() + value + b"\r\n"
            for head, value in parts
        )
        kind = {"content-type": "multipart/form-data; boundary=edge"}
        return self._followed(self.request("POST", path, body + b"--edge--\r\n", kind))

    def _followed(self, answer):
        while answer.status == 303:
            answer = self.request("GET", answer.header("location"))
        self.problems = re.findall('id="([a-z_]+)-problem"', answer.body.decode(errors="replace"))
        return answer

    # ---- the steps --------------------------------------------------------------------------------------------

    def unfinished(self, answer):
        """Return the unfinished release that a page is about."""
        return self.site.unfinished[answer.path.split("/")[2]]

    def show(self, unfinished, step):
        return self.get(unfinished.at(step))

    def open(self, source):
        return self.unfinished(self.post("/open", path=source))

    def written(self, unfinished, **how):
        """Say how a table is written."""
        return self.post(unfinished.at("table"), written="yes", **how)

    def name(self, unfinished, label, drop=(), **more):
        """Choose the private column, and which are left out."""
        names = unfinished.header.names
        shared = [number for number, name in enumerate(names) if name not in drop]
        return self.post(unfinished.at("table"), label=names.index(label), shared=shared, **more)

    def read(self, source, label, drop=(), **how):
        """Open a table, say how it is written, choose the private column, and return the unfinished release."""
        begun = self.open(source)
        if how:
            begun = self.unfinished(self.written(begun, **how))
        begun = self.unfinished(self.name(begun, label, drop))
        begun.reading.wait()
        return begun

    def figures(self, unfinished, **fields):
        """Ask what fields of the budget would give, as the page's script does."""
        return self.get(f"{unfinished.at('figures')}?{urlencode(fields)}")

    def describe(self, unfinished, bounds=(0, 100), **more):
        """Describe the private column."""
        return self.post(unfinished.at("column"), **{"bounds": bounds, "rows_per_person": 1, **more})

    def budget(self, unfinished, epsilon=1, ledger="book.db", **more):
        """Choose the budget."""
        is_new = not (self.site.folder.root / str(ledger)).exists()
        fields = {
            "kind": "table",
            "epsilon": epsilon,
            "ledger": ledger,
            **({"limit": 30} if is_new else {}),
            **more,
        }
        return self.post(unfinished.at("budget"), **fields)

    def press(self, unfinished, **more):
        """Press the button that releases the request."""
        shown = {"request": unfinished.request.id} if unfinished.request is not None else {}
        return self.post(unfinished.at("release"), **{**shown, **more})

    def release(self, unfinished, **more):
        """Press the button, wait, and return the page."""
        self.press(unfinished, **more)
        if unfinished.release is not None:
            unfinished.release.wait()
        return self.show(unfinished, "release")


def ready(client, **more):
    """Return an unfinished release with a request, unless the budget is refused."""
    unfinished = client.read("homes.csv", "price")
    client.describe(unfinished, missing="drop")
    client.budget(unfinished, **more)
    return unfinished


@contextmanager
def held(at, then=lambda work: None):
    """Let work wait as soon as its progress says ``at``, until the block ends; yield what is set there."""
    reached, go_on = threading.Event(), threading.Event()

    def progress(work, what, done, total, old=page.Work.progress):
        if what == at:
            reached.set()
            go_on.wait(60)
            then(work)
        old(work, what, done, total)

    with mock.patch.object(page.Work, "progress", progress):
        try:
            yield reached
        finally:
            go_on.set()


def charges(client, name="book.db"):
    path = client.site.folder.root / name
    return ldp.Ledger.open(path, create=False).charges if path.exists() else ()


# ---- a server in a process of its own ------------------------------------------------------------------------

COMMAND = """
import sys
exec(sys.argv[2])
from labeldp.app.cli import app
app(["page", sys.argv[1], "--no-open"])
"""


@contextmanager
def served(folder, before=""):
    """Start the command, after some code of the test; yield the process, its port and its entry."""
    command = [sys.executable, "-c", COMMAND, str(folder), before]
    with subprocess.Popen(command, stderr=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:  # noqa: S603
        try:
            said = process.stderr.readline()
            parts = urlsplit(re.search(r"http://\S+", said).group())
            yield process, parts.port, f"{parts.path}?{parts.query}"
        finally:
            process.kill()
