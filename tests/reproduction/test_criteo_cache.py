"""The encoded log in the cache: used while its source is unchanged, and never if it is damaged."""

import os
from pathlib import Path

import pytest

from helpers import python
from reproduction.criteo import load_criteo, reader
from reproduction_cases import line, log, same

pytestmark = pytest.mark.usefixtures("cache")
ROOT = Path(__file__).parents[2]


def test_the_encoded_table_is_kept_and_used_again(cache, twin, monkeypatch):
    first = load_criteo(twin)
    kept = list(cache.iterdir())
    assert len(kept) == 1
    if os.name == "posix":
        assert kept[0].stat().st_mode & 0o077 == 0, "others can read the labels"

    def unexpected(*_):
        pytest.fail("the file was read again")

    monkeypatch.setattr(reader, "batches", unexpected)
    same(load_criteo(twin), first)


def test_protocol_and_threshold_have_their_own_place_in_the_cache(cache, twin):
    cases = [{"protocol": p, "threshold": t} for p in ("text", "code") for t in (5, 20)]
    tables = [load_criteo(twin, **case) for case in cases]
    assert len(list(cache.iterdir())) == len({table.sizes for table in tables}) == 4
    for case, table in zip(cases, tables, strict=True):
        same(load_criteo(twin, **case), table)


def test_a_changed_file_is_noticed_even_if_its_size_is_the_same(tmp_path):
    path = log(tmp_path, line(amount=10))
    assert load_criteo(path).y.tolist() == [10.0]
    log(tmp_path, line(amount=20))
    os.utime(path, ns=(0, path.stat().st_mtime_ns + 1))
    assert load_criteo(path).y.tolist() == [20.0]


@pytest.mark.parametrize("damage", ["empty", "cut short", "one bit"])
def test_a_damaged_cache_is_encoded_again(cache, twin, damage):
    first = load_criteo(twin)
    (path,) = cache.iterdir()
    content = bytearray(path.read_bytes())
    content[len(content) // 2] ^= 1
    path.write_bytes({"empty": b"", "cut short": content[:-100], "one bit": content}[damage])
    same(load_criteo(twin), first)


def test_a_write_killed_half_way_leaves_no_partial_cache(cache, twin):
    code = (
        "import os, sys\n"
        "from reproduction.criteo import load_criteo\n"
        "os.fsync = lambda _: os._exit(9)\n"
        "load_criteo(sys.argv[1])\n"
    )
    assert python(code, twin, check=False, cwd=ROOT).returncode == 9
    assert [path.suffix for path in cache.iterdir()] == [".part"]
    same(load_criteo(twin), load_criteo(twin, cache=False))


def test_a_cache_that_cannot_be_written_is_a_warning(tmp_path, twin, monkeypatch):
    (tmp_path / "taken").write_text("a file, not a folder")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "taken"))
    with pytest.warns(RuntimeWarning, match="could not be kept"):
        data = load_criteo(twin)
    same(data, load_criteo(twin, cache=False))
