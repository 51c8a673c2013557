"""The paper's two public tables, Communities and Crime and California Housing; and one that needs no download."""

from reproduction.datasets.crime import load_crime
from reproduction.datasets.dataset import Dataset
from reproduction.datasets.diabetes import load_diabetes
from reproduction.datasets.housing import load_housing

__all__ = ["Dataset", "load_crime", "load_diabetes", "load_housing"]
