"""Plan, prepare, terms: the one pipeline by which labels leave, as arrays and as streams."""

from labeldp.release.arrays import Release, privatize
from labeldp.release.terms import Terms

__all__ = ["Release", "Terms", "privatize"]
