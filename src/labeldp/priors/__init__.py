"""Where labels lie, estimated privately: by a curator, or from labels randomised one by one."""

from labeldp.priors.estimate import Method, Reports, check_method, estimate_prior, histogram_from, square_wave

__all__ = ["Method", "Reports", "check_method", "estimate_prior", "histogram_from", "square_wave"]
