"""Where labels lie, estimated privately: by a curator, or from labels randomised one by one."""

from labeldp.priors.curator import curator_histogram
from labeldp.priors.estimate import Method, estimate_prior
from labeldp.priors.local import Reports, local_histogram, square_wave

__all__ = ["Method", "Reports", "curator_histogram", "estimate_prior", "local_histogram", "square_wave"]
