"""The chosen folder: no path leads out of it, and dropped files do not stay in it."""

import os
import stat

import pytest

from app.page.page_client import Client, ready
from helpers import posix_only

pytestmark = posix_only  # links and pipes are in the folder

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
    (root / "inner" / "homes.private.csv").symlink_to(tmp_path / "secret.csv")
    os.mkfifo(root / "pipe")
    return root


@pytest.fixture
def client(folder):
    return Client(folder).enter()


@pytest.mark.parametrize("text", OUTSIDE)
def test_no_path_to_read_leads_out_of_the_folder(client, text):
    answer = client.post("/open", path=text)
    assert answer.is_refusal
    assert "31415" not in answer.html


@pytest.mark.parametrize("text", ["../new.csv", "/new.csv", "linked/new.csv", "no-such/new.csv", "a\0b", ".."])
def test_no_path_to_write_leads_out_of_the_folder(client, text):
    assert ready(client, ledger=text).request is None
    assert client.problems == ["ledger"]


def test_what_may_be_read_is_listed_and_nothing_else(client, folder):
    (folder / ".hidden.csv").touch()
    for name in ("\u200b", "a\nb", os.fsdecode(b"\xff")):
        for ending in (".csv", ".csv.card.json", ".jsonl"):
            (folder / f"{name}{ending}").write_text("{}")
    chosen = client.site.folder
    assert (chosen.tables(), chosen.cards(), chosen.ledgers()) == (["homes.csv"], [], [])
    assert client.get("/").status == client.get("/releases").status == 200
    assert client.post("/open", path=str(folder / "homes.csv")).status == 200


@pytest.mark.parametrize("step", ["table", "release"])
def test_a_table_that_became_a_link_since_it_was_chosen_is_not_read(client, folder, step):
    unfinished = ready(client)
    (folder / "homes.csv").unlink()
    (folder / "homes.csv").symlink_to(folder.parent / "secret.csv")
    answer = client.post(unfinished.at(step), label=1, request=unfinished.request.id)
    assert "something else than files of the folder" in answer.words
    assert not (folder / "homes.private.csv").exists()


def test_nothing_is_written_where_a_folder_became_a_link(client, folder):
    (folder / "sub").mkdir()
    unfinished = ready(client, ledger="sub/book.jsonl")
    (folder / "sub").rmdir()
    (folder.parent / "elsewhere").mkdir()
    (folder / "sub").symlink_to(folder.parent / "elsewhere")
    assert "something else than files of the folder" in client.press(unfinished).words
    assert not list((folder.parent / "elsewhere").iterdir())
    assert not (folder / "homes.private.csv").exists()


# ---- files from elsewhere --------------------------------------------------------------------------------------


def test_a_file_from_elsewhere_becomes_one_of_the_folder_that_only_its_owner_can_read(client, folder):
    rows = b"rooms,price\n" + b"2,31415\n" * 200_000  # more than a form keeps in memory
    begun = client.unfinished(client.upload("../../flats.csv", rows))
    assert begun.source == folder / "flats.csv"
    assert (folder / "flats.csv").read_bytes() == rows
    assert stat.S_IMODE((folder / "flats.csv").stat().st_mode) & 0o077 == 0
    assert "flats.csv" in client.get("/").words


def test_a_file_that_did_not_arrive_whole_is_not_kept(client, folder):
    before = set(folder.iterdir())
    body = b'--edge\r\nContent-Disposition: form-data; name="file"; filename="x.csv"\r\n\r\na,b\n1,2'
    kind = {"content-type": "multipart/form-data; boundary=edge"}
    assert client.request("POST", "/upload", body, kind, is_cut=True).status == 500
    assert set(folder.iterdir()) == before


NAMES = ["x.csv.gz", "x.xlsx", "x.parquet", "x.nothing", "..", ".x.csv", "a:b.csv", "homes.csv", "link.csv", ""]


@pytest.mark.parametrize("name", NAMES)
def test_a_file_that_is_no_table_or_is_there_already_is_refused_and_not_kept(client, folder, name):
    before = {path: path.lstat().st_mtime_ns for path in folder.iterdir()}
    assert client.upload(name, b"price,price\n31415,2\n").is_refusal
    assert {path: path.lstat().st_mtime_ns for path in folder.iterdir()} == before
