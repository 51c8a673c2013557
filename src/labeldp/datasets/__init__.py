"""Data sets to try the library on: a synthetic survey, and two public tables."""

from labeldp.datasets.crime import load_crime
from labeldp.datasets.dataset import Dataset, Survey, make_survey
from labeldp.datasets.housing import load_housing

__all__ = ["Dataset", "Survey", "load_crime", "load_housing", "make_survey"]
