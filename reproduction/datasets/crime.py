"""Communities and Crime: what the census says of 1,994 places, and their rate of violent crime."""

from __future__ import annotations

from typing import Literal

import numpy as np

from labeldp.errors import DataNotFoundError, ParameterError
from reproduction.datasets.data_files import cache_folder, fetch, find, read_checked
from reproduction.datasets.dataset import Dataset

FILE = "communities.data"
SHA256 = "d90d85bd66bad9a00fa0ed6c15ac017b5966d528e55ba2940ad028d071353f95"
URL = "https://archive.ics.uci.edu/ml/machine-learning-databases/communities/communities.data"
LABEL = "ViolentCrimesPerPop"
BOUNDS = (0.0, 1.0)

_BY_HAND = (
    f"To get it by hand: download {FILE} of the data set Communities and Crime from "
    "https://archive.ics.uci.edu/dataset/183/communities+and+crime, put it in a folder, and name that folder in "
    "the environment variable LABELDP_DATA"
)
_NOT_PREDICTIVE = 5  # of the columns, the first: where a place is, its name, and a fold
_COMMON = (
    "Left out: state, county, community, communityname and fold, which do not predict.",
    "The one gap in OtherPerCap has the mean of that column.",
    "The label is crimes per head, on UCI's normalised scale from 0 to 1: its bounds are that scale's.",
)
_NOTES = {
    "columns": (
        "Left out: the 22 other columns with gaps, as the paper's code does. Its text says that rows are left "
        "out, but counts the 101 columns that remain when columns are.",
        "Left out: racepctblack, as the paper's code does; the text does not say so. The work that the paper "
        "follows treats it as the protected attribute.",
    ),
    "rows": (
        "Left out: every row with a gap in another column than OtherPerCap, as the paper's text says. Few rows "
        "remain, and the text's own count of 101 columns does not: its code leaves out columns.",
    ),
}
COLUMNS = tuple(
    """
    state county community communityname fold population householdsize racepctblack racePctWhite racePctAsian
    racePctHisp agePct12t21 agePct12t29 agePct16t24 agePct65up numbUrban pctUrban medIncome pctWWage
    pctWFarmSelf pctWInvInc pctWSocSec pctWPubAsst pctWRetire medFamInc perCapInc whitePerCap blackPerCap
    indianPerCap AsianPerCap OtherPerCap HispPerCap NumUnderPov PctPopUnderPov PctLess9thGrade PctNotHSGrad
    PctBSorMore PctUnemployed PctEmploy PctEmplManu PctEmplProfServ PctOccupManu PctOccupMgmtProf
    MalePctDivorce MalePctNevMarr FemalePctDiv TotalPctDiv PersPerFam PctFam2Par PctKids2Par PctYoungKids2Par
    PctTeen2Par PctWorkMomYoungKids PctWorkMom NumIlleg PctIlleg NumImmig PctImmigRecent PctImmigRec5
    PctImmigRec8 PctImmigRec10 PctRecentImmig PctRecImmig5 PctRecImmig8 PctRecImmig10 PctSpeakEnglOnly
    PctNotSpeakEnglWell PctLargHouseFam PctLargHouseOccup PersPerOccupHous PersPerOwnOccHous
    PersPerRentOccHous PctPersOwnOccup PctPersDenseHous PctHousLess3BR MedNumBR HousVacant PctHousOccup
    PctHousOwnOcc PctVacantBoarded PctVacMore6Mos MedYrHousBuilt PctHousNoPhone PctWOFullPlumb OwnOccLowQuart
    OwnOccMedVal OwnOccHiQuart RentLowQ RentMedian RentHighQ MedRent MedRentPctHousInc MedOwnCostPctInc
    MedOwnCostPctIncNoMtg NumInShelters NumStreet PctForeignBorn PctBornSameState PctSameHouse85 PctSameCity85
    PctSameState85 LemasSwornFT LemasSwFTPerPop LemasSwFTFieldOps LemasSwFTFieldPerPop LemasTotalReq
    LemasTotReqPerPop PolicReqPerOffic PolicPerPop RacialMatchCommPol PctPolicWhite PctPolicBlack PctPolicHisp
    PctPolicAsian PctPolicMinor OfficAssgnDrugUnits NumKindsDrugsSeiz PolicAveOTWorked LandArea PopDens
    PctUsePubTrans PolicCars PolicOperBudg LemasPctPolicOnPatr LemasGangUnitDeploy LemasPctOfficDrugUn
    PolicBudgPerPop ViolentCrimesPerPop
    """.split()  # noqa: SIM905, 128 quoted names would be four pages
)


def load_crime(*, missing: Literal["columns", "rows"] = "columns", download: bool = True) -> Dataset:
    """Return Communities and Crime, preprocessed: 1,994 rows and 99 features.

    The file ``communities.data`` (or ``.data.gz``) is looked for in the folder that ``LABELDP_DATA``
    names, then in the user's cache folder, and else downloaded from UCI into the cache folder. Its
    sha256 is checked each time.

    Parameters
    ----------
    missing : {"columns", "rows"}
        What is left out where values are missing. ``"columns"`` is what gave the paper's numbers:
        columns with gaps go, and `racepctblack` with them; 1,994 rows and 99 features remain.
        ``"rows"`` is what the paper's text says: 319 rows and 122 features remain.
    download : bool
        Whether the network may be used.

    Raises
    ------
    DataNotFoundError
        If the file is not on this machine and cannot be downloaded; the message says how to get it.
    DataError
        If the file is damaged, or another version.

    Returns
    -------
    Dataset

    Examples
    --------
    >>> from reproduction.datasets import load_crime
    >>> crime = load_crime()                            # doctest: +SKIP
    >>> crime.X.shape, crime.bounds                     # doctest: +SKIP
    ((1994, 99), (0.0, 1.0))

    References
    ----------
    M. Redmond and A. Baveja, A data-driven software tool for enabling cooperative information sharing
    among police departments, European Journal of Operational Research 141 (2002).
    """
    if missing not in _NOTES:
        raise ParameterError(f"missing must be 'columns' or 'rows', got {missing!r}")
    path = find(FILE)
    if path is None and not download:
        raise DataNotFoundError(f"{FILE} was not found, and downloads are not allowed. {_BY_HAND}")
    if path is None:
        path = fetch(URL, cache_folder() / FILE, sha256=SHA256, by_hand=_BY_HAND)
    rows = [line.split(",") for line in read_checked(path, SHA256).decode().split()]
    table = np.array(rows)[:, _NOT_PREDICTIVE:]
    table = np.where(table == "?", "nan", table).astype(np.float64)
    names = COLUMNS[_NOT_PREDICTIVE:]
    other = table[:, names.index("OtherPerCap")]
    other[np.isnan(other)] = np.nanmean(other)
    gaps = np.isnan(table)
    if missing == "columns":
        omitted = {LABEL, "racepctblack", *np.array(names)[gaps.any(axis=0)]}
    else:
        omitted = {LABEL}
        table = table[~gaps.any(axis=1)]
    columns = tuple(name for name in names if name not in omitted)
    X = np.ascontiguousarray(table[:, [names.index(name) for name in columns]])
    return Dataset("crime", X, table[:, names.index(LABEL)], BOUNDS, columns, notes=_COMMON + _NOTES[missing])
