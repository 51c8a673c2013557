"""`privatize_file`: labels become private, all else stays, and nothing carries a label round the channel."""

import hashlib
import json
import struct
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import labeldp as ldp
from labeldp.accounts import Card
from labeldp.app.card_check import verify_files
from labeldp.tables import TableWriter

ROWS = 600
BOUNDS = (0.0, 1000.0)
FORMATS = ["csv", "tsv", "parquet"]


def labels_of(rows=ROWS, seed=1):
    """Return labels with so many digits that none of them turns up by chance."""
    return np.random.default_rng(seed).uniform(100, 900, rows)


def table_of(labels):
    rng = np.random.default_rng(2)
    n = len(labels)
    columns = {
        "id": [f"{i:05}" for i in range(n)],
        "city": pa.array(rng.choice(["north", "south"], n)),
        "price": pa.array(labels, pa.float64()),
        "when": pa.array(rng.integers(0, 2**40, n), pa.timestamp("us", "UTC")),
    }
    table = pa.table(columns)
    noted = {"pandas": json.dumps({"max price": repr(float(np.max(labels)))})}
    fields = [field.with_metadata({"mean": repr(float(labels[0]))}) for field in table.schema]
    return table.cast(pa.schema(fields, metadata=noted))


def put(path, table):
    if path.suffix == ".parquet":
        options = pq.SortingColumn(table.schema.get_field_index("price"))
        pq.write_table(table, path, row_group_size=97, sorting_columns=[options])
    else:
        with TableWriter(path, table.schema) as out:
            for batch in table.to_batches():
                out.write(batch)
    return path


def everything(path, **options):
    table = ldp.tables.open_table(path, **options)
    return pa.Table.from_batches(list(table.batches()), table.schema)


def release(source, out, **options):
    return ldp.privatize_file(source, out, **{"label": "price", "bounds": BOUNDS, "epsilon": 1.0, **options})


@pytest.mark.parametrize("format", FORMATS)
def test_labels_are_private_and_all_else_stays(tmp_path, format):
    labels = labels_of()
    source = put(tmp_path / f"in.{format}", table_of(labels))
    out = tmp_path / f"out.{format}"
    done = release(source, out, epsilon_prior=0)  # then only the bounds clip labels
    as_written = "sv" in format
    before, after = (everything(path, as_written=as_written) for path in (source, out))
    assert after.schema.names == before.schema.names
    assert after.drop(["price"]).equals(before.drop(["price"]))
    content = Card.parse(Path(f"{out}.card.json").read_text()).content
    assert content["file"]["sha256"] == hashlib.sha256(out.read_bytes()).hexdigest()
    assert content["file"]["rows"] == content["rows"] == ROWS
    assert content["file"]["row_order"] == "public, and kept"
    assert str(tmp_path) not in done.card
    if not as_written:
        assert after.schema.field("price").type == pa.float64()
    private = np.asarray(everything(out)["price"])
    assert np.mean(private == labels) == 0
    noise = np.sqrt(np.mean(done.terms.mechanisms[0].unbiased_variance(labels)) / ROWS)
    assert abs(private.mean() - labels.mean()) < 6 * noise  # fails by chance in 2e-9 of runs


def test_unbiased_labels_replace_the_released_ones(tmp_path):
    source = put(tmp_path / "in.parquet", table_of(labels_of()))
    released = {}
    for how in ("training", "values"):
        out = tmp_path / f"{how}.parquet"
        with pytest.warns(ldp.InsecureRandomnessWarning):
            done = release(source, out, mechanism="rp", purpose=how, random_state=5)
        released[how] = np.asarray(everything(out)["price"])
        assert json.loads(done.card)["purpose"] == how
    (step,) = json.loads(done.card)["rounding"]
    debiased = done.terms.mechanisms[0].debias(released["values"])
    np.testing.assert_allclose(released["training"], debiased, atol=3 * step)  # both were rounded


@pytest.mark.parametrize("unit", [1e-3, 1.0, 7e8])
def test_released_values_are_rounded_well_below_the_noise_and_verified(tmp_path, unit):
    source = put(tmp_path / "in.csv", table_of(labels_of() * unit))
    for mechanism, purpose in (("auto", "values"), ("laplace", "training"), ("rr-on-bins", "values")):
        out = tmp_path / f"{mechanism}.csv"
        done = release(source, out, bounds=(0, 1000 * unit), mechanism=mechanism, purpose=purpose)
        (step,) = json.loads(done.card)["rounding"]
        noise = np.sqrt(done.terms.mechanisms[0].variance(np.linspace(0, 1000 * unit, 9))).min()
        assert 1e-4 < step / noise <= 0.0101
        multiples = np.asarray(everything(out)["price"]) / step
        np.testing.assert_allclose(multiples, np.round(multiples), atol=1e-6)
        assert verify_files(done.card, file=out).holds
        other = Card.parse(done.card).terms.to_card(file=json.loads(done.card)["file"])
        holds = {check.name: check.holds for check in verify_files(other, file=out).checks}
        assert holds.get("labels", False) is False  # the step is not on this card


def test_biased_mechanisms_are_refused_before_anything_is_spent(tmp_path):
    source = put(tmp_path / "in.csv", table_of(labels_of()))
    ledger = ldp.Ledger()
    with pytest.raises(ldp.errors.ParameterError, match='purpose="values"'):
        release(source, tmp_path / "out.csv", mechanism="rr-on-bins", ledger=ledger)
    assert ledger.charges == ()
    release(source, tmp_path / "out.csv", mechanism="rr-on-bins", purpose="values", ledger=ledger)
    assert ledger.total == ldp.Budget(1)


@pytest.mark.parametrize("trust", ["curator", "local"])
def test_the_ledger_shows_all_that_is_spent(tmp_path, trust):
    source = put(tmp_path / "in.parquet", table_of(labels_of()))
    ledger = ldp.Ledger.open(tmp_path / "budget.db", limit=ldp.Budget(3.0))
    done = release(source, tmp_path / "out.parquet", trust=trust, rows_per_person=2, ledger=ledger)
    assert ledger.total == ldp.Budget(2)
    assert ledger.charges == done.terms.charges
    with pytest.raises(ldp.BudgetError):
        release(source, tmp_path / "again.parquet", rows_per_person=2, ledger=ledger)
    assert ledger.total == ldp.Budget(2)
    assert not list(tmp_path.glob("again*"))


def test_rows_without_a_label_stop_or_are_left_out(tmp_path):
    labels = labels_of()
    table = table_of(labels)
    gaps = (np.arange(ROWS) % 7 == 0) & (np.arange(ROWS) > 100)
    table = table.set_column(2, "price", pa.array(np.where(gaps, np.nan, labels), mask=np.arange(ROWS) == 103))
    source = put(tmp_path / "in.parquet", table)
    ledger = ldp.Ledger()
    with pytest.raises(ldp.errors.LabelError, match="missing or not finite, first in row 104:"):
        release(source, tmp_path / "out.parquet", ledger=ledger)
    assert ledger.charges == ()
    done = release(source, tmp_path / "out.parquet", missing="drop", ledger=ledger)
    kept = ~gaps & (np.arange(ROWS) != 103)
    assert everything(tmp_path / "out.parquet")["id"].to_pylist() == table.filter(kept)["id"].to_pylist()
    assert json.loads(done.card)["file"]["rows_left_out"] == ROWS - kept.sum()


# ---- what could carry labels round the channel -----------------------------------------------------------


def raw_labels_in(path, labels):
    """Return how many of the labels are anywhere in a file's bytes: as a float64, or as digits."""
    data = path.read_bytes()
    return sum(struct.pack("<d", label) in data or repr(float(label)).encode() in data for label in labels)


@pytest.mark.parametrize("format", ["parquet", "csv"])
def test_no_label_is_in_the_output(tmp_path, format):
    labels = labels_of()
    table = table_of(labels)
    source, out = tmp_path / f"in.{format}", tmp_path / f"out.{format}"
    if format == "parquet":
        pq.write_table(table, source, compression="none")
    else:
        put(source, table)
    assert raw_labels_in(source, labels) == ROWS
    done = release(source, out)
    assert raw_labels_in(out, labels) == 0
    assert raw_labels_in(done.card_path, labels) == 0
    assert not np.isin(labels, np.asarray(everything(out)["price"])).any()


def leak_metadata(table, labels):
    return table.replace_schema_metadata({"max": repr(float(labels.max()))})


def leak_a_label(table, labels):
    price = np.asarray(table["price"]).copy()
    price[17] = labels[17]
    return table.set_column(2, "price", pa.array(price))


@pytest.mark.parametrize("leak", [leak_metadata, leak_a_label])
def test_a_leaky_writer_is_caught(tmp_path, leak):
    """The twin of the test above."""
    labels = labels_of()
    source = tmp_path / "in.parquet"
    pq.write_table(table_of(labels), source, compression="none")
    release(source, tmp_path / "out.parquet")
    pq.write_table(
        leak(everything(tmp_path / "out.parquet"), labels), tmp_path / "leaky.parquet", compression="none"
    )
    assert raw_labels_in(tmp_path / "leaky.parquet", labels) > 0


def test_sort_flags_are_not_copied(tmp_path):
    source = put(tmp_path / "in.parquet", table_of(np.sort(labels_of())))
    assert pq.read_metadata(source).row_group(0).sorting_columns
    release(source, tmp_path / "out.parquet")
    after = pq.read_metadata(tmp_path / "out.parquet")
    assert not after.row_group(0).sorting_columns
    assert set(after.metadata) == {b"ARROW:schema"}


def written(table, path):
    """Write a table as a release is written, and return its checksum."""
    with TableWriter(path, table.schema, force=True) as writer:
        for batch in table.to_batches():
            writer.write(batch)
        return writer.finish()


@pytest.mark.parametrize("out", ["out.csv", "out.parquet"])
def test_a_table_that_holds_other_labels_than_the_mechanism_gives_out_is_not_verified(tmp_path, out):
    """Its card can be made to fit its bytes, as a checksum is no signature."""
    source, path = put(tmp_path / "in.parquet", table_of(labels_of())), tmp_path / out
    done = release(source, path, drop=["when"], purpose="values")
    facts, (step,) = json.loads(done.card)["file"], json.loads(done.card)["rounding"]
    honest, true = everything(path), pa.array(labels_of())
    dates = true.cast(pa.int64(), safe=False).cast(pa.timestamp("s"))  # no numbers at all
    place = honest.column_names.index("price")
    forged = honest.set_column(place, "price", dates if out == "out.parquet" else true)
    check, detail = (
        ("rows", "cannot be read") if out == "out.parquet" else ("noisy labels", "600 of 600 in 'price'")
    )
    for shown, failed in ((honest, []), (forged, [check])):
        facts |= {"columns": shown.column_names, "sha256": written(shown, path)}
        card = done.terms.to_card(file=facts, rounding=[step], purpose="values")
        wrong = [check for check in verify_files(card, file=path).checks if check.holds is False]
        assert [check.name for check in wrong] == failed
        assert all(detail in check.detail for check in wrong)
