"""Data sets to try the library on."""

from labeldp.datasets.survey import Survey, make_survey
from labeldp.datasets.table import Dataset

__all__ = ["Dataset", "Survey", "make_survey"]
