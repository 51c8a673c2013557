"""Criteo's Sponsored Search Conversion Log, and a synthetic twin of it."""

from reproduction.criteo.log_format import CATEGORIES, COLUMNS
from reproduction.criteo.reader import load_criteo
from reproduction.criteo.twin import make_criteo_like

__all__ = ["CATEGORIES", "COLUMNS", "load_criteo", "make_criteo_like"]
