"""Label differential privacy for regression: exact, proven, fast.

>>> import labeldp as ldp
>>> mech = ldp.RPWithPrior(interval=(0, 5), zeta=1.5, epsilon=1.0)
>>> private = mech.randomize([0.4, 2.5, 4.1])    # safe to hand on
>>> proof = mech.verify()                        # exact, or raises
"""

from labeldp.channels import Proof
from labeldp.errors import (
    CardError,
    InsecureRandomnessWarning,
    LabelDPError,
    LabelError,
    NotUnbiasedError,
    ParameterError,
    PrivacyProofError,
)
from labeldp.histogram import Histogram
from labeldp.mechanisms import (
    Gaussian,
    Laplace,
    Mechanism,
    NoPrivacy,
    RPWithPrior,
    RROnBins,
    Staircase,
    TwoPoint,
    Unbiased,
    load_mechanism,
)

__version__ = "0.1.0"

__all__ = [
    "CardError",
    "Gaussian",
    "Histogram",
    "InsecureRandomnessWarning",
    "LabelDPError",
    "LabelError",
    "Laplace",
    "Mechanism",
    "NoPrivacy",
    "NotUnbiasedError",
    "ParameterError",
    "PrivacyProofError",
    "Proof",
    "RPWithPrior",
    "RROnBins",
    "Staircase",
    "TwoPoint",
    "Unbiased",
    "__version__",
    "load_mechanism",
]
