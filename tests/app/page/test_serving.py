"""The server, in a process of its own: where it listens, what it prints and when it ends."""

import http.client
import re
import signal
import socket
import time
from contextlib import suppress
from urllib.parse import urlencode

import pytest

from app.page.page_client import served
from helpers import posix_only
from labeldp.app.page.lifetime import CLOSED, IDLE, Lifetime
from labeldp.app.page.serving import _uninterrupted


class Caller:
    """Talks to the server by HTTP, as the page's owner."""

    def __init__(self, port, entry):
        self._port, self._cookie, self._base = port, "", entry.partition("/?")[0]
        answer, _ = self.ask("GET", entry.removeprefix(self._base))
        self._cookie = answer.getheader("set-cookie").partition(";")[0]
        self.key = re.search(r'data-key="([^"]+)"', self.ask("GET", "/")[1]).group(1)

    def ask(self, method, path, body=None, **more):
        connection = http.client.HTTPConnection("127.0.0.1", self._port, timeout=60)
        headers = {"Cookie": self._cookie, "Origin": f"http://127.0.0.1:{self._port}", **more}
        if isinstance(body, dict):
            body = urlencode({"form": self.key, **body}, doseq=True)
            headers["Content-Type"] = "application/x-www-form-urlencoded"
        connection.request(method, self._base + path, body, headers)
        answer = connection.getresponse()
        text = answer.read().decode()
        connection.close()
        return answer, text

    def go(self, path, /, **fields):
        """Send a form, and return the address that it leads to."""
        answer, text = self.ask("POST", path, fields)
        assert answer.status == 303, text
        return answer.getheader("location").removeprefix(self._base)


@pytest.fixture
def folder(tmp_path):
    rows = "".join(f"{n},31415\n" for n in range(60))
    (tmp_path / "homes.csv").write_text(f"rooms,price\n{rows}")
    return tmp_path


TALK = """
import logging, warnings
from labeldp.app.page import lifetime, unfinished
lifetime.CLOSED = 0.2
def talk(*given, read=unfinished.overview, **more):
    with warnings.catch_warnings():
        warnings.simplefilter("always")
        warnings.warn("31415")
    logging.getLogger("python_multipart").critical("31415")
    return read(*given, **more)
unfinished.overview = talk
"""
"""Libraries that warn and log what they read; and an end that need not be waited for."""


@pytest.mark.slow
def test_it_listens_on_this_machine_only_prints_no_label_and_ends_with_its_page(folder):
    with served(folder, TALK) as (process, port, entry):
        caller = Caller(port, entry)
        others = set()
        with suppress(socket.gaierror):  # a machine may not know its own name
            others = {info[4][0] for info in socket.getaddrinfo(socket.gethostname(), port, socket.AF_INET)}
        for address in others - {"127.0.0.1"}:
            with socket.socket() as probe:
                probe.settimeout(5)  # where nobody even says no
                assert probe.connect_ex((address, port)) != 0
        table = caller.go("/open", path="homes.csv")
        reading = re.search(r'name="reading" value="([^"]+)"', caller.ask("GET", table)[1]).group(1)
        caller.go(table, label=1, shared=0, reading=reading)
        while "data-progress" in (shown := caller.ask("GET", table)[1]):
            time.sleep(0.1)
        assert "What was read" in shown
        assert caller.ask("GET", "/no-such-page")[0].status == 404
        assert caller.ask("GET", "/", Host="evil.example")[0].status == 400
        caller.ask("POST", "/alive", {"page": "a tab"})
        time.sleep(1)
        assert process.poll() is None
        caller.ask("POST", "/closed", {"page": "a tab"})
        assert process.wait(120) == 0
        printed = process.stdout.read() + process.stderr.read()
    assert entry.partition("token=")[2] not in printed
    assert "31415" not in printed
    assert "GET" not in printed
    assert "Traceback" not in printed


@pytest.mark.slow
def test_the_button_ends_it_and_dropped_files_go(folder):
    with served(folder) as (process, port, entry):
        caller = Caller(port, entry)
        edge = f'--e\r\nContent-Disposition: form-data; name="form"\r\n\r\n{caller.key}\r\n'
        edge += (
            '--e\r\nContent-Disposition: form-data; name="file"; filename="x.csv"\r\n\r\na,b\n1,2\n\r\n--e--\r\n'
        )
        kind = {"Content-Type": "multipart/form-data; boundary=e"}
        assert caller.ask("POST", "/upload", edge.encode(), **kind)[0].status == 303
        assert list(folder.glob(".labeldp-page-*/*/x.csv"))
        caller.ask("POST", "/end", {})
        assert process.wait(120) == 0
    assert not list(folder.glob(".labeldp*"))


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
    life.open_page("one")
    life.open_page("two")
    life.close_page("one")
    life.open_page("one")  # sent before it was closed, and received late
    now += CLOSED + 1
    assert not life.is_over()
    life.close_page("two")
    now += CLOSED + 1
    assert life.is_over()


@posix_only
def test_signals_are_answered_and_end_nothing_while_what_is_paid_for_is_finished():
    answers, before = [], signal.getsignal(signal.SIGINT)
    with _uninterrupted(lambda: answers.append("wait")):
        for kind in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
            signal.raise_signal(kind)
    assert answers == ["wait"] * 3
    assert signal.getsignal(signal.SIGINT) is before
