"""Data sets to try the library on."""

from labeldp.datasets.survey import Survey, make_survey

__all__ = ["Survey", "make_survey"]
