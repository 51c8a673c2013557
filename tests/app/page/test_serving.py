"""The server, in a process of its own: where it listens, what it prints and when it ends."""

import http.client
import re
import signal
import socket
import tempfile
import time
from contextlib import suppress
from urllib.parse import urlencode

import pytest

from app.page.page_client import held, ready, served
from helpers import posix_only
from labeldp._atomic import reserve_name
from labeldp.app import page
from labeldp.errors import ParameterError


class Caller:
    """Talks to the server by HTTP, as the page's owner."""

    def __init__(self, port, entry):
        self._port, self._cookie, self._base = port, "", entry.partition("/?")[0]
        self._origin = f"http://127.0.0.1:{port}"
        answer, _ = self.ask("GET", entry.removeprefix(self._base))
        self._cookie = answer.getheader("set-cookie").partition(";")[0]

    def ask(self, method, path, body=None, **more):
        connection = http.client.HTTPConnection("127.0.0.1", self._port, timeout=60)
        headers = {"Cookie": self._cookie, "Origin": self._origin, **more}
        if isinstance(body, dict):
            body = urlencode(body, doseq=True)
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
from labeldp.app.page import Work
def talk(self, *how, progress=Work.progress):
    with warnings.catch_warnings():
        warnings.simplefilter("always")
        warnings.warn("31415")
    logging.getLogger("python_multipart").critical("31415")
    progress(self, *how)
Work.progress = talk
"""
"""Libraries that warn and log what they read."""


@pytest.mark.slow
def test_it_listens_on_this_machine_only_prints_no_label_and_ends_by_its_button(folder):
    with served(folder, TALK) as (process, port, entry):
        caller = Caller(port, entry)
        others = set()
        with suppress(socket.gaierror):  # a machine may not know its own name
            others = {info[4][0] for info in socket.getaddrinfo(socket.gethostname(), port, socket.AF_INET)}
        for address in others - {"127.0.0.1"}:
            with socket.socket() as probe:
                probe.settimeout(5)  # where nobody even says no
                assert probe.connect_ex((address, port)) != 0
        table = caller.go(caller.go("/open", path="homes.csv"), label=1, shared=0)
        while "data-progress" in (shown := caller.ask("GET", table)[1]):
            time.sleep(0.1)
        assert "What was read" in shown
        assert caller.ask("GET", "/no-such-page")[0].status == 404
        assert caller.ask("GET", "/", Host="evil.example")[0].status == 400
        assert caller.ask("POST", "/end", {})[0].status == 200
        assert process.wait(120) == 0
        printed = process.stdout.read() + process.stderr.read()
    assert entry.partition("token=")[2] not in printed
    assert "31415" not in printed
    assert "GET" not in printed
    assert "Traceback" not in printed


def test_uploads_on_their_way_are_in_the_chosen_folder_and_nowhere_else(folder, monkeypatch):
    folders = []
    monkeypatch.setattr("uvicorn.Server.run", lambda *_, **__: folders.append(tempfile.gettempdir()))
    page.serve(folder, browse=False, say=lambda _: None)
    assert folders == [str(folder)]
    assert tempfile.gettempdir() != str(folder)


def test_it_ends_when_nobody_is_there_and_never_while_it_works(client):
    site, unfinished = client.site, ready(client)
    now = site.last_request
    with held("Counting"):
        client.press(unfinished)
        assert not site.is_over(now + 10 * page.IDLE)
        now += 10 * page.IDLE
    site.finish()
    assert [site.is_over(now + page.IDLE + more) for more in (-1, 1)] == [False, True]
    client.post("/end")
    assert [site.is_over(site.last_request + page.LEAVE + more) for more in (-1, 1)] == [False, True]


SLOW = """
import pathlib, sys, time
from labeldp.app.page import Work
def slow(self, what, *how, progress=Work.progress):
    progress(self, what, *how)
    while what == "Releasing" and not pathlib.Path(sys.argv[1], "go on").exists():
        time.sleep(0.1)
Work.progress = slow
"""


@pytest.mark.slow
@posix_only
def test_what_is_paid_for_is_finished_however_often_it_is_interrupted(folder):
    with served(folder, SLOW) as (process, port, entry):
        caller = Caller(port, entry)
        table = caller.go(caller.go("/open", path="homes.csv"), label=1, shared=0)
        begun = table.removesuffix("/table")
        while "data-progress" in caller.ask("GET", table)[1]:
            time.sleep(0.1)
        caller.go(f"{begun}/column", bounds=[0, 99999], rows_per_person=1)
        request = caller.go(f"{begun}/budget", kind="table", epsilon=1, ledger="book.db", limit=3)
        shown = re.search(r'name="request" value="([^"]+)"', caller.ask("GET", request)[1]).group(1)
        caller.go(f"{begun}/release", request=shown)
        while "Releasing" not in caller.ask("GET", request)[1]:
            time.sleep(0.1)
        with (
            pytest.raises(ParameterError),
            reserve_name(folder / "homes.private.csv"),
        ):  # of the page, as of a shell
            pass
        for kind in (signal.SIGINT, signal.SIGINT, signal.SIGTERM):
            process.send_signal(kind)
            while "inishing the paid release" not in process.stderr.readline():
                pass
        (folder / "go on").touch()
        process.wait(120)
    assert len((folder / "homes.private.csv").read_text().splitlines()) == 61
    assert [*folder.glob("*.lock"), *folder.glob("*.part")] == []
