"""Plan, prepare, release: the one pipeline for private labels, as arrays and as streams; and private priors."""

from labeldp.release.arrays import Release, estimate_prior, privatize
from labeldp.release.plan import Request
from labeldp.release.stream import LabelStream

__all__ = ["LabelStream", "Release", "Request", "estimate_prior", "privatize"]
