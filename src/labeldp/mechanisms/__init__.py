"""The mechanisms, one small file each: parameters → channel."""

from labeldp.mechanisms.base import Mechanism, load_mechanism
from labeldp.mechanisms.gaussian import Gaussian
from labeldp.mechanisms.laplace import Laplace
from labeldp.mechanisms.no_privacy import NoPrivacy
from labeldp.mechanisms.rp_with_prior import RPWithPrior
from labeldp.mechanisms.rr_on_bins import RROnBins
from labeldp.mechanisms.staircase import Staircase
from labeldp.mechanisms.two_point import TwoPoint
from labeldp.mechanisms.unbiased import Unbiased

__all__ = [
    "Gaussian",
    "Laplace",
    "Mechanism",
    "NoPrivacy",
    "RPWithPrior",
    "RROnBins",
    "Staircase",
    "TwoPoint",
    "Unbiased",
    "load_mechanism",
]
