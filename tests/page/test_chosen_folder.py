"""The chosen folder: no path leads out of it, and what was dropped into it does not stay."""

import os
import signal
import stat
import subprocess
import sys

import portalocker
import pytest

from helpers import posix_only
from labeldp.errors import ParameterError
from labeldp.page import chosen_folder
from labeldp.page.chosen_folder import DROPPED, ChosenFolder
from labeldp.page.drafts import Drafts
from page_client import Client

pytestmark = posix_only  # links and pipes lie in the folder

OUTSIDE = [
    "../secret.csv",
    "inner/../../secret.csv",
    "/etc/passwd",
    "link.csv",
    "linked/secret.csv",
    "linked",
    "loop",
    "~/secret.csv",
    "~root",
    "C:\\secret.csv",
    "..\\secret.csv",
    "\\\\server\\share",
    "homes.csv\0.txt",
    "homes.csv\n",
    "x" * 5000,
    "",
    ".",
    "-",
    "pipe",
    "*.csv",
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


@pytest.mark.parametrize("text", [*OUTSIDE, "inner"])
def test_no_path_to_read_leads_out_of_the_folder(folder, text):
    with pytest.raises(ParameterError):
        ChosenFolder(folder).source(text)
    answer = Client(folder).enter().post("/open", path=text)
    assert answer.status == 400
    assert "31415" not in answer.html


@pytest.mark.parametrize("text", ["../new.csv", "/new.csv", "linked/new.csv", "no-such/new.csv", "a\0b", ".."])
def test_no_path_to_write_leads_out_of_the_folder(folder, text):
    with pytest.raises(ParameterError):
        ChosenFolder(folder).target(text)


@pytest.mark.parametrize("name", ["out", "ledger"])
def test_no_form_writes_outside_of_the_folder(folder, name):
    client = Client(folder).enter()
    draft = client.read("homes.csv", "price")
    client.choose(draft)
    answer = client.order(draft, **{name: "../escaped.csv"})
    assert "name something inside the folder" in answer.words
    assert draft.order is None


def test_what_may_be_read_is_listed_and_nothing_else(folder):
    chosen = ChosenFolder(folder)
    assert chosen.tables() == ["homes.csv"]
    assert chosen.source("homes.csv") == chosen.source(str(folder / "homes.csv")) == folder.resolve() / "homes.csv"


@pytest.mark.parametrize("what", ["table", "card", "report", "signature", "source", "../homes.csv"])
def test_a_table_with_true_labels_cannot_be_saved_by_a_card_that_names_it(folder, what):
    """Somebody else's card beside the source: its checksum is of another file."""
    import labeldp as ldp

    client = Client(folder).enter()
    terms = ldp.privatize([1.0] * 60, epsilon=1, bounds=(0, 5), mechanism="two-point").terms
    file = {"name": "homes.csv", "rows": 60, "column": "price", "format": "csv", "sha256": "0" * 64}
    (folder / "x.card.json").write_text(terms.to_card(file=file))
    answer = client.file("x.card.json", what)
    assert (answer.status == 200) == (what == "card")
    assert b"rooms,price" not in answer.body


def test_only_cards_and_what_they_speak_of_can_be_saved(folder):
    client = Client(folder).enter()
    for card in ("homes.csv", "../secret.csv", "linked/secret.csv", "link.csv", ""):
        for what in ("card", "table"):
            assert client.file(card, what).status == 400


@pytest.mark.parametrize("step", ["table", "release"])
def test_a_table_that_became_a_link_since_it_was_named_is_not_read(folder, step):
    client = Client(folder).enter()
    draft = client.read("homes.csv", "price")
    client.choose(draft)
    client.order(draft)
    (folder / "homes.csv").unlink()
    (folder / "homes.csv").symlink_to(folder.parent / "secret.csv")
    answer = client.post(f"/draft/{draft.id}/{step}", label="price")
    assert "something else than files of the folder" in answer.words
    assert not (folder / "out.csv").exists()


@pytest.mark.parametrize("place", ["out", "ledger"])
def test_nothing_is_written_where_a_folder_became_a_link(folder, place):
    client = Client(folder).enter()
    (folder / "sub").mkdir()
    draft = client.read("homes.csv", "price")
    client.choose(draft)
    client.order(draft, **{"out": "out.csv", "ledger": "book.jsonl", place: "sub/x.csv"})
    (folder / "sub").rmdir()
    (folder.parent / "elsewhere").mkdir()
    (folder / "sub").symlink_to(folder.parent / "elsewhere")
    assert (
        "something else than files of the folder"
        in client.post(f"/draft/{draft.id}/release", order=draft.order.id).words
    )
    assert not list((folder.parent / "elsewhere").iterdir())
    assert not (folder / "out.csv").exists()


# ---- dropped files -------------------------------------------------------------------------------------------


def test_a_dropped_file_can_be_read_by_its_owner_only_and_goes_at_the_end(folder):
    client = Client(folder).enter()
    answer = client.upload("../../flats.csv", b"rooms,price\n2,31415\n3,4\n")
    draft = client.draft(answer)
    assert folder in draft.source.parents
    assert draft.source.name == "flats.csv"
    for path in (draft.source, draft.source.parent, draft.source.parent.parent):
        assert stat.S_IMODE(path.stat().st_mode) & 0o077 == 0
    assert "flats.csv" not in client.get("/").words
    client.site.folder.remove_dropped()
    assert not list(folder.glob(f"{DROPPED}*"))


def test_a_file_that_did_not_arrive_whole_is_not_kept(folder):
    client = Client(folder).enter()
    body = b'--edge\r\nContent-Disposition: form-data; name="form"\r\n\r\n' + client.site.keys.form.encode()
    body += b'\r\n--edge\r\nContent-Disposition: form-data; name="file"; filename="x.csv"\r\n\r\na,b\n1,2'
    kind = {"content-type": "multipart/form-data; boundary=edge"}
    assert client.request("POST", "/upload", body, kind).status == 400
    assert not list(folder.glob(f"{DROPPED}*/*/*"))


@pytest.mark.parametrize("name", ["x.csv.gz", "x.xlsx", "x.parquet", "x.nothing"])
def test_a_dropped_file_that_is_refused_is_not_kept(folder, name):
    client = Client(folder).enter()
    assert client.upload(name, b"price,price\n31415,2\n").status == 400
    assert not list(folder.glob(f"{DROPPED}*/*/*"))


def test_a_dropped_file_goes_with_its_draft_and_all_other_files_stay(folder, monkeypatch):
    monkeypatch.setattr(Drafts, "MOST", 1)
    client = Client(folder).enter()
    dropped = client.draft(client.upload("flats.csv", b"rooms,price\n2,31415\n3,4\n")).source
    assert dropped.exists()
    for _ in range(2):
        client.read("homes.csv", "price")
    assert not dropped.exists()
    assert (folder / "homes.csv").exists()


KILLED = """
import os, sys
from labeldp.page.chosen_folder import ChosenFolder
folder = ChosenFolder(sys.argv[1])
path, handle = folder.dropped_file("x.csv")
os.write(handle, b"rooms,price")
print(path, folder.doorway()[0], sep="|", flush=True)
sys.stdin.read()
"""


def test_what_a_killed_process_left_goes_at_the_next_start_and_what_a_living_one_has_stays(folder):
    command = [sys.executable, "-c", KILLED, str(folder)]
    with (
        subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as dead,  # noqa: S603
        subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as living,  # noqa: S603
    ):
        left, kept = (each.stdout.readline().decode().strip().split("|") for each in (dead, living))
        dead.send_signal(signal.SIGKILL)
        dead.wait()
        assert list(map(os.path.exists, left)) == [True, True]
        ChosenFolder(folder).remove_leftovers()
        assert list(map(os.path.exists, left)) == [False, False]
        assert list(map(os.path.exists, kept)) == [True, True]
        living.stdin.close()
    ChosenFolder(folder).remove_leftovers()
    assert not list(folder.glob("*labeldp-page-*"))


def test_a_folder_of_ones_own_with_such_a_name_stays_and_no_link_is_followed(folder):
    mine, dead = folder / f"{DROPPED}notes", folder / f"{DROPPED}0123abcd"
    for each in (mine, dead):
        each.mkdir()
    (mine / "lock").touch()
    (dead / "lock").symlink_to(folder.parent / "made-by-a-link")
    ChosenFolder(folder).remove_leftovers()
    assert mine.is_dir()
    assert not (folder.parent / "made-by-a-link").exists()


def test_a_folder_that_another_process_took_for_a_leftover_is_made_again(folder, monkeypatch):
    lock, calls = chosen_folder._lock_folder, []

    def late(place):
        calls.append(place)
        if len(calls) == 1:
            ChosenFolder(folder).remove_leftovers()
        return lock(place)

    monkeypatch.setattr(chosen_folder, "_lock_folder", late)
    path, handle = ChosenFolder(folder).dropped_file("x.csv")
    os.close(handle)
    assert path.exists()


def test_a_disk_without_locks_takes_no_dropped_file_and_keeps_nothing_of_it(folder, monkeypatch):
    def lock(*_):
        raise portalocker.LockException("No locks available")

    monkeypatch.setattr(chosen_folder.portalocker, "lock", lock)
    before = set(folder.iterdir())
    assert "this disk cannot lock files" in Client(folder).enter().upload("a.csv", b"a,b\n1,2\n").words
    with pytest.raises(OSError, match="cannot lock files"):
        ChosenFolder(folder).doorway()
    assert set(folder.iterdir()) == before


def test_a_name_that_is_no_text_is_left_out(folder):
    for name in (b"\xff.csv", b"\xff.csv.card.json", b"\xff.jsonl"):
        (folder / os.fsdecode(name)).write_text("rooms,price\n")
    client = Client(folder).enter()
    assert client.get("/").status == client.get("/shelf").status == 200


@pytest.mark.parametrize("name", ["~x", "a\\b", "a\nb", "\x1b[2J", "\u200b", "\u00a0x"])
def test_what_cannot_be_asked_for_by_its_name_is_not_listed(folder, name):
    for ending in (".card.json", ".csv", ".jsonl"):
        (folder / f"{name}{ending}").write_text("{}")
    chosen = ChosenFolder(folder)
    assert not [each for each in [*chosen.cards(), *chosen.ledgers(), *chosen.tables()] if each.startswith(name)]
    assert Client(folder).enter().get("/shelf").status == 200
