"""What gives labels away in spite of the noise, or singles out rows, is pointed out to the owner."""

import numpy as np
import pyarrow as pa
import pytest
from scipy import stats

import labeldp as ldp
from helpers import FALSE_ALARM, seeded
from labeldp.app.regression import regress_file
from labeldp.tables import TableWriter
from labeldp.tables import batches as module
from labeldp.tables.batches import shuffle_rows
from labeldp.tables.dialect import Dialect
from labeldp.tables.hints import HintSampler
from tables import file_cases

ROWS = 3000


def noise(seed, rows=ROWS):
    return np.random.default_rng(seed).normal(size=rows)


PRICE = np.exp(noise(0))
GIVEAWAYS = {
    "logarithm": np.log(PRICE),
    "copy": PRICE,
    "negative": -PRICE,
    "nearly": PRICE * (1 + 0.02 * noise(1)),
    "band": np.array([f"band {b:02d}" for b in np.digitize(PRICE, np.quantile(PRICE, np.linspace(0, 1, 21)))]),
    "shuffled names of bands": np.array([f"{7919 * b % 99991}" for b in (10 * PRICE).astype(int)]),
    "as text": np.array([str(price) for price in PRICE]),
    "with gaps": pa.array(PRICE, mask=np.arange(ROWS) % 50 == 0),
    "half": pa.array(PRICE.astype(np.float16)),
    "copy in 40 % of the rows": np.where(np.arange(ROWS) % 5 < 2, PRICE, np.exp(noise(6))),
    "with decimal commas": np.array([str(price).replace(".", ",") for price in PRICE]),
}
HARMLESS = {
    "noise": noise(2),
    "good feature": np.log(PRICE) + noise(3),
    "id": np.arange(ROWS),
    "category": np.random.default_rng(4).choice(["a", "b", "c"], ROWS),
    "constant": np.zeros(ROWS),
    "nothing": pa.nulls(ROWS),
    "words": np.array(["unknown"] * ROWS),
    "code": np.array([f"{i:08x}" for i in np.random.default_rng(5).integers(0, 2**32, ROWS)]),
    "yes": np.arange(ROWS) % 2 == 0,
}


def hints_of(columns, labels=PRICE, *, ordered=True, batch=700, decimal="."):
    table = pa.table(columns)
    sampler = HintSampler(table.schema, "price", seeded(1), Dialect(decimal=decimal))
    start = 0
    for part in table.to_batches(max_chunksize=batch):
        sampler.update(part.columns, labels[start : start + part.num_rows])
        start += part.num_rows
    return sampler.hints(ordered=ordered)


@pytest.mark.parametrize("name", GIVEAWAYS)
def test_columns_that_nearly_determine_the_label_are_pointed_out(name):
    (hint,) = hints_of({"other": noise(9), "x": GIVEAWAYS[name]}, decimal="," if "commas" in name else ".")
    assert "'x" in hint


def test_a_label_that_is_a_function_up_and_down_is_pointed_out():
    feature = np.random.default_rng(6).uniform(-1, 1, ROWS)
    assert hints_of({"x": feature}, labels=feature**2)


@pytest.mark.parametrize("name", HARMLESS)
def test_other_columns_are_not(name):
    assert hints_of({"x": HARMLESS[name]}) == []


def test_a_file_sorted_by_its_label_is_pointed_out():
    for labels in (np.sort(PRICE), -np.sort(PRICE)):
        (hint,) = hints_of({"x": noise(2)}, labels)
        assert "order" in hint
        assert hints_of({"x": noise(2)}, labels, ordered=False) == []


def test_two_ratings_that_agree_by_chance_say_nothing():
    ratings = np.random.default_rng(7).integers(1, 6, (2, ROWS)).astype(float)
    assert hints_of({"x": ratings[0]}, ratings[1]) == []


def test_few_rows_and_equal_labels_say_nothing():
    assert hints_of({"x": np.arange(20.0)}, np.arange(20.0)) == []
    assert hints_of({"x": noise(2)}, np.ones(ROWS)) == []


def release(folder, table, hints=None, **options):
    with TableWriter(folder / "in.parquet", table.schema, force=True) as out:
        out.write(table.to_batches()[0])
    how = {"label": "price", "bounds": (0, 20), "epsilon": 1, "mechanism": "two-point"}
    return ldp.privatize_file(folder / "in.parquet", folder / "out.parquet", hints=hints, **how, **options)


ENTRIES = {
    "privatize": lambda source, out, **how: ldp.privatize_file(source, out / "o.csv", **how),
    "fit": lambda source, out, **how: ldp.fit_file(source, out / "model", **how),
    "regress": lambda source, out, **how: regress_file(source, out / "o.csv", **how),
}


@pytest.mark.parametrize("entry", ENTRIES)
def test_every_reading_of_a_table_with_a_private_column_gives_hints_before_the_charge(tmp_path, entry):
    ledger = ldp.Ledger()
    lines = [f"{a:.5f};{b:.5f};{a:.5f}\n" for a, b in zip(PRICE[:100], noise(1), strict=False)]
    rows = "".join(lines).replace(".", ",")
    (tmp_path / "in.csv").write_text(f"copy;other;price\n{rows}")

    def stop(hints):
        assert ledger.charges == ()
        raise InterruptedError(*hints)

    how = {"label": "price", "bounds": (0, 20), "epsilon": 1.0, "ledger": ledger, "hints": stop}
    with pytest.raises(InterruptedError, match="'copy'"):
        ENTRIES[entry](tmp_path / "in.csv", tmp_path, **how)
    assert ledger.charges == ()


@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize("labels", [[1.7e308, -1.7e308], [0.0, 1.0], [5e-324, 1e300], [1.0, 1.0]])
def test_no_labels_make_hints_on_bounds_warn_or_fail(labels):
    schema = pa.schema([("x", pa.float64())])
    sampler = HintSampler(schema, "price", seeded(0), Dialect())
    sampler.update([pa.array(np.arange(100.0))], np.array(labels * 50))
    assert len(sampler.bound_hints((0, 1))) <= 1


@pytest.mark.parametrize("entry", ENTRIES)
@pytest.mark.parametrize("bounds", [(0, 0.001), (0, 20_000)])
def test_bounds_of_another_unit_are_told_to_the_owner_before_the_charge(tmp_path, entry, bounds):
    ledger, told = ldp.Ledger(), []
    lines = [f"{a:.5f},{b:.5f}\n" for a, b in zip(PRICE[:100], noise(1), strict=False)]
    (tmp_path / "in.csv").write_text("price,other\n" + "".join(lines))

    def stop(hints):
        told.extend(hints)
        raise InterruptedError

    how = {"label": "price", "bounds": bounds, "epsilon": 1.0, "ledger": ledger, "hints": stop}
    with pytest.raises(InterruptedError):
        ENTRIES[entry](tmp_path / "in.csv", tmp_path, **how)
    assert ["same unit" in hint for hint in told] == [True]
    assert not ledger.charges


@pytest.mark.parametrize("entry", ENTRIES)
@pytest.mark.parametrize("name", ["PRICE", " price", "price\u200b", "\uff50rice", "price.1"])
def test_a_public_column_with_the_name_of_the_label_in_another_form_is_refused(tmp_path, entry, name):
    ledger = ldp.Ledger()
    (tmp_path / "in.csv").write_text(f"{name},rooms,price\n" + "1.5,2,3\n2.5,1,4\n" * 50)
    how = {"label": "price", "bounds": (0, 20), "epsilon": 1.0, "ledger": ledger}
    with pytest.raises(ldp.errors.ParameterError) as caught:
        ENTRIES[entry](tmp_path / "in.csv", tmp_path, **how)
    assert (ledger.charges, repr(name) in str(caught.value)) == ((), True)


def test_a_sample_of_many_rows_is_uniform_and_in_order():
    """Of 40,000 rows 4,096 are kept: each tenth of them holds a tenth, within six deviations of 19."""
    sampler = HintSampler(pa.schema({"x": pa.int64()}), "price", seeded(2), Dialect())
    for first in range(0, 40_000, 1000):
        sampler.update([pa.array(range(first, first + 1000))], np.arange(first, first + 1000.0))
    kept = sampler._rows["label"].to_numpy()
    assert kept.size == 4096
    assert (np.diff(kept) > 0).all()
    assert np.abs(np.histogram(kept, 10, (0, 40_000))[0] - 409.6).max() < 6 * 19


def test_without_anybody_to_tell_no_hint_is_computed(tmp_path, monkeypatch):
    monkeypatch.setattr("labeldp.tables.opening.HintSampler", lambda *_: pytest.fail("a hint was computed"))
    release(tmp_path, pa.table({"price": PRICE}))


# ---- shuffling ----------------------------------------------------------------------------------------


def orders(runs=1000, rows=8):
    """Return the order that rows end up in, over and over."""
    batches, source = pa.table({"x": np.arange(rows)}).to_batches(max_chunksize=3), seeded(11)
    shuffled = (shuffle_rows(batches, source) for _ in range(runs))
    return np.array([np.concatenate([batch.column(0) for batch in each]) for each in shuffled])


def evenness(seen):
    """Return the p-value of the row that is first, of that row's neighbour, and of where row 0 ends up."""
    rows = seen.shape[1]
    counts = [
        np.bincount(seen[:, 0], minlength=rows),
        np.bincount(np.argmin(seen, axis=1), minlength=rows),
        np.bincount(seen[:, 0] * rows + seen[:, 1], minlength=rows * rows).reshape(rows, rows)[
            ~np.eye(rows, dtype=bool)
        ],
    ]
    return min(stats.chisquare(each).pvalue for each in counts)


def test_shuffling_is_uniform():
    """1,000 orders of 8 rows: finds a probability that is off by half; false alarms 1e-6."""
    seen = orders()
    assert (np.sort(seen, axis=1) == np.arange(8)).all()
    assert evenness(seen) > FALSE_ALARM / 3


def test_shuffling_by_too_few_bits_is_caught(monkeypatch):
    """The twin: rows with the same bit stay in order."""
    draw = module.draw_words
    monkeypatch.setattr(module, "draw_words", lambda count, source: draw(count, source) & np.uint64(1))
    assert evenness(orders()) < FALSE_ALARM / 3


def test_a_table_that_is_too_large_to_shuffle_is_refused_before_the_charge(tmp_path, set_constants):
    set_constants({"app.file_release.MOST_SHUFFLED": 1000})
    ledger = ldp.Ledger()
    with pytest.raises(ldp.errors.DataError, match="too large to be shuffled"):
        release(tmp_path, pa.table({"x": np.arange(ROWS), "price": PRICE}), shuffle=True, ledger=ledger)
    assert ledger.charges == ()


def test_shuffled_files_hold_the_same_rows(tmp_path):
    city = pa.array(np.random.default_rng(4).choice(["a", "b"], ROWS))
    table = pa.table({"id": np.arange(ROWS), "city": city, "price": np.sort(PRICE)})
    hints = []
    done = release(tmp_path, table, hints.extend, shuffle=True)
    after = pa.Table.from_batches(list(ldp.tables.open_table(tmp_path / "out.parquet").batches()))
    assert after["id"].to_pylist() != table["id"].to_pylist()
    assert after.schema == table.schema
    assert after.sort_by("id").drop(["price"]).to_pydict() == table.drop(["price"]).to_pydict()
    assert '"row_order":"shuffled"' in done.card
    assert "the number of rows, and bounds are public" in done.card
    assert ldp.verify_card(done.card).holds
    assert not any("order in which" in hint for hint in hints)


# ---- columns that single out rows -----------------------------------------------------------------------

PEOPLE = 400
RNG = np.random.default_rng(0)
COLUMNS = {
    "id": [f"{row:05}" for row in range(PEOPLE)],
    "town": RNG.choice(["York", "Bath", "Ely"], PEOPLE).tolist(),
    "born": (1940 + RNG.integers(0, 60, PEOPLE)).tolist(),
    "size": RNG.normal(size=PEOPLE).round(3).tolist(),
    "sex": RNG.choice(["f", "m"], PEOPLE).tolist(),
}


def hints(columns, name="in.parquet"):
    """Return what is said of a release of these public columns."""
    table = pa.table({**columns, "price": RNG.uniform(0, 5, len(next(iter(columns.values()), [1])))})
    with TableWriter(name, table.schema, force=True) as out:
        for batch in table.to_batches(max_chunksize=70):
            out.write(batch)
    return list(map(str, file_cases.release(name, force=True).notes))


@pytest.mark.parametrize("name", ["in.csv", "in.parquet"])
def test_columns_whose_values_all_differ_are_pointed_out(place, name):
    times = pa.array(np.datetime64("2026-01-01T08:00", "s") + 61 * np.arange(PEOPLE))
    unique = {"admission": times, "distance": (np.arange(PEOPLE) + 0.25).tolist()}
    (told,) = (each for each in hints({**COLUMNS, **unique}, name) if "differ" in each)
    assert 'drop=["id", "admission", "distance"]' in told


def test_what_many_rows_share_is_not_pointed_out(place):
    assert hints({"town": COLUMNS["town"], "sex": COLUMNS["sex"]}) == []
    assert hints({"id": COLUMNS["id"][:10]}) == []
    assert hints({}) == []
