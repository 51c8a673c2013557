"""Label differential privacy for regression: exact, proven, fast.

>>> import labeldp as ldp
>>> mech = ldp.RPWithPrior(interval=(0, 5), zeta=1.5, epsilon=1.0)
>>> private = mech.randomize([0.4, 2.5, 4.1])    # safe to hand on
>>> proof = mech.verify()                        # exact, or raises
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

from labeldp.accounts import Budget, Ledger, load_mechanism, verify_card
from labeldp.errors import BudgetError, InsecureRandomnessWarning, LabelDPError
from labeldp.evidence.fit_audit import audit_fit
from labeldp.evidence.previews import preview
from labeldp.evidence.privacy_audit import audit, audit_pipeline
from labeldp.mechanisms import Gaussian, Laplace, RPWithPrior, RROnBins, Staircase, TwoPoint, Unbiased
from labeldp.mechanisms.histogram import Histogram
from labeldp.mechanisms.interval import optimal_interval
from labeldp.release import Reports, estimate_prior

if TYPE_CHECKING:
    from labeldp.app.file_release import privatize_file
    from labeldp.app.model_fit import fit_file
    from labeldp.inference import private_logit, private_moments, private_ols, private_poisson, side_by_side
    from labeldp.learning import (
        LabelReleaseRegressor,
        ModelReleaseRegressor,
        fit_and_score,
        private_intervals,
        private_score,
        privatize,
    )
    from labeldp.learning.models import load_model, save_model

__version__ = "0.5.0"

__all__ = [
    "Budget",
    "BudgetError",
    "Gaussian",
    "Histogram",
    "InsecureRandomnessWarning",
    "LabelDPError",
    "LabelReleaseRegressor",
    "Laplace",
    "Ledger",
    "ModelReleaseRegressor",
    "RPWithPrior",
    "RROnBins",
    "Reports",
    "Staircase",
    "TwoPoint",
    "Unbiased",
    "__version__",
    "audit",
    "audit_fit",
    "audit_pipeline",
    "estimate_prior",
    "fit_and_score",
    "fit_file",
    "load_mechanism",
    "load_model",
    "optimal_interval",
    "preview",
    "private_intervals",
    "private_logit",
    "private_moments",
    "private_ols",
    "private_poisson",
    "private_score",
    "privatize",
    "privatize_file",
    "save_model",
    "side_by_side",
    "verify_card",
]

_LATER = {
    **dict.fromkeys(["load_model", "save_model"], "labeldp.learning.models"),
    "fit_file": "labeldp.app.model_fit",
    "private_logit": "labeldp.inference",
    "private_moments": "labeldp.inference",
    "private_ols": "labeldp.inference",
    "private_poisson": "labeldp.inference",
    "side_by_side": "labeldp.inference",
    "privatize_file": "labeldp.app.file_release",
}
"""Names outside ``labeldp.learning`` that are imported when they are used."""


def __dir__() -> list[str]:
    """List the public names, for completion: those too that are imported when they are used."""
    return sorted(__all__)


def __getattr__(name: str) -> Any:
    """Import scikit-learn and PyArrow when a name needs them: the one is slow to import, the other an extra."""
    if name not in __all__ and name not in ("inference", "learning", "spark", "tables"):
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    if name not in __all__:
        return import_module(f"labeldp.{name}")
    return globals().setdefault(name, getattr(import_module(_LATER.get(name, "labeldp.learning")), name))
