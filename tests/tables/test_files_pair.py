"""A table and its card appear together, with the rights that they should have, whatever comes in between."""

import os
import stat
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import labeldp as ldp
from helpers import posix_only
from labeldp.app.card_check import verify_files
from labeldp.app.regression import regress_file
from labeldp.errors import ParameterError
from labeldp.tables import paths
from labeldp.tables.placement import OutputAndCard
from tables.file_cases import meanwhile, refused, release

ROWS = 300


@pytest.fixture(autouse=True)
def table(place):
    rng = np.random.default_rng(0)
    pq.write_table(pa.table({"id": np.arange(ROWS), "price": rng.uniform(0, 5, ROWS)}), "in.parquet")


def holds(out):
    """Return whether the table has a card that is its own."""
    card = Path(f"{Path(out)}.card.json").read_text()
    return all(check.holds is not False for check in verify_files(card, file=out).checks)


def renames(monkeypatch, before=lambda: None, after=lambda: None):
    """Call something around each rename."""

    def watched(real):
        def rename(source, target):
            before()
            real(source, target)
            after()

        return rename

    for name in ("replace", "rename", "link"):
        monkeypatch.setattr(os, name, watched(getattr(os, name)))


def regress(source, out, **options):
    about = {"label": "price", "bounds": (0, 5), "epsilon": 1.0, "ledger": ldp.Ledger()}
    regress_file(source, out, **about, **options)


@pytest.mark.parametrize(
    ("release", "out"), [(release, "out.parquet"), (regress, "out.csv"), (regress, "out.html")]
)
def test_at_no_moment_is_a_table_beside_a_card_that_is_not_its_own(monkeypatch, release, out):
    """A kill leaves things as they are at that moment: so look at them before and after each rename."""
    release("in.parquet", out)
    seen = []

    def look():
        seen.append(os.path.lexists(out))
        assert not seen[-1] or holds(out)

    renames(monkeypatch, look, look)
    release("in.parquet", out, force=True)
    assert set(seen) == {True, False}
    assert sorted(os.listdir()) == ["in.parquet", Path(out).name, f"{Path(out)}.card.json"]


def test_a_card_put_over_the_old_one_is_caught(monkeypatch):
    """The twin: the new card simply replaces the old one, and the table does not get there."""
    release("in.parquet", "out.parquet")

    def careless(self, text, most):
        self.card.write_text(text)
        raise ZeroDivisionError

    monkeypatch.setattr(OutputAndCard, "put_card", careless)
    with pytest.raises(ZeroDivisionError):
        release("in.parquet", "out.parquet", force=True)
    assert not holds("out.parquet")


@pytest.mark.parametrize("old", [False, True])
@pytest.mark.parametrize("when", ["before", "after"])
def test_an_interrupt_at_any_rename_leaves_a_table_with_its_card_or_neither(monkeypatch, old, when):
    out = "out.parquet"
    if old:
        release("in.parquet", out)
    for at in range(1, 12):
        count = iter(range(1, 1000))

        def stop(count=count, at=at):
            if next(count) == at:
                raise KeyboardInterrupt

        with monkeypatch.context() as patch:
            renames(patch, **{when: stop})
            try:
                release("in.parquet", out, force=old)
                break
            except KeyboardInterrupt:
                pass
        names = {"in.parquet", *((out, f"{out}.card.json") if Path(out).exists() else ())}
        assert {*os.listdir()} - {f"{out}.card.json"} <= names
        assert not Path(out).exists() or holds(out)
        assert old or {*os.listdir()} == names
        if not old and Path(out).exists():  # the last rename: the table is there, and whole
            break
    assert at >= 2


def test_what_somebody_else_put_there_meanwhile_is_kept():
    ledger = meanwhile(lambda: Path("out.csv").write_text("mine"))
    with pytest.raises(ParameterError, match="exists already"):
        release("in.parquet", "out.csv", ledger=ledger)
    assert Path("out.csv").read_text() == "mine"
    assert sorted(os.listdir()) == ["in.parquet", "out.csv"]


@pytest.mark.parametrize("force", [False, True])
def test_of_two_that_write_to_one_place_at_once_the_second_is_refused_before_it_pays(force):
    first = "out.parquet"

    def second():
        message = str(refused("in.parquet", first, force=force))
        assert "another release is being written to" in message

    release("in.parquet", first, ledger=meanwhile(second), force=force)
    assert holds(first)
    assert sorted(os.listdir()) == ["in.parquet", Path(first).name, f"{Path(first)}.card.json"]


def test_what_a_kill_leaves_of_a_reservation_keeps_nobody_out():
    Path("out.csv.labeldp.part").touch()
    release("in.parquet")
    assert sorted(os.listdir()) == ["in.parquet", "out.csv", "out.csv.card.json"]


def test_a_release_that_ends_just_before_a_name_is_reserved_is_seen_before_the_charge(monkeypatch):
    reserve, ledger = paths.reserve_name, ldp.Ledger()

    def late(path):
        if path == "out.csv":
            monkeypatch.setattr(paths, "reserve_name", reserve)
            release("in.parquet", "out.csv")
        return reserve(path)

    monkeypatch.setattr(paths, "reserve_name", late)
    with pytest.raises(ParameterError, match="exists already"):
        release("in.parquet", "out.csv", ledger=ledger)
    assert ledger.charges == ()


# ---- rights -------------------------------------------------------------------------------------------------


@pytest.fixture
def umask():
    """Give a function that sets the umask; the old one comes back."""
    old = os.umask(0o022)
    yield os.umask
    os.umask(old)


def rights(path):
    return stat.S_IMODE(os.stat(path).st_mode)


@posix_only
@pytest.mark.parametrize(
    ("mask", "source", "expected"),
    [
        (0o022, 0o644, 0o644),
        (0o077, 0o644, 0o600),
        (0o002, 0o666, 0o664),
        (0o022, 0o600, 0o600),
        (0, 0o440, 0o640),
    ],
)
def test_nobody_gets_rights_that_umask_or_source_deny(umask, mask, source, expected):
    os.chmod("in.parquet", source)
    umask(mask)
    release("in.parquet", "out.csv")
    for name in ("out.csv", "out.csv.card.json"):
        assert rights(name) == expected, name
    assert os.umask(mask) == mask


def test_a_name_is_free_again_after_a_release_that_was_refused_for_its_card():
    Path("out.csv.card.json").write_text("{}")
    with pytest.raises(ParameterError, match="exists already") as kept:
        release("in.parquet")
    release("in.parquet", force=True)
    assert holds("out.csv"), kept  # whose traceback still has the first release
