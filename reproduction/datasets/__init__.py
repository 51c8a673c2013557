"""The paper's two public tables: Communities and Crime, California Housing."""

from reproduction.datasets.crime import load_crime
from reproduction.datasets.dataset import Dataset
from reproduction.datasets.housing import load_housing

__all__ = ["Dataset", "load_crime", "load_housing"]
