"""Release last night's rows; on Sundays, build the week's model and the page of the ledger.

    python nightly.py SOURCE FOLDER [NIGHT]

SOURCE is a Parquet file with the columns of `COLUMNS`. FOLDER has the ledger, the released nights
and the models. NIGHT is a date such as 2026-11-18; by default it is today.
"""

import datetime
import sys
from pathlib import Path

import joblib
import pandas as pd
import pyarrow.dataset as ds
from sklearn.ensemble import HistGradientBoostingRegressor

import labeldp as ldp
from labeldp.app.report import render_ledger, write_page

LABEL = "amount"
FEATURES = ["age", "items"]
IDS = ["order_no", "customer"]
COLUMNS = [*IDS, *FEATURES, LABEL]


def open_ledger(folder):
    """Return the ledger: nobody's orders, of all nights together, may cost more than ε = 3."""
    limit = ldp.Budget(epsilon=3.0)
    return ldp.Ledger.open(folder / "budget.db", limit=limit, unit="person", segments="night")


def release_night(source, folder, night):
    """Write a night's rows with private labels, and their card beside them."""
    out = folder / "nights" / f"{night}.parquet"
    rows = ds.dataset(source).scanner(columns=COLUMNS).to_reader()  # or a query's reader
    return ldp.privatize_file(
        rows,
        out,
        label=LABEL,
        bounds=(0, 500),
        epsilon=1.0,
        ledger=open_ledger(folder),
        segment=str(night),
        id="order_no",
        person="customer",
        most_rows_per_person=2,
        drop=IDS,
    )


def build_week(folder, sunday):
    """Fit a model to the released labels of seven nights: that costs nothing more."""
    nights = [sunday - datetime.timedelta(days) for days in range(7)]
    paths = [folder / "nights" / f"{night}.parquet" for night in nights]
    week = pd.concat(pd.read_parquet(path) for path in paths if path.exists())
    week = week.dropna(subset=LABEL)  # labels of people without budget are empty
    model = HistGradientBoostingRegressor(min_samples_leaf=50).fit(week[FEATURES], week[LABEL])
    joblib.dump(model, folder / "models" / f"{sunday}.joblib")
    return model


def main(source, folder, night):
    """Do the work of one night."""
    folder = Path(folder)
    for name in ("nights", "models"):
        (folder / name).mkdir(parents=True, exist_ok=True)
    release_night(source, folder, night)
    if night.isoweekday() == 7:
        build_week(folder, night)
        write_page(folder / "ledger.html", render_ledger(open_ledger(folder)), force=True)


if __name__ == "__main__":
    today = datetime.date.today()
    main(*sys.argv[1:3], datetime.date.fromisoformat(sys.argv[3]) if sys.argv[3:] else today)
