"""Data sets to try the library on: made ones, and the three of the paper."""

from labeldp.datasets.crime import load_crime
from labeldp.datasets.criteo import load_criteo
from labeldp.datasets.criteo_like import make_criteo_like
from labeldp.datasets.housing import load_housing
from labeldp.datasets.survey import Survey, make_survey
from labeldp.datasets.table import Dataset

__all__ = ["Dataset", "Survey", "load_crime", "load_criteo", "load_housing", "make_criteo_like", "make_survey"]
