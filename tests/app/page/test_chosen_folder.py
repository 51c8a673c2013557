"""The chosen folder: no path leads out of it, and dropped files do not stay in it."""

import os
import signal
import stat
import subprocess
import sys
import tempfile

import portalocker
import pytest

import labeldp as ldp
from app.page.page_client import Client
from helpers import posix_only

pytestmark = posix_only  # links and pipes are in the folder

PREFIX = ".labeldp-page-"
OUTSIDE = [
    "../secret.csv",
    "inner/../../secret.csv",
    "/etc/passwd",
    "link.csv",
    "linked/secret.csv",
    "linked",
    "loop",
    "~/secret.csv",
    "C:\\secret.csv",
    "homes.csv\0.txt",
    "homes.csv\n",
    "x" * 5000,
    "",
    ".",
    "-",
    "pipe",
    "*.csv",
    "inner",
    ".labeldp-page-1/homes.csv",
]


@pytest.fixture
def folder(tmp_path):
    (tmp_path / "secret.csv").write_text("a,price\n1,31415\n")
    root = tmp_path / "chosen"
    (root / "inner").mkdir(parents=True)
    (root / "homes.csv").write_text("rooms,price\n" + "2,3\n" * 60)
    (root / "link.csv").symlink_to(tmp_path / "secret.csv")
    (root / "linked").symlink_to(tmp_path)
    (root / "loop").symlink_to(root / "loop")
    (root / "inner" / "out.csv").symlink_to(tmp_path / "secret.csv")
    os.mkfifo(root / "pipe")
    return root


@pytest.fixture
def client(folder):
    return Client(folder).enter()


def requested(client, **more):
    unfinished = client.read("homes.csv", "price")
    client.describe(unfinished)
    client.budget(unfinished, **more)
    return unfinished


@pytest.mark.parametrize("text", OUTSIDE)
def test_no_path_to_read_leads_out_of_the_folder(client, text):
    answer = client.post("/open", path=text)
    assert answer.status == 400
    assert "31415" not in answer.html


@pytest.mark.parametrize("text", ["../new.csv", "/new.csv", "linked/new.csv", "no-such/new.csv", "a\0b", ".."])
@pytest.mark.parametrize("name", ["out", "ledger"])
def test_no_path_to_write_leads_out_of_the_folder(client, name, text):
    unfinished = requested(client, **{name: text})
    assert unfinished.request is None
    assert list(unfinished.problems) == [name]


def test_what_may_be_read_is_listed_and_nothing_else(client, folder):
    (folder / ".hidden.csv").touch()
    for name in ("\u200b", "a\nb", os.fsdecode(b"\xff")):
        for ending in (".csv", ".csv.card.json", ".jsonl"):
            (folder / f"{name}{ending}").write_text("{}")
    chosen = client.site.folder
    assert (chosen.tables(), chosen.cards(), chosen.ledgers()) == (["homes.csv"], [], [])
    assert client.get("/").status == client.get("/releases").status == 200
    assert client.post("/open", path=str(folder / "homes.csv")).status == 200


@pytest.mark.parametrize("what", ["table", "card", "report", "signature", "source", "../homes.csv"])
def test_a_table_with_true_labels_cannot_be_saved_by_a_card_that_names_it(client, folder, what):
    """Somebody else's card beside the source: its checksum is of another file."""
    terms = ldp.privatize([1.0] * 60, epsilon=1, bounds=(0, 5), mechanism="two-point").terms
    file = {"name": "homes.csv", "rows": 60, "column": "price", "format": "csv", "sha256": "0" * 64}
    (folder / "x.card.json").write_text(terms.to_card(file=file))
    answer = client.file("x.card.json", what)
    assert (answer.status == 200) == (what == "card")
    assert b"rooms,price" not in answer.body


@pytest.mark.parametrize("card", ["homes.csv", "../secret.csv", "linked/secret.csv", "link.csv", ""])
def test_only_cards_and_what_they_are_about_can_be_saved(client, card):
    for what in ("card", "table"):
        assert client.file(card, what).status == 400


@pytest.mark.parametrize("step", ["table", "release"])
def test_a_table_that_became_a_link_since_it_was_chosen_is_not_read(client, folder, step):
    unfinished = requested(client)
    (folder / "homes.csv").unlink()
    (folder / "homes.csv").symlink_to(folder.parent / "secret.csv")
    answer = client.step(unfinished, step, label=1, request=unfinished.request.id)
    assert "something else than files of the folder" in answer.words
    assert not (folder / "out.csv").exists()


@pytest.mark.parametrize("name", ["out", "ledger"])
def test_nothing_is_written_where_a_folder_became_a_link(client, folder, name):
    (folder / "sub").mkdir()
    unfinished = requested(client, **{name: "sub/x.csv"})
    (folder / "sub").rmdir()
    (folder.parent / "elsewhere").mkdir()
    (folder / "sub").symlink_to(folder.parent / "elsewhere")
    assert "something else than files of the folder" in client.press(unfinished).words
    assert not list((folder.parent / "elsewhere").iterdir())
    assert not (folder / "out.csv").exists()


# ---- dropped files -------------------------------------------------------------------------------------------


def test_a_dropped_file_can_be_read_by_its_owner_only_and_goes_at_the_end(client, folder):
    rows = b"2,31415\n" * 200_000  # more than a form keeps in memory
    unfinished = client.unfinished(client.upload("../../flats.csv", b"rooms,price\n" + rows))
    assert unfinished.source.name == "flats.csv"
    assert unfinished.source.read_bytes() == b"rooms,price\n" + rows
    for path in (unfinished.source, unfinished.source.parent, unfinished.source.parent.parent):
        assert folder in path.parents
        assert stat.S_IMODE(path.stat().st_mode) & 0o077 == 0
    assert "flats.csv" not in client.get("/").words
    client.site.dropped.remove()
    assert not list(folder.glob(f"{PREFIX}*"))


def test_a_dropped_file_is_nowhere_but_in_the_chosen_folder_on_its_way(client, folder, monkeypatch):
    create, places = tempfile.TemporaryFile, []
    monkeypatch.setattr(
        tempfile, "TemporaryFile", lambda **given: (places.append(tempfile.gettempdir()), create(**given))[1]
    )
    client.upload("flats.csv", b"rooms,price\n" + b"2,31415\n" * 200_000)
    assert places
    assert all(place.startswith(str(folder / PREFIX)) for place in places)
    assert not tempfile.gettempdir().startswith(str(folder))


def test_a_file_that_did_not_arrive_whole_is_not_kept(client, folder):
    body = b'--edge\r\nContent-Disposition: form-data; name="form"\r\n\r\n' + client.site.keys.form.encode()
    body += b'\r\n--edge\r\nContent-Disposition: form-data; name="file"; filename="x.csv"\r\n\r\na,b\n1,2'
    kind = {"content-type": "multipart/form-data; boundary=edge"}
    assert client.request("POST", "/upload", body, kind, is_cut=True).status == 500
    assert not list(folder.glob(f"{PREFIX}*/*/*"))


@pytest.mark.parametrize("name", ["x.csv.gz", "x.xlsx", "x.parquet", "x.nothing"])
def test_a_dropped_file_that_is_refused_is_not_kept(client, folder, name):
    assert client.upload(name, b"price,price\n31415,2\n").status == 400
    assert not list(folder.glob(f"{PREFIX}*/*/*"))


def test_a_file_that_the_disk_has_no_space_for_is_refused_before_it_is_read(client, monkeypatch):
    monkeypatch.setattr("shutil.disk_usage", lambda _: type("Usage", (), {"free": 1 << 26}))
    assert "not enough space" in client.upload("x.csv", b"a,b\n1,2\n").words


DROP = """
import os, sys
from pathlib import Path
from labeldp.app.page.dropped_files import DroppedFiles
dropped = DroppedFiles(Path(sys.argv[1]))
path, handle = dropped.new_file("x.csv")
os.write(handle, b"rooms,price")
print(path, dropped.entry_page()[0], sep="|", flush=True)
sys.stdin.read()
"""


@pytest.mark.slow
def test_what_a_killed_process_left_goes_at_the_next_start_and_what_a_living_one_has_stays(client, folder):
    command = [sys.executable, "-c", DROP, str(folder)]
    with (
        subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as dead,  # noqa: S603
        subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as living,  # noqa: S603
    ):
        left, kept = (each.stdout.readline().decode().strip().split("|") for each in (dead, living))
        dead.send_signal(signal.SIGKILL)
        dead.wait()
        assert list(map(os.path.exists, left)) == [True, True]
        client.site.dropped.remove_leftovers()
        assert list(map(os.path.exists, left)) == [False, False]
        assert list(map(os.path.exists, kept)) == [True, True]
        living.stdin.close()
    client.site.dropped.remove_leftovers()
    assert not list(folder.glob("*labeldp-page-*"))


def test_a_folder_of_ones_own_with_such_a_name_stays_and_no_link_is_followed(client, folder):
    mine, dead = folder / f"{PREFIX}notes", folder / f"{PREFIX}0123abcd"
    for each in (mine, dead):
        each.mkdir()
    (mine / "lock").touch()
    (dead / "lock").symlink_to(folder.parent / "made-by-a-link")
    client.site.dropped.remove_leftovers()
    assert mine.is_dir()
    assert not (folder.parent / "made-by-a-link").exists()


def test_a_hidden_folder_that_another_process_took_for_a_leftover_is_created_again(client, folder, monkeypatch):
    lock, calls = portalocker.lock, []

    def late(*given):
        calls.append(given)
        if len(calls) == 1:
            Client(folder).site.dropped.remove_leftovers()
        return lock(*given)

    monkeypatch.setattr(portalocker, "lock", late)
    assert client.unfinished(client.upload("x.csv", b"a,b\n1,2\n")).source.exists()
    assert len(calls) > 2


def test_a_disk_without_locks_takes_no_dropped_file_and_keeps_nothing_of_it(client, folder, monkeypatch):
    def lock(*_):
        raise portalocker.LockException("No locks available")

    monkeypatch.setattr(portalocker, "lock", lock)
    before = set(folder.iterdir())
    assert "cannot lock files" in client.upload("a.csv", b"a,b\n1,2\n").words
    assert set(folder.iterdir()) == before
