"""Label differential privacy for regression: exact, proven, fast.

>>> import labeldp as ldp
>>> mech = ldp.RPWithPrior(interval=(0, 5), zeta=1.5, epsilon=1.0)
>>> private = mech.randomize([0.4, 2.5, 4.1])    # safe to hand on
>>> proof = mech.verify()                        # exact, or raises
"""

from typing import TYPE_CHECKING, Any

from labeldp.audit import Audit, audit, audit_pipeline
from labeldp.cards.reading import load_mechanism, read_release_card
from labeldp.channels import Proof
from labeldp.errors import (
    BudgetError,
    CardError,
    InsecureRandomnessWarning,
    LabelDPError,
    LabelError,
    LedgerError,
    NotUnbiasedError,
    ParameterError,
    PrivacyProofError,
    RawLabelWarning,
    RepeatedReleaseWarning,
)
from labeldp.histogram import Histogram
from labeldp.ledger import Budget, Charge, Ledger
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
)
from labeldp.mechanisms.interval import optimal_interval
from labeldp.planning import Preview, preview
from labeldp.priors.estimate import estimate_prior
from labeldp.release.arrays import Release, privatize

if TYPE_CHECKING:
    from labeldp.estimators import (
        IntervalModel,
        LabelReleaseRegressor,
        ModelReleaseRegressor,
        Risk,
        RowRelease,
        fit_and_score,
        private_intervals,
        private_score,
    )
    from labeldp.files.models import load_model, save_model

__version__ = "0.2.0"

__all__ = [
    "Audit",
    "Budget",
    "BudgetError",
    "CardError",
    "Charge",
    "Gaussian",
    "Histogram",
    "InsecureRandomnessWarning",
    "IntervalModel",
    "LabelDPError",
    "LabelError",
    "LabelReleaseRegressor",
    "Laplace",
    "Ledger",
    "LedgerError",
    "Mechanism",
    "ModelReleaseRegressor",
    "NoPrivacy",
    "NotUnbiasedError",
    "ParameterError",
    "Preview",
    "PrivacyProofError",
    "Proof",
    "RPWithPrior",
    "RROnBins",
    "RawLabelWarning",
    "Release",
    "RepeatedReleaseWarning",
    "Risk",
    "RowRelease",
    "Staircase",
    "TwoPoint",
    "Unbiased",
    "__version__",
    "audit",
    "audit_pipeline",
    "estimate_prior",
    "fit_and_score",
    "load_mechanism",
    "load_model",
    "optimal_interval",
    "preview",
    "private_intervals",
    "private_score",
    "privatize",
    "read_release_card",
    "save_model",
]


def __getattr__(name: str) -> Any:
    """Import the regressors when they are asked for: scikit-learn takes a second that most commands can save."""
    if name in ("load_model", "save_model"):
        from labeldp.files import models  # noqa: PLC0415 (an extra)

        return globals().setdefault(name, getattr(models, name))
    if name in __all__:
        from labeldp import estimators  # noqa: PLC0415

        return globals().setdefault(name, getattr(estimators, name))
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
