"""A synthetic survey with one sensitive column."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

from labeldp._values import Array, Interval

_REGIONS = 8
_CEILING = 200_000.0


@dataclass(frozen=True, slots=True)
class Survey:
    """A table with one sensitive column. Its text form shows no label.

    Attributes
    ----------
    features : array, rows × columns
        The public columns of each household.
    feature_names : tuple of str
        Names of the columns of ``features``.
    income : array
        The private label, in dollars a year.
    bounds : (float, float)
        Public bounds of the income: the questionnaire offers "0 to 200,000 or more". They come from the form, not
        from the answers.

    Examples
    --------
    >>> from labeldp.evidence import make_survey
    >>> survey = make_survey(rows=1000)
    >>> survey.feature_names[:2], survey.income.shape
    (('age', 'schooling'), (1000,))
    """

    features: Array = field(repr=False)
    feature_names: tuple[str, ...]
    income: Array = field(repr=False)
    bounds: Interval = (0.0, _CEILING)


def make_survey(rows: int = 20_000, seed: int = 0) -> Survey:
    """Return a synthetic survey; the same rows and seed give the same survey.

    Incomes are log-normal around a mean that depends on the features, with a bump for retirement and
    diminishing returns of schooling, and top-coded at 200,000 as real surveys do.

    Parameters
    ----------
    rows : int
        Number of households.
    seed : int
        Of the survey itself; noise that protects it is never seeded.

    Returns
    -------
    Survey

    Examples
    --------
    >>> from labeldp.evidence import make_survey
    >>> survey = make_survey(rows=1000)
    >>> survey.features.shape, survey.bounds
    ((1000, 6), (0.0, 200000.0))
    """
    rng = np.random.default_rng(seed)  # synthetic data: no privacy rests on it
    age = rng.integers(18, 90, rows).astype(np.float64)
    school = np.clip(rng.normal(13, 3, rows).round(), 6, 21)
    adults = rng.choice([1.0, 2.0, 3.0], rows, p=[0.35, 0.5, 0.15])
    children = rng.poisson(0.8, rows).astype(np.float64)
    urban = (rng.random(rows) < 0.7).astype(np.float64)
    region = rng.integers(0, _REGIONS, rows)
    level = np.linspace(-0.25, 0.25, _REGIONS)[region]
    career = np.where(age < 65, -(((age - 50) / 32) ** 2), -0.55 - 0.01 * (age - 65))
    log_income = (
        10.3
        + 0.55 * np.tanh((school - 12) / 4)
        + 0.35 * np.log(adults)
        + 0.12 * urban
        + level
        + career
        + rng.normal(0, 0.45, rows)
    )
    income = np.minimum(np.exp(log_income), _CEILING).round(-1)
    names = ("age", "schooling", "adults", "children", "urban", "region")
    return Survey(np.column_stack([age, school, adults, children, urban, region]), names, income)
