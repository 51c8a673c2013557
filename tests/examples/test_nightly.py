"""The nightly job: nobody passes the limit, and what failed can be run again."""

import datetime
import json
import runpy
from collections import defaultdict
from fractions import Fraction
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

import labeldp as ldp

SCRIPT = Path(__file__).parents[2] / "examples" / "nightly" / "nightly.py"
FIRST = datetime.date(2026, 11, 18)

pytestmark = pytest.mark.filterwarnings("ignore::UserWarning")


def write_night(path, number, rows=120):
    """Write orders of which a tenth are of three customers who come back every night."""
    random = np.random.default_rng(number)
    customers = [*range(3)] * (rows // 30) + list(range(1000 * number, 1000 * number + rows - 3 * (rows // 30)))
    frame = pd.DataFrame(
        {
            "order_no": np.arange(rows) + rows * number,
            "customer": customers,
            "age": random.integers(18, 90, rows),
            "items": random.integers(1, 9, rows),
            "amount": random.uniform(0, 500, rows),
        }
    )
    frame.to_parquet(path)
    return customers


def test_five_nights_with_returning_customers_end_in_a_model_a_page_and_no_account_above_its_limit(tmp_path):
    """The recount adds up the cards, for the rows that have a label."""
    job = runpy.run_path(str(SCRIPT))
    source, folder, spent = tmp_path / "last.parquet", tmp_path / "released", defaultdict(Fraction)
    for number in range(5):
        night = FIRST + datetime.timedelta(number)
        customers = write_night(source, number + 1)
        job["main"](source, folder, night)
        out = folder / "nights" / f"{night}.parquet"
        released = pd.read_parquet(out)
        charges = json.loads(out.with_name(f"{out.name}.card.json").read_text())["charges"]
        price = sum(Fraction(charge["budget"]) / charge["rows_per_person"] for charge in charges)
        assert list(released) == ["age", "items", "amount"]
        for customer, label in zip(customers, released["amount"], strict=True):
            spent[customer] += 0 if np.isnan(label) else price
    ledger = job["open_ledger"](folder)
    assert ledger.total.exact_epsilon == max(spent.values()) == 2, "two rows a night; a third would pass 3"
    assert {customer: ledger.total_of_person(customer).exact_epsilon for customer in range(3)} == dict(
        list(spent.items())[:3]
    )
    assert (folder / "models" / "2026-11-22.joblib").exists()
    assert "Accounts of people: " in (folder / "ledger.html").read_text(encoding="utf-8")
    with pytest.raises(ldp.errors.ParameterError, match="exists"):
        job["main"](source, folder, FIRST)
    assert ledger.total == ldp.Budget(2), "nothing is charged where the night is there"
