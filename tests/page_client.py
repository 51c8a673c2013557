"""A browser without a screen, for the page: it keeps cookies, sends forms, and follows redirects."""

import asyncio
import re
import subprocess
import sys
from contextlib import contextmanager
from dataclasses import dataclass
from html import unescape
from urllib.parse import quote, urlencode, urlsplit

from labeldp.ledger import Ledger
from labeldp.page.application import application
from labeldp.page.chosen_folder import ChosenFolder
from labeldp.page.site import Site

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
    def words(self):
        """What a reader sees of it."""
        return " ".join(unescape(re.sub(r"<(script|style).*?</\1>|<[^>]*>", " ", self.html, flags=re.S)).split())


class Client:
    """Talks to the application without a network."""

    def __init__(self, folder):
        self.site = Site.of(ChosenFolder(folder))
        self.app = application(self.site, PORT)
        self.cookie = ""

    def enter(self):
        """Visit the address with the token, and return this client."""
        answer = self.request("GET", self.site.keys.address)
        self.cookie = answer.header("set-cookie").partition(";")[0]
        return self

    def request(self, method, path, body=b"", headers=(), *, room=None):
        """Send one request as it is, with the cookie and what a browser adds unless told otherwise.

        A path may leave out the room, which is the page's own unless told otherwise.
        """
        given = {"host": HOST, "cookie": self.cookie, **dict(headers)}
        if method == "POST":
            own = {"origin": f"http://{HOST}", "sec-fetch-site": "same-origin", "content-length": str(len(body))}
            given = {"content-type": "application/x-www-form-urlencoded", **own, **given}
        room, path = self.site.keys.room if room is None else room, path.removeprefix(self.site.keys.room)
        parts, sent = urlsplit(room + path), []
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
            if not blocks:
                await asyncio.Event().wait()  # a browser that stays
            return {"type": "http.request", "body": blocks.pop(0), "more_body": bool(blocks)}

        async def send(message):
            sent.append(message)

        asyncio.run(self.app(scope, receive, send))
        headers = [(name.decode(), value.decode()) for name, value in sent[0]["headers"]]
        body = b"".join(message.get("body", b"") for message in sent[1:])
        return Answer(sent[0]["status"], headers, body, parts.path.removeprefix(room))

    def get(self, path):
        return self._followed(self.request("GET", path))

    def post(self, path, /, **fields):
        """Send a form, and return the page that it leads to."""
        body = urlencode({"form": self.site.keys.form, **fields}, doseq=True).encode()
        return self._followed(self.request("POST", path, body))

    def upload(self, name, data, path="/upload", /, **fields):
        """Send a file, and return the page that it leads to."""
        parts = [
            (f'name="{key}"', value.encode()) for key, value in {"form": self.site.keys.form, **fields}.items()
        ]
        parts.append((f'name="{"file" if path == "/upload" else "key"}"; filename="{name}"', data))
        body = b"".join(
            f"--edge\r\nContent-Disposition: form-data; {head}\r\n\r\n".encode() + value + b"\r\n"
            for head, value in parts
        )
        kind = {"content-type": "multipart/form-data; boundary=edge"}
        return self._followed(self.request("POST", path, body + b"--edge--\r\n", kind))

    def _followed(self, answer):
        while answer.status == 303:
            answer = self.request("GET", answer.header("location"))
        return answer

    # ---- the way ----------------------------------------------------------------------------------------------

    def draft(self, answer):
        """Return the draft that a page is about."""
        return self.site.drafts.get(answer.path.split("/")[2])

    def read(self, source, label, **how):
        """Open a table, say how it is written, name its label, and return the draft."""
        draft = self.draft(self.post("/open", path=source))
        drop = how.pop("drop", ())
        if how:
            self.written(draft, **how)
        self.name(draft, label, drop)
        draft.reading.wait()
        return draft

    def written(self, draft, **how):
        """Say how a table is written."""
        return self.post(f"/draft/{draft.id}/table", written="yes", read=draft.read.id, **how)

    def name(self, draft, label, drop=()):
        """Say which column is private, and which do not leave."""
        names = draft.header.names
        leaves = [number for number, name in enumerate(names) if name not in drop]
        return self.post(f"/draft/{draft.id}/table", read=draft.read.id, label=names.index(label), leaves=leaves)

    def choose(self, draft, bounds=(0, 100), leaves=None, **more):
        """Say what is to be said of the label."""
        names = draft.header.names
        public = range(len(names)) if leaves is None else [names.index(name) for name in leaves]
        fields = {"low": bounds[0], "high": bounds[1], "rows_per_person": 1, "leaves": list(public), **more}
        fields = {"read": draft.read.id, **fields}
        return self.post(f"/draft/{draft.id}/label", **fields)

    def order(self, draft, epsilon=1, ledger="book.jsonl", **more):
        """Say what is to be said of the budget."""
        fields = {"leaves": "table", "out": "out.csv", "folder": "model", **more}
        return self.post(f"/draft/{draft.id}/budget", epsilon=epsilon, ledger=ledger, **fields)

    def release(self, draft, **more):
        """Press the button, wait, and return the page."""
        shown = {"order": draft.order.id} if draft.order is not None else {}
        self.post(f"/draft/{draft.id}/release", **shown, **more)
        if draft.release is not None:
            draft.release.wait()
        return self.get(f"/draft/{draft.id}/release")

    def predict(self, model, table, **more):
        """Ask for predictions for a table, wait, and return the page."""
        body = urlencode({"form": self.site.keys.form, "name": model, "table": table, **more}).encode()
        answer = self.request("POST", "/model/table", body)
        if answer.status == 303:
            self.site.drafts.work(answer.header("location").partition("work=")[2]).wait()
        return self._followed(answer)

    def file(self, card, what, **more):
        return self.get(f"/file?card={quote(card)}&what={what}" + "".join(f"&{k}={v}" for k, v in more.items()))


def ready(client, **more):
    """Return a draft for which all but the budget is said."""
    draft = client.read("homes.csv", "price")
    client.choose(draft, missing="yes")
    client.order(draft, **more)
    return draft


def charges(client, name="book.jsonl"):
    path = client.site.folder.root / name
    return Ledger.open(path, create="never").charges if path.exists() else ()


# ---- a server in a process of its own ------------------------------------------------------------------------

COMMAND = """
import sys
exec(sys.argv[2])
from labeldp.cli import app
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
