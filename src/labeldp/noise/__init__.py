"""Exact integers added to a curator's sums, in work that does not depend on the noise."""

from labeldp.noise.integers import DiscreteLaplace, IntegerNoise

__all__ = ["DiscreteLaplace", "IntegerNoise"]
