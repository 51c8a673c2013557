"""Plan, prepare, release: the one pipeline for private labels, as arrays and as streams; and private priors."""

from labeldp.release.arrays import estimate_prior
from labeldp.release.plan import Request
from labeldp.release.reports import Reports
from labeldp.release.stream import LabelStream

__all__ = ["LabelStream", "Reports", "Request", "estimate_prior"]
