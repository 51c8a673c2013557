"""The chosen folder: no path leads out of it, and dropped files are kept whole or not at all."""

import os
import stat

import pytest

from app.page.page_client import Client, ready
from helpers import posix_only

pytestmark = posix_only  # links and pipes are in the folder

OUTSIDE = ["../secret.csv", "inner/../../secret.csv", "/etc/passwd", "link.csv", "linked/secret.csv", "loop"]
NO_FILES = ["homes.csv\0.txt", "homes.csv\n", "x" * 5000, "", ".", "pipe", "inner"]


@pytest.fixture
def folder(tmp_path):
    (tmp_path / "secret.csv").write_text("a,price\n1,31415\n")
    root = tmp_path / "chosen"
    (root / "inner").mkdir(parents=True)
    (root / "homes.csv").write_text("rooms,price\n" + "2,3\n" * 60)
    (root / "link.csv").symlink_to(tmp_path / "secret.csv")
    (root / "linked").symlink_to(tmp_path)
    (root / "loop").symlink_to(root / "loop")
    os.mkfifo(root / "pipe")
    return root


@pytest.fixture
def client(folder):
    return Client(folder).enter()


@pytest.mark.parametrize("name", [*OUTSIDE, *NO_FILES])
def test_no_path_to_read_leads_out_of_the_folder(client, name):
    answer = client.post("/open", path=name)
    assert answer.is_refusal
    assert "31415" not in answer.html


@pytest.mark.parametrize("name", ["../new.csv", "/new.csv", "linked/new.csv", "no-such/new.csv", "a\0b"])
def test_no_path_to_write_leads_out_of_the_folder(client, name):
    assert ready(client, ledger=name).request is None
    assert client.problems == ["ledger"]


def test_lists_have_visible_files_of_the_folder_alone(client, folder):
    (folder / ".hidden.csv").touch()
    for name in ("\u200b", "a\nb", os.fsdecode(b"\xff")):
        for ending in (".csv", ".csv.card.json", ".db"):
            (folder / f"{name}{ending}").write_text("{}")
    chosen = client.site.folder
    assert (chosen.tables(), chosen.cards(), chosen.ledgers()) == (["homes.csv"], [], [])
    assert client.get("/").status == client.get("/releases").status == 200


# ---- files from elsewhere --------------------------------------------------------------------------------------


def test_a_dropped_file_is_copied_for_its_owner_alone(client, folder):
    rows = b"rooms,price\n" + b"2,31415\n" * 200_000  # more than a form keeps in memory
    begun = client.unfinished(client.upload("../../flats.csv", rows))
    assert begun.source == folder / "flats.csv"
    assert begun.source.read_bytes() == rows
    assert stat.S_IMODE(begun.source.stat().st_mode) & 0o077 == 0


def test_a_file_that_did_not_arrive_whole_is_not_kept(client, folder):
    before = set(folder.iterdir())
    body = b'--edge\r\nContent-Disposition: form-data; name="file"; filename="x.csv"\r\n\r\na,b\n1,2'
    kind = {"content-type": "multipart/form-data; boundary=edge"}
    assert client.request("POST", "/upload", body, kind, is_cut=True).status == 500
    assert set(folder.iterdir()) == before


@pytest.mark.parametrize("name", ["x.csv.gz", "x.xlsx", "x.nothing", "..", ".x.csv", "homes.csv", "link.csv", ""])
def test_a_file_that_is_no_table_or_exists_is_refused_and_not_kept(client, folder, name):
    before = {path: path.lstat().st_mtime_ns for path in folder.iterdir()}
    assert client.upload(name, b"price,price\n31415,2\n").is_refusal
    assert {path: path.lstat().st_mtime_ns for path in folder.iterdir()} == before
