"""Evidence: audits, checks of mechanisms, previews of accuracy, and example data.

Comparisons are in `labeldp.evidence.comparison`, which imports scikit-learn.
"""

from labeldp.evidence.audit_result import Audit
from labeldp.evidence.fit_audit import FitAudit, audit_fit, canary_labels
from labeldp.evidence.mechanism_checks import CHECKS, check_mechanism
from labeldp.evidence.previews import Preview, preview
from labeldp.evidence.privacy_audit import audit, audit_pipeline
from labeldp.evidence.survey import Survey, make_survey

__all__ = [
    "CHECKS",
    "Audit",
    "FitAudit",
    "Preview",
    "Survey",
    "audit",
    "audit_fit",
    "audit_pipeline",
    "canary_labels",
    "check_mechanism",
    "make_survey",
    "preview",
]
