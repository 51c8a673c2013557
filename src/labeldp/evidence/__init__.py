"""Evidence: audits, checks of mechanisms, comparisons, previews of accuracy, and example data."""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from labeldp.evidence.audit_result import Audit
    from labeldp.evidence.comparison import Comparison, compare_table
    from labeldp.evidence.conformance import CHECKS, check_mechanism
    from labeldp.evidence.lenses import Lens, standard_lenses
    from labeldp.evidence.previews import Preview, preview
    from labeldp.evidence.privacy_audit import audit, audit_pipeline
    from labeldp.evidence.survey import Survey, make_survey

_MODULES = {
    "CHECKS": "conformance",
    "Audit": "audit_result",
    "Comparison": "comparison",
    "Lens": "lenses",
    "Preview": "previews",
    "Survey": "survey",
    "audit": "privacy_audit",
    "audit_pipeline": "privacy_audit",
    "check_mechanism": "conformance",
    "compare_table": "comparison",
    "make_survey": "survey",
    "preview": "previews",
    "standard_lenses": "lenses",
}

__all__ = [
    "CHECKS",
    "Audit",
    "Comparison",
    "Lens",
    "Preview",
    "Survey",
    "audit",
    "audit_pipeline",
    "check_mechanism",
    "compare_table",
    "make_survey",
    "preview",
    "standard_lenses",
]


def __getattr__(name: str) -> Any:
    """Import a module when it is asked for: comparisons import scikit-learn, which is slow."""
    if name not in _MODULES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(f"{__name__}.{_MODULES[name]}"), name)
