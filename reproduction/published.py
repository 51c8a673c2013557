"""What the paper prints: its three tables of test errors, its parameters and its runtimes.

Transcribed by a script from the paper's source, oddities and all: the ``± 6246`` of Criteo at ε = 0.5 is what it
says. A star marks what the paper prints in bold.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

BUDGETS = (0.05, 0.1, 0.3, 0.5, 0.8, 1.0, 1.5, 2.0, 3.0, 4.0, 6.0, 8.0, math.inf)
"""The paper's privacy budgets."""

COLUMNS = ("Laplace", "Gaussian", "Staircase", "RRonBins", "Ours", "Unbiased")
"""The paper's columns, in its order."""


@dataclass(frozen=True, slots=True)
class Figure:
    """One cell of a table: mean ± standard deviation of the test error over ten trials."""

    text: str
    mean: float
    std: float
    bold: bool


_TABLES = {
    "crime": """
0.05 8.3956±3.1062 33.0362±11.6948 7.0269±3.0227 0.1033±0.0119 0.0679±0.0070* 0.1293±0.0096
0.1 2.4534±1.1036 17.5311±7.1242 2.3541±0.6848 0.0964±0.0243 0.0683±0.0061* 0.1194±0.0056
0.3 0.3232±0.0631 2.4218±1.1848 0.2973±0.0731 0.1107±0.0221 0.0604±0.0092* 0.1110±0.0094
0.5 0.1615±0.0513 0.8934±0.3259 0.1127±0.0226 0.1108±0.0349 0.0544±0.0065* 0.1037±0.0089
0.8 0.0679±0.0122 0.4376±0.1317 0.0621±0.0124* 0.1068±0.0188 0.0453±0.0057* 0.0892±0.0064
1.0 0.0533±0.0117* 0.3138±0.1096 0.0467±0.0064* 0.0962±0.0133 0.0411±0.0042* 0.0826±0.0039
1.5 0.0353±0.0081* 0.1481±0.0481 0.0344±0.0055* 0.0827±0.0162 0.0372±0.0023* 0.0668±0.0041
2 0.0275±0.0032* 0.0947±0.0167 0.0255±0.0027* 0.0628±0.0110 0.0329±0.0036* 0.0521±0.0032
3 0.0223±0.0018* 0.0600±0.0132 0.0241±0.0026* 0.0332±0.0062 0.0244±0.0027* 0.0355±0.0021
4 0.0216±0.0020* 0.0368±0.0084 0.0239±0.0033* 0.0282±0.0038 0.0212±0.0033* 0.0259±0.0024*
6 0.0188±0.0017* 0.0291±0.0042 0.0249±0.0025 0.0202±0.0027* 0.0205±0.0023* 0.0222±0.0016*
8 0.0201±0.0021* 0.0231±0.0020 0.0241±0.0024 0.0187±0.0020* 0.0209±0.0018* 0.0204±0.0017*
inf 0.0182±0.0016* 0.0182±0.0016* 0.0182±0.0016* 0.0184±0.0009* 0.0177±0.0021* 0.0194±0.0018*
""",
    "housing": """
0.05 14.2061±12.1058 59.1688±25.9966 9.9673±3.7562 1.6680±0.1241 1.5470±0.1034* 1.6307±0.1155*
0.1 4.8926±0.8567 14.6442±10.7207 5.6695±1.6705 1.6938±0.1279 1.5400±0.0894* 1.6554±0.0542*
0.3 2.2165±0.5216 4.8875±0.9392 2.6639±1.3920 1.6132±0.1017 1.5035±0.0615* 1.5656±0.0625*
0.5 1.5666±0.2492* 3.4958±0.9716 1.4574±0.1180* 1.5477±0.0754 1.4537±0.0868* 1.4666±0.0644*
0.8 1.1604±0.1397* 2.8569±0.8632 1.0189±0.0868* 1.5397±0.0915 1.1232±0.0370* 1.42420±0.0700
1.0 1.0121±0.1150* 2.3481±0.6479 0.8862±0.0933* 1.4407±0.0969 1.0726±0.0673* 1.3641±0.0617
1.5 0.8262±0.0761* 1.6685±0.3689 0.7905±0.0552* 1.2294±0.0516 0.8797±0.0324 1.1896±0.0447
2 0.7527±0.0380* 1.4513±0.2093 0.7608±0.0559* 1.0917±0.1835 0.7946±0.0831* 1.0882±0.0657
3 0.7279±0.1016* 1.0725±0.1550 0.7141±0.0329* 0.7920±0.0604 0.6732±0.0698* 0.9587±0.0766
4 0.6562±0.0495* 0.8827±0.0689 0.7087±0.0573 0.6755±0.0477 0.6325±0.0227* 0.7659±0.0261
6 0.6153±0.0234* 0.7588±0.0725 0.7113±0.0402 0.6219±0.0438 0.6106±0.0320* 0.6676±0.0334*
8 0.6065±0.0463* 0.7270±0.0408 0.7166±0.0376 0.6195±0.0466* 0.5990±0.0258* 0.6282±0.0358*
inf 0.5922±0.0244* 0.5922±0.0244* 0.5922±0.0244* 0.5912±0.0301* 0.5852±0.0224* 0.6110±0.0292*
""",
    "criteo": """
0.05 1878491.63±376368.64 16803328.94±998367.25 1736473.22±122674.30 11339.71±36.45 6882.55±40.96* 10572.59±1134.12
0.1 472390.91±14030.15 4458946.92±385131.83 464807.11±19835.24 11328.04±36.34 6839.72±25.78* 7884.54±664.82
0.3 60599.02±1124.63 567545.99±8905.76 55470.30±1296.68 11185.20±36.10 6526.58±54.49 5807.11±393.60*
0.5 24659.75±745.69 215649.49±2694.33 21717.01±417.43 10907.33±36.54 6302.61±6246 4826.07±250.91*
0.8 11982.80±290.64 87173.02±1582.45 10328.00±255.31 10256.37±37.39 5931.67±81.26 4769.94±210.42*
1.0 8854.12±267.56 58036.92±1286.23 7762.13±230.03 9744.08±37.59 5742.74±114.96 4630.83±171.56*
1.5 5759.41±178.68 28740.18±481.94 5301.81±274.90 8406.88±36.57 4659.06±72.15 4472.40±92.37*
2 4787.05±127.27 17620.97±493.14 4516.25±62.59* 7294.93±34.03 4306.80±131.89* 4459.39±78.33*
3 3848.77±184.59* 9780.89±136.51 4103.87±101.25 5577.50±31.75 4042.74±111.63* 4330.81±58.60
4 3551.65±164.53* 7081.23±259.26 4080.65±128.19 4769.61±25.01 3229.45±129.65* 4244.34±76.74
6 3339.38±141.50* 5024.29±340.55 4144.02±75.71 4371.68±25.31 3185.96±69.52* 3241.17±44.89*
8 3164.46±83.76 4163.70±119.34 4322.13±187.16 4333.12±31.94 3104.52±42.10 2911.97±58.3*
inf 3119.31±99.39 3119.31±99.39 3119.31±99.39 4319.86±29.27 3119.01±70.31 2798.53±29.11*
""",
}
"""ε, then one cell for each of `COLUMNS`."""

_PARAMETERS = {
    "crime": ("e/2 e/2 e/2 e/2 e/2 e/2 e/2.5 e/2.5 e/3 e/3.5 e/6 e/7", "0.4 " * 12),
    "housing": (
        "0.017 0.017 0.017 0.017 0.01 0.008 0.008 0.008 0.007 0.007 0.007 0.007",
        "0.7 0.5 1.2 1 2.2 1.5 1.5 1.5 1.4 1.2 0.7 0.1",
    ),
    "criteo": ("0.017 0.017 0.017 0.017 0.017 0.017 0.01 0.01 0.01 0.005 0.003 0.002", "70 " * 12),
}
"""ε1 (``e/2`` is half of ε) and ζ at each finite budget. At ε = ∞ it has ε1 = ∞ and ζ = 0.1, 0.1 and 0.8."""

RUNTIMES = {
    "crime": (0.288116455, 0.285983801, 0.285481691, 0.567934513, 0.279293299),
    "housing": (0.279757977, 0.291029215, 0.312218666, 6.187591076, 0.297134399),
    "criteo": (3.408373356, 3.42813, 3.538956881, 8.24254632, 3.44035),
}
"""Seconds in the paper's runtime table, for the first five of `COLUMNS`; Unbiased is not in it."""

DISTINCT = {"crime": (1595, 94), "criteo": (1316781, 401), "housing": (16512, 472)}
"""Distinct samples in the paper's runtime table: of all mechanisms but RRonBins, and of RRonBins."""


def _figure(cell: str) -> Figure:
    mean, std = cell.rstrip("*").split("±")
    return Figure(f"{mean} ± {std}", float(mean), float(std), cell.endswith("*"))


_FIGURES = {
    name: {
        float(epsilon): dict(zip(COLUMNS, map(_figure, cells), strict=True))
        for epsilon, *cells in map(str.split, text.strip().splitlines())
    }
    for name, text in _TABLES.items()
}


_FIGURES["criteo twin"] = _FIGURES["criteo"]  # the real log's stand beside the twin's


def has_figures(dataset: str) -> bool:
    """Whether the paper prints figures for these data, or for what they are a twin of."""
    return dataset in _FIGURES


def figure(dataset: str, column: str, epsilon: float) -> Figure | None:
    """Return what the paper prints, or None where it prints nothing.

    Examples
    --------
    >>> figure("criteo", "Ours", 0.5).text
    '6302.61 ± 6246'
    """
    return _FIGURES.get(dataset, {}).get(epsilon, {}).get(column)


def best(dataset: str, epsilon: float) -> tuple[str, Figure] | None:
    """Return the column with the smallest printed mean, and its figure.

    Examples
    --------
    >>> best("crime", 8.0)[0]
    'RRonBins'
    """
    row = _FIGURES.get(dataset, {}).get(epsilon)
    return None if row is None else min(row.items(), key=lambda item: item[1].mean)


def parameters(dataset: str, epsilon: float) -> tuple[float, float] | None:
    """Return (ε1, ζ) of the paper's parameter table, or None where it has none.

    Examples
    --------
    >>> parameters("crime", 1.5), parameters("housing", 8.0)
    ((0.6, 0.4), (0.007, 0.1))
    """
    if dataset not in _PARAMETERS or epsilon not in BUDGETS[:-1]:
        return None
    share, zeta = (row.split()[BUDGETS.index(epsilon)] for row in _PARAMETERS[dataset])
    return epsilon / float(share[2:]) if share.startswith("e/") else float(share), float(zeta)
