"""Plan, prepare, release: the one pipeline for private labels, as arrays and as streams; and private priors."""

from labeldp.release.arrays import Release, privatize
from labeldp.release.estimate import estimate_prior

__all__ = ["Release", "estimate_prior", "privatize"]
