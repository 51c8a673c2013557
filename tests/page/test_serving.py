"""The server, in a process of its own: where it listens, what it prints, when it ends, what a kill leaves."""

import http.client
import os
import re
import signal
import socket
import subprocess
import sys
import time
from contextlib import contextmanager
from urllib.parse import urlencode, urlsplit

import pytest

from helpers import posix_only
from labeldp.ledger import Ledger
from labeldp.page.lifetime import CLOSED, IDLE, Lifetime

SHORT = """
import sys
from labeldp.page import lifetime
lifetime.CLOSED, lifetime.LEAVE = 0.2, 0.1
from labeldp.cli import app
app(["page", sys.argv[1], "--no-open"])
"""


@contextmanager
def served(folder):
    """Start the command; yield the process, its address and its token."""
    command = [sys.executable, "-c", SHORT, str(folder)]
    with subprocess.Popen(command, stderr=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:  # noqa: S603
        try:
            said = process.stderr.readline()
            parts = urlsplit(re.search(r"http://\S+", said).group())
            yield process, parts.port, parts.query.removeprefix("token=")
        finally:
            process.kill()


class Caller:
    """Talks to the server by HTTP, as the page's owner."""

    def __init__(self, port, token):
        self._port, self._cookie = port, ""
        for _ in range(100):
            try:
                answer, _ = self.ask("GET", f"/?token={token}")
                break
            except ConnectionError:
                time.sleep(0.1)
        self._cookie = answer.getheader("set-cookie").partition(";")[0]
        self.key = re.search(r'data-key="([^"]+)"', self.ask("GET", "/")[1]).group(1)

    def ask(self, method, path, body=None, **more):
        connection = http.client.HTTPConnection("127.0.0.1", self._port, timeout=60)
        headers = {"Cookie": self._cookie, "Origin": f"http://127.0.0.1:{self._port}", **more}
        if isinstance(body, dict):
            body = urlencode({"form": self.key, **body}, doseq=True)
            headers["Content-Type"] = "application/x-www-form-urlencoded"
        connection.request(method, path, body, headers)
        answer = connection.getresponse()
        text = answer.read().decode()
        connection.close()
        return answer, text

    def go(self, path, /, **fields):
        """Send a form, and return the address that it leads to."""
        answer, text = self.ask("POST", path, fields)
        assert answer.status == 303, text
        return answer.getheader("location")


@pytest.fixture
def folder(tmp_path):
    rows = "".join(f"{n},31415\n" for n in range(60))
    (tmp_path / "homes.csv").write_text(f"rooms,price\n{rows}")
    return tmp_path


def test_it_listens_on_this_machine_only_prints_no_label_and_ends_with_its_page(folder):
    with served(folder) as (process, port, token):
        caller = Caller(port, token)
        others = {info[4][0] for info in socket.getaddrinfo(socket.gethostname(), port, socket.AF_INET)}
        for address in others - {"127.0.0.1"}:
            with socket.socket() as probe:
                assert probe.connect_ex((address, port)) != 0
        draft = caller.go("/open", path="homes.csv").split("/")[2]
        caller.go(f"/draft/{draft}/table", label="price")
        assert caller.ask("GET", "/no-such-page")[0].status == 404
        assert caller.ask("GET", "/", Host="evil.example")[0].status in (400, 421)
        caller.ask("POST", "/alive", {"page": "a tab"})
        time.sleep(1)
        assert process.poll() is None
        caller.ask("POST", "/bye", {"page": "a tab"})
        assert process.wait(20) == 0
        printed = process.stdout.read() + process.stderr.read()
    assert token not in printed
    assert "31415" not in printed
    assert "GET" not in printed
    assert "Traceback" not in printed


def test_the_button_ends_it_and_dropped_files_go(folder):
    with served(folder) as (process, port, token):
        caller = Caller(port, token)
        edge = f'--e\r\nContent-Disposition: form-data; name="form"\r\n\r\n{caller.key}\r\n'
        edge += (
            '--e\r\nContent-Disposition: form-data; name="file"; filename="x.csv"\r\n\r\na,b\n1,2\n\r\n--e--\r\n'
        )
        kind = {"Content-Type": "multipart/form-data; boundary=e"}
        assert caller.ask("POST", "/upload", edge.encode(), **kind)[0].status == 303
        assert list(folder.glob(".labeldp-page-*/*/x.csv"))
        caller.ask("POST", "/close", {})
        assert process.wait(20) == 0
    assert not list(folder.glob(".labeldp*"))


@posix_only
@pytest.mark.skipif(os.name == "nt", reason="there is no such signal")
def test_a_kill_in_the_middle_leaves_nothing_half_written_and_the_ledger_says_what_was_spent(folder):
    rows = "".join(f"{n},{n % 50}\n" for n in range(100_000))
    (folder / "homes.csv").write_text(f"rooms,price\n{rows}")
    with served(folder) as (process, port, token):
        caller = Caller(port, token)
        draft = caller.go("/open", path="homes.csv").split("/")[2]
        caller.go(f"/draft/{draft}/table", label="price")
        while "running" in caller.ask("GET", f"/draft/{draft}/progress?what=reading")[1]:
            time.sleep(0.05)
        caller.go(f"/draft/{draft}/label", low=0, high=50, rows_per_person=1, leaves="rooms", shuffle="on")
        caller.go(f"/draft/{draft}/budget", leaves="table", epsilon=1, ledger="book.jsonl", out="out.csv")
        caller.go(f"/draft/{draft}/release")
        for _ in range(2000):
            if (folder / "book.jsonl").exists():
                break
            time.sleep(0.005)
        process.send_signal(signal.SIGKILL)
        process.wait()
    assert sum(charge.budget.epsilon for charge in Ledger.open(folder / "book.jsonl", create="never").charges) == 1
    assert not (folder / "out.csv").exists() or (folder / "out.csv.card.json").exists()


def test_it_never_ends_while_it_works_and_waits_longer_for_a_page_without_scripts():
    now, busy = 0.0, True
    life = Lifetime(lambda: busy, lambda: now)
    now = 10 * IDLE
    assert not life.is_over()
    busy = False
    now += CLOSED + 1
    assert not life.is_over()
    now += IDLE
    assert life.is_over()
    life.hear("one")
    life.hear("two")
    life.forget("one")
    now += CLOSED + 1
    assert not life.is_over()
    life.forget("two")
    now += CLOSED + 1
    assert life.is_over()
