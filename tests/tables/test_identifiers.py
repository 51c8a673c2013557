"""Public columns that single out rows are pointed out, by public columns alone."""

import numpy as np
import pyarrow as pa
import pytest

import labeldp as ldp
from tables.file_cases import release

ROWS = 400
RNG = np.random.default_rng(0)
COLUMNS = {
    "id": [f"{row:05}" for row in range(ROWS)],
    "town": RNG.choice(["York", "Bath", "Ely"], ROWS).tolist(),
    "born": (1940 + RNG.integers(0, 60, ROWS)).tolist(),
    "size": RNG.normal(size=ROWS).round(3).tolist(),
    "sex": RNG.choice(["f", "m"], ROWS).tolist(),
}


def hints(columns, name="in.parquet"):
    """Return what is said of a release of these public columns."""
    table = pa.table({**columns, "price": RNG.uniform(0, 5, len(next(iter(columns.values()), [1])))})
    with ldp.tables.TableWriter(name, table.schema, force=True) as out:
        for batch in table.to_batches(max_chunksize=70):
            out.write(batch)
    return list(map(str, release(name, force=True).notes))


@pytest.mark.parametrize("name", ["in.csv", "in.parquet"])
def test_columns_whose_values_all_differ_are_pointed_out(place, name):
    times = pa.array(np.datetime64("2026-01-01T08:00", "s") + 61 * np.arange(ROWS))
    unique = {"admission": times, "distance": (np.arange(ROWS) + 0.25).tolist()}
    (told,) = (each for each in hints({**COLUMNS, **unique}, name) if "differ" in each)
    assert 'drop=["id", "admission", "distance"]' in told


def test_what_many_rows_share_is_not_pointed_out(place):
    assert hints({"town": COLUMNS["town"], "sex": COLUMNS["sex"]}) == []
    assert hints({"id": COLUMNS["id"][:10]}) == []
    assert hints({}) == []
