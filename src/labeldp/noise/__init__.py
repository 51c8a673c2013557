"""Exact integers added to a curator's sums, in work that does not depend on the noise."""

from labeldp.noise.integers import DiscreteGaussian, DiscreteLaplace, IntegerNoise, LatticeNorm

__all__ = ["DiscreteGaussian", "DiscreteLaplace", "IntegerNoise", "LatticeNorm"]
