"""Public columns that single out rows are pointed out, by public columns alone."""

import numpy as np
import pyarrow as pa
import pytest

import labeldp as ldp
from labeldp.tables.identifiers import Identifiers
from labeldp.tables.overview import overview
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


def hints(columns):
    seen = Identifiers()
    for batch in pa.table(columns).to_batches(max_chunksize=70):
        seen.see(batch)
    return seen.unique, list(map(str, seen.hints()))


@pytest.mark.parametrize("kind", [str, None])
def test_unique_columns_and_rare_combinations_are_found_as_text_and_as_numbers(kind):
    columns = {name: list(map(kind, column)) if kind else column for name, column in COLUMNS.items()}
    unique, told = hints(columns)
    assert unique == ("id",)
    assert "'id'" in told[0]
    pairs = pa.table({name: COLUMNS[name] for name in ("town", "born")}).group_by(["town", "born"])
    sizes = np.asarray(pairs.aggregate([([], "count_all")])["count_all"])
    assert f"{sizes[sizes < 5].sum():,} of 400 rows have values of 'town' and 'born'" in " ".join(told)
    assert not any("'size'" in each for each in told)


def test_what_many_rows_share_is_not_pointed_out():
    assert hints({"town": COLUMNS["town"], "sex": COLUMNS["sex"]}) == ((), [])
    assert hints({"id": COLUMNS["id"][:10]}) == ((), [])
    assert hints({}) == ((), [])


def test_a_release_and_an_overview_say_the_same(place):
    table = pa.table({**COLUMNS, "price": RNG.uniform(0, 5, ROWS)})
    with ldp.tables.TableWriter("in.csv", table.schema) as out:
        out.write(table.to_batches()[0])
    notes = release("in.csv").notes
    assert 'drop=["id"]' in "".join(map(str, notes))
    assert set(overview("in.csv", label="price").notes) <= set(notes)
