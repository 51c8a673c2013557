"""The mechanisms, one small file each: parameters → channel; and all that a new one needs.

Every module of this folder is imported, so that a new file is registered without further ado.
"""

from importlib import import_module
from pkgutil import iter_modules

from labeldp.exact.proof import WORDS, Promise, exp_lower
from labeldp.exact.shift import ShiftChannel
from labeldp.exact.table import TableChannel
from labeldp.exact.window import WindowChannel
from labeldp.mechanisms.base import Mechanism, channel_field
from labeldp.mechanisms.gaussian import Gaussian
from labeldp.mechanisms.laplace import Laplace
from labeldp.mechanisms.registry import mechanism_class, mechanism_names, register
from labeldp.mechanisms.rp_with_prior import RPWithPrior
from labeldp.mechanisms.rr_on_bins import RROnBins
from labeldp.mechanisms.staircase import Staircase
from labeldp.mechanisms.unbiased import TwoPoint, Unbiased

__all__ = [
    "WORDS",
    "Gaussian",
    "Laplace",
    "Mechanism",
    "Promise",
    "RPWithPrior",
    "RROnBins",
    "ShiftChannel",
    "Staircase",
    "TableChannel",
    "TwoPoint",
    "Unbiased",
    "WindowChannel",
    "channel_field",
    "exp_lower",
    "mechanism_class",
    "mechanism_names",
    "register",
]

for _module in iter_modules(__path__):
    import_module(f"{__name__}.{_module.name}")
