"""Files of any bytes: read, or refused by an error of this package."""

import contextlib
import zipfile

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from openpyxl import Workbook

import labeldp as ldp
from fuzzing import tries


@pytest.fixture(scope="module")
def saved(tmp_path_factory):
    labels = np.linspace(1, 4, 60)
    path = tmp_path_factory.mktemp("rows") / "rows.npz"
    ldp.LabelReleaseRegressor(epsilon=4.0, bounds=(0, 5)).fit(labels[:, None], labels).release_.save(path)
    return path


@pytest.mark.slow
@pytest.mark.parametrize("bomb", ["labels", "more"])
def test_a_small_file_that_unpacks_to_much_memory_is_refused(bomb, saved):
    other, header = saved.with_name("bomb.npz"), {"descr": "<f8", "fortran_order": False, "shape": (40 << 20,)}
    with zipfile.ZipFile(saved) as old, zipfile.ZipFile(other, "w", zipfile.ZIP_DEFLATED) as new:
        new.writestr("card.npy", old.read("card.npy"))
        with new.open(f"{bomb}.npy", "w") as member:
            np.lib.format.write_array_header_1_0(member, header)
            for _ in range(320):
                member.write(bytes(1 << 20))
        for name in old.namelist()[1:]:
            if name != f"{bomb}.npy":
                new.writestr(name, old.read(name))
    with pytest.raises(ldp.errors.CardError, match="unpack"):
        ldp.learning.RowRelease.load(other)


@pytest.fixture(scope="module")
def tables(tmp_path_factory):
    """A folder with the same small table in every format."""
    folder = tmp_path_factory.mktemp("tables")
    (folder / "a.csv").write_text("id,price,word\n" + "".join(f"{k},{k / 7},w{k % 3}\n" for k in range(40)))
    table = ldp.tables.open_table(folder / "a.csv")
    book = Workbook()
    for row in [table.schema.names, *([k, k / 7, f"w{k % 3}"] for k in range(40))]:
        book.active.append(row)
    book.save(folder / "a.xlsx")
    for ending in ("tsv", "parquet"):
        with ldp.tables.TableWriter(str(folder / f"a.{ending}"), table.schema) as writer:
            for batch in table.batches():
                writer.write(batch)
            writer.finish()
    return folder


@pytest.mark.parametrize("ending", ["csv", "tsv", "parquet", "xlsx"])
@tries(60)
@given(data=st.data())
def test_a_table_of_any_bytes_is_read_or_refused(tables, tmp_path_factory, ending, data):
    whole = (tables / f"a.{ending}").read_bytes()
    at, gone = data.draw(st.integers(0, len(whole))), data.draw(st.integers(0, 12))
    path = tmp_path_factory.getbasetemp() / f"table.{ending}"
    path.write_bytes(whole[:at] + data.draw(st.binary(max_size=12)) + whole[at + gone :])
    with contextlib.suppress(ldp.LabelDPError):
        for batch in ldp.tables.open_table(path).batches():
            assert batch.num_columns >= 1
