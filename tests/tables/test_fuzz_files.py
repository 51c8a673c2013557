"""Files of any bytes: read, or refused by an error of this package."""

import zipfile

import numpy as np
import pytest

import labeldp as ldp


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
